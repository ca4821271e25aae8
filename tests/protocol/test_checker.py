"""Verdicts, places, length, first error: recorded mode."""

import pytest

from survexec.protocol.checker import check, is_error
from survexec.protocol.readers import read_file
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Outcome, Rule, Trajectory

OK = Call("get_user_details", {}, "{}")
REFUSED = Call("cancel_pending_order", {}, "Error: non-pending order cannot be cancelled")
NOT_FOUND = Call("find_user_id_by_email", {}, "Error: user not found")
MALFORMED = Call("calculate", {}, "Error: invalid characters in expression")
UNKNOWN = Call("calculate", {}, "Error: the moon is in the wrong phase")
LOST = Call("get_user_details", {}, "503 Service Unavailable")
CUT = Call("get_user_details", {})


def checked(*calls, ending=Ending.COMPLETED, benchmark="tau-retail"):
    return check(Trajectory("1", calls, ending, benchmark=benchmark))


def outcomes(result):
    return [verdict.outcome for verdict in result.verdicts]


def test_a_rollout_without_a_call_has_its_first_error_after_its_end():
    result = checked()
    assert (result.length, result.ending) == (0, Ending.COMPLETED)
    assert result.first_error(Rule.STRICT) == (1, None, 0)


def test_a_clean_rollout_has_its_first_error_after_its_end():
    assert checked(OK, OK).first_error(Rule.STRICT) == (3, None, 0)


def test_the_first_refusal_gives_depth_and_class():
    result = checked(OK, REFUSED, OK, NOT_FOUND)
    assert result.length == 4
    assert result.positions == (1, 2, 3, 4)
    assert result.first_error(Rule.STRICT) == (2, ErrorClass.PRECONDITION, 2)
    assert result.verdicts[1].message == "non-pending order cannot be cancelled"
    assert result.verdicts[0].message is None


def test_the_papers_worked_example_holds():
    wrong = checked(
        Call("remove_contact", {"person_id": "+358 40 123"}, "Error: +35840123 not found", error=True),
        Call("search_contacts", {"phone_number": "+358 40 123"}, "[{'person_id': 'c7'}]"),
        Call("remove_contact", {"person_id": "c7"}, "None"),
    )
    verified = checked(
        Call("search_contacts", {"phone_number": "+358 40 123"}, "[{'person_id': 'c7'}]"),
        Call("remove_contact", {"person_id": "c7"}, "None"),
    )
    assert (wrong.length, wrong.first_error(Rule.STRICT)[0]) == (3, 1)
    assert (verified.length, verified.first_error(Rule.STRICT)[0]) == (2, 3)


def test_an_infrastructure_failure_is_left_out_of_the_sequence():
    result = checked(OK, LOST, LOST, REFUSED)
    assert outcomes(result) == [Outcome.OK, Outcome.INFRASTRUCTURE, Outcome.INFRASTRUCTURE, Outcome.INVALID]
    assert result.positions == (1, None, None, 2)
    assert result.length == 2
    assert result.first_error(Rule.STRICT) == (2, ErrorClass.PRECONDITION, 1)
    assert result.verdicts[1].message == "503 Service Unavailable"


def test_a_flagged_infrastructure_failure_is_no_error_of_the_agent():
    assert outcomes(checked(Call("f", {}, "Error: Connection refused", error=True))) == [Outcome.INFRASTRUCTURE]


def test_a_cut_rollout_is_censored_at_its_last_judged_call():
    result = checked(OK, OK, CUT)
    assert (result.length, result.ending) == (2, Ending.TRUNCATED)
    assert result.positions == (1, 2, None)
    assert result.first_error(Rule.STRICT) == (3, None, 0)


def test_nothing_after_the_first_unjudged_call_counts():
    result = checked(OK, CUT, REFUSED, OK)
    assert outcomes(result) == [Outcome.OK, Outcome.UNJUDGED, Outcome.INVALID, Outcome.OK]
    assert result.positions == (1, None, None, None)
    assert (result.length, result.first_error(Rule.STRICT)) == (1, (2, None, 0))


def test_an_error_before_the_cut_stays_an_error():
    assert checked(REFUSED, CUT).first_error(Rule.STRICT) == (1, ErrorClass.PRECONDITION, 1)


@pytest.mark.parametrize(("ending", "calls"), [(Ending.CRASHED, (OK, CUT)), (Ending.TRUNCATED, (OK,))])
def test_an_ending_that_the_log_gives_is_kept(ending, calls):
    assert checked(*calls, ending=ending).ending is ending


def test_a_flag_alone_makes_a_call_invalid():
    (verdict,) = checked(Call("f", {}, "no", error=True), benchmark="tau2-retail").verdicts
    assert (verdict.outcome, verdict.error_class) == (Outcome.INVALID, ErrorClass.UNCLASSIFIED)


def test_a_refusal_without_a_flag_is_invalid_by_its_form():
    assert outcomes(checked(Call("f", {}, "Unknown action f"))) == [Outcome.INVALID]
    assert outcomes(checked(Call("f", {}, '# var_1 = "Error: user not found"'))) == [Outcome.INVALID]


@pytest.mark.parametrize("text", ["", "[]", "None", '{"title": "Error: a novel"}', "no flights found"])
def test_a_negative_answer_without_an_error_signal_is_ok(text):
    assert outcomes(checked(Call("f", {}, text))) == [Outcome.OK]


def test_arguments_that_cannot_be_decoded_do_not_make_a_call_invalid():
    assert outcomes(checked(Call("f", "{'a': ", "{}"))) == [Outcome.OK]


def test_without_a_catalogue_only_the_flag_counts():
    result = checked(REFUSED, Call("f", {}, "no", error=True), benchmark="another")
    assert outcomes(result) == [Outcome.OK, Outcome.INVALID]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule.STRICT, (1, ErrorClass.DEPENDENCY, 4)),
        (Rule.LOOKUP, (2, ErrorClass.PRECONDITION, 3)),
        (Rule.INTERFACE, (1, ErrorClass.DEPENDENCY, 2)),
    ],
)
def test_the_rule_decides_which_refusals_are_errors(rule, expected):
    assert checked(NOT_FOUND, REFUSED, UNKNOWN, MALFORMED).first_error(rule) == expected


def test_an_unclassified_refusal_is_no_fault_of_the_interface():
    assert checked(UNKNOWN).first_error(Rule.INTERFACE) == (2, None, 0)


@pytest.mark.parametrize("outcome", ["ok", "infrastructure", "unjudged"])
@pytest.mark.parametrize("rule", list(Rule))
def test_only_an_invalid_call_can_be_an_error(outcome, rule):
    assert not is_error(outcome, None, False, rule)


def test_stored_calls_are_judged_by_the_same_rules_as_fresh_ones():
    for verdict in checked(OK, NOT_FOUND, REFUSED, UNKNOWN, MALFORMED, LOST, CUT).verdicts:
        for rule in Rule:
            stored = is_error(
                str(verdict.outcome),
                verdict.error_class and str(verdict.error_class),
                verdict.lookup,
                str(rule),
            )
            assert stored == is_error(verdict.outcome, verdict.error_class, verdict.lookup, rule)


# file: rollouts kept, crashed, without a call, calls, events, TER, mean FED, AUC-PEC, RR, success
REAL = {
    "tau/gpt-4o_airline": (200, 0, 18, 1164, 36, 0.82, 5.995, 0.916049, 0.25, 0.42),
    "tau/retail_four_methods/tool_calling": (100, 0, 0, 793, 23, 0.77, 7.26, 0.838178, 0.652174, 0.73),
    "tau/retail_four_methods/tool_calling_preconditions": (
        100,
        0,
        0,
        876,
        20,
        0.80,
        8.12,
        0.851883,
        0.60,
        0.70,
    ),
    "tau/retail_four_methods/assertions": (
        66,
        34,
        0,
        472,
        17,
        0.742424,
        7.075758,
        0.843570,
        0.470588,
        0.530303,
    ),
    "tau/retail_four_methods/assertions_no_postconditions": (
        *(95, 5, 0, 632, 21, 0.778947),
        *(6.378947, 0.851387, 0.333333, 0.515789),
    ),
    "tau2/gpt-4.1_airline": (20, 0, 0, 148, 1, 0.95, 8.30, 0.983333, 0.0, 0.50),
    "tau2/gpt-4.1_retail": (40, 0, 0, 299, 8, 0.80, 7.125, 0.856115, 0.625, 0.85),
    "tau2/gpt-4.1-ft_retail": (40, 0, 0, 292, 17, 0.575, 6.475, 0.776504, 0.705882, 0.85),
    "tau2/gpt-4o_airline": (50, 0, 2, 277, 5, 0.90, 6.18, 0.961696, 0.0, 0.46),
    "tau2/qwen2.5-7b_airline": (50, 0, 3, 344, 26, 0.48, 3.78, 0.536665, 0.153846, 0.18),
}


@pytest.mark.parametrize(("log", "expected"), REAL.items())
def test_real_logs_give_the_numbers_that_were_counted_independently(shared, log, expected):
    results = [check(trajectory) for trajectory in read_file(shared / f"data/{log}.json").trajectories]
    kept = [result for result in results if result.ending is not Ending.CRASHED]
    n = len(kept)
    length = [result.length for result in kept]
    fed = [result.first_error(Rule.STRICT)[0] for result in kept]
    erred = [f <= t for f, t in zip(fed, length, strict=True)]
    success = [result.trajectory.reward >= 1 - 1e-6 for result in kept]
    auc = sum((f - 1) / t if t else 1 for f, t in zip(fed, length, strict=True)) / n
    recovered = sum(y for y, e in zip(success, erred, strict=True) if e) / sum(erred)
    counts = (n, len(results) - n, length.count(0), sum(length), sum(erred))
    assert counts == expected[:5]
    rates = (1 - sum(erred) / n, sum(fed) / n, auc, recovered, sum(success) / n)
    assert rates == pytest.approx(expected[5:], abs=5e-7)
