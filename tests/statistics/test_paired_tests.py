"""The paired tests: R's exact p-values, enumeration, and the edges."""

import itertools

import numpy as np
import pytest
from cohorts import REFERENCE
from hypothesis import given
from hypothesis import strategies as st

from survexec.statistics.paired_tests import holm, mcnemar_midp, sign_flip, sign_flip_real


def test_mcnemar_midp_equals_r(paired_in_r):
    found = {k[1:3] for k in paired_in_r.values if k[1].startswith("mcnemar_")}
    assert len(found) == 12
    for analysis, pair in found:
        a, b, c, d = (int(paired_in_r("a_paired", analysis, pair, k)) for k in "abcd")
        first = np.repeat([True, True, False, False], [a, b, c, d])
        second = np.repeat([True, False, True, False], [a, b, c, d])
        got = mcnemar_midp(first, second)
        assert got.p_value == pytest.approx(paired_in_r("a_paired", analysis, pair, "p_midp"), abs=1e-12)
        assert (got.statistic, got.n_pairs) == (b - c, 120)


def test_exact_sign_flip_equals_r(paired_in_r):
    import pandas as pd

    fed = pd.read_csv(REFERENCE / "a_paired.csv").pivot(index="task", columns="method", values="FED")
    for first, second in itertools.combinations(["base", "react", "plan", "verify"], 2):
        got = sign_flip((fed[first] - fed[second]).to_numpy())
        key = ("a_paired", "signflip_conv_FED", f"{first}:{second}")
        assert got.test == "sign-flip, exact"
        assert got.statistic == paired_in_r(*key, "sum")
        assert got.p_value == pytest.approx(paired_in_r(*key, "p_exact"), rel=1e-12, abs=1e-12)


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_sign_flip_is_the_share_of_sign_patterns_at_least_as_extreme(differences):
    differences = np.array(differences)
    patterns = np.array(list(itertools.product([-1, 1], repeat=len(differences))))
    expected = (np.abs(patterns @ np.abs(differences)) >= abs(differences.sum())).mean()
    assert sign_flip(differences).p_value == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.integers(-3, 3), min_size=45, max_size=60))
def test_listing_and_the_lattice_agree_with_large_common_factors(differences):
    differences = np.array(differences)
    # more than 2**20 patterns a half: the lattice; scaling by a large factor must change nothing
    plain, scaled = sign_flip(differences), sign_flip(differences * 360_360)
    assert plain.test == scaled.test == "sign-flip, exact"
    assert plain.p_value == pytest.approx(scaled.p_value, abs=1e-12)


def test_too_many_distinct_sums_are_drawn_with_a_seed_and_come_close():
    rng = np.random.default_rng(1)
    differences = rng.integers(1, 10**9, 60) * rng.choice([-1, 1], 60)
    first, again = sign_flip(differences, seed=3), sign_flip(differences, seed=3)
    assert first.test == "sign-flip, Monte Carlo"
    assert first == again
    z = abs(differences.sum()) / np.sqrt((differences.astype(float) ** 2).sum())
    from scipy import stats

    assert first.p_value == pytest.approx(2 * stats.norm.sf(z), abs=0.02)


def test_the_drawn_test_agrees_with_the_exact_one():
    differences = np.array([3, -1, 2, 2, 0, 5, -4, 1, 1, 2, 3, -2])
    exact, drawn = sign_flip(differences).p_value, sign_flip_real(differences.astype(float), seed=0).p_value
    # three standard errors of 99,999 draws
    assert drawn == pytest.approx(exact, abs=3 * np.sqrt(exact * (1 - exact) / 99_999))


def test_no_difference_anywhere_has_p_1():
    same = np.array([True, False, True])
    assert mcnemar_midp(same, same).p_value == 1
    assert sign_flip(np.zeros(4, int)).p_value == 1
    assert sign_flip_real(np.zeros(4)).p_value == 1


def test_holm_equals_r(paired_in_r):
    given_p = np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.001, 0.9, np.nan, 0.04])
    expected = [paired_in_r("toy", "padj_holm", str(k), "p") for k in range(1, 10)]
    assert holm(given_p) == pytest.approx(expected, abs=1e-15, nan_ok=True)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_p_and_keeps_its_order(p):
    p = np.array(p)
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
