"""Ranks and inversions: equal to plain ranking of every resample, honest about ties, silent where nothing is known."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from cohorts import rollouts
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import rankdata
from test_attribution import of_counts

from survexec.datasets import load_tau_retail_methods
from survexec.errors import InputError, PairingError
from survexec.rollouts import Rollouts
from survexec.statistics.ranks import best_and_worst, rank
from survexec.statistics.resampling import task_weights

METRICS = ("success", "ter", "auc_pec", "mean_fed", "rr")
# ToolSandbox with GPT-5.4 in the paper's main table: plan-conditioned is first by success and last by TER
PAPER = {"react": (104, 44, 14, 38), "prompt": (116, 48, 6, 30), "plan": (63, 34, 75, 28), "dual": (124, 63, 2, 11)}


@pytest.fixture(scope="module")
def inversion():
    return Rollouts(of_counts(**PAPER))


def by(result, metric):
    return result.frame[result.frame["metric"] == metric].set_index("value")


def flip(result, a, b, first="success", second="ter"):
    pairs = result.flips.set_index(["a", "b", "metric_1", "metric_2"])
    return pairs.loc[a, b, first, second]


@given(hnp.arrays(int, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.integers(0, 4)))
def test_best_and_worst_are_the_ends_of_a_tie(values):
    best, worst = best_and_worst(values / 4)
    assert (best == rankdata(-values, "min", axis=0)).all()
    assert (worst == rankdata(-values, "max", axis=0)).all()


def test_the_papers_inversion_is_seen_as_one(inversion):
    result = rank(inversion, resamples=500)
    assert by(result, "success")["rank"].to_dict() == {"react": 4, "prompt": 3, "plan": 1, "dual": 2}
    assert by(result, "ter")["rank"].to_dict() == {"react": 3, "prompt": 2, "plan": 4, "dual": 1}
    assert by(result, "ter").loc["plan", ["lower", "upper", "first"]].tolist() == [4, 4, 0]
    assert by(result, "rr").loc["plan", ["lower", "upper", "first"]].tolist() == [1, 1, 1]
    for a, b in (("react", "plan"), ("prompt", "plan"), ("plan", "dual")):
        assert flip(result, a, b)["flipped"]
        assert flip(result, a, b)["probability"] > 0.8
    assert not flip(result, "prompt", "dual")["flipped"]
    assert flip(result, "react", "plan")["difference_1"] == pytest.approx(118 / 200 - 138 / 200)
    assert flip(result, "react", "plan")["difference_2"] == pytest.approx(148 / 200 - 97 / 200)
    assert not flip(result, "react", "plan", "ter", "auc_pec")["flipped"]
    (note,) = (note for note in result.notes if "bootstrap probability of 0.95 or more" in note)
    assert note.startswith(f"ranks by method: {result.flips['flipped'].sum()} of 60 orders")
    assert "react - plan by TER and RR (1.000)" in note


def drawn_by_hand(data, methods, resamples, seed):
    """Success, TER and RR of every method in every resample, shape (method, metric, resample)."""
    frame = data.frame.assign(clean=data.frame["fed"] > data.frame["length"], y=data.frame["success"].astype(float))
    n = frame["task_id"].nunique()
    (weights,) = task_weights(np.zeros(n, int), resamples, seed)
    found = []
    for method in methods:
        clean, y = frame[frame["method"] == method].sort_values("task_id")[["clean", "y"]].to_numpy(float).T
        found.append([weights @ y / n, weights @ clean / n, weights @ (y * (1 - clean)) / (weights @ (1 - clean))])
    return np.array(found)


def test_every_number_is_that_of_ranking_each_resample(inversion):
    result = rank(inversion, metrics=("success", "ter", "rr"), level=0.9, resamples=400, rng=9)
    drawn = drawn_by_hand(inversion, PAPER, 400, 9)
    best, worst = (rankdata(-drawn.round(12), ends, axis=0) for ends in ("min", "max"))
    for m, metric in enumerate(("success", "ter", "rr")):
        rows = by(result, metric).loc[list(PAPER)]
        expected = np.quantile(best[:, m], 0.05, axis=-1, method="inverted_cdf")
        assert rows["lower"].tolist() == expected.tolist()
        expected = np.quantile(worst[:, m], 0.95, axis=-1, method="inverted_cdf")
        assert rows["upper"].tolist() == expected.tolist()
        leads = best[:, m] == 1
        assert rows["first"].tolist() == pytest.approx((leads / leads.sum(axis=0)).mean(axis=-1).tolist(), abs=1e-12)
    for (i, a), (j, b) in combinations(enumerate(PAPER), 2):
        signs = np.sign((drawn[i] - drawn[j]).round(12))
        for m, n in combinations(range(3), 2):
            expected = np.where(signs[m] * signs[n] == 0, 0.5, signs[m] != signs[n]).mean()
            names = [("success", "ter", "rr")[k] for k in (m, n)]
            assert flip(result, a, b, *names)["probability"] == pytest.approx(expected, abs=1e-12)


def test_identical_methods_share_every_rank_and_are_not_ordered():
    frame = of_counts(x=(5, 3, 2, 2))
    result = rank(Rollouts(pd.concat([frame.assign(method=name) for name in "xyz"])), resamples=200)
    assert (result.frame["rank"] == 2).all()
    assert result.frame[["lower", "upper"]].drop_duplicates().values.tolist() == [[1, 3]]
    assert result.frame["first"].tolist() == pytest.approx([1 / 3] * 15)
    assert not result.flips["flipped"].any()
    assert (result.flips["probability"] == 0.5).all()


def test_values_that_differ_by_rounding_alone_are_tied():
    best, worst = best_and_worst(np.array([0.1 + 0.2, 0.3, 0.3 - 1e-9]))
    assert best.tolist() == [1, 1, 3]
    assert worst.tolist() == [2, 2, 3]


def test_a_rank_that_just_the_tail_of_the_resamples_reaches_is_within_the_limits(inversion):
    drawn = drawn_by_hand(inversion, PAPER, 200, 0)[:, 0]
    tail = (rankdata(-drawn.round(12), "min", axis=0)[3] == 1).mean()
    assert 0.02 < tail < 0.4
    for level, lower in ((1 - 2 * tail, 1), (1 - 2 * tail - 0.01, 2)):
        rows = by(rank(inversion, metrics="success", level=level, resamples=200), "success")
        assert rows.loc["dual", "lower"] == lower


def test_a_method_that_never_erred_has_no_rank_by_recovery():
    result = rank(Rollouts(of_counts(x=(9, 3, 0, 0), y=(4, 2, 4, 2), z=(4, 2, 1, 5))), resamples=300)
    recovery = by(result, "rr")
    assert recovery.loc["x", ["estimate", "rank", "lower", "upper", "first"]].isna().all()
    assert recovery["rank"].tolist()[1:] == [1, 2]
    assert recovery["first"][["y", "z"]].sum() == pytest.approx(1)
    assert recovery["denominator"].tolist() == [0, 6, 6]
    assert "ranks by method: RR of x is undefined: no rollout erred (0/0); it has no rank" in result.notes
    assert pd.isna(flip(result, "x", "y", "success", "rr")["flipped"])
    assert np.isnan(flip(result, "x", "y", "success", "rr")["probability"])
    assert not flip(result, "x", "y")[["flipped"]].isna().any()


def test_resamples_without_an_error_are_left_out_of_recovery_alone():
    result = rank(Rollouts(of_counts(x=(30, 18, 1, 1), y=(20, 10, 10, 10))), resamples=400)
    (note,) = (note for note in result.notes if "RR is undefined somewhere" in note)
    # a resample of 50 tasks misses these two with probability (1 - 2/50)^50 = 0.13
    assert 30 <= int(note.split("in ")[-1].split()[0]) <= 75
    assert by(result, "rr")["first"].sum() == pytest.approx(1)


def test_recovery_of_nobody_ranks_nobody():
    result = rank(Rollouts(of_counts(x=(9, 3, 0, 0), y=(4, 8, 0, 0))), resamples=100)
    assert by(result, "rr")[["rank", "lower", "upper", "first"]].isna().all(axis=None)
    assert by(result, "success")["rank"].tolist() == [1, 2]
    assert by(result, "ter")["rank"].tolist() == [1.5, 1.5]


def test_methods_are_ranked_on_the_tasks_that_all_have():
    frame = of_counts(x=(4, 2, 2, 2), y=(3, 3, 2, 2), z=(1, 3, 4, 2))
    result = rank(Rollouts(frame[(frame["method"] != "z") | (frame["task_id"] > 2)]), resamples=100)
    assert (result.frame["n_tasks"] == 7).all()
    assert any("3 of the tasks are not on all sides and are left out: 0, 1, 2" in note for note in result.notes)
    kept = frame[frame["task_id"] > 2]
    pd.testing.assert_frame_equal(rank(Rollouts(kept), resamples=100).frame, result.frame)


def test_each_place_is_ranked_by_itself(inversion):
    frame = inversion.frame
    both = pd.concat([frame.assign(model="m1"), frame.iloc[::-1].assign(model="m2"), frame[:200].assign(model="m3")])
    result = rank(Rollouts(both.assign(benchmark="shop")), resamples=200)
    assert result.by == ("benchmark", "model")
    assert result.frame.groupby("model").size().to_dict() == {"m1": 20, "m2": 20}
    one, two = (
        result.frame[result.frame["model"] == m].drop(columns="model").sort_values(["metric", "value"])
        for m in ("m1", "m2")
    )
    pd.testing.assert_frame_equal(one.reset_index(drop=True), two.reset_index(drop=True))
    assert any(note.startswith("ranks by method in shop / m3: react stands alone") for note in result.notes)


def test_what_cannot_be_ranked_is_refused(inversion):
    frame = of_counts(x=(4, 2, 2, 2), y=(3, 3, 2, 2))
    apart = frame[(frame["method"] == "x") == (frame["task_id"] < 5)]
    with pytest.raises(PairingError, match="no task is common to all of x, y"):
        rank(Rollouts(apart))
    with pytest.raises(InputError):
        rank(Rollouts(frame[frame["method"] == "x"]))
    for wrong in ({"metrics": ["mean_length"]}, {"metrics": []}, {"level": 0}, {"resamples": 50}, {"within": "method"}):
        with pytest.raises(InputError):
            rank(inversion, **wrong)


def test_one_metric_has_ranks_and_no_flips(inversion):
    result = rank(inversion, metrics="ter", resamples=100)
    assert len(result.frame) == 4
    assert result.flips.empty
    assert result.flips["flipped"].dtype == "boolean"


def test_one_task_and_rollouts_without_a_call_are_ranked():
    frame = pd.DataFrame(
        {"method": [*"xyz"], "task_id": 1, "length": [0, 3, 3], "fed": [1, 2, 4], "success": [0, 1, 1]}
    )
    result = rank(Rollouts(frame), resamples=100)
    assert by(result, "ter")["rank"].tolist() == [1.5, 3, 1.5]
    assert by(result, "mean_fed")["rank"].tolist() == [3, 2, 1]
    assert by(result, "success")["upper"].tolist() == [3, 2, 2]


@settings(max_examples=10)
@given(rollouts(methods=3))
def test_ranks_and_chances_are_shared_out_completely(data):
    try:
        result = rank(data, resamples=100)
    except InputError:
        return
    for _, rows in result.frame.groupby("metric"):
        known = rows[rows["rank"].notna()]
        n = len(known)
        assert known["rank"].sum() == n * (n + 1) / 2
        assert ((known["lower"] >= 1) & (known["lower"] <= known["upper"]) & (known["upper"] <= n)).all() or not n
        assert known["first"].sum() == pytest.approx(1) or known["first"].isna().all()
    assert result.flips["probability"].dropna().between(0, 1).all()
    shuffled = Rollouts(data.frame.sample(frac=1, random_state=1))
    key = ["metric", "value"]
    again = rank(shuffled, resamples=100).frame.sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(again, result.frame.sort_values(key, ignore_index=True))


def test_real_methods_on_the_tasks_that_all_four_finished():
    result = rank(load_tau_retail_methods(), resamples=200)
    assert (result.frame["n_tasks"] == 63).all()
    # tool calling with and without preconditions both solve 47 of the 63
    assert by(result, "success")["rank"].tolist() == [1.5, 1.5, 3, 4]
    assert by(result, "success")["estimate"].tolist()[:2] == [47 / 63] * 2
