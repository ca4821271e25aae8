"""Planned power is the power of the tests that decide: against enumeration, closed forms, and simulated studies."""

from dataclasses import replace
from itertools import product
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import survexec as sx
from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.assumptions import Basis, tasks_needed
from survexec.statistics.estimands import METRICS
from survexec.statistics.intervals import expanded_quantile
from survexec.statistics.paired_tests import mcnemar_midp, sign_flip
from survexec.statistics.pilots import pilot_of, single_trials
from survexec.statistics.planning import COLUMNS, plan
from survexec.statistics.power import (
    Shape,
    attainable,
    few_power,
    mcnemar_power,
    paired_t_power,
    sign_flip_power,
    smallest,
)
from survexec.statistics.proportions import effective_n, mover, wilson
from survexec.statistics.resampling import influence

Z = {0.8: 0.8416212, 0.9: 1.2815516, 0.975: 1.9599640}


def hits(*table, methods=("a", "b")):
    """Rollouts of one trial: how many tasks both hit, only the first, only the second, neither."""
    sides = np.repeat([(1, 1), (1, 0), (0, 1), (0, 0)], table, axis=0)
    return Rollouts(
        pd.concat([
            pd.DataFrame({"task_id": range(len(sides)), "method": name, "length": 4, "fed": np.where(hit, 5, 2),
                          "success": hit})
            for name, hit in zip(methods, sides.T, strict=True)
        ])
    )  # fmt: skip


def cohort(tasks=60, trials=1, seed=0, chance=(0.7, 0.5), spread=0.25):
    """Rollouts of two methods whose tasks differ in how hard they are."""
    rng = np.random.default_rng(seed)
    shape = (tasks, 2, trials)
    rate = np.clip(np.array(chance)[None, :, None] + spread * rng.normal(size=(tasks, 2, 1)), 0, 1)
    length = rng.integers(1, 7, shape)
    clean = rng.random(shape) < rate
    fed = np.where(clean, length + 1, 1 + (rng.random(shape) * length).astype(int))
    task, side, trial = (at.ravel() for at in np.indices(shape))
    return Rollouts(
        pd.DataFrame({
            "task_id": task, "method": np.array(["a", "b"])[side], "trial": trial, "length": length.ravel(),
            "fed": fed.ravel(), "success": (rng.random(shape) < np.where(clean, 0.8, 0.4)).ravel(),
        })
    )  # fmt: skip


# McNemar


@pytest.mark.parametrize(
    ("n", "difference", "discordance", "alpha"),
    [(1, 0.5, 1, 0.05), (6, 0.4, 0.6, 0.1), (9, -0.3, 0.3, 0.05), (11, 0.0, 0.5, 0.05), (12, 0.5, 1.0, 0.01)],
)
def test_mcnemar_power_is_the_sum_over_all_tables_that_the_test_rejects(n, difference, discordance, alpha):
    chances = (discordance + difference) / 2, (discordance - difference) / 2
    power = 0.0
    for b, c in product(range(n + 1), repeat=2):
        if b + c <= n:
            first = np.repeat([True, False, False], [b, c, n - b - c])
            second = np.repeat([False, True, False], [b, c, n - b - c])
            if mcnemar_midp(first, second).p_value <= alpha:
                ways = comb(n, b) * comb(n - b, c)
                power += ways * chances[0] ** b * chances[1] ** c * (1 - discordance) ** (n - b - c)
    assert mcnemar_power(n, difference, discordance, alpha)[0] == pytest.approx(power, abs=1e-12)


def test_many_tasks_at_once_have_the_power_that_each_has_alone():
    tasks = np.array([300, 7, 45, 45_000, 1])
    alone = [mcnemar_power(n, 0.02, 0.3, 0.05)[0] for n in tasks]
    np.testing.assert_allclose(mcnemar_power(tasks, 0.02, 0.3, 0.05), alone, atol=1e-13)


@pytest.mark.parametrize("discordance", [0.02, 0.3, 0.9])
def test_the_normal_limit_takes_over_without_a_jump(discordance):
    tasks = round(10_000 / discordance) + np.array([-1, 2])
    exact, limit = mcnemar_power(tasks, 2.8 * (discordance / tasks[0]) ** 0.5, discordance, 0.05)
    assert exact == pytest.approx(limit, abs=0.001)


@pytest.mark.parametrize(("difference", "discordance"), [(0.05, 0.1), (0.1, 0.3), (0.02, 0.2), (-0.125, 0.375)])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_tasks_needed_are_near_the_formulas_for_large_samples(difference, discordance, power):
    spread = (discordance - difference**2) ** 0.5
    connor = ((Z[0.975] * discordance**0.5 + Z[power] * spread) / difference) ** 2
    root = (discordance**2 - difference**2 * (3 + discordance) / 4) ** 0.5
    miettinen = (Z[0.975] * discordance + Z[power] * root) ** 2 / (discordance * difference**2)
    needed = plan(difference=difference, discordance=discordance, power=power).answer["tasks"]
    assert needed == pytest.approx(connor, rel=0.05)
    assert needed == pytest.approx(miettinen, rel=0.05)


def test_a_published_example_of_a_small_study():
    # Connor's formula asks for 23 pairs where 0.45 and 0.05 are discordant; the mid-p test is a little sharper
    needed = plan(difference=0.4, discordance=0.5).answer["tasks"]
    assert needed in (21, 22, 23)
    assert plan(difference=0.4, discordance=0.5, tasks=23).answer["power"] > 0.8


@given(n=st.integers(1, 400), discordance=st.floats(0.01, 1), part=st.floats(-1, 1), alpha=st.floats(0.001, 0.3))
def test_mcnemar_power_is_a_probability_alike_in_both_directions_and_its_size_is_kept(n, discordance, part, alpha):
    power = mcnemar_power(n, part * discordance, discordance, alpha)[0]
    assert -1e-12 <= power <= 1 + 1e-12
    assert power == pytest.approx(mcnemar_power(n, -part * discordance, discordance, alpha)[0], abs=1e-12)
    # the mid-p test may exceed its size, by little
    assert mcnemar_power(n, 0.0, discordance, alpha)[0] <= 1.35 * alpha


def test_power_grows_with_the_difference_and_without_one_is_the_size():
    powers = [mcnemar_power(200, d, 0.3, 0.05)[0] for d in np.linspace(0, 0.3, 20)]
    assert (np.diff(powers) > 0).all()
    assert powers[0] == pytest.approx(0.05, abs=0.005)
    assert plan(tasks=200, difference=0, discordance=0.3).answer["power"] == pytest.approx(powers[0], abs=1e-12)


# means


@pytest.mark.parametrize("n", [2, 3, 8, 30, 500])
@pytest.mark.parametrize("shift", [0.0, 0.7, 2.8, 6.0])
def test_t_power_of_normal_differences_is_that_of_the_noncentral_t(n, shift):
    limit = special.stdtrit(n - 1, 0.975)
    expected = 1 - special.nctdtr(n - 1, shift, limit) + special.nctdtr(n - 1, shift, -limit)
    assert paired_t_power(n, Shape(shift / n**0.5, 1.0), 0.05)[0] == pytest.approx(expected, abs=1e-12)


def test_t_power_agrees_with_statsmodels():
    from statsmodels.stats.power import TTestPower

    for n, effect, alpha in [(20, 0.5, 0.05), (64, 0.3, 0.01), (400, 0.1, 0.1)]:
        expected = TTestPower().power(effect, n, alpha)
        assert paired_t_power(n, Shape(effect * 0.3, 0.3), alpha)[0] == pytest.approx(expected, abs=1e-9)


def test_t_power_holds_where_the_series_underflows():
    assert paired_t_power(100, Shape(3.7, 1.0), 0.05)[0] == pytest.approx(1, abs=1e-12)
    # two tasks and a limit of 12.7: by the half normal distribution of the spread
    expected = special.erf(37 / special.stdtrit(1, 0.975) / 2**0.5)
    assert paired_t_power(2, Shape(37 / 2**0.5, 1.0), 0.05)[0] == pytest.approx(expected, abs=1e-3)


def test_skewness_takes_power_where_the_standard_error_grows_against_the_difference():
    rng = np.random.default_rng(3)
    n, mean = 60, 0.36
    # an exponential distribution turned round: skewness -2, kurtosis 9
    drawn = mean + 1 - rng.exponential(size=(20_000, n))
    t = drawn.mean(axis=1) / drawn.std(axis=1, ddof=1) * n**0.5
    simulated = (np.abs(t) > special.stdtrit(n - 1, 0.975)).mean()
    plain = paired_t_power(n, Shape(mean, 1.0), 0.05)[0]
    corrected = paired_t_power(n, Shape(mean, 1.0, -2.0, 9.0), 0.05)[0]
    assert abs(corrected - simulated) < abs(plain - simulated) / 2
    assert abs(corrected - simulated) < 0.02


def test_a_percentile_interval_leans_with_the_skewness():
    rng = np.random.default_rng(5)
    n, mean, runs = 80, 0.3, 6000
    # an exponential distribution turned round: skewness -2, kurtosis 9
    drawn = mean + 1 - rng.exponential(size=(runs, n))
    weights = rng.multinomial(n, np.full(n, 1 / n), 2000) / n
    resampled = np.sort(drawn @ weights.T, axis=1)
    tail = special.ndtr(-expanded_quantile(n, 0.95))
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=1)
    t = drawn.mean(axis=1) / drawn.std(axis=1, ddof=1) * n**0.5
    lost = (np.abs(t) > special.stdtrit(n - 1, 0.975)).mean() - ((low > 0) | (high < 0)).mean()
    shape = Shape(mean, 1.0, -2.0, 9.0)
    as_t, leaning = (paired_t_power(n, shape, 0.05, percentile=leans)[0] for leans in (False, True))
    assert lost > 0.02
    assert as_t - leaning == pytest.approx(lost, abs=0.01)
    turned = paired_t_power(n, Shape(-mean, 1.0, 2.0, 9.0), 0.05, percentile=True)[0]
    assert turned == pytest.approx(leaning, abs=1e-12)


def test_a_sign_flip_test_has_no_power_before_it_has_enough_signs():
    assert attainable(0.05, np.arange(1, 8)).tolist() == [0, 0, 0, 0, 0, 1 / 32, 3 / 64]
    power = sign_flip_power(np.arange(1, 8), Shape(9.0, 1.0), 0.05)
    assert (power[:5] == 0).all()
    assert (power[5:] > 0.9).all()


@pytest.mark.parametrize(
    ("n", "values", "chances"),
    [
        (40, (-2, -1, 0, 1, 2), (0.05, 0.1, 0.45, 0.25, 0.15)),
        (25, (-3, -1, 1, 4), (0.2, 0.2, 0.3, 0.3)),
        (120, (-1, 0, 1), (0.08, 0.72, 0.2)),
        (15, (-2, 1, 3), (0.3, 0.3, 0.4)),
    ],
)
def test_sign_flip_power_is_near_that_of_the_exact_test(n, values, chances):
    rng = np.random.default_rng(n)
    runs = 1500
    drawn = rng.choice(values, (runs, n), p=chances)
    simulated = np.mean([sign_flip(row).p_value <= 0.05 for row in drawn])
    shape = Shape.of(*(float(np.dot(np.array(values, float) ** k, chances)) for k in (1, 2, 3, 4)))
    nothing = dict(zip(values, chances, strict=True)).get(0, 0.0)
    planned = sign_flip_power(n, shape, 0.05, 1 - nothing, 1.0)[0]
    assert abs(planned - simulated) < 0.02 + 3 * (simulated * (1 - simulated) / runs) ** 0.5


@pytest.mark.parametrize("differing", [0.1, 0.5, 0.95])
def test_sign_flip_power_goes_over_into_large_samples_without_a_jump(differing):
    tasks = round(1000 / differing) + np.array([-1, 2])
    few, many = sign_flip_power(tasks, Shape(2.8 / tasks[0] ** 0.5, 1.0, 0.3, 5.0), 0.05, differing)
    assert few == pytest.approx(many, abs=0.002)


@given(st.floats(-0.9, 0.9), st.floats(0.1, 3), st.floats(-2, 2), st.floats(5, 20))
def test_a_shape_and_its_moments_say_the_same(mean, sd, skewness, kurtosis):
    shape = Shape(mean, sd, skewness, kurtosis)
    np.testing.assert_allclose(Shape.of(*shape.raw), shape, rtol=1e-6, atol=1e-6)


# searching


def test_tasks_needed_lie_beyond_the_last_tooth_that_falls_short():
    def power(tasks):
        return mcnemar_power(tasks, 0.3, 1.0, 0.05)

    every = power(np.arange(1, 400))
    last = np.flatnonzero(every < 0.8).max() + 1
    first = np.flatnonzero(every >= 0.8).min() + 1
    assert tasks_needed(power, 0.8) == last + 1
    # the smallest number that reaches the target is not the answer: some larger ones fall short
    assert first < last


def test_no_plan_asks_for_millions():
    assert np.isnan(tasks_needed(lambda tasks: np.full(len(tasks), 0.05), 0.8))
    with pytest.raises(InputError, match="more than 10000000 tasks"):
        plan(difference=0.0001, discordance=0.9)


def test_the_smallest_number_is_found_to_ten_digits():
    assert smallest(lambda x: x**3 >= 5, 0.0, 100.0) == pytest.approx(5 ** (1 / 3), rel=1e-9)
    assert smallest(lambda x: x >= -0.25, -1.0, 1.0) == pytest.approx(-0.25, rel=1e-9)


@settings(max_examples=12)
@given(tasks=st.integers(10, 300), discordance=st.floats(0.05, 0.9))
def test_the_smallest_difference_is_shown_with_the_power_and_a_smaller_one_is_not(tasks, discordance):
    found = plan(tasks=tasks, discordance=discordance).answer
    if np.isnan(found["difference"]):
        assert mcnemar_power(tasks, discordance, discordance, 0.05)[0] < 0.8
    else:
        assert found["power"] == pytest.approx(0.8, abs=1e-6)
        assert mcnemar_power(tasks, 0.99 * found["difference"], discordance, 0.05)[0] < 0.8


def test_where_a_cannot_be_so_much_better_it_is_planned_to_be_worse():
    down = plan(metric="rr", rate=0.95, eligible=0.5, tasks=150).answer
    assert down["difference"] == pytest.approx(-0.13, abs=0.03)
    assert down["power"] == pytest.approx(0.8, abs=1e-6)
    assert plan(metric="rr", rate=0.5, eligible=0.5, tasks=150).answer["difference"] > 0
    # at 0.95 a discordance of 0.2 leaves room for a worse one alone
    assert plan(tasks=80, rate=0.95, discordance=0.2).answer["difference"] < -0.1
    # and at one half a discordance of 0.9 for none that 80 tasks can show
    assert np.isnan(plan(tasks=80, rate=0.5, discordance=0.9).answer["difference"])


# what a pilot says


def test_a_pilot_of_hits_gives_its_discordance_and_the_plan_that_follows():
    pilot = hits(20, 12, 2, 16)
    found = plan(pilot)
    assert found.pilot.discordance == pytest.approx(14 / 50)
    assert found.answer["difference"] == pytest.approx(0.2)
    assert found.answer["tasks"] == plan(difference=0.2, discordance=0.28).answer["tasks"]
    assert plan(pilot, discordance=0.4, tasks=80).answer["difference"] > plan(pilot, tasks=80).answer["difference"]


@pytest.mark.parametrize("metric", ["ter", "success", "mean_fed", "auc_pec", "rr", "clean_success", "mean_length"])
def test_the_spread_of_single_trials_is_that_of_the_influence_of_tasks(metric):
    pilot = pilot_of(cohort(), METRICS[metric], "method", None, None)
    moved = influence(pilot.pair.tally, [METRICS[metric]])[:, :, 0]
    n = len(moved)
    effect = n * (moved[:, 0] - moved[:, 1])
    assert pilot.single.sd == pytest.approx(effect.std(ddof=1), rel=1e-9)
    assert pilot.single.skewness == pytest.approx(stats.skew(effect), abs=1e-8)
    assert pilot.single.kurtosis == pytest.approx(stats.kurtosis(effect, fisher=False), rel=1e-8)
    assert pilot.noise is None


def test_the_split_of_the_variance_finds_what_was_put_in():
    rng = np.random.default_rng(8)
    tasks, trials = 20_000, 3
    a = rng.normal(0, 0.5, (tasks, 1)) + rng.normal(0, 1.0, (tasks, trials))
    b = rng.normal(0, 0.7, (tasks, 1)) + rng.normal(0, 0.6, (tasks, trials))
    single, discordance, noise = single_trials(a, b)
    assert single.sd**2 == pytest.approx(0.25 + 0.49 + 1.0 + 0.36, rel=0.02)
    assert noise == pytest.approx(1.36 / 2.1, abs=0.01)
    assert single.skewness == pytest.approx(0, abs=0.05)
    assert discordance == 1


def test_trials_that_are_missing_on_a_task_do_no_harm():
    rng = np.random.default_rng(9)
    a = rng.normal(size=(5000, 1)) + rng.normal(size=(5000, 4))
    b = rng.normal(size=(5000, 4))
    a[::2, 1:] = np.nan
    b[::3, 2] = np.nan
    single, _, noise = single_trials(a, b)
    assert single.sd**2 == pytest.approx(3, rel=0.05)
    assert noise == pytest.approx(2 / 3, abs=0.03)


def test_several_trials_take_down_the_noise_alone():
    basis = Basis("sign-flip", 0.05, spread=Shape(0, 2.0), noise=0.75)
    for trials in (1, 2, 5):
        assert basis.shape(0.1, trials).sd ** 2 == pytest.approx(4 * (0.25 + 0.75 / trials))


def test_hits_and_independent_shares_have_the_moments_of_their_distributions():
    d, discordance = 0.2, 0.5
    values, chances = np.array([1, 0, -1]), [0.35, 0.5, 0.15]
    found = Basis("McNemar mid-p", 0.05, discordance).single(d)
    centred = values - d
    assert found.sd**2 == pytest.approx(np.dot(centred**2, chances))
    assert found.skewness * found.sd**3 == pytest.approx(np.dot(centred**3, chances))
    assert found.kurtosis * found.sd**4 == pytest.approx(np.dot(centred**4, chances))
    # each side: eligible and a success, eligible and none, not eligible
    sides = []
    for share, eligible in ((0.7, 0.3), (0.4, 0.5)):
        moved = np.array([1 - share, -share, 0]) / eligible
        sides.append((moved, [eligible * share, eligible * (1 - share), 1 - eligible]))
    gap = (sides[0][0][:, None] - sides[1][0][None]).ravel()
    weight = np.outer(sides[0][1], sides[1][1]).ravel()
    found = Basis("interval", 0.05, rate=0.4, eligible=(0.3, 0.5)).single(0.3)
    assert found.sd**2 == pytest.approx(np.dot(gap**2, weight))
    assert found.skewness * found.sd**3 == pytest.approx(np.dot(gap**3, weight))
    assert found.kurtosis * found.sd**4 == pytest.approx(np.dot(gap**4, weight))


def test_an_unlabelled_rollout_says_nothing_of_success_and_all_of_ter():
    frame = hits(20, 12, 2, 16).frame.assign(success=lambda f: f["success"].where(f["task_id"] != "0"))
    assert plan(Rollouts(frame), metric="success", tasks=100).pilot.discordance == pytest.approx(14 / 49)
    assert plan(Rollouts(frame), metric="ter", tasks=100).pilot.discordance == pytest.approx(14 / 50)


# plans


def test_the_question_is_what_is_missing():
    assert plan(difference=0.1, discordance=0.3).made["solved"] == "tasks"
    assert plan(tasks=100, discordance=0.3).made["solved"] == "difference"
    assert plan(tasks=100, difference=0.1, discordance=0.3).made["solved"] == "power"
    assert plan(budget=100, discordance=0.3).made["solved"] == "split"


def test_the_frame_has_the_same_columns_whatever_is_asked():
    pilot = cohort(20, 2)
    for found in (
        plan(difference=0.1, discordance=0.3), plan(tasks=3, discordance=0.3), plan(pilot, tasks=50, metric="rr"),
        plan(budget=60, sd=0.4, noise=0.5, metric="auc_pec", max_tasks=20), plan(pilot, trials=2),
    ):  # fmt: skip
        assert tuple(found.frame.columns) == COLUMNS
        assert (found.frame["point"] == "answer").sum() == 1
        assert (found.frame["rollouts"] == found.frame["tasks"] * found.frame["trials"]).all()
        assert found.notes[0].startswith(("best of", f"{found.answer['tasks']} task"))


def test_a_smaller_difference_stands_beside_the_planned_one():
    rows = plan(difference=0.16, discordance=0.17).frame.query("point != 'curve'")
    # 0.2 would be more than the discordance allows
    assert rows["difference"].round(3).tolist() == [0.16, 0.12]
    assert rows["tasks"].is_monotonic_increasing


def test_power_has_beside_it_what_would_do():
    rows = plan(tasks=100, difference=0.1, discordance=0.28).frame.query("point == 'alternative'")
    assert rows["power"].round(2).tolist() == [0.8, 0.8]
    assert (rows["tasks"] == 100).tolist() == [True, False]


def test_a_family_of_comparisons_asks_for_more_tasks():
    one = plan(difference=0.1, discordance=0.3).answer["tasks"]
    six = plan(difference=0.1, discordance=0.3, comparisons=6).answer["tasks"]
    assert six == plan(difference=0.1, discordance=0.3, level=1 - 0.05 / 6).answer["tasks"]
    assert six > 1.4 * one


def test_one_task_shows_nothing():
    for assumed in ({"discordance": 0.5}, {"metric": "auc_pec", "sd": 0.4}, {"metric": "mean_length", "sd": 2.0}):
        found = plan(tasks=1, **assumed)
        assert np.isnan(found.answer["difference"])
        assert "no difference" in found.notes[0]
    assert plan(tasks=1, difference=0.5, discordance=0.5).answer["power"] == 0
    assert Basis("interval", 0.05, rate=0.5, eligible=(1, 1), noise=0.5).power(1, 50, 0.45) == 0


def test_shares_of_some_rollouts_are_planned_from_two_samples():
    found = plan(metric="rr", rate=0.5, eligible=(0.25, 0.5), difference=0.2, tasks=2000)
    error = (0.7 * 0.3 / 500 + 0.5 * 0.5 / 1000) ** 0.5
    assert found.answer["sd"] / 2000**0.5 == pytest.approx(error)
    assert found.answer["power"] == pytest.approx(special.ndtr(0.2 / error - Z[0.975]), abs=0.01)


def test_how_often_a_share_rests_on_few_is_said_where_it_does():
    def told(rate, eligible, tasks):
        notes = plan(metric="rr", rate=rate, eligible=eligible, tasks=tasks).notes
        return [note for note in notes if "MOVER" in note]

    assert "here in 97% of studies" in told(0.5, 0.1, 200)[0]
    assert "of them of the rarer outcome; below 20 or 5" in told(0.02, 0.5, 200)[0]
    assert told(0.5, 0.5, 200) == []


def mover_leaves_out_zero(x, n, few=(20, 5), alpha=0.05):
    """The rule of the default interval for few, written out: x hits of n on each side."""
    if min(n) == 0:
        return False
    z = -stats.norm.ppf(alpha / 2)
    limits = []
    for hit, of in zip(x, n, strict=True):
        p = hit / of
        if min(n) < few[0]:
            roots = np.roots([1 + z**2 / of, -(2 * p + z**2 / of), p**2]).real
            limits.append((min(roots), max(roots)))
        else:
            low, high = stats.beta.ppf([alpha / 2, 1 - alpha / 2], hit + 0.5, of - hit + 0.5)
            limits.append((0.0 if hit == 0 else low, 1.0 if hit == of else high))
    (p, q), ((low_p, high_p), (low_q, high_q)) = np.array(x) / n, limits
    if p >= q:
        return p - q > ((p - low_p) ** 2 + (high_q - q) ** 2) ** 0.5
    return q - p > ((high_p - p) ** 2 + (q - low_q) ** 2) ** 0.5


@pytest.mark.parametrize(
    ("rollouts", "eligible", "shares", "few"),
    [(7, (0.8, 0.5), (0.9, 0.1), (20, 5)), (9, (1, 1), (0.2, 0.95), (20, 5)), (22, (1, 1), (0.97, 0.6), (20, 30)),
     (8, (0.6, 0.9), (0.9, 0.2), (5, 10))],
)  # fmt: skip
def test_power_of_few_is_the_sum_over_all_studies_there_can_be(rollouts, eligible, shares, few):
    sides = []
    for e, share in zip(eligible, shares, strict=True):
        pairs = [(n, x) for n in range(rollouts + 1) for x in range(n + 1)]
        sides.append([(n, x, stats.binom.pmf(n, rollouts, e) * stats.binom.pmf(x, n, share)) for n, x in pairs])
    sides = [[each for each in side if each[2] > 1e-9] for side in sides]
    power = sum(
        c1 * c2 * mover_leaves_out_zero((x1, x2), (n1, n2), few)
        for (n1, x1, c1), (n2, x2, c2) in product(*sides)
    )  # fmt: skip
    found = few_power(rollouts, np.array(shares), np.array(eligible), 0.05, few, np.ones(2))
    # every share here rests on few of the rarer outcome
    assert found == pytest.approx((power, 1), abs=1e-4)


def test_how_often_shares_rest_on_few_is_binomial():
    n = np.arange(20, 101)
    enough = [
        np.dot(stats.binom.pmf(n, 100, e), stats.binom.cdf(n - 5, n, p) - stats.binom.cdf(4, n, p))
        for e, p in ((0.25, 0.6), (0.3, 0.3))
    ]
    found = few_power(100, np.array([0.6, 0.3]), np.array([0.25, 0.3]), 0.05, (20, 5), np.ones(2))
    assert found[1] == pytest.approx(1 - np.prod(enough), abs=5e-3)


def test_steps_over_large_numbers_stay_near_drawn_studies():
    rng, runs = np.random.default_rng(2), 200_000
    shares, eligible, tasks = np.array([0.05, 0.015]), np.array([0.5, 0.6]), 700
    n = rng.binomial(tasks, eligible, (runs, 2))
    x = rng.binomial(n, shares)
    z = Z[0.975]
    low, high = (special.betaincinv(x + 0.5, n - x + 0.5, special.ndtr(end)) for end in (-z, z))
    low, high, p = np.where(x == 0, 0, low), np.where(x == n, 1, high), x / n
    above = p[:, 0] - p[:, 1] > np.hypot(p[:, 0] - low[:, 0], high[:, 1] - p[:, 1])
    below = p[:, 1] - p[:, 0] > np.hypot(high[:, 0] - p[:, 0], p[:, 1] - low[:, 1])
    found = few_power(tasks, shares, eligible, 0.05, (20, 1000), np.ones(2))
    assert found[0] == pytest.approx((above | below).mean(), abs=0.005)


@pytest.mark.parametrize(
    ("tasks", "trials", "eligible"), [(75, 2, (0.08, 0.16)), (40, 4, (0.1, 0.2)), (20, 2, (0.4, 0.5))]
)
def test_with_several_trials_the_interval_counts_on_fewer_rollouts_than_there_are(tasks, trials, eligible):
    rng, runs, shares = np.random.default_rng(4), 20_000, (0.64, 0.3)
    # tasks differ in how often they are eligible
    n = rng.binomial(trials, rng.beta(9 * np.array(eligible), 9 * (1 - np.array(eligible)), (tasks, runs, 2)))
    x = rng.binomial(n, shares)
    with np.errstate(invalid="ignore"):
        size = effective_n(x, n)
        p = x.sum(axis=0) / n.sum(axis=0)
        low, high = wilson(p * size, size, Z[0.975])
        low, high = mover(p[:, 0], (low[:, 0], high[:, 0]), p[:, 1], (low[:, 1], high[:, 1]))
    simulated = ((low > 0) | (high < 0)).mean()
    basis = Basis("interval", 0.05, rate=shares[1], eligible=eligible, noise=1.0)
    planned = basis.few(tasks, trials, shares[0] - shares[1])[0]
    independent = replace(basis, noise=None).few(tasks * trials, 1, shares[0] - shares[1])[0]
    assert planned == pytest.approx(simulated, abs=0.015)
    assert independent > simulated + 0.02


@settings(max_examples=30)
@given(
    rollouts=st.floats(1, 150), e=st.floats(0.02, 1), f=st.floats(0.02, 1), p=st.floats(0, 1), q=st.floats(0, 1),
    alpha=st.floats(0.002, 0.3),
)  # fmt: skip
def test_power_of_few_is_a_probability_alike_for_either_side_and_either_outcome(rollouts, e, f, p, q, alpha):
    def found(shares, eligible):
        return few_power(rollouts, np.array(shares), np.array(eligible), alpha, (20, 5), np.ones(2))

    power, chance = found((p, q), (e, f))
    assert -1e-9 <= power <= 1 + 1e-9
    assert -1e-9 <= chance <= 1 + 1e-9
    assert found((q, p), (f, e)) == pytest.approx((power, chance), abs=1e-9)
    # steps of large numbers may fall otherwise
    assert found((1 - p, 1 - q), (e, f)) == pytest.approx((power, chance), abs=3e-3)


def test_power_goes_over_from_few_to_many_without_a_jump():
    basis = Basis("interval", 0.05, rate=0.45, eligible=(0.4, 0.5))
    tasks = np.arange(20, 600)
    gap = np.abs(np.diff(basis.power(tasks, 1, 0.15)))
    assert basis.few(20, 1, 0.15)[1] > 0.99
    assert basis.few(600, 1, 0.15) == (0, 0)
    # a tooth of counts at first, then next to nothing
    assert gap.max() < 0.02
    assert gap[200:].max() < 0.002


def test_a_pilot_says_how_far_its_spread_is_from_that_of_independent_rollouts():
    pilot = cohort(400, chance=(0.5, 0.4))
    own = plan(pilot, metric="rr", tasks=100)
    assert own.basis.single(own.pilot.difference).sd == pytest.approx(own.pilot.single.sd, rel=1e-9)
    # at a larger difference the spread changes as that of shares does
    rate, (first, second) = own.pilot.rate, own.pilot.eligible

    def variance(share):
        return share * (1 - share) / first + rate * (1 - rate) / second

    wider = own.basis.single(0.3).sd ** 2 / own.pilot.single.sd**2
    assert wider == pytest.approx(variance(rate + 0.3) / variance(rate + own.pilot.difference), rel=1e-9)


def test_more_tasks_beat_more_trials_where_tasks_are_free():
    found = plan(budget=300, metric="auc_pec", sd=0.4, noise=0.7)
    rows = found.frame.query("point != 'curve'").sort_values("trials")
    assert found.answer["trials"] == 1
    assert rows["power"].is_monotonic_decreasing
    assert plan(budget=300, metric="auc_pec", sd=0.4).answer["tasks"] == 300


@pytest.mark.parametrize(("cost", "noise"), [(3, 0.8), (10, 0.5), (30, 0.9)])
def test_the_best_number_of_trials_is_where_cost_and_variance_balance(cost, noise):
    found = plan(budget=20_000, metric="auc_pec", sd=0.4, noise=noise, task_cost=cost)
    optimum = (cost * noise / (1 - noise)) ** 0.5
    assert abs(found.answer["trials"] - optimum) <= 1
    assert found.answer["tasks"] * (found.answer["trials"] + cost) <= 20_000


def test_where_tasks_run_out_the_rest_goes_into_trials():
    found = plan(budget=1000, metric="auc_pec", sd=0.4, noise=0.6, max_tasks=50)
    assert found.answer[["tasks", "trials", "rollouts"]].tolist() == [50, 20, 1000]
    # trials that always agree are worth nothing
    assert plan(budget=1000, metric="auc_pec", sd=0.4, noise=0.0, max_tasks=50).answer["trials"] == 1


def test_the_best_split_shows_the_smallest_difference():
    asked = {"metric": "auc_pec", "sd": 0.4, "noise": 0.6}
    found = plan(budget=400, task_cost=5, **asked)
    for trials in (1, 2, 4, 8):
        tasks = 400 // (trials + 5)
        other = plan(tasks=tasks, trials=trials, **asked).answer["difference"]
        assert found.answer["difference"] <= other * (1 + 1e-6)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "give a difference"),
        ({"difference": 0.1}, "between 0.1 and 1"),
        ({"difference": 0.23, "rate": 0.37}, "between 0.23 and 0.97, 0.526 if the sides were independent"),
        ({"difference": 0.3, "discordance": 0.2}, "between 0.3 and 1"),
        ({"difference": 0.3, "discordance": 0.9, "rate": 0.6}, "between 0.3 and 0.5"),
        ({"difference": 0.5, "discordance": 0.5, "rate": 0.6}, "leaves the range"),
        ({"difference": 0, "discordance": 0.3}, "difference of 0"),
        ({"difference": np.nan, "discordance": 0.3}, "must be a number"),
        ({"difference": 0.1, "discordance": 0}, "share between 0 and 1"),
        ({"tasks": 2.5, "discordance": 0.3}, "whole number"),
        ({"tasks": 10, "discordance": 0.3, "power": 0.01}, "size of the test, 0.05"),
        ({"tasks": 10, "discordance": 0.3, "comparisons": 0}, "comparisons = 0"),
        ({"tasks": 10, "discordance": 0.3, "trials": 2}, "give noise"),
        ({"tasks": 10, "discordance": 0.3, "max_tasks": 9}, "give the budget too"),
        ({"tasks": 10, "discordance": 0.3, "budget": 9}, "leave those out"),
        ({"budget": 50, "discordance": 0.3, "max_tasks": 9}, "give noise"),
        ({"budget": 5, "discordance": 0.3, "noise": 0.5, "task_cost": 9}, "pay for 2 tasks"),
        ({"budget": 5, "discordance": 0.3, "noise": 0.5, "task_cost": -1}, "task_cost = -1"),
        ({"metric": "auc_pec", "difference": 0.1}, "give sd"),
        ({"metric": "auc_pec", "difference": 0.1, "sd": 0.3, "rate": 0.5}, "rate is nothing to give"),
        ({"metric": "rr", "difference": 0.1, "rate": 0.5}, "give eligible"),
        ({"metric": "pace", "difference": 0.1}, "metric 'pace' is unknown"),
    ],
)  # fmt: skip
def test_an_error_says_what_would_be_right(asked, said):
    with pytest.raises(InputError, match=said):
        plan(**asked)


def test_a_pilot_whose_tasks_all_agree_says_nothing_of_the_spread():
    pilot = hits(10, 0, 0, 10)
    with pytest.raises(InputError, match=r"same on all its tasks.*give discordance"):
        plan(pilot, tasks=100)
    assert plan(pilot, difference=0.1, discordance=0.2).answer["tasks"] > 0
    with pytest.raises(InputError, match="give sd"):
        plan(pilot, metric="auc_pec", tasks=100)


def test_a_pilot_without_a_difference_needs_one_to_plan_for():
    with pytest.raises(InputError, match="the pilot's own"):
        plan(hits(10, 4, 4, 10))
    assert plan(hits(10, 4, 4, 10), difference=0.1).answer["tasks"] > 100


def test_a_pilot_without_errors_cannot_plan_rr():
    with pytest.raises(InputError, match=r"RR of a is undefined \(0/0\): no rollout erred"):
        plan(hits(10, 5, 0, 0), metric="rr", tasks=50)
    with pytest.raises(InputError, match="without a pilot"):
        plan(Rollouts(hits(4, 3, 2, 5).frame.assign(success=True)), metric="rr", tasks=50)


def test_a_pilot_of_one_task_has_no_spread():
    with pytest.raises(InputError, match="1 tasks"):
        plan(hits(0, 1, 0, 0), tasks=50)


def test_the_pair_of_the_pilot_must_be_clear():
    runs = sx.datasets.load_tau_retail_methods()
    with pytest.raises(InputError, match="6 pairs"):
        plan(runs, tasks=100)
    with pytest.raises(InputError, match="without b"):
        plan(runs, tasks=100, a="assertions")
    with pytest.raises(InputError, match="0 pairs"):
        plan(runs, tasks=100, a="nobody", b="assertions")
    one = plan(runs, tasks=100, a="assertions", b="tool_calling")
    assert (one.made["a"], one.made["b"]) == ("assertions", "tool_calling")
    assert any("left out" in note for note in one.notes)
    assert one.ledger.equals(runs.ledger)


# studies


def test_a_simulated_study_is_decided_as_the_comparison_decides():
    pilot = cohort(30)
    found = plan(pilot, tasks=30, metric="ter", difference=plan(pilot, tasks=5).pilot.difference).pilot
    drawn = np.array([0, 1, 1, 5, 7, 9, 9, 9, 12, 20, 22, 25, 28])
    frame = pilot.frame.assign(task=pilot.tasks[0]).merge(
        pd.DataFrame({"task": drawn, "copy": range(len(drawn))}), on="task"
    )
    study = Rollouts(frame.assign(task_id=frame["copy"]).drop(columns=["task", "copy"]))
    for metric in ("ter", "success", "auc_pec", "mean_fed"):
        p = sx.compare(study, metrics=[metric], resamples=2).frame["p_value"].iloc[0]
        at = pilot_of(pilot, METRICS[metric], "method", None, None)
        for alpha in (0.999 * p, 1.001 * p):
            assert at._shown([at._study(drawn)], alpha, 0) == (p <= alpha)
    assert found.trials.tolist() == [[1, 1]] * 30


@pytest.mark.parametrize("metric", ["ter", "auc_pec", "rr"])
@pytest.mark.parametrize("gap", [0.0, -0.1])
def test_tasks_are_drawn_so_that_the_study_is_expected_to_be_as_planned(metric, gap):
    found = plan(cohort(200), metric=metric, tasks=50)
    pilot, counts, chosen = found.pilot, found.pilot.pair.tally.counts, METRICS[metric]
    planned = found.basis.shape(pilot.difference + gap, 1)
    chances = pilot.chances(planned)
    among = chances @ chosen.denominator(counts)
    assert chances.sum() == pytest.approx(1)
    assert chances @ chosen.numerator(counts) / among == pytest.approx(
        [pilot.rate + planned.mean, pilot.rate], abs=1e-5
    )
    if chosen.conditional:
        assert among == pytest.approx(pilot.eligible, abs=1e-5)
    else:
        means = chosen.numerator(counts)
        variance = np.cov(means[:, 0] - means[:, 1], aweights=chances, ddof=0)
        assert variance == pytest.approx(planned.sd**2, rel=1e-4)


def test_hits_are_drawn_as_often_as_discordance_and_difference_say():
    found = plan(hits(20, 12, 2, 16), tasks=40, difference=0.1)
    first, second = (found.pilot.pair.tally["clean"][:, side] > 0 for side in (0, 1))
    chances = found.pilot.chances(found.basis.shape(0.1, 1))
    assert chances[first & ~second].sum() == pytest.approx(0.19)
    assert chances[~first & second].sum() == pytest.approx(0.09)


def test_what_the_pilots_tasks_cannot_give_is_refused():
    one_way = plan(hits(20, 12, 0, 16), tasks=40, difference=-0.1)
    with pytest.raises(InputError, match=r"cannot give a difference of -0\.1"):
        one_way.simulate(10)
    np.testing.assert_allclose(one_way.pilot.chances(one_way.basis.shape(0.25, 1)), 1 / 48, rtol=1e-6)


def test_simulated_power_depends_on_the_seed_alone():
    found = plan(hits(20, 12, 2, 16), tasks=40, difference=0.2)
    assert found.simulate(50, rng=3) == found.simulate(50, rng=3)
    with pytest.raises(InputError, match="pilot with 2 trials"):
        plan(cohort(20), tasks=40, difference=0.1, trials=2, noise=0.5).simulate(10)
    with pytest.raises(InputError, match="simulating needs a pilot"):
        plan(tasks=40, discordance=0.5).simulate(10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "trials", "tasks"),
    [("ter", 1, 60), ("ter", 3, 40), ("auc_pec", 1, 60), ("rr", 1, 150)],
)
def test_planned_power_is_the_power_of_simulated_studies(metric, trials, tasks):
    population, runs = cohort(800, trials, seed=4, spread=0.2), 200
    difference = plan(population, metric=metric, tasks=tasks, trials=trials).pilot.difference
    found = plan(population, metric=metric, tasks=tasks, trials=trials, difference=difference).simulate(runs, rng=1)
    assert abs(found.power - found.planned) < 0.02 + 3 * found.standard_error


def test_the_real_methods_need_many_tasks_for_their_small_difference():
    pair = {"a": "tool_calling_preconditions", "b": "tool_calling"}
    runs = sx.datasets.load_tau_retail_methods()
    needed = plan(runs, **pair)
    # 9 tasks one way and 6 the other: Connor's formula says 1306
    assert needed.pilot.discordance == pytest.approx(0.15)
    assert needed.answer["difference"] == pytest.approx(0.03)
    assert needed.answer["tasks"] == pytest.approx(1306, rel=0.01)
    assert plan(runs, tasks=100, **pair).answer["difference"] == pytest.approx(0.103, abs=0.001)
