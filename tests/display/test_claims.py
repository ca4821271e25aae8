"""What can be claimed: no sentence is stronger than its interval and its adjusted test."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import survexec as sx
from survexec.display.claims import NAMES, claims, claims_by_pair, family
from survexec.rollouts import Rollouts
from survexec.statistics.comparison import compare
from survexec.statistics.pairing import named

# What a claim must never say but in its negated form.
FORBIDDEN = re.compile(
    r"\bequal|\bequivalent|\bidentical|\bprove|\bbetter|\bworse|\bsignifican|\bno effect", re.IGNORECASE
)


def cohort(methods=("A", "B"), tasks=40, trials=1, seed=3, **columns):
    """Rollouts of some methods on the same tasks."""
    rng = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product([methods, range(tasks), range(trials)], names=["method", "task_id", "trial"])
    frame = index.to_frame(index=False).assign(length=lambda f: rng.integers(1, 8, len(f)))
    frame["fed"] = np.minimum(frame["length"] + 1, rng.integers(1, 9, len(frame)))
    return Rollouts(frame.assign(success=rng.random(len(frame)) < 0.5, **columns))


@pytest.fixture(scope="module")
def plain():
    return compare(cohort(), resamples=200)


def stated(comparison, metric="ter", **numbers):
    """The claim of a metric, had the comparison these numbers in its row."""
    frame = comparison.frame.copy()
    for name, value in numbers.items():
        frame.loc[frame["metric"] == metric, name] = value
    return {claim.metric: claim for claim in claims(replace(comparison, frame=frame))}[metric]


def told(frame, **how):
    """The claims of the only pair of some rollouts."""
    (pair,) = claims_by_pair(compare(Rollouts(pd.DataFrame(frame)), resamples=200, **how))
    return pair, {claim.metric: claim for claim in pair.claims}


CLEAR = {"difference": 0.09, "lower": 0.02, "upper": 0.16, "p_value": 0.001, "p_adjusted": 0.012}


def test_a_difference_that_survives_is_shown_with_all_its_numbers(plain):
    claim = stated(plain, **CLEAR)
    assert claim.strength == "shown"
    assert claim.text == (
        "A had a higher TER than B: +0.090 (95% interval 0.020 to 0.160; Holm-adjusted p = 0.012; 40 paired tasks)."
    )


def test_a_lower_value_is_said_to_be_lower(plain):
    claim = stated(plain, "mean_fed", difference=-0.86, lower=-1.33, upper=-0.4, p_value=1e-5, p_adjusted=1e-4)
    assert claim.text == (
        "A had a lower mean FED than B: −0.86 calls (95% interval −1.33 to −0.40; Holm-adjusted p < 0.001; "
        "40 paired tasks)."
    )


def test_what_does_not_survive_the_adjustment_is_only_suggested(plain):
    claim = stated(plain, **{**CLEAR, "p_adjusted": 0.119})
    assert claim.strength == "suggested"
    assert claim.text == (
        "A higher TER of A than of B is suggested, not shown: +0.090 (95% interval 0.020 to 0.160; unadjusted p = 0.001"
        "; 40 paired tasks). It does not survive the adjustment over the family of 4 tests (Holm-adjusted p = 0.119)."
    )


def test_what_is_not_shown_leaves_open_all_that_the_interval_holds(plain):
    claim = stated(plain, difference=-0.03, lower=-0.11, upper=0.05, p_value=0.45, p_adjusted=1)
    assert claim.strength == "not shown"
    assert claim.text == (
        "No difference in TER between A and B was shown: the data are compatible with anything from A lower by 0.110 "
        "to higher by 0.050 (95% interval; estimate −0.030; Holm-adjusted p = 1.000; 40 paired tasks)."
    )


@pytest.mark.parametrize(
    ("lower", "upper", "reach"),
    [
        (0.0, 0.2, "from 0 to A higher by 0.200 ("),
        (-0.2, 0.0, "from A lower by 0.200 to 0 ("),
        (-1e-17, 0.2, "from 0 to A"),
    ],
)
def test_an_interval_that_ends_at_0_reaches_0(plain, lower, upper, reach):
    claim = stated(plain, difference=0.01, lower=lower, upper=upper, p_value=0.5, p_adjusted=1)
    assert claim.strength == "not shown"
    assert reach in claim.text


@pytest.mark.parametrize(
    ("numbers", "word"),
    [
        ({"lower": -0.01}, "includes"),
        ({"lower": -0.01, "p_adjusted": 0.2}, "includes"),
        ({"lower": 1e-12}, "includes"),
        ({"p_value": 0.06, "p_adjusted": 0.5}, "excludes"),
        ({"difference": -0.01}, "excludes"),
    ],
)
def test_where_test_and_interval_disagree_nothing_is_claimed(plain, numbers, word):
    claim = stated(plain, **{**CLEAR, **numbers})
    assert claim.strength == "not shown"
    assert claim.text.startswith("Test and interval disagree on the TER of A and B, so nothing is claimed: ")
    assert f"which {word} 0" in claim.text


def test_a_metric_without_a_test_is_told_by_its_interval_alone(plain):
    claim = stated(plain, "rr", difference=0.3, lower=0.1, upper=0.5)
    assert claim.strength == "interval only"
    assert claim.text.startswith("RR has no test here; by its interval alone, which is not adjusted for the other")
    assert "A was higher than B: +0.300 (95% interval 0.100 to 0.500; " in claim.text
    among = stated(plain, "rr", difference=0.3, lower=-0.1, upper=0.5)
    assert among.strength == "interval only"
    assert among.text.startswith("No difference in RR between A and B was shown: ")
    assert "no test, not adjusted" in among.text


def test_rr_says_how_many_erred_and_on_how_many_tasks_both_did():
    rollouts = cohort()
    erred = rollouts.frame[rollouts.events].groupby("method")["task_id"].agg(set)
    _, found = told(rollouts.frame)
    wanted = (
        f"{len(erred['A'])} and {len(erred['B'])} erring rollouts of 40 paired tasks, {len(erred['A'] & erred['B'])} of"
    )
    assert wanted in found["rr"].text


def test_an_undefined_difference_gives_the_reason_of_the_notes():
    frame = cohort().frame
    clean = frame.assign(fed=frame["fed"].mask(frame["method"] == "B", frame["length"] + 1), error_class=None)
    _, found = told(clean)
    assert found["rr"].strength == "undefined"
    assert found["rr"].text == "RR of A and B cannot be compared: it is undefined in B: no rollout erred (0/0)."


def test_without_a_recorded_success_nothing_is_said_of_success():
    pair, found = told(cohort().frame.assign(success=None))
    assert found["success"].strength == found["rr"].strength == "undefined"
    assert "no rollout has a recorded success (0/0)" in found["success"].text
    assert not any("Success alone" in reading for reading in pair.readings)


def test_what_agrees_on_every_task_is_not_said_to_agree_elsewhere():
    frame = cohort(("A",)).frame
    _, found = told(pd.concat([frame, frame.assign(method="B")]))
    assert {claim.strength for name, claim in found.items() if name != "rr"} == {"not shown"}
    assert found["ter"].text.startswith("TER came out the same for A and B on every task (95% interval −0.")
    assert "That does not show that they would agree on other tasks." in found["ter"].text
    assert "(no interval; Holm-adjusted p = 1.000; 40 paired tasks)" in found["mean_fed"].text
    assert found["rr"].strength == "undefined"


def test_a_difference_without_an_interval_is_not_claimed_whatever_its_p():
    frame = pd.DataFrame({"task_id": range(30), "length": 5, "fed": 3, "method": "A"})
    _, found = told(pd.concat([frame, frame.assign(method="B", fed=2)]))
    assert found["mean_fed"].strength == "undefined"
    assert found["mean_fed"].text == (
        "Mean FED of A and B has no interval, so nothing is claimed: +1.00 calls (no interval; Holm-adjusted p < 0.001"
        "; 30 paired tasks)."
    )


def test_a_small_sample_is_called_one():
    _, found = told(cohort(tasks=12).frame)
    assert all("Small sample: 12 paired tasks" in claim.text for claim in found.values())
    assert not any("a denominator of 12" in claim.text for claim in found.values())
    _, found = told(cohort(tasks=40).frame)
    assert not any("Small sample" in claim.text for name, claim in found.items() if name != "rr")


def test_few_differing_tasks_are_told_and_what_resampling_them_gives_is_not_read():
    frame = pd.DataFrame({"task_id": range(30), "length": 5, "fed": 6, "success": True, "method": "A"})
    other = frame.assign(method="B", fed=[2, 3, *[6] * 28])
    _, found = told(pd.concat([frame, other]))
    assert "compatible with anything from A lower by" in found["ter"].text  # Newcombe's, which holds for few
    for name in ("ter", "mean_fed", "auc_pec"):
        assert found[name].text.startswith(f"No difference in {NAMES[name]} between A and B was shown: ")
        assert ("compatible" in found[name].text) == (name == "ter")
        assert "Small sample: 2 tasks on which the two differ, 2 erring rollouts in all." in found[name].text


def test_a_small_denominator_is_told():
    frame = cohort(tasks=60).frame
    few = frame["task_id"].astype(int) % 10 == 0
    frame["fed"] = frame["fed"].where(few, frame["length"] + 1)
    _, found = told(frame.assign(error_class=None))
    under = Rollouts(frame.assign(error_class=None)).events.groupby(frame["method"]).sum().min()
    assert f"Small sample: a denominator of {under}." in found["rr"].text


def test_several_rollouts_of_a_task_are_counted_beside_the_tasks():
    _, found = told(cohort(trials=3).frame)
    assert "40 paired tasks, 120 and 120 rollouts)" in found["ter"].text


def test_a_p_near_alpha_is_printed_on_its_own_side(plain):
    over = stated(plain, **{**CLEAR, "p_adjusted": 0.05004})
    assert over.strength == "suggested"
    assert "Holm-adjusted p = 0.05004)" in over.text
    at = stated(plain, **{**CLEAR, "p_adjusted": 0.05})
    assert at.strength == "shown"
    assert "p = 0.050;" in at.text


def test_a_bound_that_excludes_0_is_not_printed_as_0(plain):
    assert "interval 0.0004 to 0.160" in stated(plain, **{**CLEAR, "lower": 0.0004}).text


def test_the_level_sets_interval_and_alpha():
    comparison = compare(cohort(), level=0.99, resamples=200)
    claim = stated(comparison, **CLEAR)
    assert claim.strength == "suggested"
    assert "99% interval" in claim.text


def test_without_an_adjustment_one_of_several_tests_shows_nothing():
    several = compare(cohort(), resamples=200).with_adjustment("none")
    claim = stated(several, **{**CLEAR, "p_adjusted": 0.001})
    assert claim.strength == "suggested"
    assert "No adjustment was made for the family of 4 tests (p = 0.001, not adjusted)." in claim.text
    assert family(several).startswith("p is not adjusted over a family of 4 tests")
    alone = compare(cohort(), metrics=["ter"], resamples=200).with_adjustment("none")
    assert stated(alone, **{**CLEAR, "p_adjusted": 0.001}).strength == "shown"


@pytest.mark.parametrize(
    ("adjust", "name"), [("romano_wolf", "Romano-Wolf max-T"), ("bh", "Benjamini-Hochberg"), ("hochberg", "Hochberg")]
)
def test_the_adjustment_is_named(adjust, name):
    comparison = compare(cohort(), adjust=adjust, resamples=200)
    assert f"{name}-adjusted p = 0.012" in stated(comparison, **CLEAR).text
    assert f"p is adjusted by {name}" in family(comparison)


def test_without_tests_every_metric_has_its_interval_only():
    comparison = compare(cohort(), tests=(), resamples=200)
    assert {claim.strength for claim in claims(comparison)} == {"interval only"}
    assert family(comparison) == "No metric of this comparison has a test."


def pattern(success, clean, tasks=60):
    """A pair that differs where asked: B fails the tasks that A does not, B errs where A does not; lengths agree."""
    a = pd.DataFrame({"task_id": range(tasks), "length": 6, "fed": 7, "success": True, "method": "A"})
    b = a.assign(method="B")
    for frame, side in ((b, 1), (a, -1)):
        if success == side:
            frame.loc[20:39, "success"] = False
        if clean == side:
            frame.loc[10:29, "fed"] = 3
    a.loc[[0, 2, 4], "success"], b.loc[[1, 3, 5], "success"] = False, False
    a.loc[[40, 42, 44], "fed"], b.loc[[41, 43, 45], "fed"] = 4, 4
    return pd.concat([a, b])


def test_success_that_does_not_differ_would_miss_cleaner_execution():
    pair, found = told(pattern(success=0, clean=1))
    assert (found["success"].strength, found["ter"].strength) == ("not shown", "shown")
    assert pair.readings == (
        "Success alone would miss this: no difference in it was shown, while a higher TER and a higher AUC-PEC of A "
        "were shown.",
    )


def test_success_that_differs_would_hide_that_execution_was_not_shown_to():
    pair, found = told(pattern(success=1, clean=0))
    assert (found["success"].strength, found["ter"].strength) == ("shown", "not shown")
    assert pair.readings == (
        "Success alone would hide that no difference in TER and AUC-PEC was shown beside it: a higher success rate of "
        "A was shown, which is no evidence of cleaner execution.",
    )


def test_success_against_execution_is_a_conflict():
    pair, _ = told(pattern(success=1, clean=-1))
    assert pair.readings == (
        "Success alone would hide a conflict: a higher success rate of A was shown, while a higher TER and a higher "
        "AUC-PEC of B were shown.",
    )


def test_success_that_agrees_with_execution_needs_no_word():
    assert told(pattern(success=1, clean=1))[0].readings == ()
    assert told(pattern(success=0, clean=0))[0].readings == ()


def longer(more):
    """Two sides with the same errors; A makes more calls."""
    frame = pattern(success=0, clean=0)
    grow = more * ((frame["method"] == "A") & (frame["task_id"] % 3 > 0))
    clean = frame["fed"] > frame["length"]
    return frame.assign(length=frame["length"] + grow, fed=frame["fed"] + grow * clean)


def test_a_fed_that_goes_with_length_is_no_evidence_of_cleaner_rollouts():
    pair, found = told(longer(3))
    assert (found["mean_fed"].strength, found["ter"].strength) == ("shown", "not shown")
    (reading,) = pair.readings
    assert reading.startswith(
        "The difference in mean FED goes with length: rollouts of A were longer (mean length, a − b: +2.00 "
    )
    assert reading.endswith("It is no evidence of cleaner rollouts.")
    assert "a higher mean FED (which goes with length)" in pair.summary


def test_a_fed_against_length_is_not_put_down_to_length(plain):
    rows = {
        "ter": {"lower": -0.1, "upper": 0.1, "p_value": 0.9, "p_adjusted": 1},
        "auc_pec": {"lower": -0.1, "upper": 0.1, "p_value": 0.9, "p_adjusted": 1},
        "mean_fed": {"difference": 1, "lower": 0.5, "upper": 1.5, "p_value": 0.001, "p_adjusted": 0.004},
    }
    frame = plain.frame.set_index("metric")
    for metric, numbers in rows.items():
        frame.loc[metric, list(numbers)] = list(numbers.values())
    for more, readings in ((1, 1), (-1, 0)):
        bounds = [more, *sorted([0.5 * more, 1.5 * more])]
        frame.loc["mean_length", ["difference", "lower", "upper"]] = bounds
        (pair,) = claims_by_pair(replace(plain, frame=frame.reset_index()))
        assert sum("goes with length" in reading for reading in pair.readings) == readings


def test_a_fed_that_goes_with_ter_is_not_put_down_to_length():
    assert not any("length" in reading for reading in told(pattern(success=0, clean=1))[0].readings)


def test_tasks_of_one_side_alone_limit_the_claims():
    frame = cohort().frame
    pair, _ = told(frame[(frame["method"] == "A") | (frame["task_id"].astype(int) >= 7)])
    assert pair.readings[-1] == (
        "Left out: 7 tasks that only one side has; the claims hold for the 33 tasks that both have, and no further."
    )


def test_a_pair_is_named_with_its_place_and_claims_come_pair_by_pair():
    comparison = compare(cohort(("A", "B", "C"), benchmark="shop", model="m"), resamples=200)
    found = claims(comparison)
    assert [claim.metric for claim in found] == list(NAMES) * 3
    assert [pair.pair for pair in claims_by_pair(comparison)] == [
        f"{sides} in shop / m" for sides in ("A against B", "A against C", "B against C")
    ]


def test_metrics_that_were_not_compared_have_no_claim():
    comparison = compare(cohort(), metrics=["mean_length"], resamples=200)
    assert claims(comparison) == ()
    assert claims_by_pair(comparison)[0].summary == "No headline metric was compared."


def test_the_four_retail_methods():
    comparison = compare(sx.datasets.load_tau_retail_methods())
    found = {(claim.pair, claim.metric): claim.strength for claim in claims(comparison)}
    plain, checked, asserting, bare = [*comparison.frame["a"].unique(), "assertions_no_postconditions"]
    telling = {key: strength for key, strength in found.items() if strength in ("shown", "suggested")}
    assert telling == {
        (f"{plain} against {checked} in tau-retail", "mean_fed"): "shown",
        (f"{plain} against {asserting} in tau-retail", "success"): "suggested",
        (f"{plain} against {bare} in tau-retail", "mean_fed"): "shown",
        (f"{plain} against {bare} in tau-retail", "success"): "shown",
        (f"{checked} against {asserting} in tau-retail", "success"): "suggested",
        (f"{checked} against {bare} in tau-retail", "mean_fed"): "shown",
        (f"{checked} against {bare} in tau-retail", "success"): "shown",
        (f"{asserting} against {bare} in tau-retail", "mean_fed"): "shown",
    }
    lengthy = [pair.pair for pair in claims_by_pair(comparison) if any("goes with length" in r for r in pair.readings)]
    assert lengthy == [pair for pair, metric in telling if metric == "mean_fed"]


def test_a_fine_tune_whose_success_hides_its_execution(shared):
    rollouts = sx.read([shared / "data" / "tau2" / f"gpt-4.1{tune}_retail.json" for tune in ("", "-ft")])
    (pair,) = claims_by_pair(compare(rollouts, between="model"))
    assert {claim.metric: claim.strength for claim in pair.claims} == {
        "ter": "shown", "mean_fed": "suggested", "auc_pec": "shown", "rr": "interval only",
        "success": "not shown",
    }  # fmt: skip
    assert pair.readings[0].startswith(
        "Success alone would miss this: no difference in it was shown, while a higher TER"
    )


number = st.one_of(st.just(np.nan), st.just(0.0), st.floats(-1, 1), st.floats(-1e-10, 1e-10))
chance = st.one_of(st.just(np.nan), st.sampled_from([0.0, 1e-4, 0.04, 0.05, 0.0501, 1.0]), st.floats(0, 1))
drawn_row = st.tuples(number, number, number, chance, chance, st.integers(1, 200), st.integers(0, 200))


def checked(claim, row, alpha=0.05):
    """No claim is stronger than its row."""
    outside = row["lower"] > 0 or row["upper"] < 0
    if claim.strength == "shown":
        assert row["p_adjusted"] <= alpha + 1e-9
        assert row["lower"] <= row["upper"]
        assert outside
        assert np.sign(row["difference"]) == (1 if row["lower"] > 0 else -1)
    if claim.strength == "suggested":
        assert row["p_value"] <= alpha + 1e-9
        assert outside
    assert (" had a " in claim.text) == (claim.strength == "shown")
    assert ("suggested" in claim.text) == (claim.strength == "suggested")
    if np.isnan(row["difference"]):
        assert claim.strength == "undefined"


def soberly(text):
    """Nothing is said to agree; a difference is only ever not shown."""
    assert not FORBIDDEN.search(text)
    for found in re.finditer(r"no difference", text, re.IGNORECASE):
        assert re.match(r"no difference[^.;:]* was shown", text[found.start() :], re.IGNORECASE)
    assert "  " not in text
    assert text.count("(") == text.count(")")


@given(rows=st.lists(drawn_row, min_size=8, max_size=8))
@settings(max_examples=100)
def test_no_sentence_is_stronger_than_its_numbers(plain, rows):
    names = ["difference", "lower", "upper", "p_value", "p_adjusted", "n_pairs", "denominator_a"]
    frame = plain.frame.copy()
    frame[names] = pd.DataFrame(rows, columns=names, index=frame.index)
    made = claims_by_pair(replace(plain, frame=frame))
    by_metric = frame.set_index("metric")
    for pair in made:
        for claim in pair.claims:
            checked(claim, by_metric.loc[claim.metric])
        assert ("Shown:" in pair.summary) == any(claim.strength == "shown" for claim in pair.claims)
        for text in (pair.summary, *pair.readings, *(claim.text for claim in pair.claims)):
            soberly(text)


@given(seed=st.integers(0, 10_000), tasks=st.integers(1, 40), trials=st.integers(1, 2), loss=st.floats(0, 0.6))
@settings(max_examples=12)
def test_no_sentence_about_rollouts_is_stronger_than_their_comparison(seed, tasks, trials, loss):
    frame = cohort(("A", "B"), tasks, trials, seed).frame
    there = np.random.default_rng(seed).random(len(frame)) >= loss
    there |= frame["task_id"] == "0"
    frame["success"] = frame["success"].mask(np.random.default_rng(seed + 1).random(len(frame)) < loss / 2)
    comparison = compare(Rollouts(frame[there]), resamples=100)
    rows = comparison.frame.set_index(["a", "b", "metric"])
    for compared, pair in zip(comparison.pairs, claims_by_pair(comparison), strict=True):
        assert pair.pair == named(f"{compared.pair.a} against {compared.pair.b}", compared.pair.within)
        for claim in pair.claims:
            row = rows.loc[(compared.pair.a, compared.pair.b, claim.metric)]
            checked(claim, row)
            soberly(claim.text)
            assert f"{row['n_pairs']} paired task" in claim.text or claim.strength == "undefined"


@given(name=st.text(min_size=1, max_size=20))
def test_names_stand_in_the_sentences_as_they_are(plain, name):
    (compared,) = plain.pairs
    pairs = (replace(compared, pair=replace(compared.pair, a=name)),)
    found = claims(replace(plain, frame=plain.frame.assign(a=name), pairs=pairs))
    assert len(found) == len(NAMES)
    assert all(name in claim.text and name in claim.pair for claim in found)
