"""The parts of a success difference: they add up, are Shapley's and Kitagawa's, and say what they rest on."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from cohorts import rollouts
from hypothesis import given, settings
from hypothesis import strategies as st

from survexec.datasets import load_tau_retail_methods
from survexec.errors import InputError, PairingError
from survexec.rollouts import Rollouts
from survexec.statistics import pairing
from survexec.statistics.attribution import attribute, shapley_parts
from survexec.statistics.comparison import compare
from survexec.statistics.difference_intervals import mean_weight
from survexec.statistics.estimands import METRICS
from survexec.statistics.resampling import task_weights
from survexec.statistics.summary import resampled_bounds
from survexec.statistics.tally import count

PARTS = ["ter", "clean_success", "rr"]
share = st.floats(0, 1)


def of_counts(seed=0, **methods):
    """Rollouts of some methods on the same tasks, from counts (clean and successful, clean not, recovered, lost)."""
    frames = []
    for method, numbers in methods.items():
        kinds = np.random.default_rng(seed).permutation(np.repeat(np.arange(4), numbers))
        frames.append(pd.DataFrame({
            "method": method, "task_id": range(len(kinds)), "length": 4, "fed": np.where(kinds < 2, 5, 2),
            "success": (kinds % 2 == 0).astype(int),
        }))  # fmt: skip
        seed += 1
    return pd.concat(frames, ignore_index=True)


def parts(result):
    return result.frame.set_index("part")


def success(ter, s, rr):
    return ter * s + (1 - ter) * rr


def shapley_by_definition(a, b):
    """Each factor's mean change of success over the orders in which the factors are switched from b to a."""
    found = np.zeros(3)
    for order in permutations(range(3)):
        state = list(b)
        for factor in order:
            before = success(*state)
            state[factor] = a[factor]
            found[factor] += (success(*state) - before) / 6
    return found


@given(st.tuples(share, share, share), st.tuples(share, share, share))
def test_the_closed_form_is_the_average_over_the_six_orders(a, b):
    assert shapley_parts(a, b) == pytest.approx(shapley_by_definition(a, b), abs=1e-14)


@settings(max_examples=15)
@given(rollouts())
def test_the_parts_add_to_the_success_difference(data):
    try:
        result = attribute(data, strata=True, resamples=100)
    except InputError:
        return
    sums = result.strata[result.strata["stratum"] == ""].set_index("part")["estimate"]
    assert sums.drop("total").sum(skipna=False) == pytest.approx(sums["total"], abs=1e-15, nan_ok=True)
    if result.frame.empty:
        return
    frame = parts(result)["estimate"]
    runs = data.frame.dropna(subset="success")
    common = set.intersection(*(set(data.frame.loc[data.frame["method"] == m, "task_id"]) for m in ("m0", "m1")))
    rate = runs[runs["task_id"].isin(common)].groupby("method")["success"].mean().reindex(data.frame["method"].unique())
    first, second = rate.astype(float)
    assert frame["total"] == pytest.approx(first - second, abs=1e-15, nan_ok=True)
    if frame[PARTS].notna().all():
        assert frame[PARTS].sum() == pytest.approx(frame["total"], abs=1e-15)


def test_equal_success_hides_parts_of_opposite_sign():
    # the worked case of the paper: dual loop 188 of 200 clean, plan conditioned 94, of whose 106 others 93 recovered
    data = Rollouts(of_counts(dual=(188, 0, 0, 12), plan=(94, 0, 93, 13)))
    frame = parts(attribute(data, resamples=200))
    ter, rr = (0.94 - 0.47) * (1 - 93 / 106 / 2), -(93 / 106) * (1 - (0.94 + 0.47) / 2)
    assert frame.loc[PARTS, "estimate"].tolist() == pytest.approx([ter, 0, rr], abs=1e-15)
    assert frame.loc["total", "estimate"] == pytest.approx(0.005, abs=1e-15)
    assert frame.loc["ter", "lower"] > 0 > frame.loc["rr", "upper"]
    assert frame["denominator_a"].to_dict() == {"ter": 200, "clean_success": 188, "rr": 12, "total": 200}
    assert frame.loc["rr", ["estimate_a", "estimate_b"]].tolist() == [0, 93 / 106]


def test_swapping_the_sides_flips_every_sign():
    data = Rollouts(of_counts(x=(40, 20, 10, 30), y=(20, 30, 25, 25)))
    forth, back = (attribute(data, baseline=name, resamples=300).frame for name in ("y", "x"))
    assert (forth["estimate"] == -back["estimate"]).all()
    assert forth["lower"].tolist() == pytest.approx((-back["upper"]).tolist(), abs=1e-12)


def test_identical_methods_differ_in_nothing_and_resampling_gives_no_interval():
    frame = of_counts(x=(25, 20, 23, 22))
    result = attribute(Rollouts(pd.concat([frame, frame.assign(method="y")])), resamples=100)
    assert (result.frame["estimate"] == 0).all()
    assert result.frame[["lower", "upper"]].isna().all(axis=None)
    assert any("no task moves the part of TER, s, RR, success" in note for note in result.notes)


def test_equal_rates_of_few_have_an_interval_around_0():
    frame = of_counts(x=(5, 3, 2, 2))
    result = attribute(Rollouts(pd.concat([frame, frame.assign(method="y")])), resamples=100)
    assert (result.frame["estimate"] == 0).all()
    found = parts(result)
    assert found.loc[["ter", "total"], ["lower", "upper"]].isna().all(axis=None)
    assert (found.loc[["clean_success", "rr"], "lower"] == -found.loc[["clean_success", "rr"], "upper"]).all()
    assert (found.loc[["clean_success", "rr"], "upper"] > 0.1).all()
    assert any("no task moves the part of TER, success" in note for note in result.notes)


def test_without_errors_on_one_side_ter_and_rr_cannot_be_told_apart():
    result = attribute(Rollouts(of_counts(x=(15, 5, 0, 0), y=(6, 4, 5, 5))), resamples=200)
    frame = parts(result)
    assert frame.loc[["ter", "rr"], ["estimate", "lower", "upper"]].isna().all(axis=None)
    assert frame.loc["clean_success", "estimate"] == pytest.approx((0.75 - 0.6) * (1 + 0.5) / 2, abs=1e-15)
    assert frame.loc["total", "estimate"] == pytest.approx(0.75 - 0.55, abs=1e-15)
    assert frame.loc["total", "lower"] < 0.2 < frame.loc["total", "upper"]
    assert "x - y: RR is undefined in x: no rollout erred (0/0)" in result.notes
    assert "x - y: what TER and RR contribute cannot be told apart; together it is +0.087" in result.notes


@pytest.mark.parametrize(
    ("x", "y", "all_of_it", "symbol"),
    [((6, 4, 0, 0), (3, 7, 0, 0), "clean_success", "RR"), ((0, 0, 6, 4), (0, 0, 3, 7), "rr", "s")],
)
def test_a_factor_without_weight_on_either_side_has_the_part_zero(x, y, all_of_it, symbol):
    result = attribute(Rollouts(of_counts(x=x, y=y)), resamples=100)
    frame = parts(result)["estimate"]
    assert frame[all_of_it] == pytest.approx(0.3, abs=1e-15)
    assert (frame.drop([all_of_it, "total"]) == 0).all()
    assert f"x - y: {symbol} has no weight on either side, so that its part is 0" in result.notes


def test_all_clean_against_all_erred_leaves_only_the_total():
    frame = parts(attribute(Rollouts(of_counts(x=(8, 2, 0, 0), y=(0, 0, 5, 5))), resamples=100))["estimate"]
    assert frame[PARTS].isna().all()
    assert frame["total"] == pytest.approx(0.3, abs=1e-15)


def test_where_no_success_is_known_there_are_no_numbers():
    data = of_counts(x=(3, 2, 1, 1), y=(2, 2, 2, 1))
    result = attribute(Rollouts(data.assign(success=data["success"].where(data["method"] == "x"))), resamples=100)
    assert result.frame["estimate"].isna().all()
    assert (result.frame["interval"] == "").all()
    assert "x - y: success is undefined in y: no rollout has a recorded success (0/0)" in result.notes


def test_ter_is_that_of_the_rollouts_whose_success_is_known():
    data = of_counts(x=(10, 10, 10, 10), y=(10, 10, 5, 15))
    hidden = (data["method"] == "x") & (data["fed"] == 2) & (data["task_id"] < 20)
    result = attribute(Rollouts(data.assign(success=data["success"].mask(hidden))), resamples=100)
    frame = parts(result)
    assert frame.loc["ter", "estimate_a"] == 20 / (40 - hidden.sum())
    assert frame.loc[PARTS, "estimate"].sum() == pytest.approx(frame.loc["total", "estimate"], abs=1e-15)
    assert any(f"{hidden.sum()} of 40 rollouts of x have no recorded success" in note for note in result.notes)


@pytest.fixture(scope="module")
def several_trials():
    """Two methods, three trials of each of 25 tasks, and the frame in which each task is a row of sums."""
    rng = np.random.default_rng(8)
    task = np.tile(np.repeat(np.arange(25), 3), 2)
    clean = rng.random(150) < np.repeat([0.6, 0.4], 75)
    frame = pd.DataFrame({
        "method": np.repeat(["x", "y"], 75), "task_id": task, "trial": np.tile(np.arange(3), 50), "length": 3,
        "fed": np.where(clean, 4, 1), "success": (rng.random(150) < np.where(clean, 0.8, 0.5)).astype(int),
    })  # fmt: skip
    rates = pd.DataFrame({
        "n": 1, "clean": clean, "y": frame["success"] == 1, "both": clean & (frame["success"] == 1),
    }).astype(float)  # fmt: skip
    sums = rates.groupby([frame["method"], frame["task_id"].astype(str)]).sum()
    return Rollouts(frame), {m: sums.loc[m].to_numpy() for m in "xy"}


def parts_by_hand(sums, weights):
    """Parts and total at weights of tasks, by the definition of the Shapley value."""
    n, clean, y, both = np.stack([weights @ sums[m] for m in "xy"]).T
    a, b = zip(clean / n, both / clean, (y - both) / (n - clean), strict=True)
    return [*shapley_by_definition(a, b), y[0] / n[0] - y[1] / n[1]]


def test_the_interval_is_that_of_resampling_whole_tasks_on_both_sides(several_trials):
    data, sums = several_trials
    (weights,) = task_weights(np.zeros(25, int), 400, seed=3)
    drawn = np.array([parts_by_hand(sums, w) for w in weights])
    frame = attribute(data, interval="percentile", level=0.9, resamples=400, rng=3).frame
    expected = np.quantile(drawn, [0.05, 0.95], axis=0, method="weibull")
    np.testing.assert_allclose(frame[["lower", "upper"]].T, expected, rtol=0, atol=1e-12)
    assert frame["estimate"].tolist() == pytest.approx(parts_by_hand(sums, np.ones(25)), abs=1e-14)


def test_the_jackknife_leaves_out_whole_tasks_on_both_sides(several_trials):
    data, sums = several_trials
    without = np.array([parts_by_hand(sums, 1.0 - np.eye(25)[task]) for task in range(25)])
    error = np.sqrt(24 / 25 * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    frame = attribute(data, interval="jackknife_t", resamples=100).frame
    width = (frame["upper"] - frame["lower"]).to_numpy()
    assert width == pytest.approx(2 * 2.0638985616280205 * error, rel=1e-9)  # t of 24 degrees of freedom at 0.975


def test_the_total_has_the_interval_of_the_success_difference(paired):
    between, within = pairing.checked_design("method", None)
    tally = count(paired, (*within, between))
    pairs, _ = pairing.paired(tally, between, within, None)
    samples = pairing.differences(tally, pairs, [METRICS["success"]], 300, 5)
    expected = [[float(bound[0, 0]) for bound in resampled_bounds(s, "expanded_percentile", 0.95)] for s in samples]
    frame = attribute(paired, resamples=300, rng=5).frame.query("part == 'total'")
    np.testing.assert_allclose(frame[["lower", "upper"]], expected, rtol=0, atol=1e-12)


def test_another_level_or_method_comes_from_the_same_replicates(paired):
    result = attribute(paired, resamples=200, strata=True)
    fresh = attribute(paired, resamples=200, strata=True, level=0.8, interval="bca")
    again = result.with_interval(0.8, "bca")
    pd.testing.assert_frame_equal(again.frame, fresh.frame)
    pd.testing.assert_frame_equal(again.strata, fresh.strata)
    assert again.made == fresh.made
    pd.testing.assert_frame_equal(result.with_interval().frame, result.frame)


def test_a_task_of_one_side_is_left_out_and_named():
    data = of_counts(x=(4, 2, 2, 2), y=(3, 3, 2, 2))
    result = attribute(Rollouts(data[(data["method"] == "x") | (data["task_id"] != 7)]), resamples=100)
    assert (result.frame["n_pairs"] == 9).all()
    assert any("1 of the tasks are not on all sides and are left out: 7" in note for note in result.notes)


def test_a_small_denominator_and_undefined_resamples_are_noted():
    result = attribute(Rollouts(of_counts(x=(30, 17, 1, 2), y=(20, 10, 10, 10))), resamples=300)
    assert any("RR rests on 3 and 20 rollouts" in note for note in result.notes)
    resampled = attribute(Rollouts(of_counts(x=(30, 17, 1, 2), y=(20, 10, 10, 10))), interval="bca", resamples=300)
    assert not any("there is no part of" in note for note in result.notes)
    (note,) = (note for note in resampled.notes if "resamples there is no part of TER, RR" in note)
    # a resample of 50 tasks misses these three with probability (1 - 3/50)^50 = 0.045
    assert 3 <= int(note.split("in ")[1].split()[0]) <= 30


# parts of few


def wilson(x, n, z=1.959963984540054):
    """Roots of |x / n - p| = z sqrt(p (1 - p) / n)."""
    return np.sort(np.roots([1 + z**2 / n, -(2 * x / n + z**2 / n), (x / n) ** 2]).real)


def product_of(one, two):
    """Ends of a product over a fine walk around the ellipse of the limits of both; (estimate, lower, upper) each."""
    turn = np.linspace(0, np.pi / 2, 20001)
    walked = [
        (one[0] + (end1 - one[0]) * np.sin(turn)) * (two[0] + (end2 - two[0]) * np.cos(turn))
        for end1 in one[1:]
        for end2 in two[1:]
    ]
    return [np.min(walked), np.max(walked)]


def apart(x, n):
    """A difference of two independent shares with MOVER's limits, then their estimates and limits."""
    p, (a, b) = np.array(x) / np.array(n), (wilson(*side) for side in zip(x, n, strict=True))
    gap = p[0] - p[1]
    return gap, gap - np.hypot(p[0] - a[0], b[1] - p[1]), gap + np.hypot(a[1] - p[0], p[1] - b[0])


@pytest.fixture(scope="module")
def few():
    """RR of 3 and of 16 rollouts, s of 47 and of 34, fifty tasks."""
    return of_counts(x=(30, 17, 1, 2), y=(20, 14, 9, 7))


def test_the_part_of_an_rr_of_few_is_mover_of_weight_and_difference(few):
    row = parts(attribute(Rollouts(few), resamples=100)).loc["rr"]
    erred = few.assign(erred=few["fed"] == 2).pivot(index="task_id", columns="method", values="erred").sum(axis=1)
    weight = (3 + 16) / 100
    # a task is a cluster of two rollouts
    variance = ((erred - 2 * weight) ** 2).sum() * 50 / 49 / 100**2
    size = min(weight * (1 - weight) / variance, 100)
    expected = product_of((weight, *wilson(weight * size, size)), apart((1, 9), (3, 16)))
    assert row["interval"] == "mover"
    assert row[["lower", "upper"]].tolist() == pytest.approx(expected, abs=1e-7)


def test_the_part_of_ter_is_mover_too_where_rr_rests_on_few(few):
    frame = parts(attribute(Rollouts(few), resamples=100))
    clean = few.assign(clean=few["fed"] == 5).pivot(index="task_id", columns="method", values="clean").to_numpy(float)
    (a, b), rho = (wilson(k, 50) for k in (47, 34)), np.corrcoef(clean.T)[0, 1]
    less, more = (
        np.sqrt(down**2 + up**2 - 2 * rho * down * up)
        for down, up in ((0.94 - a[0], b[1] - 0.68), (a[1] - 0.94, 0.68 - b[0]))
    )
    gap = (0.26, 0.26 - less, 0.26 + more)
    sides = np.array([apart((30, 1), (47, 3)), apart((20, 9), (34, 16))])
    mean = sides[:, 0].mean()
    ends = [mean + side * np.hypot(*(sides[:, at] - sides[:, 0])) / 2 for side, at in ((-1, 1), (1, 2))]
    assert frame.loc["ter", ["lower", "upper"]].tolist() == pytest.approx(product_of(gap, (mean, *ends)), abs=1e-7)
    assert frame["interval"].to_dict() == {
        "ter": "mover", "clean_success": "expanded_percentile", "rr": "mover", "total": "expanded_percentile",
    }  # fmt: skip


def test_an_interval_asked_for_is_used_for_parts_of_few_too(few):
    result = attribute(Rollouts(few), interval="expanded_percentile", resamples=100)
    assert (result.frame["interval"] == "expanded_percentile").all()
    assert any("RR rests on 3 and 16 rollouts; so few make the intervals" in note for note in result.notes)
    pd.testing.assert_frame_equal(result.with_interval().frame, result.frame)
    default = attribute(Rollouts(few), resamples=100)
    assert any(
        "RR rests on 3 and 16 rollouts; the interval of its part and of TER's is MOVER" in n for n in default.notes
    )


def test_few_hits_among_many_get_jeffreys_limits():
    data = Rollouts(of_counts(x=(40, 3, 12, 13), y=(25, 8, 15, 20)))
    result = attribute(data, resamples=100)
    assert parts(result)["interval"].tolist() == [
        "mover",
        "mover_jeffreys",
        "expanded_percentile",
        "expanded_percentile",
    ]
    assert any("s rests on 43 and 33 rollouts, with 3 on the rarer side" in note for note in result.notes)


@settings(max_examples=10, deadline=None)
@given(st.tuples(*[st.integers(0, 6)] * 4), st.tuples(*[st.integers(0, 6)] * 4), st.sampled_from([0.8, 0.95]))
def test_parts_of_few_hold_their_estimate_mirror_and_leave_out_0_where_the_difference_does(x, y, level):
    n = max(sum(x), sum(y), 2)
    x, y = ((n - sum(side) + side[0], *side[1:]) for side in (x, y))
    data = Rollouts(of_counts(x=x, y=y))
    forth, back = (parts(attribute(data, baseline=m, level=level, resamples=100)) for m in ("y", "x"))
    compared = compare(data, metrics=["rr", "clean_success"], baseline="y", level=level, tests=(), resamples=100).frame
    for part, row in forth.iterrows():
        if not row["interval"].startswith("mover"):
            continue
        assert row["lower"] <= row["estimate"] <= row["upper"]
        assert row["lower"] == pytest.approx(-back.loc[part, "upper"], abs=1e-12)
        if part != "ter":
            gap = compared[compared["metric"] == part].iloc[0]
            assert gap["interval"] == row["interval"]
            assert (row["lower"] > 0, row["upper"] < 0) == (gap["lower"] > 0, gap["upper"] < 0)


def test_a_weight_counts_on_no_more_than_the_tasks_where_both_sides_err_on_the_same():
    frame = of_counts(x=(20, 10, 6, 4))
    result = attribute(Rollouts(pd.concat([frame, frame.assign(method="y")])), resamples=100)
    ((pair, _),) = result.pairs
    weight, limits = mean_weight(pair, METRICS["rr"], 1.959963984540054)
    assert weight == 0.25
    assert limits == pytest.approx(tuple(wilson(0.25 * 39, 39)), abs=1e-12)


def test_one_task_has_parts_but_no_interval():
    data = pd.DataFrame({
        "method": [*"xxyy"], "task_id": 1, "trial": [0, 1, 0, 1], "length": 2, "fed": [3, 1, 3, 2],
        "success": [1, 1, 0, 0],
    })  # fmt: skip
    frame = parts(attribute(Rollouts(data), resamples=100))
    assert frame["estimate"].tolist() == [0, 0.5, 0.5, 1]
    assert frame["lower"].isna().all()


def test_rollouts_without_a_call_count_as_clean():
    data = of_counts(x=(4, 2, 2, 2), y=(3, 3, 2, 2))
    none = data.assign(length=data["length"].where(data["fed"] < 5, 0), fed=data["fed"].where(data["fed"] < 5, 1))
    pd.testing.assert_frame_equal(
        attribute(Rollouts(none), resamples=100).frame, attribute(Rollouts(data), resamples=100).frame
    )


def test_what_cannot_be_compared_is_refused():
    data = Rollouts(of_counts(x=(4, 2, 2, 2), y=(3, 3, 2, 2)))
    apart = pd.DataFrame({"task_id": ["a", "b"], "method": ["x", "y"], "length": 1, "fed": 2, "success": 1})
    with pytest.raises(PairingError):
        attribute(Rollouts(apart))
    for wrong in ({"interval": "wilson"}, {"level": 1.2}, {"resamples": 10}, {"baseline": "z"}, {"strata": True}):
        with pytest.raises(InputError):
            attribute(data, **wrong)
    with pytest.raises(InputError, match="expanded_percentile"):
        attribute(data, resamples=100).with_interval(interval="tango")


# by strata


@pytest.fixture(scope="module")
def mixed():
    """Two methods with different tasks, some shared, and other shares of three strata."""
    rng = np.random.default_rng(5)
    tasks = {"x": np.r_[0:60], "y": np.r_[30:130]}
    frame = pd.concat([pd.DataFrame({"method": m, "task_id": at}) for m, at in tasks.items()], ignore_index=True)
    stratum = np.select([frame["task_id"] < 40, frame["task_id"] < 100], ["easy", "medium"], "hard")
    ease = pd.Series(stratum).map({"easy": 0.9, "medium": 0.6, "hard": 0.3}) - 0.1 * (frame["method"] == "y")
    return frame.assign(stratum=stratum, length=2, fed=3, success=(rng.random(160) < ease).astype(int))


def split(frame, **columns):
    """Shares and rates of each stratum by method, 0 and NaN where a method lacks it."""
    share = pd.crosstab(frame["stratum"], frame["method"], normalize="columns")
    return share, frame.pivot_table(index="stratum", columns="method", values="success").reindex(share.index)


def test_mix_and_rates_are_kitagawas_components(mixed):
    inside = mixed[mixed["stratum"] != "hard"]
    strata = attribute(Rollouts(inside), strata=True, resamples=200).strata
    w, r = split(inside)
    sums = strata[strata["stratum"] == ""].set_index("part")["estimate"]
    assert sums["stratum_mix"] == pytest.approx(((w["x"] - w["y"]) * (r["x"] + r["y"]) / 2).sum(), abs=1e-15)
    assert sums["stratum_rates"] == pytest.approx(((w["x"] + w["y"]) / 2 * (r["x"] - r["y"])).sum(), abs=1e-15)
    means = inside.groupby("method")["success"].mean()
    assert sums["total"] == pytest.approx(means["x"] - means["y"], abs=1e-15)
    assert list(sums.index) == ["stratum_mix", "stratum_rates", "total"]


def test_the_contributions_of_the_strata_add_to_their_sum(mixed):
    strata = attribute(Rollouts(mixed), strata=True, resamples=200).strata
    sums = strata[strata["stratum"] == ""].set_index("part")["estimate"]
    single = strata[strata["stratum"] != ""].groupby("part")["estimate"].sum()
    assert single.to_dict() == pytest.approx(sums.drop("total").to_dict(), abs=1e-15)
    assert single.sum() == pytest.approx(sums["total"], abs=1e-15)


def test_more_of_an_easier_stratum_contributes_to_the_side_that_has_it(mixed):
    strata = attribute(Rollouts(mixed[mixed["stratum"] != "hard"]), strata=True, resamples=200).strata
    mix = strata[strata["part"] == "stratum_mix"].set_index("stratum")
    assert mix.loc["easy", "share_a"] > mix.loc["easy", "share_b"]
    assert mix.loc["easy", "estimate"] > 0
    assert mix.loc["medium", "estimate"] > 0  # less of what is harder than the average


def test_a_stratum_of_one_side_stands_apart(mixed):
    result = attribute(Rollouts(mixed), strata=True, resamples=200)
    hard = result.strata[result.strata["stratum"] == "hard"]
    (w, r), means = split(mixed), mixed.groupby("method")["success"].mean()
    assert hard["part"].tolist() == ["stratum_alone"]
    assert hard["estimate"].item() == pytest.approx(-w["y"]["hard"] * (r["y"]["hard"] - means.mean()), abs=1e-15)
    assert np.isnan(hard["rate_a"].item())
    assert hard[["n_tasks_a", "n_tasks_b"]].values.tolist() == [[0, 30]]
    assert any("only y has hard" in note for note in result.notes)


def test_the_same_mix_contributes_exactly_nothing(paired):
    result = attribute(paired, strata=True, resamples=200)
    mix = result.strata[result.strata["part"] == "stratum_mix"]
    assert (mix["estimate"] == 0).all()
    assert mix["lower"].isna().all()
    assert sum("the same mix of strata" in note for note in result.notes) == len(result.pairs)
    rates = result.strata.query("part == 'stratum_rates' and stratum == ''").set_index(["a", "b"])["estimate"]
    total = result.frame.query("part == 'total'").set_index(["a", "b"])["estimate"]
    assert rates.to_dict() == pytest.approx(total.to_dict(), abs=1e-15)


def test_sides_without_common_tasks_are_split_by_strata_alone(mixed):
    apart = mixed[(mixed["method"] == "x") == (mixed["task_id"] < 45)]
    result = attribute(Rollouts(apart[apart["stratum"] == "medium"]), strata=True, resamples=200)
    assert result.frame.empty
    assert "interval" in result.frame
    assert len(result.strata) == 5
    assert any("no task in common" in note for note in result.notes)


def test_replicates_have_the_spread_of_sampling_within_strata(mixed):
    apart = mixed[(mixed["method"] == "x") == (mixed["task_id"] < 45)]
    (drawn,) = attribute(Rollouts(apart), strata=True, rng=1).splits
    (w, r), n = split(apart), pd.crosstab(apart["stratum"], apart["method"])
    variance = (w**2 * r * (1 - r) / n).sum().sum()  # NaN of a stratum that a side lacks counts 0
    assert drawn.sample.values[0, 3].std() == pytest.approx(np.sqrt(variance), rel=0.03)


def test_the_numbers_of_tasks_by_stratum_and_side_are_not_left_to_chance(mixed):
    sure = mixed.assign(success=(mixed["stratum"] == "easy").astype(int))
    (drawn,) = attribute(Rollouts(sure), strata=True, resamples=200).splits
    assert np.ptp(drawn.sample.values, axis=-1).max() < 1e-12
    assert drawn.sample.estimate[0, 0] > 0.1


def test_a_task_of_both_sides_has_one_weight(mixed):
    same = mixed[mixed["method"] == "x"]
    (drawn,) = attribute(Rollouts(pd.concat([same, same.assign(method="y")])), strata=True, resamples=200).splits
    assert (drawn.sample.values == 0).all()


def test_tasks_without_a_stratum_are_one_of_their_own(mixed):
    some = mixed.assign(stratum=mixed["stratum"].mask(mixed["stratum"] == "medium"))
    strata = attribute(Rollouts(some), strata=True, resamples=200).strata
    assert strata["stratum"].unique().tolist() == ["easy", "hard", "unknown", ""]


def test_a_side_without_known_success_has_no_split(mixed):
    hidden = mixed.assign(success=mixed["success"].where(mixed["method"] == "x"))
    result = attribute(Rollouts(hidden), strata=True, resamples=200)
    assert result.strata.loc[result.strata["stratum"] == "", "estimate"].isna().all()
    assert any("by stratum: success is undefined in y" in note for note in result.notes)


def test_the_numbers_of_real_methods():
    data = load_tau_retail_methods().select(method=["tool_calling", "tool_calling_preconditions"])
    frame = parts(attribute(data, resamples=200))
    # by hand from 77 clean of 100, 58 of them successful, 15 of 23 recovered; and 80, 58, 12 of 20
    a, b = (0.77, 58 / 77, 15 / 23), (0.8, 58 / 80, 12 / 20)
    assert frame.loc[PARTS, "estimate"].tolist() == pytest.approx(shapley_by_definition(a, b).tolist(), abs=1e-15)
