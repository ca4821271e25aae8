"""The paired tests: R's values, enumeration, closed forms, and the edges."""

import itertools
import math
from dataclasses import astuple
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cohorts import REFERENCE
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from survexec.errors import InputError
from survexec.statistics import paired_tests
from survexec.statistics.intervals import expanded_percentile
from survexec.statistics.paired_tests import (
    bootstrap_inversion,
    cochran_q,
    friedman,
    mcnemar_asymptotic,
    mcnemar_exact,
    mcnemar_midp,
    paired_t,
    sign_flip,
    sign_flip_real,
    sign_flips,
    wilcoxon,
)
from survexec.statistics.resampling import Replicates

METHODS = ("base", "react", "plan", "verify")
PAIRS = list(itertools.combinations(METHODS, 2))
# makes every area of the reference data a whole number
SCALE = 360_360
MCNEMAR = (mcnemar_midp, mcnemar_exact, mcnemar_asymptotic)

# small sizes fill a lattice of sums, large ones are listed
whole_differences = st.lists(st.one_of(st.integers(-6, 6), st.integers(-(10**9), 10**9)), min_size=1, max_size=9).map(
    np.array
)
both_hits = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30).map(np.array)


@pytest.fixture(scope="module")
def values():
    """Columns of the reference data as (task, method): FED, area, its whole multiple, clean, success."""
    data = pd.read_csv(REFERENCE / "a_paired.csv")
    data["area"] = (data["FED"] - 1) / data["T"]
    data["scaled"] = (data["area"] * SCALE).round().astype(int)
    data["clean"] = data["FED"] == data["T"] + 1
    wide = {name: data.pivot(index="task", columns="method", values=name) for name in
            ("FED", "area", "scaled", "clean", "Y")}  # fmt: skip
    return {name: table[list(METHODS)].to_numpy() for name, table in wide.items()}


def every_difference(table):
    """Each pair with the differences of its methods."""
    for a, b in PAIRS:
        yield f"{a}:{b}", table[:, METHODS.index(a)] - table[:, METHODS.index(b)]


def enumerated(differences, sizes):
    """Share of all sign patterns whose sum of sizes is at least as far from 0 as the one observed."""
    observed = abs((np.sign(differences) * sizes).sum())
    patterns = np.array(list(itertools.product([-1, 1], repeat=len(sizes))))
    return (np.abs(patterns @ sizes) >= observed - 1e-9).mean()


# McNemar


def test_mcnemar_equals_r(paired_in_r):
    found = {k[1:3] for k in paired_in_r.values if k[1].startswith("mcnemar_")}
    assert len(found) == 12
    for key in found:
        a, b, c, d = (int(paired_in_r("a_paired", *key, k)) for k in "abcd")
        first = np.repeat([True, True, False, False], [a, b, c, d])
        second = np.repeat([True, False, True, False], [a, b, c, d])
        for test, item in zip(MCNEMAR, ("p_midp", "p_exact", "p_nocc"), strict=True):
            got = test(first, second)
            assert got.p_value == pytest.approx(paired_in_r("a_paired", *key, item), rel=1e-10)
            assert (got.n_pairs, got.left_out) == (120, f"{a + d} ties")
        assert mcnemar_midp(first, second).statistic == mcnemar_exact(first, second).statistic == b - c
        assert mcnemar_asymptotic(first, second).statistic == pytest.approx(
            paired_in_r("a_paired", *key, "chisq_nocc"), rel=1e-12
        )
        corrected = mcnemar_asymptotic(first, second, correction=True)
        assert corrected.statistic == pytest.approx(paired_in_r("a_paired", *key, "chisq_cc"), rel=1e-12)
        assert corrected.p_value == pytest.approx(paired_in_r("a_paired", *key, "p_cc"), rel=1e-10)
        assert corrected.df == 1


@given(both_hits)
def test_exact_and_midp_mcnemar_are_sums_of_binomial_terms(hits):
    b, c = int((hits[:, 0] & ~hits[:, 1]).sum()), int((~hits[:, 0] & hits[:, 1]).sum())
    n, k = b + c, min(b, c)
    tail = sum(Fraction(math.comb(n, j), 2**n) for j in range(k + 1))
    exact, midp = min(2 * tail, 1), min(2 * tail - Fraction(math.comb(n, k), 2**n), 1)
    assert mcnemar_exact(*hits.T).p_value == pytest.approx(float(exact), rel=1e-12)
    assert mcnemar_midp(*hits.T).p_value == pytest.approx(float(midp) if n else 1.0, rel=1e-12)


@pytest.mark.parametrize("test", MCNEMAR)
def test_mcnemar_of_identical_methods_has_p_1_and_statistic_0(test):
    same = np.array([True, False, True])
    got = test(same, same)
    assert (got.p_value, got.statistic, got.n_pairs, got.left_out) == (1, 0, 3, "3 ties")


@pytest.mark.parametrize("test", MCNEMAR)
def test_mcnemar_takes_zeros_and_ones_and_refuses_sides_of_other_length(test):
    first, second = np.array([1, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 0])
    assert astuple(test(first, second)) == astuple(test(first == 1, second == 1))
    with pytest.raises(InputError, match="5 and 1 tasks"):
        test(first, second[:1])


# sign flips


def test_exact_sign_flip_equals_r(paired_in_r, values):
    for pair, differences in every_difference(values["FED"]):
        got = sign_flip(differences)
        key = ("a_paired", "signflip_conv_FED", pair)
        assert (got.test, got.standard_error) == ("sign-flip, exact", 0)
        assert got.statistic == paired_in_r(*key, "sum")
        assert got.p_value == pytest.approx(paired_in_r(*key, "p_exact"), rel=1e-12)
        assert got.left_out.split()[0] == str((differences == 0).sum())


@given(whole_differences)
def test_sign_flip_is_the_share_of_sign_patterns_at_least_as_extreme(differences):
    assert sign_flip(differences).p_value == pytest.approx(enumerated(differences, np.abs(differences)), rel=1e-12)


@given(st.lists(st.integers(-3, 3), min_size=45, max_size=60))
def test_a_common_factor_changes_no_exact_p(differences):
    differences = np.array(differences)
    plain, scaled = sign_flip(differences), sign_flip(differences * 360_360)
    assert plain.test == scaled.test == "sign-flip, exact"
    assert plain.p_value == scaled.p_value


@pytest.mark.parametrize("n", [1, 50, 400])
def test_a_tiny_exact_p_keeps_its_digits(n):
    assert sign_flip(np.ones(n, int)).p_value == 2.0 ** (1 - n)


def test_too_many_distinct_sums_are_drawn_with_a_seed_and_come_close():
    rng = np.random.default_rng(1)
    differences = rng.integers(1, 10**9, 60) * rng.choice([-1, 1], 60)
    first, again, other = (sign_flip(differences, seed) for seed in (3, 3, 4))
    assert first.test == "sign-flip, Monte Carlo"
    assert astuple(first) == astuple(again)
    assert astuple(first) != astuple(other)
    z = abs(differences.sum()) / np.sqrt((differences.astype(float) ** 2).sum())
    assert first.p_value == pytest.approx(2 * stats.norm.sf(z), abs=0.02)


def test_drawn_p_values_scatter_about_the_exact_one_as_their_standard_error_says():
    differences = np.array([3, -1, 2, 2, 0, 5, -4, 1, 1, 2, 3, -2])
    exact = sign_flip(differences).p_value
    drawn = [sign_flip_real(differences.astype(float), seed) for seed in range(40)]
    z = [(tested.p_value - exact) / tested.standard_error for tested in drawn]
    assert abs(np.mean(z)) < 4 / np.sqrt(40)
    assert 0.6 < np.std(z) < 1.4


@given(st.lists(st.lists(st.floats(-5, 5), max_size=20).map(np.array), max_size=4), st.integers(0, 3))
def test_a_sign_flip_test_is_the_same_alone_and_among_others(many, seed):
    assert str(sign_flips(many, seed)) == str([sign_flip_real(differences, seed) for differences in many])


@given(whole_differences)
def test_sign_flip_and_wilcoxon_do_not_care_who_is_first(differences):
    for test in (sign_flip, lambda d: sign_flip_real(d.astype(float)), wilcoxon, paired_t):
        assert str(test(differences).p_value) == str(test(-differences).p_value)


def test_a_ruler_of_another_unit_changes_no_drawn_p():
    differences = np.array([0.3, -0.1, 0.2, 0.2, -0.4, 0.1])
    assert sign_flip_real(differences).p_value == sign_flip_real(differences * 1e-9).p_value
    assert sign_flip_real(differences).p_value == sign_flip_real(differences * 1e9).p_value


def test_floats_are_refused_where_whole_numbers_are_needed():
    with pytest.raises(InputError, match="float64"):
        sign_flip(np.array([0.5, 1.0]))


# Wilcoxon


@pytest.mark.parametrize(("zeros", "in_r"), [("pratt", "Pratt"), ("dropped", "Wilcoxon")])
@pytest.mark.parametrize(("column", "name"), [("FED", "FED"), ("scaled", "auc"), ("area", "auc")])
def test_wilcoxon_equals_coin_on_whole_numbers_and_on_floats(
    monkeypatch, paired_in_r, values, column, name, zeros, in_r
):
    for pair, differences in every_difference(values[column]):
        key = ("a_paired", f"coin_wilcoxsign_{in_r}_{name}", pair)
        got = wilcoxon(differences, zeros)
        assert got.test.endswith("exact")
        assert got.p_value == pytest.approx(paired_in_r(*key, "p_exact"), rel=1e-9)
        with monkeypatch.context() as patch:
            patch.setattr(paired_tests, "_RANK_WORK", -1)
            rough = wilcoxon(differences, zeros)
        assert rough.test.endswith("normal approximation")
        assert rough.p_value == pytest.approx(paired_in_r(*key, "p_asym"), rel=1e-9)
        assert (rough.statistic, rough.left_out) == (got.statistic, got.left_out)


@pytest.mark.parametrize(("column", "name"), [("FED", "FED"), ("scaled", "auc"), ("area", "auc")])
def test_wilcoxon_without_zeros_equals_exact_rank_tests(paired_in_r, values, column, name):
    for pair, differences in every_difference(values[column]):
        key = ("a_paired", f"exactRankTests_wilcox_{name}", pair)
        got = wilcoxon(differences, "dropped")
        assert got.statistic == paired_in_r(*key, "V")
        assert got.p_value == pytest.approx(paired_in_r(*key, "p_exact"), rel=1e-9)


def test_wilcoxon_without_zeros_equals_r_base_where_ties_are_exact(monkeypatch, paired_in_r, values):
    # on areas R's own test breaks ties by the rounding of floats, so only FED compares
    monkeypatch.setattr(paired_tests, "_RANK_WORK", -1)
    for pair, differences in every_difference(values["FED"]):
        key = ("a_paired", "wilcox_R_zerosdropped_FED", pair)
        got = wilcoxon(differences, "dropped")
        assert got.statistic == paired_in_r(*key, "V")
        assert got.p_value == pytest.approx(paired_in_r(*key, "p_correctFALSE"), rel=1e-10)


@given(whole_differences, st.sampled_from(["pratt", "dropped"]))
def test_exact_wilcoxon_is_the_share_of_sign_patterns_of_the_ranks(differences, zeros):
    kept = differences if zeros == "pratt" else differences[differences != 0]
    assume(len(kept))
    ranks = stats.rankdata(np.abs(kept)) * (kept != 0)
    got = wilcoxon(differences, zeros)
    assert got.p_value == pytest.approx(enumerated(kept, ranks), rel=1e-12)
    assert got.statistic == ranks[kept > 0].sum()


def test_wilcoxon_on_many_tasks_is_normal_and_near_the_exact_test():
    rng = np.random.default_rng(5)
    many = rng.integers(-20, 23, 600)
    got = wilcoxon(many)
    assert got.test == "Wilcoxon signed-rank (Pratt), normal approximation"
    fewer = wilcoxon(many[many != 0][:500])
    assert fewer.test == "Wilcoxon signed-rank (Pratt), exact"
    assert got.p_value == pytest.approx(stats.wilcoxon(many, zero_method="pratt", method="asymptotic").pvalue, rel=1e-9)


def test_float_ties_are_ties():
    third = np.array([0.1 + 0.2, -0.3, 0.3, 0.1 + 0.2, 0.9, 1e-17])
    for unit in (1, 1e6):
        assert wilcoxon(third * unit).statistic == wilcoxon(np.array([1, -1, 1, 1, 3, 0])).statistic
    assert wilcoxon(third).left_out == "1 tie"


def test_zeros_must_be_known():
    with pytest.raises(InputError, match="'zsplit'"):
        wilcoxon(np.array([1, 2]), "zsplit")


# t


def test_paired_t_equals_r(paired_in_r, values):
    for column, name in (("FED", "FED"), ("area", "auc")):
        for pair, differences in every_difference(values[column]):
            got = paired_t(differences)
            assert got.statistic == pytest.approx(paired_in_r("a_paired", f"paired_t_{name}", pair, "t"), rel=1e-10)
            assert got.p_value == pytest.approx(paired_in_r("a_paired", f"paired_t_{name}", pair, "p"), rel=1e-10)
            assert got.df == 119


@pytest.mark.parametrize("differences", [[0.1] * 3, [0.1 + 0.2, 0.3, 0.3], [2], [-1, -1]])
def test_the_same_difference_on_every_task_has_no_t(differences):
    got = paired_t(np.array(differences))
    assert np.isnan([got.p_value, got.statistic]).all()
    assert "the same on every task" in got.left_out


# all methods at once


def test_cochran_and_friedman_equal_r(paired_in_r, values):
    for test, column, name in (
        (cochran_q, "clean", "cochranQ_ok"),
        (cochran_q, "Y", "cochranQ_Y"),
        (friedman, "FED", "friedman_FED"),
        (friedman, "scaled", "friedman_auc"),
        (friedman, "area", "friedman_auc"),
    ):
        got = test(values[column])
        assert got.statistic == pytest.approx(paired_in_r("a_paired", name, "all", "Q"), rel=1e-12)
        assert got.p_value == pytest.approx(paired_in_r("a_paired", name, "all", "p"), rel=1e-10)
        assert (got.df, got.n_pairs) == (3, 120)


@given(st.integers(2, 5).flatmap(lambda k: st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=1)))
def test_cochran_is_his_formula(hits):
    x = np.array(hits, dtype=int)
    k, columns, rows = x.shape[1], x.sum(axis=0), x.sum(axis=1)
    bottom = k * rows.sum() - (rows**2).sum()
    assume(bottom)
    expected = (k - 1) * (k * (columns**2).sum() - columns.sum() ** 2) / bottom
    got = cochran_q(x)
    assert got.statistic == pytest.approx(expected, abs=1e-12)
    agreed = int(((rows == 0) | (rows == k)).sum())
    assert got.left_out == (f"{agreed} tie{'s' if agreed > 1 else ''}" if agreed else "")


@given(both_hits)
def test_cochran_of_two_methods_is_mcnemar(hits):
    cochran, mcnemar = cochran_q(hits), mcnemar_asymptotic(*hits.T)
    assert (cochran.statistic, cochran.p_value) == pytest.approx((mcnemar.statistic, mcnemar.p_value), rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(10, 19), st.booleans()), min_size=1, max_size=20))
def test_friedman_of_two_methods_without_ties_is_the_sign_test(rows):
    values = np.array([(low, high) if up else (high, low) for low, high, up in rows])
    up = sum(up for *_, up in rows)
    assert friedman(values).statistic == pytest.approx((2 * up - len(rows)) ** 2 / len(rows), abs=1e-12)


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=2, max_size=12))
def test_friedman_equals_scipy_with_ties_and_sees_ranks_only(rows):
    values = np.array(rows)
    assume((values != values[:, :1]).any())
    assert friedman(values).statistic == pytest.approx(stats.friedmanchisquare(*values.T).statistic, rel=1e-10)
    assert friedman(np.exp(values / 3.0)) == friedman(values)


@pytest.mark.parametrize("test", [cochran_q, friedman])
def test_methods_that_no_task_tells_apart_have_p_1(test):
    got = test(np.array([[1, 1, 1], [0, 0, 0]]))
    assert (got.statistic, got.p_value, got.df, got.n_pairs) == (0, 1, 2, 2)
    assert got.left_out == "no task tells the methods apart"


def test_one_method_is_no_comparison():
    with pytest.raises(InputError, match=r"\(3, 1\)"):
        friedman(np.ones((3, 1)))


# bootstrap


def replicates(values, n):
    """As the intervals take them: one cell, one statistic."""
    return Replicates(np.zeros((1, 1)), values[None, None], np.zeros((n, 1, 1)), np.array([n]), np.zeros(n, int))


@given(
    st.lists(st.integers(-8, 12), min_size=20, max_size=200),
    st.integers(100, 400),
    st.sampled_from([0.0, 0.37]),
)
def test_the_expanded_interval_leaves_zero_out_just_beyond_the_bootstrap_p(values, n, shift):
    values = np.array(values) / 10 + shift / 10
    assume(np.ptp(values) > 0)
    p = bootstrap_inversion(values, n).p_value

    def leaves_zero_out(alpha):
        lower, upper = expanded_percentile(replicates(values, n), 1 - alpha)
        return bool(lower[0, 0] > 1e-15 or upper[0, 0] < -1e-15)

    assert p == 1 or leaves_zero_out(min(p * 1.0001, 1 - 1e-9))
    # where all replicates are on one side, p is the least that they can show
    assert (values > 0).all() or (values < 0).all() or not leaves_zero_out(p * 0.9999)


def test_the_bootstrap_p_never_goes_below_what_the_resamples_can_show():
    got = bootstrap_inversion(np.full(999, 3.0) + np.arange(999) / 1000, 10_000)
    assert got.statistic == 1 / 1000
    assert got.p_value == pytest.approx(2 / 1000, rel=0.01)
    assert got.standard_error > 0


def test_the_bootstrap_p_of_normal_replicates_is_that_of_t():
    z = stats.norm.ppf(np.arange(1, 10_000) / 10_000)
    got = bootstrap_inversion(2.5 + z, 150)
    assert got.p_value == pytest.approx(2 * stats.t.sf(2.5 * np.sqrt(149 / 150), 149), rel=1e-4)
    assert got.df == 149


def test_the_standard_error_of_the_bootstrap_p_is_how_it_scatters():
    rng = np.random.default_rng(8)
    found = [bootstrap_inversion(rng.normal(2, 1, 2000), 100) for _ in range(200)]
    assert np.std([t.p_value for t in found]) == pytest.approx(np.mean([t.standard_error for t in found]), rel=0.2)


def test_undefined_resamples_are_left_out_and_told():
    rng = np.random.default_rng(0)
    values = rng.normal(1, 1, 500)
    got = bootstrap_inversion(np.concatenate([values, [np.nan] * 7]), 100)
    assert got.p_value == bootstrap_inversion(values, 100).p_value
    assert got.left_out == "7 undefined resamples"
    none = bootstrap_inversion(np.full(5, np.nan), 100)
    assert np.isnan(none.p_value)
    assert "no resample defines" in none.left_out


def test_replicates_without_spread_give_p_1_at_zero_and_no_p_elsewhere():
    assert bootstrap_inversion(np.zeros(99), 100).p_value == 1
    elsewhere = bootstrap_inversion(np.full(99, 0.25), 100)
    assert np.isnan(elsewhere.p_value)
    assert "the same in every resample" in elsewhere.left_out


def test_fewer_than_100_tasks_are_refused_with_the_measured_size():
    with pytest.raises(InputError, match=r"99 tasks are too few.*6\.9% with 50"):
        bootstrap_inversion(np.arange(-5.0, 5), 99)


# all of them


ON_DIFFERENCES = (sign_flip, lambda d: sign_flip_real(d.astype(float)), wilcoxon, paired_t)


@pytest.mark.parametrize("test", ON_DIFFERENCES)
def test_no_difference_anywhere_has_p_1(test):
    got = test(np.zeros(4, int))
    assert (got.p_value, got.statistic, got.n_pairs) == (1, 0, 4)


@pytest.mark.parametrize("test", [*ON_DIFFERENCES, *(lambda d, t=t: t(d, d) for t in MCNEMAR)])
def test_without_tasks_there_is_no_p(test):
    got = test(np.zeros(0, int))
    assert np.isnan(got.p_value)
    assert (got.n_pairs, got.left_out) == (0, "no p: there are no tasks")


@pytest.mark.parametrize("test", [sign_flip_real, wilcoxon, paired_t, lambda d: friedman(d[None])])
def test_a_missing_difference_is_refused(test):
    with pytest.raises(InputError, match="a value is nan"):
        test(np.array([0.5, np.nan, 1.0]))
