"""compare: paired by task, honest about what could not be paired, equal to R, and stable."""

import itertools

import numpy as np
import pandas as pd
import pytest
from cohorts import rollouts
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from survexec.errors import InputError, PairingError
from survexec.rollouts import Rollouts
from survexec.statistics.comparison import compare
from survexec.statistics.estimands import METRICS
from survexec.statistics.multiplicity import adjusted

COLUMNS = [
    "metric", "a", "b", "estimate_a", "estimate_b", "difference", "lower", "upper", "p_value", "p_adjusted", "test",
    "interval", "n_pairs", "denominator_a", "denominator_b", "simultaneous_lower", "simultaneous_upper",
]  # fmt: skip


@pytest.fixture(scope="module")
def whole(paired):
    return compare(paired, resamples=1000)


def at(result, metric, a, b):
    frame = result.frame
    return frame[(frame["metric"] == metric) & (frame["a"] == a) & (frame["b"] == b)].iloc[0]


def test_every_pair_and_metric_has_its_row(whole):
    assert whole.frame.columns.tolist() == ["benchmark", "model", *COLUMNS]
    assert len(whole.frame) == 6 * len(METRICS)
    assert (whole.frame["difference"] == whole.frame["estimate_a"] - whole.frame["estimate_b"]).all()


@pytest.mark.parametrize(
    ("metric", "analysis", "item"),
    [("ter", "mcnemar_ok", "p_midp"), ("success", "mcnemar_Y", "p_midp"), ("mean_fed", "signflip_conv_FED", "p_exact")],
)
def test_p_values_equal_r(whole, paired_in_r, metric, analysis, item):
    pairs = whole.frame[["a", "b"]].drop_duplicates().itertuples(index=False)
    for a, b in pairs:
        expected = paired_in_r("a_paired", analysis, f"{a}:{b}", item)
        assert at(whole, metric, a, b)["p_value"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("interval", "analysis"), [("newcombe", "newcombe10"), ("tango", "tango")])
@pytest.mark.parametrize(("metric", "outcome"), [("ter", "ok"), ("success", "Y")])
def test_closed_form_intervals_equal_r(whole, paired_in_r, interval, analysis, metric, outcome):
    row = at(whole.with_interval(interval=interval), metric, "base", "verify")
    assert row["interval"] == interval
    for side, name in (("lower", "lo"), ("upper", "hi")):
        expected = paired_in_r("a_paired", f"pairdiff_{analysis}_{outcome}", "base:verify", name)
        assert row[side] == pytest.approx(expected, abs=1e-10)


def test_the_default_is_the_expanded_percentile_and_mover_for_shares_of_few(whole):
    assert at(whole, "auc_pec", "base", "verify")["interval"] == "expanded_percentile"
    few = whole.pairs[0].pair
    assert few.tally.total["rollouts"].tolist() == [120, 120]
    rows = whole.frame[whole.frame["metric"].isin(["rr", "clean_success", "success_after_error"])]
    n, p = rows[["denominator_a", "denominator_b"]].to_numpy(), rows[["estimate_a", "estimate_b"]].to_numpy()
    small, rare = n.min(axis=1) < 20, np.minimum(n * p, n * (1 - p)).min(axis=1) < 5 - 1e-9
    assert 0 < (small | rare).sum() < len(rows)
    expected = np.select([small, rare], ["mover", "mover_jeffreys"], "expanded_percentile")
    assert (rows["interval"] == expected).all()


def test_a_share_of_few_gets_mover_and_says_what_it_rests_on(degenerate):
    result = compare(degenerate, resamples=200)
    row = at(result, "rr", "m1", "m2")
    assert (row["interval"], row["denominator_a"], row["denominator_b"]) == ("mover", 6, 3)
    assert any("m1 - m2: RR rests on 6 and 3" in note for note in result.notes)


def test_a_share_with_few_hits_gets_mover_from_jeffreys_limits_however_many_it_rests_on():
    n = np.arange(40)
    sides = [
        pd.DataFrame(
            {"task_id": n.astype(str), "method": name, "length": 3, "fed": np.where(n < erred, 1, 4), "success": 1}
        )
        for name, erred in (("few", 2), ("more", 9))
    ]
    result = compare(Rollouts(pd.concat(sides)), resamples=200)
    row = at(result, "success_after_error", "few", "more")
    assert (row["interval"], row["denominator_a"]) == ("mover_jeffreys", 40)
    (l1, l2), (u1, u2) = (stats.beta.ppf(q, [2.5, 9.5], [38.5, 31.5]) for q in (0.025, 0.975))
    assert row["lower"] == pytest.approx(2 / 40 - 9 / 40 - np.hypot(2 / 40 - l1, u2 - 9 / 40), abs=1e-12)
    assert row["upper"] == pytest.approx(2 / 40 - 9 / 40 + np.hypot(u1 - 2 / 40, 9 / 40 - l2), abs=1e-12)
    assert any("success after error rests on 40 and 40, with 2 on the rarer side" in n.lower() for n in result.notes)


def two_sides(n, only_first, only_second):
    """Two methods on n tasks: only the first is clean on so many, only the second on so many, both on the rest."""
    at = np.arange(n)
    erred = {"x": (only_first <= at) & (at < only_first + only_second), "y": at < only_first}
    sides = [
        pd.DataFrame({"task_id": at.astype(str), "method": name, "length": 3, "fed": np.where(bad, 1, 4)})
        for name, bad in erred.items()
    ]
    return Rollouts(pd.concat(sides))


def test_where_few_tasks_differ_the_default_covers_what_resampling_does_not():
    n, chances = 20, (0.05, 0.02)
    covered = np.zeros(2)
    for b, c in itertools.product(range(8), range(6)):
        chance = stats.multinomial.pmf([b, c, n - b - c], n, [*chances, 1 - sum(chances)])
        if chance > 1e-5:
            result = compare(two_sides(n, b, c), metrics=["ter"], resamples=400)
            assert result.frame["difference"].item() == pytest.approx((b - c) / n)
            for at, made in enumerate((result, result.with_interval(interval="expanded_percentile"))):
                covered[at] += chance * made.frame.eval("lower <= 0.03 <= upper").item()
    assert covered == pytest.approx([0.998, 0.864], abs=0.01)


@pytest.mark.parametrize(
    ("b", "c", "interval"), [(4, 0, "newcombe"), (2, 2, "newcombe"), (3, 2, "expanded_percentile")]
)
def test_the_interval_of_a_share_is_newcombes_where_fewer_than_five_tasks_differ(b, c, interval):
    result = compare(two_sides(30, b, c), resamples=200)
    assert at(result, "ter", "x", "y")["interval"] == interval
    notes = [note for note in result.notes if "alone" in note]
    assert ("x - y: TER differs on 4 tasks alone; its interval is Newcombe's" in notes) == (b + c == 4)
    assert ("x - y: AUC-PEC differs on 4 tasks alone; so few make its interval too narrow" in notes) == (b + c == 4)


@pytest.mark.parametrize("interval", [None, "newcombe", "tango"])
def test_a_table_of_pairs_gives_no_interval_where_a_success_is_unknown_on_one_side(interval):
    frame = two_sides(30, 2, 1).frame
    n, ours = frame["task_id"].astype(int), frame["method"] == "x"
    frame["success"] = np.where(ours | (n >= 10), (n < 20) | (ours & (n == 20)), np.nan)
    result = compare(Rollouts(frame), metrics=["success"], resamples=400, interval=interval)
    row = at(result, "success", "x", "y")
    assert (row["interval"], row["denominator_a"], row["denominator_b"]) == ("expanded_percentile", 30, 20)
    assert row["difference"] == pytest.approx(21 / 30 - 10 / 20)
    assert row["lower"] < row["difference"] < row["upper"]
    assert any(
        "Success is known on both sides of 20 of 30 tasks, which its test takes alone" in n for n in result.notes
    )
    assert any("Success differs on 1 task alone; so few make its interval too narrow" in note for note in result.notes)


def test_tasks_on_one_side_only_are_left_out_and_listed(degenerate):
    result = compare(degenerate, resamples=200)
    assert at(result, "ter", "m0", "m3")["n_pairs"] == 5
    assert at(result, "success", "m0", "m3")["estimate_a"] == pytest.approx(0.8)
    assert any("m0 - m3" in note and "c06" in note for note in result.notes)


def test_no_task_in_common_is_refused_with_names_of_both_sides():
    data = Rollouts(pd.DataFrame({"task_id": ["a", "b"], "method": ["x", "y"], "length": 1, "fed": 2}))
    with pytest.raises(PairingError, match=r"x and y have no task in common \(tasks such as 'a' against 'b'\)"):
        compare(data)


def test_a_pair_without_common_tasks_does_not_stop_the_others(degenerate):
    stranger = degenerate.frame[degenerate.frame["method"] == "m0"].assign(method="m9", task_id=list("uvwxyz"))
    result = compare(Rollouts(pd.concat([degenerate.frame, stranger])), resamples=200)
    assert "m9" not in set(result.frame["a"]) | set(result.frame["b"])
    assert sum("and m9 have no task in common" in note for note in result.notes) == 4
    assert "all 5 values of method have no task in common, so there is no test of all at once" in result.notes


def test_a_baseline_is_subtracted_from_the_others(paired):
    result = compare(paired, baseline="base", metrics=["ter"], resamples=200)
    assert result.frame["b"].tolist() == ["base"] * 3
    assert result.frame["a"].tolist() == ["react", "plan", "verify"]


def test_pairs_stay_within_their_cell(paired):
    data = paired.frame.assign(model=np.where(paired.frame["method"].isin(["base", "react"]), "small", "large"))
    result = compare(Rollouts(data), resamples=200, metrics=["ter"])
    assert result.frame[["model", "a", "b"]].values.tolist() == [
        ["small", "base", "react"],
        ["large", "plan", "verify"],
    ]


def test_several_trials_are_compared_by_task_means_not_by_rollouts(clustered):
    row = at(compare(clustered, resamples=200), "ter", "base", "verify")
    assert (row["test"], row["n_pairs"]) == ("sign-flip, exact", 60)


def test_holm_goes_over_the_whole_call_and_the_family_is_named(whole):
    assert whole.frame["p_value"].notna().sum() == 24
    expected = adjusted(whole.frame["p_value"].to_numpy(), "holm")
    assert whole.frame["p_adjusted"].to_numpy() == pytest.approx(expected, nan_ok=True)
    family = "Holm over a family of 24 tests: TER, Mean FED, AUC-PEC, Success; 6 pairs of method within benchmark"
    assert any(family in note for note in whole.notes)


def test_another_level_comes_from_the_same_replicates_and_leaves_the_tests(paired, whole):
    fresh = compare(paired, resamples=1000, level=0.8, interval="bca")
    pd.testing.assert_frame_equal(whole.with_interval(level=0.8, interval="bca").frame, fresh.frame)


def test_a_method_against_itself_has_difference_0_p_1_and_no_false_certainty(paired):
    twin = pd.concat([paired.select(method="base").frame, paired.select(method="base").frame.assign(method="twin")])
    result = compare(Rollouts(twin), resamples=200)
    assert (result.frame["difference"] == 0).all()
    assert (result.frame["p_value"].dropna() == 1).all()
    binary = result.frame[result.frame["metric"].isin(["ter", "success"])]
    assert (binary["interval"] == "newcombe").all()
    assert (binary["upper"] > binary["lower"]).all()
    others = result.frame[~result.frame["metric"].isin(["ter", "success"])]
    assert others["lower"].isna().all()
    assert sum("same on every task" in note for note in result.notes) == len(METRICS)


def test_a_number_undefined_on_one_side_is_nan_with_the_reason(degenerate):
    result = compare(degenerate, resamples=200)
    assert at(result, "rr", "m0", "m1")[["difference", "lower", "upper", "p_value"]].isna().all()
    assert "m0 - m1: RR is undefined in m0: no rollout erred (0/0)" in result.notes


def test_one_common_task_is_no_trouble(degenerate):
    result = compare(degenerate.select(task_id="c01"), resamples=200)
    assert (result.frame["n_pairs"] == 1).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"between": "colour"}, "no column"),
        ({"baseline": "nobody"}, "baseline 'nobody'"),
        ({"metrics": ["tre"]}, "metric 'tre'"),
        ({"interval": "wald"}, "must be one of"),
        ({"between": "model"}, "one value only"),
        ({"within": ["method"]}, "cannot also"),
    ],
)
def test_wrong_arguments_are_refused_with_what_would_be_right(paired, wrong, message):
    with pytest.raises(InputError, match=message):
        compare(paired, **wrong)


@given(rollouts(), st.randoms(use_true_random=False))
def test_pairing_does_not_depend_on_the_order_of_rows(data, random):
    order = list(range(len(data)))
    random.shuffle(order)
    try:
        first = compare(data, baseline="m0", resamples=100).frame
    except InputError:
        return
    second = compare(Rollouts(data.frame.iloc[order]), baseline="m0", resamples=100).frame
    pd.testing.assert_frame_equal(first, second)
