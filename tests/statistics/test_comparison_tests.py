"""compare: which test stands behind which metric, and what many tests at once do to p and to intervals."""

import numpy as np
import pandas as pd
import pytest
from cohorts import load
from scipy import stats

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.comparison import compare
from survexec.statistics.multiplicity import METHODS

PLACE = ["benchmark", "model"]


@pytest.fixture(scope="module")
def whole(paired):
    return compare(paired, resamples=1000)


def only(result, **where):
    frame = result.tests.frame
    for name, value in where.items():
        frame = frame[frame[name] == value]
    return frame


@pytest.mark.parametrize(
    ("test", "metric", "analysis", "item"),
    [
        ("mcnemar_exact", "ter", "mcnemar_ok", "p_exact"),
        ("mcnemar_asymptotic", "success", "mcnemar_Y", "p_nocc"),
        ("wilcoxon", "mean_fed", "coin_wilcoxsign_Pratt_FED", "p_exact"),
        ("wilcoxon", "auc_pec", "coin_wilcoxsign_Pratt_auc", "p_exact"),
        ("paired_t", "mean_fed", "paired_t_FED", "p"),
        ("paired_t", "auc_pec", "paired_t_auc", "p"),
    ],
)
def test_each_test_asked_for_equals_r(paired, paired_in_r, test, metric, analysis, item):
    result = compare(paired, tests=test, metrics=[metric], resamples=100)
    for row in result.frame.itertuples():
        assert row.p_value == pytest.approx(paired_in_r("a_paired", analysis, f"{row.a}:{row.b}", item), abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "analysis"),
    [("ter", "cochranQ_ok"), ("success", "cochranQ_Y"), ("mean_fed", "friedman_FED"), ("auc_pec", "friedman_auc")],
)
def test_the_tests_of_all_methods_at_once_equal_r(whole, paired_in_r, metric, analysis):
    row = only(whole, metric=metric, role="overall").iloc[0]
    assert (row["a"], row["b"], row["df"], row["n_pairs"]) == ("all", "", 3, 120)
    assert row["statistic"] == pytest.approx(paired_in_r("a_paired", analysis, "all", "Q"), abs=1e-10)
    assert row["p_value"] == pytest.approx(paired_in_r("a_paired", analysis, "all", "p"), abs=1e-12)


def test_survival_tests_in_a_comparison_equal_survival_tests(paired):
    from survexec.statistics.survival_tests import survival_tests

    result = compare(paired, tests=["prentice_wilcoxon", "log_rank_by_task"], metrics=["mean_fed"], resamples=100)
    apart = survival_tests(paired, tests=["prentice_wilcoxon", "log_rank_by_task"]).frame
    apart = apart[apart["b"] != ""].set_index(["a", "b", "test"])["p_value"]
    for role, name in (("primary", "prentice_wilcoxon"), ("further", "log_rank_by_task")):
        for row in only(result, role=role).itertuples():
            assert row.p_value == pytest.approx(apart[row.a, row.b, name], abs=1e-14)


def test_the_first_test_is_primary_and_alone_enters_the_family(paired):
    result = compare(paired, tests=["mcnemar_exact", "sign_flip"], metrics=["ter", "auc_pec"], resamples=100)
    ter = only(result, metric="ter", a="base", b="react")
    assert ter[["test", "role"]].values.tolist() == [["McNemar, exact", "primary"], ["sign-flip, exact", "further"]]
    assert ter["p_adjusted"].notna().tolist() == [True, False]
    assert result.frame["p_value"].notna().sum() == 12


def test_a_test_that_does_not_apply_leaves_the_default_of_other_metrics(paired):
    result = compare(paired, tests="wilcoxon", metrics=["ter", "auc_pec", "rr"], resamples=100)
    assert set(result.frame.loc[result.frame["metric"] == "ter", "test"]) == {"Wilcoxon signed-rank (Pratt), exact"}
    assert result.frame.loc[result.frame["metric"] == "rr", "test"].eq("").all()


def test_no_tests_when_none_are_asked_for(paired):
    result = compare(paired, tests=(), resamples=100)
    assert result.frame[["p_value", "p_adjusted", "simultaneous_lower"]].isna().all(axis=None)
    assert result.tests.frame.empty
    assert result.tests.frame.columns[:5].tolist() == [*PLACE, "metric", "a", "b"]


def test_tests_may_be_named_metric_by_metric(paired):
    result = compare(paired, tests={"rr": "bootstrap", "ter": "paired_t"}, metrics=["ter", "rr"], resamples=500)
    assert set(result.frame["test"]) == {"paired t", "bootstrap, expanded percentile inverted"}


def test_mcnemar_of_several_trials_is_replaced_by_sign_flip_and_said(clustered):
    result = compare(clustered, tests="mcnemar_exact", metrics=["ter"], resamples=100)
    assert result.frame["test"].tolist() == ["sign-flip, exact"]
    assert "McNemar's test needs one rollout a task" in result.notes[0]
    assert not any("McNemar" in note for note in compare(clustered, resamples=100).notes)


def test_an_area_without_a_manageable_denominator_is_drawn_and_says_how_well(paired):
    frame = paired.frame.assign(length=paired.frame["length"] + 13 + np.arange(len(paired)) % 60)
    row = compare(Rollouts(frame), baseline="base", metrics=["auc_pec"], resamples=100).tests.frame.iloc[0]
    assert row["test"] == "sign-flip, Monte Carlo"
    assert 0 < row["standard_error"] < 0.002


def test_fewer_than_100_tasks_get_no_bootstrap_test(degenerate):
    with pytest.raises(InputError, match="6 tasks are too few"):
        compare(degenerate, tests="bootstrap", metrics=["ter"], resamples=100)


@pytest.mark.parametrize("adjust", METHODS)
def test_every_adjustment_names_the_family_and_its_intervals_match_its_decisions(whole, adjust):
    result = whole.with_adjustment(adjust)
    tested = result.frame.dropna(subset="p_value")
    assert len(tested) == 24
    assert (tested["p_adjusted"] >= tested["p_value"] - 1e-12).all() or adjust == "romano_wolf"
    assert any("over a family of 24 tests" in note for note in result.notes)
    narrower = (tested["simultaneous_lower"] > tested["lower"] + 1e-12) | (
        tested["simultaneous_upper"] < tested["upper"] - 1e-12
    )
    assert not narrower.any() or adjust == "romano_wolf"
    if adjust == "romano_wolf":
        apart = (tested["simultaneous_lower"] > 0) | (tested["simultaneous_upper"] < 0)
        assert (tested.loc[apart, "p_adjusted"] <= 0.05).all()
        assert apart.any()
    outside = result.frame[result.frame["p_value"].isna()]
    assert outside["simultaneous_lower"].isna().all()


def test_romano_wolf_is_less_strict_than_holm_where_tests_depend_on_each_other(paired):
    """TER of methods, and the same method many times: one hypothesis, not ten."""
    frame = paired.frame
    twins = [frame[frame["method"] == "verify"].assign(method=f"verify{i}") for i in range(10)]
    data = Rollouts(pd.concat([frame[frame["method"] == "base"], *twins]))
    result = compare(data, baseline="base", metrics=["ter"], tests="bootstrap", resamples=4000)
    one = compare(paired.select(method=["base", "verify"]), baseline="base", metrics=["ter"], adjust="romano_wolf",
                  resamples=4000)  # fmt: skip
    together = result.with_adjustment("romano_wolf").frame["p_adjusted"]
    assert together.max() == pytest.approx(one.frame["p_adjusted"].item(), abs=1e-12)
    assert (together < result.frame["p_adjusted"]).all()


def test_pairs_on_other_tasks_are_told_apart_for_romano_wolf(degenerate):
    result = compare(degenerate, adjust="romano_wolf", resamples=500)
    assert any("resampled apart" in note for note in result.notes)


def test_ratios_are_those_of_the_counts(whole):
    ratios = whole.ratios.frame.set_index(["metric", "a", "b", "measure"])
    row = whole.frame.set_index(["metric", "a", "b"]).loc["ter", "base", "verify"]
    risk = ratios.loc["ter", "base", "verify", "risk_ratio"]
    assert risk["event"] == "erring"
    assert risk["ratio"] == pytest.approx((1 - row["estimate_a"]) / (1 - row["estimate_b"]))
    odds = ratios.loc["ter", "base", "verify", "odds_ratio"]
    assert odds["ratio"] == pytest.approx(
        (1 - row["estimate_a"]) / row["estimate_a"] / ((1 - row["estimate_b"]) / row["estimate_b"])
    )
    frame = whole.ratios.frame
    assert frame["ratio"].between(frame["lower"], frame["upper"]).all()


def test_a_ratio_against_no_errors_is_bounded_below_and_says_why(degenerate):
    ratios = compare(degenerate, resamples=100).ratios.frame.set_index(["metric", "a", "b", "measure"])
    row = ratios.loc["ter", "m1", "m0", "risk_ratio"] if ("ter", "m1", "m0", "risk_ratio") in ratios.index else None
    row = ratios.loc["ter", "m0", "m1", "risk_ratio"] if row is None else row
    assert row["ratio"] == 0
    assert row["lower"] == 0
    assert row["upper"] < 1
    undefined = ratios.loc["rr", "m0", "m1", "risk_ratio"]
    assert np.isnan(undefined["ratio"])
    assert "0/0" in undefined["reason"]


def test_swapping_the_sides_inverts_a_ratio_and_its_limits(paired):
    there = compare(paired.select(method=["base", "verify"]), baseline="base", resamples=100).ratios.frame
    back = compare(paired.select(method=["base", "verify"]), baseline="verify", resamples=100).ratios.frame
    risk = there["measure"] == "risk_ratio"
    assert there["ratio"].to_numpy() == pytest.approx(1 / back["ratio"].to_numpy())
    assert there.loc[risk, "lower"].to_numpy() == pytest.approx(1 / back.loc[risk, "upper"].to_numpy())


def test_equivalence_is_what_the_interval_says(whole):
    found = whole.equivalence({"ter": 0.2, "mean_fed": 1.0}).frame
    assert set(found["metric"]) == {"ter", "mean_fed"}
    assert ((found["lower"] > -found["margin"]) & (found["upper"] < found["margin"])).tolist() == (
        found["conclusion"] == "equivalent"
    ).tolist()
    assert ((found["p_equivalent"] < 0.05) == (found["conclusion"] == "equivalent")).all()
    assert ((found["p_non_inferior"] < 0.05) == found["conclusion"].isin(["equivalent", "not inferior"])).all()


def test_equivalence_by_the_jackknife_is_two_t_tests():
    paired = load("a_paired", strata=False)
    result = compare(paired, interval="jackknife_t", metrics=["mean_fed"], resamples=100)
    found = result.equivalence({"mean_fed": 0.5}).frame.set_index(["a", "b"])
    wide = paired.frame.pivot(index="task_id", columns="method", values="fed")
    for (a, b), row in found.iterrows():
        gap = wide[a] - wide[b]
        low = stats.ttest_1samp(gap, -0.5, alternative="greater").pvalue
        high = stats.ttest_1samp(gap, 0.5, alternative="less").pvalue
        assert row["p_non_inferior"] == pytest.approx(low, abs=2e-6)
        assert row["p_equivalent"] == pytest.approx(max(low, high), abs=2e-6)


def test_no_p_of_equivalence_is_below_what_the_resamples_can_show(paired):
    result = compare(paired, metrics=["ter"], resamples=500)
    found = result.equivalence({"ter": 0.9}).frame
    # no resample lies beyond so wide a margin
    assert (found["p_equivalent"] >= 1 / 501).all()
    assert (found["p_equivalent"] < 0.01).all()
    assert (result.with_interval(interval="tango").equivalence({"ter": 0.9}).frame["p_equivalent"] < 1e-5).all()


def test_a_wider_margin_never_makes_equivalence_harder(whole):
    p = [whole.equivalence({"auc_pec": margin}).frame["p_equivalent"].to_numpy() for margin in (0.05, 0.1, 0.2, 0.4)]
    assert (np.diff(p, axis=0) <= 1e-6).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tests": "wald"}, "test 'wald' is unknown"),
        ({"tests": {"rr": "mcnemar_exact"}}, "cannot test 'rr'"),
        ({"adjust": "bonferoni"}, "adjust = 'bonferoni'"),
    ],
)
def test_wrong_names_of_tests_and_adjustments_are_refused(paired, wrong, message):
    with pytest.raises(InputError, match=message):
        compare(paired, **wrong)


@pytest.mark.parametrize(
    ("margin", "message"), [(-0.1, "above 0"), ({"recall": 0.1}, "was not compared"), ({}, "none of")]
)
def test_a_margin_without_sense_is_refused(whole, margin, message):
    with pytest.raises(InputError, match=message):
        whole.equivalence(margin)
