"""summarize: which interval each number gets, denominators, notes, and asking again without drawing again."""

import numpy as np
import pandas as pd
import pytest
from cohorts import rollouts
from hypothesis import given

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics import proportions
from survexec.statistics.estimands import METRICS
from survexec.statistics.summary import summarize

COUNTS = ["rollouts", "tasks", "rr_eligible", "zero_calls"]


def cell(summary, **where):
    frame = summary.frame
    for name, value in where.items():
        frame = frame[frame[name] == value]
    return frame.set_index("metric")


def test_the_frame_is_tidy_and_complete(paired):
    frame = summarize(paired, by=("model", "method"), resamples=200).frame
    assert frame.columns.tolist() == [
        "model",
        "method",
        "metric",
        "estimate",
        "lower",
        "upper",
        "denominator",
        "interval",
    ]
    assert set(frame["metric"]) == {*METRICS, *COUNTS}
    assert len(frame) == 4 * (len(METRICS) + len(COUNTS))
    assert frame["method"].drop_duplicates().tolist() == ["base", "react", "plan", "verify"]


def test_proportions_get_wilson_and_means_bca(paired, paired_in_r):
    rows = cell(summarize(paired, by="method", resamples=200), method="base")
    assert set(rows.loc[["ter", "rr", "success", "clean_success", "success_after_error"], "interval"]) == {"wilson"}
    assert set(rows.loc[["mean_fed", "auc_pec", "mean_length"], "interval"]) == {"bca"}
    assert set(rows.loc[COUNTS, "interval"]) == {""}
    low, high = map(float, proportions.wilson(41, 120, proportions.normal_quantile(0.95)))
    assert rows.loc["ter", ["lower", "upper"]].tolist() == pytest.approx([low, high], abs=1e-12)


def test_several_trials_of_a_task_get_wilson_on_the_effective_number(clustered, boot_in_r):
    rows = cell(summarize(clustered, by="method", resamples=200), method="base")
    assert rows.loc["ter", "interval"] == "wilson_effective_n"
    p, error = rows.loc["ter", "estimate"], boot_in_r("b_clustered", "clusterse_mean_ok_cadjTRUE", "base", "se")
    size = p * (1 - p) / error**2
    expected = list(map(float, proportions.wilson(p * size, size, proportions.normal_quantile(0.95))))
    assert rows.loc["ter", ["lower", "upper"]].tolist() == pytest.approx(expected, abs=1e-9)


def test_every_number_has_its_denominator(paired):
    rows = cell(summarize(paired, by="method", resamples=200), method="base")
    assert rows.loc["rr", "denominator"] == rows.loc["rr_eligible", "estimate"] == 79
    assert rows.loc["clean_success", "denominator"] == 41
    assert rows.loc["success_after_error", "denominator"] == 51
    assert rows.loc["ter", "denominator"] == 120


def test_another_level_or_method_comes_from_the_same_replicates(paired):
    summary = summarize(paired, by="method", resamples=500, rng=3)
    again = summary.with_interval(level=0.8, interval="percentile")
    assert again.sample is summary.sample
    fresh = summarize(paired, by="method", resamples=500, rng=3, level=0.8, interval="percentile")
    pd.testing.assert_frame_equal(again.frame, fresh.frame)
    assert again.made["level"] == 0.8
    pd.testing.assert_frame_equal(again.with_interval(level=0.95).frame, summary.frame)


def test_the_same_seed_gives_the_same_frame(paired):
    first, second = (summarize(paired, by="method", resamples=300, rng=np.random.default_rng(1)) for _ in range(2))
    pd.testing.assert_frame_equal(first.frame, second.frame)


@pytest.mark.parametrize("interval", ["wilson", "percentile", "expanded_percentile", "bca", "jackknife_t"])
def test_any_method_can_be_asked_for(paired, interval):
    frame = summarize(paired, by="method", resamples=200, interval=interval).frame
    rows = frame[frame["metric"].isin(METRICS)]
    assert (rows["lower"] <= rows["estimate"]).all()
    assert (rows["estimate"] <= rows["upper"]).all()


def test_a_number_that_is_the_same_in_every_task_gets_no_interval_and_says_why(degenerate):
    summary = summarize(degenerate, by="method", resamples=200)
    row = cell(summary, method="m0").loc["auc_pec"]
    assert row["estimate"] == 1
    assert np.isnan(row["lower"])
    assert any("m0: AUC-PEC is the same in all 6 tasks" in note for note in summary.notes)


def test_one_task_has_no_interval_of_a_mean(paired):
    summary = summarize(paired.select(task_id="t001"), by="method", resamples=200)
    assert cell(summary, method="base").loc[["mean_fed", "auc_pec"], "lower"].isna().all()
    assert any("one task" in note for note in summary.notes)


def test_unknown_success_leaves_the_denominator_and_is_told():
    data = Rollouts(pd.DataFrame({"task_id": [1, 2, 3], "length": 2, "fed": [3, 3, 1], "success": [1, None, 0]}))
    summary = summarize(data, resamples=200)
    rows = cell(summary)
    assert rows.loc["success", "denominator"] == 2
    assert rows.loc["clean_success", ["estimate", "denominator"]].tolist() == [1.0, 1]
    assert any("1 of 3 rollouts have no recorded success" in note for note in summary.notes)


def test_the_ledger_travels_with_the_result(paired):
    assert summarize(paired, resamples=200).ledger.equals(paired.ledger)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"level": 95}, "between 0 and 1"), ({"interval": "wald"}, "must be one of"), ({"resamples": 10}, "at least 100")],
)
def test_wrong_arguments_are_refused_with_what_would_be_right(paired, wrong, message):
    with pytest.raises(InputError, match=message):
        summarize(paired, by="method", **{"resamples": 200, **wrong})


@given(rollouts())
def test_intervals_hold_their_estimates_and_nothing_leaks_from_numpy(data):
    frame = summarize(data, by="method", resamples=100).frame
    rows = frame[frame["lower"].notna() & (frame["interval"] != "bca")]
    assert (rows["lower"] <= rows["estimate"] + 1e-12).all()
    assert (rows["upper"] >= rows["estimate"] - 1e-12).all()
