"""Adjusted p-values against R and against enumeration, max-T against brute force, and the levels that match."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from survexec.errors import InputError
from survexec.statistics.multiplicity import METHODS, adjusted, romano_wolf, simultaneous_level

ON_P = [method for method in METHODS if method != "romano_wolf"]
IN_R = {"holm": "holm", "hochberg": "hochberg", "bh": "BH", "by": "BY"}
TOY = np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.001, 0.9, np.nan, 0.04])

some_p = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.04, 1.0])), max_size=9).map(np.array)


@st.composite
def families(draw, gaps=False):
    """Estimates, their errors and replicates, discrete so that ties occur."""
    m, resamples = draw(st.integers(1, 5)), draw(st.integers(5, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    estimate = rng.integers(-4, 5, m) / 4
    values = estimate[:, None] + rng.integers(-3, 4, (m, resamples)) / 4
    if gaps:
        values[rng.random(values.shape) < 0.1] = np.nan
    return estimate, rng.integers(1, 4, m) / 2, values


# adjusted


@pytest.mark.parametrize("method", IN_R)
def test_adjusted_p_values_equal_r(paired_in_r, method):
    expected = [paired_in_r("toy", f"padj_{IN_R[method]}", str(k), "p") for k in range(1, 10)]
    assert adjusted(TOY, method) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    pairs = [f"{a}:{b}" for a, b in itertools.combinations(["base", "react", "plan", "verify"], 2)]
    p = np.array([paired_in_r("a_paired", "mcnemar_ok", pair, "p_exact") for pair in pairs])
    expected = [paired_in_r("a_paired", f"padj_{IN_R[method]}_mcnemar_ok", pair, "p") for pair in pairs]
    assert adjusted(p, method) == pytest.approx(expected, rel=1e-12)


@given(some_p, st.sampled_from(ON_P))
def test_adjusting_never_lowers_p_and_keeps_its_order(p, method):
    got = adjusted(p, method)
    assert (got >= p).all()
    assert (got <= 1).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(got[order]) >= 0).all()


@given(some_p, st.sampled_from(ON_P), st.randoms())
def test_adjusting_does_not_depend_on_the_order_of_tests(p, method, random):
    order = random.sample(range(len(p)), len(p))
    assert adjusted(p[order], method).tolist() == adjusted(p, method)[order].tolist()


@given(some_p)
def test_holm_is_stricter_than_hochberg_than_benjamini_hochberg(p):
    holm, hochberg, bh, by = (adjusted(p, method) for method in ("holm", "hochberg", "bh", "by"))
    assert (holm >= hochberg).all()
    assert (hochberg >= bh - 1e-15).all()
    assert (by >= bh).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5).map(np.array))
def test_holm_is_the_closure_of_bonferroni(p):
    """Rejected at alpha where every intersection that has the test is rejected by Bonferroni."""
    members = range(len(p))
    subsets = [s for size in range(1, len(p) + 1) for s in itertools.combinations(members, size)]
    expected = [max(min(1, len(s) * p[list(s)].min()) for s in subsets if j in s) for j in members]
    assert adjusted(p) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("method", ON_P)
def test_no_test_does_not_count(method):
    assert np.isnan(adjusted(np.full(3, np.nan), method)).all()
    assert adjusted(np.array([]), method).shape == (0,)
    with_gaps = adjusted(np.array([np.nan, 0.02, np.nan, 0.3]), method)
    assert with_gaps[[1, 3]].tolist() == adjusted(np.array([0.02, 0.3]), method).tolist()
    assert np.isnan(with_gaps[[0, 2]]).all()


def test_what_cannot_be_adjusted_is_refused():
    with pytest.raises(InputError, match=r"p = 1\.2"):
        adjusted(np.array([0.1, 1.2]))
    with pytest.raises(InputError, match="'sidak' is unknown"):
        adjusted(np.array([0.1]), "sidak")
    with pytest.raises(InputError, match="needs replicates"):
        adjusted(np.array([0.1]), "romano_wolf")
    with pytest.raises(InputError, match="needs replicates"):
        simultaneous_level("romano_wolf", 0.95, np.array([0.1]))


# Romano-Wolf


def largest_of(estimate, error, values):
    """The largest |replicate - estimate| / error of each resample that has one."""
    scaled = np.abs(values - estimate[:, None]) / error[:, None]
    return np.nanmax(scaled[:, ~np.isnan(scaled).all(axis=0)], axis=0)


def stepped_down(estimate, error, values):
    """Step by step as the paper has it: those left, their largest, the share of resamples that reach it."""
    p, left, before = np.full(len(estimate), np.nan), list(range(len(estimate))), 0.0
    t = np.abs(estimate) / error
    while left:
        worst = max(t[j] for j in left)
        hits = (largest_of(estimate[left], error[left], values[left]) >= worst - 1e-9).sum()
        before = max(before, (hits + 1) / (values.shape[1] + 1))
        for j in [j for j in left if t[j] == worst]:
            p[j] = before
            left.remove(j)
    return p


@given(families())
def test_romano_wolf_is_the_step_down_of_the_paper(family):
    assert romano_wolf(*family)[0] == pytest.approx(stepped_down(*family), rel=1e-12)


@given(families())
def test_one_hypothesis_steps_once(family):
    estimate, error, values = (part[:1] for part in family)
    hits = (np.abs(values[0] - estimate[0]) >= abs(estimate[0]) - 1e-9).sum()
    assert romano_wolf(estimate, error, values)[0].item() == pytest.approx((hits + 1) / (values.shape[1] + 1))


@given(families())
def test_more_hypotheses_never_lower_p(family):
    estimate, error, values = family
    fewer = romano_wolf(estimate[:-1], error[:-1], values[:-1])[0]
    assert (romano_wolf(*family)[0][:-1] >= fewer - 1e-12).all()


@given(families(gaps=True), st.randoms())
def test_romano_wolf_does_not_depend_on_the_order_of_hypotheses(family, random):
    order = random.sample(range(len(family[0])), len(family[0]))
    assert romano_wolf(*(part[order] for part in family))[0].tolist() == romano_wolf(*family)[0][order].tolist()


@given(families(gaps=True), st.sampled_from([0.5, 0.8, 0.9, 0.95]))
def test_an_interval_leaves_zero_out_exactly_where_the_single_step_p_rejects(family, level):
    estimate, error, _ = family
    critical = romano_wolf(*family)[1](level)
    largest = largest_of(*family)
    for e, s in zip(estimate, error, strict=True):
        hits = int((largest >= abs(e) / s - 1e-8).sum())
        # (hits + 1) / (resamples + 1) <= 1 - level, in whole numbers
        rejected = 100 * (hits + 1) <= round(100 * (1 - level)) * (len(largest) + 1)
        assert (abs(e) > critical * s) == rejected


@given(families())
def test_the_step_down_p_is_at_most_the_single_step_one(family):
    estimate, error, values = family
    largest = largest_of(*family)
    single = [((largest >= t - 1e-9).sum() + 1) / (len(largest) + 1) for t in np.abs(estimate) / error]
    assert (romano_wolf(estimate, error, values)[0] <= np.array(single) + 1e-12).all()


def test_an_estimate_without_spread_is_no_test_and_does_not_count():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4, 200)) + 1
    error = np.array([1.0, 0.0, np.nan, 1.0])
    p, critical = romano_wolf(np.ones(4), error, values)
    assert np.isnan(p[[1, 2]]).all()
    assert p[[0, 3]].tolist() == romano_wolf(np.ones(2), np.ones(2), values[[0, 3]])[0].tolist()
    assert np.isfinite(critical(0.9))
    nothing, critical = romano_wolf(np.ones(2), np.zeros(2), values[:2])
    assert np.isnan(nothing).all()
    assert np.isnan(critical(0.95))


def test_a_replicate_as_far_off_as_the_estimate_is_a_hit_whatever_the_rounding():
    estimate, replicate = np.array([0.8 - 0.7]), np.array([[0.9 - 0.7] * 9])
    assert abs(replicate - estimate).max() < estimate.item()
    assert romano_wolf(estimate, np.ones(1), replicate)[0].item() == 1
    assert romano_wolf(estimate, np.ones(1), replicate)[1](0.8) >= estimate.item()


def test_a_resample_that_defines_no_estimate_does_not_count():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 200)) + 1
    gaps = np.concatenate([values, np.full((2, 9), np.nan)], axis=1)
    with_gaps, without = (romano_wolf(np.ones(2), np.ones(2), given)[0] for given in (gaps, values))
    assert with_gaps.tolist() == without.tolist()


def test_too_few_resamples_give_an_infinite_interval_and_no_rejection():
    values = np.random.default_rng(0).normal(size=(1, 10))
    assert romano_wolf(np.zeros(1), np.ones(1), values)[1](0.95) == np.inf
    assert romano_wolf(np.array([99.0]), np.ones(1), values + 99)[0].item() == 1 / 11


def test_the_same_hypothesis_many_times_costs_nothing_and_independent_ones_cost_sidak():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(10, 20_000))
    estimate, error = np.full(10, 2.8), np.ones(10)
    one = romano_wolf(estimate[:1], error[:1], estimate[:1, None] + noise[:1])[0].item()
    repeated = romano_wolf(estimate, error, estimate[:, None] + noise[[0] * 10])[0]
    assert repeated.tolist() == [one] * 10
    raw = 2 * stats.norm.sf(2.8)
    apart = romano_wolf(estimate, error, estimate[:, None] + noise)[0]
    assert apart == pytest.approx(1 - (1 - raw) ** 10, rel=0.1)
    critical = romano_wolf(estimate, error, estimate[:, None] + noise)[1](0.95)
    assert critical == pytest.approx(stats.norm.ppf(0.5 + 0.95 ** (1 / 10) / 2), abs=0.05)


def test_arrays_that_do_not_fit_and_levels_outside_0_to_1_are_refused():
    with pytest.raises(InputError, match=r"\(2,\), \(2,\) and \(3, 5\)"):
        romano_wolf(np.zeros(2), np.ones(2), np.zeros((3, 5)))
    with pytest.raises(InputError, match="level = 95"):
        romano_wolf(np.zeros(1), np.ones(1), np.zeros((1, 5)))[1](95)


def test_many_hypotheses_are_fast():
    rng = np.random.default_rng(0)
    estimate, values = rng.normal(size=500), rng.normal(size=(500, 10_000))
    start = time.perf_counter()
    romano_wolf(estimate, np.ones(500), values)
    assert time.perf_counter() - start < 1


# levels of intervals


@given(
    st.lists(st.floats(0.0001, 1), min_size=1, max_size=9).map(np.array),
    st.sampled_from(["none", "holm", "hochberg", "bh", "by"]),
    st.sampled_from([0.8, 0.9, 0.95]),
)
def test_intervals_at_the_level_leave_zero_out_where_the_test_is_rejected(raw, method, level):
    """An interval is the dual of its test: it leaves zero out where the raw p is at most one less its level."""
    decided = adjusted(raw, method) <= 1 - level
    outside = raw <= 1 - simultaneous_level(method, level, adjusted(raw, method))
    sure = np.abs(adjusted(raw, method) - (1 - level)) > 1e-9
    if method in ("holm", "hochberg"):
        # steps may reject what the interval does not
        assert (decided | ~outside)[sure].all()
    elif sure.all():
        assert (decided == outside).all()


def test_levels_by_hand():
    p = np.array([0.001, 0.02, 0.04, 0.5, np.nan])
    assert simultaneous_level("none", 0.95, p) == 0.95
    assert simultaneous_level("holm", 0.95, p) == simultaneous_level("hochberg", 0.95, p) == pytest.approx(1 - 0.05 / 4)
    assert simultaneous_level("bh", 0.95, p) == pytest.approx(1 - 3 * 0.05 / 4)
    assert simultaneous_level("by", 0.95, p) == pytest.approx(1 - 3 * 0.05 / (4 * (1 + 1 / 2 + 1 / 3 + 1 / 4)))


def test_without_a_rejection_the_level_is_that_of_one():
    p = np.array([0.3, 0.4])
    assert simultaneous_level("bh", 0.95, p) == pytest.approx(0.975)
    assert simultaneous_level("by", 0.95, p) == pytest.approx(1 - 0.05 / 3)
    assert simultaneous_level("holm", 0.95, np.full(3, np.nan)) == 0.95


def test_a_step_down_method_may_reject_where_the_interval_reaches_zero():
    raw = np.array([0.001, 0.04])
    assert (adjusted(raw) <= 0.05).all()
    assert (raw <= 1 - simultaneous_level("holm", 0.95, adjusted(raw))).tolist() == [True, False]


def test_p_values_right_at_the_level_are_rejected():
    assert simultaneous_level("bh", 0.9, np.array([0.1, 0.1])) == pytest.approx(0.9)
