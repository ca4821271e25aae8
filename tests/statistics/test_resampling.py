"""Replicates: R's own resample counts give R's replicates, and nothing but the seed decides ours."""

import numpy as np
import pytest
from cohorts import load, r_replicates, resample_counts, rollouts
from hypothesis import given
from hypothesis import strategies as st

from survexec.errors import InputError
from survexec.statistics.estimands import CURVES, METRICS
from survexec.statistics.resampling import _Digits, as_seed, evaluate, replicate, strata_of, task_weights
from survexec.statistics.tally import count


def difference_at(data, weights, metric):
    """verify - base at given weights."""
    tally = count(data, by="method")
    cells = [tally.cells["method"].tolist().index(m) for m in ("verify", "base")]
    out = np.empty((2, 1, len(weights)))
    evaluate(tally.take(cells=cells), [METRICS[metric]], [weights], out)
    return out[0, 0] - out[1, 0]


@pytest.mark.parametrize(
    ("counts", "dataset", "metric"),
    [
        ("boot_iid", "a_paired", "auc_pec"),
        ("boot_strat", "a_paired", "auc_pec"),
        ("boot_rrdiff", "a_paired", "rr"),
        ("boot_cluster", "b_clustered", "auc_pec"),
    ],
)
def test_every_replicate_equals_r(counts, dataset, metric):
    replicates = r_replicates(counts)
    assert len(replicates) == 1999
    ours = difference_at(load(dataset), resample_counts(counts), metric)
    assert ours == pytest.approx(replicates, abs=1e-11)


@given(rollouts())
def test_weights_all_one_give_the_estimate(data):
    tally = count(data, by="method", depth=6)
    estimators = [*METRICS.values(), CURVES["pec"], CURVES["pec_elig"]]
    size = len(METRICS) + 14
    out = np.empty((len(tally.cells), size, 1))
    evaluate(tally, estimators, [np.ones((1, len(tally.tasks)), int)], out)
    sample = replicate(tally, estimators, 10, seed=0)
    assert out[..., 0] == pytest.approx(sample.estimate, abs=1e-11, nan_ok=True)


@pytest.mark.parametrize("strata", [np.zeros(7, int), np.array([0, 1, 0, 1, 1, 0, 0])])
def test_weights_do_not_depend_on_the_block_size(strata):
    whole, cut = (np.concatenate(list(task_weights(strata, 50, 3, block))) for block in (50, 7))
    assert (whole == cut).all()


def test_replicates_do_not_depend_on_the_block_size(paired, monkeypatch):
    tally = count(paired, by="method")
    import survexec.statistics.resampling as module

    whole = replicate(tally, list(METRICS.values()), 300, seed=5).values
    monkeypatch.setattr(module.task_weights, "__defaults__", (77,))
    assert (replicate(tally, list(METRICS.values()), 300, seed=5).values == whole).all()


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.integers(0, 2**32))
def test_each_resample_draws_every_stratum_to_its_size(strata, seed):
    strata = np.array(strata)
    weights = np.concatenate(list(task_weights(strata, 20, seed)))
    for stratum in np.unique(strata):
        assert (weights[:, strata == stratum].sum(axis=1) == (strata == stratum).sum()).all()


def test_the_weights_are_multinomial():
    weights = np.concatenate(list(task_weights(np.zeros(5, int), 40_000, 11)))
    # mean 1, variance 4/5, covariance -1/5; tolerances are over six standard errors
    assert weights.mean(axis=0) == pytest.approx(1, abs=0.03)
    assert np.cov(weights.T) == pytest.approx(np.eye(5) - 0.2, abs=0.05)


def test_the_same_seed_gives_the_same_replicates_and_another_does_not(paired):
    tally = count(paired, by="method")
    first, again, other = (replicate(tally, [METRICS["ter"]], 100, seed).values for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_a_cell_has_the_same_replicates_whatever_other_cells_there_are(degenerate):
    alone = replicate(count(degenerate.select(method="m2"), by="method"), [METRICS["ter"]], 100, 4)
    among = replicate(count(degenerate, by="method"), [METRICS["ter"]], 100, 4)
    assert (alone.values[0] == among.values[2]).all()


def test_cells_share_their_weights_which_is_the_pairing(paired):
    twin = paired.frame.assign(method=paired.frame["method"] + " again")
    from survexec.rollouts import Rollouts

    tally = count(Rollouts(twin._append(paired.frame)), by="method")
    sample = replicate(tally, list(METRICS.values()), 200, seed=0)
    assert np.nanmax(np.abs(sample.difference(0, 4).values)) == 0


def test_jackknife_values_are_the_estimates_without_each_task(paired):
    tally = count(paired, by="method")
    sample = replicate(tally, list(METRICS.values()), 10, seed=0)
    without = tally.take(tasks=np.arange(len(tally.tasks)) != 17)
    expected = np.stack([metric(without.total) for metric in METRICS.values()], axis=-1)
    assert sample.jackknife[17] == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 300), st.integers(0, 10**9))
def test_digit_sums_are_exact(tasks, seed):
    rng = np.random.default_rng(seed)
    whole = rng.integers(0, 100_000, (tasks, 3)).astype(float)
    real = rng.random((tasks, 2))
    weights = next(task_weights(np.zeros(tasks, int), 8, seed))
    sums = _Digits(np.concatenate([whole, real], axis=1)).sums(weights)
    assert (sums[:3] == whole.T @ weights.T).all()
    assert sums[3:] == pytest.approx(real.T @ weights.T, rel=1e-10)


def test_strata_of_one_task_are_pooled(paired):
    tally = count(paired, by="method").take(tasks=np.arange(6))
    tasks = tally.tasks.assign(stratum=["a", "a", "a", "b", "c", "a"])
    from dataclasses import replace

    codes = strata_of(replace(tally, tasks=tasks))
    assert codes[3] == codes[4]
    assert len(set(codes[[0, 1, 2, 5]])) == 1
    assert codes[3] != codes[0]


def test_a_generator_gives_a_seed_and_nonsense_is_refused():
    assert as_seed(np.random.default_rng(0)) == as_seed(np.random.default_rng(0))
    with pytest.raises(InputError, match="rng"):
        as_seed("seed")
