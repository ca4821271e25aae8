"""Intervals: equal to R where R computes the same thing, and honest at the edges."""

import numpy as np
import pytest
from cohorts import load, r_replicates, resample_counts
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from survexec.statistics import intervals, proportions
from survexec.statistics.estimands import METRICS
from survexec.statistics.resampling import Replicates, evaluate, replicate
from survexec.statistics.tally import count

Z = proportions.normal_quantile(0.95)


def test_wilson_equals_r(paired_in_r):
    found = [(k, v) for k, v in paired_in_r.values.items() if k[1] == "wilson"]
    assert len(found) == 32
    for (_, _, group, item), value in found:
        x, n = map(int, group.split("/"))
        assert proportions.wilson(x, n, Z)[item == "hi"] == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("method", ["newcombe10", "tango"])
def test_paired_differences_of_proportions_equal_r(method, paired_in_r):
    compared = 0
    for (_, analysis, pair, item), value in paired_in_r.values.items():
        if not analysis.startswith(f"pairdiff_{method}_"):
            continue
        outcome = analysis.rpartition("_")[2]
        cells = [int(paired_in_r("a_paired", f"mcnemar_{outcome}", pair, k)) for k in "abcd"]
        if method == "tango":
            bounds = proportions.tango(cells[1], cells[2], sum(cells), Z)
        else:
            bounds = proportions.newcombe_paired(*cells, Z)
        assert bounds[item == "hi"] == pytest.approx(value, abs=1e-10)
        compared += 1
    assert compared == 24


def test_mover_without_correlation_is_newcombes_unpaired_interval(paired_in_r):
    cells = [int(paired_in_r("a_paired", "mcnemar_ok", "base:verify", k)) for k in "abcd"]
    a, b, c, _ = cells
    n = sum(cells)
    p1, p2 = (a + b) / n, (a + c) / n
    low, high = proportions.mover(p1, proportions.wilson(a + b, n, Z), p2, proportions.wilson(a + c, n, Z))
    assert low == pytest.approx(paired_in_r("a_paired", "unpdiff_newcombe_ok", "base:verify", "lo"), abs=1e-12)
    assert high == pytest.approx(paired_in_r("a_paired", "unpdiff_newcombe_ok", "base:verify", "hi"), abs=1e-12)


def sample_from_r(counts: str, dataset: str, metric: str, strata: bool) -> Replicates:
    """verify - base with R's resample counts, as a sample of one cell and one statistic."""
    tally = count(load(dataset, strata), by="method")
    tally = tally.take(cells=[tally.cells["method"].tolist().index(m) for m in ("verify", "base")])
    sample = replicate(tally, [METRICS[metric]], 10, seed=0)
    values = np.empty((2, 1, 1999))
    evaluate(tally, [METRICS[metric]], [resample_counts(counts)], values)
    whole = Replicates(sample.estimate, values, sample.jackknife, sample.n_tasks, sample.strata)
    return whole.difference(0, 1)


@pytest.mark.parametrize(
    ("counts", "dataset", "metric", "strata"),
    [
        ("boot_iid", "a_paired", "auc_pec", False),
        ("boot_strat", "a_paired", "auc_pec", True),
        ("boot_rrdiff", "a_paired", "rr", False),
        ("boot_cluster", "b_clustered", "auc_pec", False),
    ],
)
def test_percentile_interval_equals_r(counts, dataset, metric, strata, boot_in_r):
    low, high = intervals.percentile(sample_from_r(counts, dataset, metric, strata), 0.95)
    name = "b_clustered" if dataset == "b_clustered" else "a_paired"
    assert low.item() == pytest.approx(boot_in_r(name, counts, "verify-base", "perc_lo"), abs=1e-11)
    assert high.item() == pytest.approx(boot_in_r(name, counts, "verify-base", "perc_hi"), abs=1e-11)


def interpolated_as_r(replicates: np.ndarray, p: float) -> float:
    """R's boot::norm.inter: between order statistics on the scale of the normal quantile."""
    ordered, size = np.sort(replicates), len(replicates)
    k = int((size + 1) * p)
    at = stats.norm.ppf(np.array([k, k + 1]) / (size + 1))
    part = (stats.norm.ppf(p) - at[0]) / (at[1] - at[0])
    return ordered[k - 1] + part * (ordered[k] - ordered[k - 1])


@pytest.mark.parametrize(
    ("counts", "metric", "strata", "kind"),
    [
        ("boot_iid", "auc_pec", False, "jack"),
        ("boot_strat", "auc_pec", True, "reg"),
        ("boot_rrdiff", "rr", False, "jack"),
    ],
)
def test_bca_reads_the_replicates_at_rs_levels(counts, metric, strata, kind, boot_in_r):
    # R interpolates between order statistics on the normal scale, survexec linearly ("weibull"): the levels agree to
    # rounding, the bounds to the gap between two neighbouring replicates, and neither is systematically wider
    sample = sample_from_r(counts, "a_paired", metric, strata)
    levels = [level.item() for level in intervals.bca_levels(sample, 0.95)]
    bounds = [bound.item() for bound in intervals.bca(sample, 0.95)]
    ordered = np.sort(r_replicates(counts))
    for level, bound, side in zip(levels, bounds, ("lo", "hi"), strict=True):
        in_r = boot_in_r("a_paired", counts, "verify-base", f"bca_{kind}_{side}")
        assert interpolated_as_r(sample.values.ravel(), level) == pytest.approx(in_r, abs=1e-8)
        k = int((len(ordered) + 1) * level)
        assert abs(bound - in_r) <= ordered[k] - ordered[k - 1] + 1e-12


def test_acceleration_from_the_jackknife_equals_r(boot_in_r):
    for counts, metric, strata, kind in (
        ("boot_iid", "auc_pec", False, "jack"),
        ("boot_strat", "auc_pec", True, "reg"),
    ):
        moved = intervals.influence(sample_from_r(counts, "a_paired", metric, strata)).ravel()
        ours = (moved**3).sum() / (6 * (moved**2).sum() ** 1.5)
        assert ours == pytest.approx(boot_in_r("a_paired", counts, "verify-base", f"accel_{kind}"), abs=1e-10)


def test_jackknife_t_of_a_mean_is_the_t_interval_of_the_task_means(paired_in_r, paired):
    tally = count(load("a_paired", strata=False), by="method")
    sample = replicate(tally, [METRICS["mean_fed"]], 10, seed=0).difference(0, 3)
    low, high = intervals.jackknife_t(sample, 0.95)
    assert low.item() == pytest.approx(paired_in_r("a_paired", "paired_t_FED", "base:verify", "lo"), abs=1e-10)
    assert high.item() == pytest.approx(paired_in_r("a_paired", "paired_t_FED", "base:verify", "hi"), abs=1e-10)


@pytest.mark.parametrize(("metric", "name"), [("ter", "ok"), ("success", "Y")])
@pytest.mark.parametrize("method", ["base", "verify"])
def test_effective_n_gives_rs_cluster_robust_error(metric, name, method, boot_in_r, clustered):
    tally = count(clustered, by="method")
    at = tally.cells["method"].tolist().index(method)
    x, n = METRICS[metric].numerator(tally.counts)[:, at], METRICS[metric].denominator(tally.counts)[:, at]
    p = x.sum() / n.sum()
    error = np.sqrt(p * (1 - p) / proportions.effective_n(x, n))
    assert error == pytest.approx(boot_in_r("b_clustered", f"clusterse_mean_{name}_cadjTRUE", method, "se"), abs=1e-10)


def test_expanded_percentile_reads_further_out_than_percentile_by_hesterbergs_levels():
    values = np.arange(1.0, 10_000.0).reshape(1, 1, -1)
    sample = Replicates(np.array([[5000.0]]), values, np.zeros((20, 1, 1)), np.array([20]), np.zeros(20, int))
    low, high = intervals.expanded_percentile(sample, 0.95)
    tail = stats.norm.cdf(-np.sqrt(20 / 19) * stats.t.ppf(0.975, 19))
    assert low.item() == pytest.approx(10_000 * tail)
    assert high.item() == pytest.approx(10_000 * (1 - tail))
    assert low < intervals.percentile(sample, 0.95)[0]


def test_quantiles_leave_undefined_replicates_out():
    values = np.array([[[3.0, np.nan, 1.0, 2.0, np.nan]]])
    sample = Replicates(np.array([[2.0]]), values, np.zeros((5, 1, 1)), np.array([5]), np.zeros(5, int))
    low, high = intervals.percentile(sample, 0.5)
    assert (low.item(), high.item()) == (1.0, 3.0)


@given(st.integers(0, 40), st.integers(0, 40), st.floats(0.5, 0.999))
def test_wilson_stays_in_the_unit_interval_and_holds_its_estimate(x, more, level):
    n = x + more
    low, high = proportions.wilson(x, n, proportions.normal_quantile(level))
    if n == 0:
        assert np.isnan(low)
        assert np.isnan(high)
    else:
        assert 0 <= low <= x / n <= high <= 1


@given(st.integers(0, 60), st.integers(1, 60), st.floats(0.01, 0.98))
def test_jeffreys_holds_its_estimate_mirrors_and_widens_with_the_level(x, more, level):
    n = x + more
    low, high = proportions.jeffreys(x, n, proportions.normal_quantile(level))
    assert 0 <= low <= x / n <= high <= 1
    turned = proportions.jeffreys(more, n, proportions.normal_quantile(level))
    assert (1 - turned[1], 1 - turned[0]) == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12))
    wider = proportions.jeffreys(x, n, proportions.normal_quantile(level + 0.01))
    assert wider[0] <= low
    assert wider[1] >= high


def test_jeffreys_equals_statsmodels_between_the_ends_and_is_exact_at_them():
    from statsmodels.stats.proportion import proportion_confint

    x = np.arange(1, 20)
    expected = proportion_confint(x, 20, method="jeffreys")
    np.testing.assert_allclose(proportions.jeffreys(x, np.full(19, 20), Z), expected, rtol=1e-12)
    assert proportions.jeffreys(0, 20, Z)[0] == 0
    assert proportions.jeffreys(20, 20, Z)[1] == 1
    assert proportions.jeffreys(0, 20, Z)[1] == pytest.approx(stats.beta.ppf(0.975, 0.5, 20.5), rel=1e-12)
    assert np.isnan(proportions.jeffreys(0, 0, Z)).all()


def ends_of_a_product(p1, bounds1, p2, bounds2, steps=4001):
    """The least and the largest product over a fine walk around the four quarters of the ellipse of the limits."""
    turn = np.linspace(0, np.pi / 2, steps)
    walked = [(p1 + (one - p1) * np.sin(turn)) * (p2 + (two - p2) * np.cos(turn)) for one in bounds1 for two in bounds2]
    return np.min(walked), np.max(walked)


signed = st.floats(-2, 2).map(lambda value: round(value, 3))
beyond = st.floats(0, 2).map(lambda value: round(value, 3))
factor = st.builds(lambda p, down, up: (p, (p - down, p + up)), signed, beyond, beyond)


@given(factor, factor)
def test_a_product_reaches_from_its_least_to_its_largest_pair_of_limits(one, two):
    found = proportions.mover_product(*one, *two)
    assert found == pytest.approx((walked := ends_of_a_product(*one, *two)), abs=1e-5)
    assert found[0] <= walked[0] + 1e-12
    assert found[1] >= walked[1] - 1e-12
    assert found[0] <= one[0] * two[0] <= found[1]


@given(factor, factor, st.floats(0.1, 9))
def test_a_product_mirrors_scales_and_does_not_mind_the_order(one, two, by):
    low, high = proportions.mover_product(*one, *two)
    p, (less, more) = two
    assert proportions.mover_product(*one, -p, (-more, -less)) == pytest.approx((-high, -low), abs=1e-9)
    assert proportions.mover_product(*one, by * p, (by * less, by * more)) == pytest.approx(
        (by * low, by * high), abs=1e-8
    )
    assert proportions.mover_product(*two, *one) == pytest.approx((low, high), abs=1e-9)


@given(st.floats(0.01, 1), st.floats(0.01, 0.99), st.floats(0, 3), factor)
def test_beside_a_positive_factor_a_product_leaves_out_0_where_the_other_one_does(p, down, up, other):
    low, high = proportions.mover_product(p, (p * (1 - down), p * (1 + up)), *other)
    assert (low > 0, high < 0) == (other[1][0] > 0, other[1][1] < 0)


def test_products_whose_limits_are_known():
    # a known factor; two that may be 0, sin t cos t at most 1/2; two alike, the same part of each distance
    assert proportions.mover_product(0.25, (0.25, 0.25), -0.5, (-0.75, 0.5)) == pytest.approx(
        (-0.1875, 0.125), abs=1e-15
    )
    assert proportions.mover_product(0, (-1, 1), 0, (-1, 1)) == pytest.approx((-0.5, 0.5), abs=1e-15)
    assert proportions.mover_product(1, (1, 1.2), 1, (1, 1.2))[1] == pytest.approx((1 + 0.2 / 2**0.5) ** 2, rel=1e-14)
    assert proportions.mover_product(3, (3, 3), 4, (4, 4)) == (12, 12)
    assert np.isnan(proportions.mover_product(0.5, (0.4, 0.6), np.nan, (np.nan, np.nan))).all()


@given(*[st.integers(0, 30)] * 4)
def test_newcombe_and_tango_mirror_when_the_sides_change_places(a, b, c, d):
    if a + b + c + d == 0:
        return
    low, high = proportions.newcombe_paired(a, b, c, d, Z)
    mirrored = proportions.newcombe_paired(a, c, b, d, Z)
    assert (-low, -high) == pytest.approx((mirrored[1], mirrored[0]), abs=1e-12)
    n = a + b + c + d
    low, high = proportions.tango(b, c, n, Z)
    mirrored = proportions.tango(c, b, n, Z)
    assert (-low, -high) == pytest.approx((mirrored[1], mirrored[0]), abs=1e-9)
    assert -1 <= low <= (b - c) / n <= high <= 1


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=8))
def test_effective_n_lies_between_one_and_the_number_of_trials(tasks):
    x, n = (np.array(v, float) for v in zip(*[(min(x, n), n) for x, n in tasks], strict=True))
    assert 1 - 1e-12 <= proportions.effective_n(x, n) <= n.sum() + 1e-12


def test_where_all_trials_agree_the_effective_n_is_the_number_of_tasks():
    assert proportions.effective_n(np.array([4.0, 4.0]), np.array([4.0, 4.0])) == 2
    assert proportions.effective_n(np.array([1.0, 1.0]), np.array([1.0, 1.0])) == 2


def test_the_band_is_never_narrower_than_the_pointwise_interval():
    rng = np.random.default_rng(0)
    values = rng.normal(0.5, 0.05, (1, 6, 500))
    half, spread, every = np.full((1, 6), 0.5), np.full((1, 6), 0.05), np.ones((1, 6), bool)
    critical = intervals.sup_t(values, half, spread, every, np.array([500]), 0.95)
    # six independent normals: the 95% quantile of the largest |z| is 2.63
    assert critical.item() == pytest.approx(2.63, abs=0.15)
    none = intervals.sup_t(values, half, spread, ~every, np.array([10**9]), 0.95)
    assert none.item() == pytest.approx(stats.norm.ppf(1 - 0.05 / 12), rel=1e-6)
