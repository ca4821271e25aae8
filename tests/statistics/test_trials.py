"""Several trials of a task: the analysis of variance is the textbook's, pass@k and pass^k count sets of trials."""

from fractions import Fraction
from itertools import combinations
from math import comb, inf, sqrt

import numpy as np
import pandas as pd
import pytest
from cohorts import load, rollouts
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import survexec as sx
from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.pass_rates import all_succeed, pass_at
from survexec.statistics.trials import MEASURES, trial_variance


def values_of(frame):
    """Each metric of each rollout, straight from its definition; NaN where success is unknown."""
    clean = frame["fed"] > frame["length"]
    success = frame["success"].astype("Float64").astype(float)
    area = [(fed - 1) / length if length else 1.0 for fed, length in zip(frame["fed"], frame["length"], strict=True)]
    return pd.DataFrame({
        "task": frame["benchmark"] + "/" + frame["task_id"], "method": frame["method"], "ter": clean.astype(float),
        "success": success, "executed_success": success * clean, "mean_fed": frame["fed"].astype(float),
        "auc_pec": area,
    })  # fmt: skip


def one_cell(tasks, **columns):
    """Rollouts of given successes by task, all clean."""
    rows = [(name, at, y) for name, ys in tasks.items() for at, y in enumerate(ys)]
    frame = pd.DataFrame(rows, columns=["task_id", "trial", "success"])
    return Rollouts(frame.assign(length=3, fed=4, **columns))


def split(data, metric="success", **options):
    return trial_variance(data, by=(), metrics=metric, **options).frame.iloc[0]


def without_rows(data, share, seed=1):
    """The same data with some rollouts lost, so that tasks have different numbers of trials."""
    keep = np.random.default_rng(seed).random(len(data)) > share
    return Rollouts(data.frame[keep])


def mean_squares(part, metric):
    """Between and within tasks, and the trials of each task, by the textbook."""
    groups = [values.to_numpy() for _, values in part.dropna(subset=[metric]).groupby("task")[metric]]
    n, means = np.array([len(ys) for ys in groups]), np.array([ys.mean() for ys in groups])
    with np.errstate(invalid="ignore"):
        between = (n * (means - np.concatenate(groups).mean()) ** 2).sum() / np.float64(len(n) - 1)
    spare = n.sum() - len(n)
    within = sum(((ys - ys.mean()) ** 2).sum() for ys in groups) / spare if spare else np.nan
    return between, within, n


@pytest.mark.parametrize("lost", [0.0, 0.4])
def test_components_are_those_of_the_analysis_of_variance(clustered, lost):
    data = without_rows(clustered, lost)
    values = values_of(data.frame)
    for row in trial_variance(data, by="method").frame.itertuples():
        part = values[values["method"] == row.method]
        between, within, n = mean_squares(part, row.metric)
        size = (n.sum() - (n**2).sum() / n.sum()) / (len(n) - 1)
        assert row.within == pytest.approx(within, rel=1e-10)
        assert row.between == pytest.approx(max((between - within) / size, 0), rel=1e-8)
        assert row.estimate == pytest.approx(part[row.metric].mean(), abs=1e-14)
        assert (row.n_tasks, row.n_rollouts, row.trials) == (len(n), n.sum(), n.mean())


def test_the_ratio_of_mean_squares_is_the_f_of_scipy(clustered):
    values = values_of(without_rows(clustered, 0.4).frame)
    part = values[values["method"] == "base"]
    between, within, n = mean_squares(part, "mean_fed")
    f = stats.f_oneway(*(ys for _, ys in part.groupby("task")["mean_fed"])).statistic
    assert between / within == pytest.approx(f, rel=1e-10)
    row = split(without_rows(clustered, 0.4).select(method="base"), "mean_fed")
    size = (n.sum() - (n**2).sum() / n.sum()) / (len(n) - 1)
    assert 1 + size * row["between"] / row["within"] == pytest.approx(f, rel=1e-10)


def test_three_tasks_of_two_trials_by_hand():
    row = split(one_cell({"a": [1, 1], "b": [0, 0], "c": [1, 0]}))
    # squares within: 1/2 on 3 degrees of freedom; between: means 1, 0, 1/2, so 2 (1/4 + 1/4) on 2
    assert row["within"] == pytest.approx(1 / 6)
    assert row["between"] == pytest.approx((1 / 2 - 1 / 6) / 2)
    assert row["icc"] == pytest.approx(1 / 2)
    assert row["standard_error"] == pytest.approx(sqrt(1 / 6 / 3 + 1 / 6 / 6))
    assert row["trial_share"] == pytest.approx(1 / 3)
    assert row["enough"] == 5


def test_the_standard_error_of_equal_trials_is_that_of_the_task_means(clustered):
    frame = trial_variance(clustered, by="method").frame.set_index(["method", "metric"])
    means = values_of(clustered.frame).groupby(["method", "task"]).mean()
    for (method, metric), row in frame.iterrows():
        assert row["between"] > 0  # else the two differ by what was clipped
        assert row["standard_error"] == pytest.approx(means.loc[method, metric].sem(), rel=1e-10)


def test_the_standard_error_of_unequal_trials_is_the_variance_of_the_weighted_mean(clustered):
    data = without_rows(clustered, 0.4)
    n = data.frame.groupby(["method", "task_id"]).size()
    for row in trial_variance(data, by="method", metrics="ter").frame.itertuples():
        weights = n[row.method] / n[row.method].sum()
        variance = sum(w**2 * (row.between + row.within / m) for w, m in zip(weights, n[row.method], strict=True))
        assert row.standard_error == pytest.approx(sqrt(variance), rel=1e-10)


def test_estimates_are_those_of_the_summary(clustered):
    data = without_rows(clustered, 0.3)
    summary = sx.summarize(data, by="method", resamples=100).frame.set_index(["method", "metric"])["estimate"]
    frame = trial_variance(data, by="method", metrics=["ter", "success", "auc_pec", "mean_fed"]).frame
    for row in frame.itertuples():
        assert row.estimate == pytest.approx(summary[row.method, row.metric], abs=1e-14)


@pytest.mark.parametrize("metric", MEASURES)
def test_enough_is_the_first_number_from_which_doubling_saves_less_than_a_twentieth(clustered, metric):
    for row in trial_variance(clustered, by="method", metrics=metric).frame.itertuples():

        def error(m, row=row):
            return sqrt(row.between / row.n_tasks + row.within / (row.n_tasks * m))

        saving = [1 - error(2 * m) / error(m) for m in range(1, 200)]
        assert row.enough == 1 + next(at for at, saved in enumerate(saving) if saved < 0.05)


def test_the_curve_holds_the_standard_error_at_each_number_of_trials(clustered):
    result = trial_variance(clustered, by="method", metrics=["ter", "mean_fed"], trials=(3, 1))
    assert result.curve.columns.tolist() == ["method", "metric", "point", "trials", "standard_error"]
    for row in result.frame.itertuples():
        curve = result.curve.query("method == @row.method and metric == @row.metric")
        assert curve["point"].tolist() == ["asked", "asked", "enough", "limit", "now"]
        assert curve["trials"].tolist() == [1, 3, row.enough, inf, 4]
        expected = [sqrt((row.between + row.within / m) / 60) for m in (1, 3, row.enough, inf, 4)]
        assert curve["standard_error"].tolist() == pytest.approx(expected, rel=1e-12)
        assert curve["standard_error"].iloc[-1] == row.standard_error


def test_without_being_asked_the_curve_reaches_what_is_enough(clustered):
    result = trial_variance(clustered, by="method")
    asked = result.curve.query("point == 'asked'")["trials"].unique()
    assert asked.tolist() == [1, 2, 4, 8, 16, 32, 64, 128]  # success of base needs 68
    assert trial_variance(clustered, by="method", metrics="auc_pec").made["trials"] == [1, 2, 4, 8, 16, 32]
    plain = trial_variance(one_cell({"a": [1, 1], "b": [0, 0], "c": [1, 0]}))
    assert plain.made["trials"] == [1, 2, 4, 8, 16]


def test_the_interval_of_the_icc_is_the_jackknife_of_log_f_done_task_by_task(clustered):
    data = clustered.select(method="base")

    def log_f(values):
        between, within, _ = mean_squares(values, "ter")
        return np.log(between / within)

    values, tasks = values_of(data.frame), data.frame["task_id"].unique()
    without = np.array([log_f(values[values["task"] != f"unknown/{task}"]) for task in tasks])
    error = sqrt(59 / 60 * ((without - without.mean()) ** 2).sum())
    ends = np.exp(log_f(values) + np.array([-1, 1]) * stats.t.ppf(0.95, 59) * error)
    row = split(data, "ter", level=0.9)
    assert [row["icc_lower"], row["icc_upper"]] == pytest.approx(((ends - 1) / (ends - 1 + 4)).tolist(), rel=1e-8)


def simulated(a, b, cells=150, tasks=50, trials=4, seed=5):
    """Cohorts whose tasks have chances of success from a beta distribution, one cohort a method."""
    rng = np.random.default_rng(seed)
    chance = np.repeat(rng.beta(a, b, (cells, tasks))[..., None], trials, axis=2)
    cell, task, trial = (index.ravel() for index in np.indices(chance.shape))
    hit = (rng.random(chance.shape) < chance).ravel()
    return Rollouts(pd.DataFrame({
        "method": cell.astype(str), "task_id": task, "trial": trial, "length": 2, "fed": 3, "success": hit
    }))  # fmt: skip


def test_intervals_cover_the_icc_of_binary_outcomes():
    frame = trial_variance(simulated(1, 1), by="method", metrics="success").frame
    inside = frame["icc_lower"].le(1 / 3) & frame["icc_upper"].ge(1 / 3)
    assert 0.91 <= inside.mean() <= 0.99
    assert frame["icc"].mean() == pytest.approx(1 / 3, abs=0.02)


def test_intervals_cover_pass_at_k_and_pass_hat_k():
    frame = pass_at(simulated(1, 1), by="method", k=3, outcomes="success", resamples=1000).frame
    for convention, truth in (("pass@k", 3 / 4), ("pass^k", 1 / 4)):  # 1 - E(1-p)^3, E p^3 for uniform p
        part = frame[frame["convention"] == convention]
        assert 0.91 <= (part["lower"].le(truth) & part["upper"].ge(truth)).mean() <= 0.99
        assert part["estimate"].mean() == pytest.approx(truth, abs=0.01)


@settings(max_examples=8)
@given(rollouts(trials=4))
def test_any_table_splits_into_parts_that_add_up(data):
    frame = trial_variance(data, by="method").frame
    values = values_of(data.frame)
    assert len(frame) == len(MEASURES) * data.frame["method"].nunique()
    for row in frame[frame["n_rollouts"] > 0].itertuples():
        _, within, n = mean_squares(values[values["method"] == row.method], row.metric)
        assert (row.n_tasks, row.n_rollouts) == (len(n), n.sum())
        assert row.within == pytest.approx(within, abs=1e-10, nan_ok=True)
        if not np.isnan(row.icc):
            assert 0 <= row.icc <= 1
            assert row.icc * (row.between + row.within) == pytest.approx(row.between)
            assert 0 <= row.trial_share <= 1
        if not np.isnan(row.icc_lower):
            assert 0 <= row.icc_lower <= row.icc + 1e-9
            assert row.icc <= row.icc_upper + 1e-9 <= 1 + 2e-9


def test_the_order_of_rows_and_the_other_cells_change_nothing(clustered):
    frame = trial_variance(clustered, by="method").frame
    turned = trial_variance(Rollouts(clustered.frame.iloc[::-1]), by="method").frame
    pd.testing.assert_frame_equal(frame, turned.sort_values("method", kind="stable", ignore_index=True), rtol=0)
    alone = trial_variance(clustered.select(method="verify"), by="method").frame
    pd.testing.assert_frame_equal(frame[frame["method"] == "verify"].reset_index(drop=True), alone)


def test_identical_methods_have_identical_numbers(clustered):
    base = clustered.select(method="base").frame
    frame = trial_variance(Rollouts(pd.concat([base, base.assign(method="copy")])), by="method").frame
    first, second = (frame[frame["method"] == name].drop(columns="method") for name in ("base", "copy"))
    pd.testing.assert_frame_equal(first.reset_index(drop=True), second.reset_index(drop=True))


def test_a_single_trial_a_task_has_no_split_but_a_standard_error(paired):
    result = trial_variance(paired.select(method="base"), metrics=["ter", "mean_fed"])
    values = values_of(paired.select(method="base").frame)
    for row in result.frame.itertuples():
        assert np.isnan([row.between, row.within, row.icc, row.icc_lower, row.trial_share, row.enough]).all()
        assert row.standard_error == pytest.approx(values[row.metric].sem(), rel=1e-12)
    assert "no task has two trials" in result.notes[-1]
    assert "TER, Mean FED: " in result.notes[-1]


def test_tasks_that_differ_less_than_chance_have_no_variance_between_them():
    result = trial_variance(one_cell({"a": [1, 0], "b": [0, 1], "c": [1, 0]}), metrics="success")
    row = result.frame.iloc[0]
    assert (row["between"], row["icc"], row["enough"], row["trial_share"]) == (0, 0, inf, 1)
    assert row["standard_error"] == pytest.approx(sqrt(0.5 / 6))
    assert any("taken as 0" in note for note in result.notes)
    assert result.curve.set_index("point").loc["limit", "standard_error"] == 0


def test_trials_that_agree_make_one_enough():
    result = trial_variance(one_cell({"a": [1, 1], "b": [0, 0, 0], "c": [0, 0]}), metrics="success")
    row = result.frame.iloc[0]
    assert (row["within"], row["icc"], row["enough"], row["trial_share"]) == (0, 1, 1, 0)
    assert np.isnan(row["icc_lower"])
    assert any("all trials of a task agree" in note for note in result.notes)


def test_repeated_thirds_leave_no_variance_of_rounding():
    frame = pd.DataFrame({"task_id": [*"aaabbb"], "trial": [0, 1, 2] * 2, "length": [3] * 3 + [7] * 3, "fed": 2})
    row = split(Rollouts(frame), "auc_pec")
    assert (row["within"], row["enough"]) == (0, 1)
    assert row["between"] == pytest.approx((1 / 3 - 1 / 7) ** 2 / 2)


@pytest.mark.parametrize(("length", "fed"), [(4, 5), (4, 1), (0, 1)])
def test_rollouts_that_are_all_alike_have_nothing_to_split(length, fed):
    frame = pd.DataFrame({"task_id": [*"aabb"], "trial": [0, 1, 0, 1], "length": length, "fed": fed, "success": 1})
    result = trial_variance(Rollouts(frame))
    assert (result.frame[["between", "within", "standard_error"]] == 0).all(axis=None)
    assert result.frame[["icc", "icc_lower", "trial_share", "enough"]].isna().all(axis=None)
    assert any("no variance to split" in note for note in result.notes)
    assert any("made no call" in note for note in result.notes) == (length == 0)
    rates = pass_at(Rollouts(frame), resamples=100)
    assert rates.frame[["lower", "upper"]].isna().all(axis=None)
    assert set(rates.frame["interval"]) == {""}
    assert any("no two tasks differ" in note for note in rates.notes)


def test_one_task_says_nothing_of_other_tasks():
    result = trial_variance(one_cell({"a": [1, 0, 1]}), metrics="success")
    row = result.frame.iloc[0]
    assert row["within"] == pytest.approx(1 / 3)
    assert np.isnan([row["between"], row["icc"], row["standard_error"], row["enough"]]).all()
    assert any("one task" in note for note in result.notes)


def test_variance_that_stands_in_one_task_gives_no_interval():
    result = trial_variance(one_cell({"a": [1, 1], "b": [0, 0], "c": [1, 0]}), metrics="success")
    assert np.isnan(result.frame["icc_lower"].item())
    assert any("without one of its tasks" in note for note in result.notes)


def test_unknown_successes_leave_success_but_not_execution():
    data = one_cell({"a": [1, 0, None], "b": [0, 0, None], "c": [None, None, None]})
    result = trial_variance(data, metrics=["ter", "success"])
    frame = result.frame.set_index("metric")
    assert frame["n_rollouts"].to_dict() == {"ter": 9, "success": 4}
    assert frame["n_tasks"].to_dict() == {"ter": 3, "success": 2}
    assert any("5 of 9 rollouts have no recorded success" in note for note in result.notes)
    rates = pass_at(data, k=(1, 2, 3), resamples=100)
    counts = rates.frame[rates.frame["convention"] == "pass@k"].set_index(["outcome", "k"])["n_tasks"]
    assert counts["success"].tolist() == [2, 2, 0]
    assert counts["ter"].tolist() == [3, 3, 3]
    nothing = trial_variance(one_cell({"a": [None, None]}), metrics="success")
    assert nothing.frame["estimate"].isna().all()
    assert any("0/0" in note for note in nothing.notes)


@pytest.mark.parametrize(
    "wrong", [{"metrics": "rr"}, {"metrics": []}, {"trials": 0}, {"trials": [2.5]}, {"trials": []}, {"level": 2}]
)
def test_wrong_arguments_of_the_split_are_named(clustered, wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        trial_variance(clustered, **wrong)


# pass@k and pass^k


def rates(data, outcome="success", **options):
    frame = pass_at(data, by=(), outcomes=outcome, **{"resamples": 100, **options}).frame
    return {name: part["estimate"].tolist() for name, part in frame.groupby("convention")}


def by_counting(outcomes, k):
    """Share of all sets of k trials with any, and with only, successes."""
    sets = list(combinations(outcomes, k))
    return np.mean([any(chosen) for chosen in sets]), np.mean([all(chosen) for chosen in sets])


def test_both_conventions_are_shares_of_sets_of_trials(clustered):
    data = without_rows(clustered, 0.2)
    frame = pass_at(data, by="method", k=(1, 2, 3, 4), resamples=100).frame
    values = values_of(data.frame)
    for row in frame.itertuples():
        tasks = values[values["method"] == row.method].groupby("task")[row.outcome]
        sets = [by_counting(ys.astype(bool), row.k) for _, ys in tasks if len(ys) >= row.k]
        assert row.estimate == pytest.approx(np.mean(sets, axis=0)[int(row.convention == "pass^k")], abs=1e-12)
        assert row.n_tasks == len(sets) > 0


@given(st.integers(1, 1000), st.data())
def test_shares_are_exact_to_a_thousand_trials(n, data):
    c = data.draw(st.integers(0, n))
    ks = sorted(set(data.draw(st.lists(st.integers(1, n), min_size=1, max_size=5))))
    found = all_succeed(np.array(float(c)), np.array(float(n)), ks)
    expected = [float(Fraction(comb(c, k), comb(n, k))) for k in ks]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)
    assert [value == 0 for value in found] == [c < k for k in ks]


@settings(max_examples=8)
@given(rollouts(trials=4))
def test_any_rises_all_falls_and_they_meet_at_one_trial(data):
    result = pass_at(data, by="method", k=(1, 2, 3, 4), resamples=100)
    values = values_of(data.frame)
    tasks = values.groupby(["method", "task"])[list(result.made["outcomes"])].agg(["mean", "count"])
    for (method, outcome), part in result.frame.groupby(["method", "outcome"]):
        table = part.pivot(index="k", columns="convention", values="estimate")
        means, known = tasks.loc[method, (outcome, "mean")], tasks.loc[method, (outcome, "count")]
        assert table.loc[1].tolist() == pytest.approx([means.mean()] * 2, abs=1e-12, nan_ok=True)
        counts = part[part["convention"] == "pass@k"].set_index("k")["n_tasks"]
        assert counts.tolist() == [int((known >= k).sum()) for k in (1, 2, 3, 4)]
        assert (table.isna().all(axis=1) == (counts == 0)).all()
        assert (table["pass@k"] >= table["pass^k"] - 1e-12)[counts > 0].all()
        if counts.nunique() == 1:  # the same tasks at each k
            assert (table["pass@k"].diff().dropna() >= -1e-12).all()
            assert (table["pass^k"].diff().dropna() <= 1e-12).all()


def test_any_success_is_the_complement_of_all_failures(clustered):
    turned = Rollouts(clustered.frame.assign(success=1 - clustered.frame["success"].astype(int)))
    one, other = rates(clustered), rates(turned)
    assert one["pass@k"] == pytest.approx([1 - value for value in other["pass^k"]], abs=1e-12)


def test_with_equal_trials_one_trial_gives_the_metric(clustered):
    summary = sx.summarize(clustered, by="method", resamples=100).frame
    frame = pass_at(clustered, by="method", resamples=100).frame
    for row in frame[(frame["k"] == 1) & frame["outcome"].isin(["ter", "success"])].itertuples():
        same = summary[(summary["method"] == row.method) & (summary["metric"] == row.outcome)]
        assert row.estimate == pytest.approx(same["estimate"].item(), abs=1e-14)


def test_with_unequal_trials_each_task_counts_once_and_the_note_says_so():
    data = one_cell({"a": [1, 1, 1, 1], "b": [0], "c": [1, 0]})
    result = pass_at(data, k=(1, 2, 4), outcomes="success", resamples=100)
    frame = result.frame[result.frame["convention"] == "pass@k"]
    assert frame["estimate"].tolist() == pytest.approx([0.5, 1, 1])
    assert frame["n_tasks"].tolist() == [3, 2, 1]
    assert any("each task counts once" in note for note in result.notes)
    assert any("1 at k = 2, 2 at k = 4" in note for note in result.notes)


def test_by_default_k_goes_to_what_half_of_the_tasks_have():
    few = one_cell({"a": [1] * 9, "b": [0, 1, 0], "c": [1, 0, 1], "d": [1]})
    assert pass_at(few, resamples=100).made["k"] == [1, 2, 3]
    many = one_cell({"a": [1, 0] * 25, "b": [0] * 50})
    assert pass_at(many, resamples=100).made["k"] == [*range(1, 17), 32, 50]


def test_gpt_4o_on_the_airline_is_as_published_and_by_hand():
    """The benchmark's own table has 0.420, 0.273, 0.220 and 0.200 for this agent and these trials."""
    data = sx.datasets.load_tau_airline_gpt4o()
    assert [round(value, 3) for value in rates(data)["pass^k"]] == [0.420, 0.273, 0.220, 0.200]
    # one, two and three of four trials succeed
    counts = data.frame.groupby("task_id")["success"].sum()
    three = [counts.index[counts == c][0] for c in (1, 2, 3)]
    found = rates(data.select(task_id=three))
    assert found["pass^k"] == pytest.approx([1 / 2, (0 + 1 / 6 + 3 / 6) / 3, (1 / 4) / 3, 0])
    assert found["pass@k"] == pytest.approx([1 / 2, (3 / 6 + 5 / 6 + 1) / 3, (3 / 4 + 1 + 1) / 3, 1])


def test_logs_and_the_table_in_the_package_agree(shared):
    read = sx.read(shared / "data" / "tau" / "gpt-4o_airline.json")
    for outcome in ("success", "executed_success", "ter"):
        assert rates(read, outcome) == rates(sx.datasets.load_tau_airline_gpt4o(), outcome)


def test_success_without_error_needs_both(clustered):
    either = [rates(clustered, name)["pass^k"] for name in ("success", "ter")]
    both = rates(clustered, "executed_success")["pass^k"]
    assert (np.array(both) <= np.array(either) + 1e-12).all()
    clean = Rollouts(clustered.frame.assign(fed=clustered.frame["length"] + 1, error_class=None))
    assert rates(clean, "executed_success") == rates(clean, "success")


def test_the_same_seed_gives_the_same_intervals_and_cells_share_their_weights(clustered):
    first, again, other = (pass_at(clustered, by="method", resamples=200, rng=seed).frame for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(first, again)
    assert not first["lower"].equals(other["lower"])
    alone = pass_at(clustered.select(method="verify"), by="method", resamples=200, rng=3).frame
    pd.testing.assert_frame_equal(first[first["method"] == "verify"].reset_index(drop=True), alone)
    inside = first.dropna(subset=["lower"])
    assert (inside["lower"] <= inside["estimate"]).all()
    assert (inside["estimate"] <= inside["upper"]).all()


def test_columns_are_the_same_whatever_is_asked(clustered):
    tail = ["outcome", "convention", "k", "estimate", "lower", "upper", "n_tasks", "interval"]
    for options in ({}, {"k": 2}, {"outcomes": "ter"}, {"level": 0.5}):
        assert pass_at(clustered, resamples=100, **options).frame.columns.tolist()[3:] == tail
    assert pass_at(load("c_degenerate"), by=(), resamples=100).frame.columns.tolist() == tail


@pytest.mark.parametrize(
    "wrong", [{"outcomes": "mean_fed"}, {"k": 0}, {"k": []}, {"k": [1.5]}, {"resamples": 5}, {"level": 0}, {"rng": -1}]
)
def test_wrong_arguments_of_pass_at_are_named(clustered, wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        pass_at(clustered, **wrong)


def test_no_rollouts_at_all_are_refused(clustered):
    for analyse in (trial_variance, pass_at):
        with pytest.raises(InputError, match="no rollouts"):
            analyse(clustered.select(method="none"))
