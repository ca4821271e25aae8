"""Trajectory -> verdict per call, length, first-error depth and class.

Recorded mode (`check`): what the environment answered decides. A call whose arguments could not be decoded here is
as good as any other where the environment took it. Verdicts of a replay are placed by `checked`.
"""

from __future__ import annotations

from dataclasses import dataclass

from survexec.protocol.catalogues import Catalogue, catalogue_for, is_infrastructure, message_of
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Outcome, Rule, Trajectory, Verdict

_INTERFACE = (ErrorClass.SCHEMA, ErrorClass.DEPENDENCY)
_OK = Verdict(Outcome.OK)
_UNJUDGED = Verdict(Outcome.UNJUDGED)


@dataclass(frozen=True, slots=True)
class Checked:
    """A trajectory with the judgement on it.

    Parameters
    ----------
    trajectory : Trajectory
        What was judged.
    verdicts : tuple of Verdict
        One per call.
    positions : tuple of int or None
        Place of each call in the judged sequence, from 1. None: the call never reached the environment, or
        stands at or after the first unjudged call.
    length : int
        Judged calls (T).
    ending : Ending
        As the log has it, but truncated where an unjudged call censored the rollout.
    """

    trajectory: Trajectory
    verdicts: tuple[Verdict, ...]
    positions: tuple[int | None, ...]
    length: int
    ending: Ending

    def first_error(self, rule: Rule) -> tuple[int, ErrorClass | None, int]:
        """Depth of the first error under a rule.

        Parameters
        ----------
        rule : Rule
            What counts as executable.

        Returns
        -------
        fed : int
            Index of the first error, `length` + 1 where there is none.
        error_class : ErrorClass or None
            Its class; None without an error.
        invalid_calls : int
            Errors among the judged calls.
        """
        errors = [
            (position, verdict.error_class)
            for position, verdict in zip(self.positions, self.verdicts, strict=True)
            if position is not None and is_error(verdict.outcome, verdict.error_class, verdict.lookup, rule)
        ]
        fed, error_class = errors[0] if errors else (self.length + 1, None)
        return fed, error_class, len(errors)


def check(trajectory: Trajectory) -> Checked:
    """Judge every call of a trajectory by what the log says came of it.

    Parameters
    ----------
    trajectory : Trajectory
        As a reader gave it.

    Returns
    -------
    Checked
        Verdicts and places; `Checked.first_error` applies a rule to them.

    Examples
    --------
    The phone number is refused as an id, so the contact is looked up first: T = 3, first error at call 1.

    >>> from survexec.protocol.trajectory import Call, Ending, Rule, Trajectory
    >>> calls = (
    ...     Call("remove_contact", {"id": "+358401234"}, "no such id", error=True),
    ...     Call("search_contacts", {"phone": "+358401234"}, "[{'id': 'c-7'}]", error=False),
    ...     Call("remove_contact", {"id": "c-7"}, "removed", error=False),
    ... )
    >>> found = check(Trajectory("1", calls, Ending.COMPLETED))
    >>> found.length, found.first_error(Rule.STRICT)
    (3, (1, <ErrorClass.UNCLASSIFIED: 'unclassified'>, 1))
    """
    catalogue = catalogue_for(trajectory.benchmark)
    return checked(trajectory, tuple(_judge(call, catalogue) for call in trajectory.calls))


def checked(trajectory: Trajectory, verdicts: tuple[Verdict, ...]) -> Checked:
    """Place judged calls in their sequence, whether recorded or replayed.

    Parameters
    ----------
    trajectory : Trajectory
    verdicts : tuple of Verdict
        One per call.

    Returns
    -------
    Checked
        Censored at the first unjudged call; calls that never reached the environment have no place.

    Examples
    --------
    >>> from survexec.protocol.trajectory import Call, Ending, Outcome, Trajectory, Verdict
    >>> rollout = Trajectory("1", (Call("f"), Call("g")), Ending.COMPLETED)
    >>> checked(rollout, (Verdict(Outcome.INFRASTRUCTURE), Verdict(Outcome.OK))).positions
    (None, 1)
    """
    positions: list[int | None] = []
    length = 0
    censored = False
    for verdict in verdicts:
        censored = censored or verdict.outcome is Outcome.UNJUDGED
        if censored or verdict.outcome is Outcome.INFRASTRUCTURE:
            positions.append(None)
        else:
            length += 1
            positions.append(length)
    crashed = trajectory.ending is Ending.CRASHED
    ending = Ending.TRUNCATED if censored and not crashed else trajectory.ending
    return Checked(trajectory, verdicts, tuple(positions), length, ending)


def is_error(outcome: Outcome | str, error_class: ErrorClass | str | None, lookup: bool, rule: Rule | str) -> bool:
    """Whether one call is an error under a rule: the only place where the rules stand.

    Parameters
    ----------
    outcome : Outcome or str
        What became of the call.
    error_class : ErrorClass or str or None
        Its class where it is invalid.
    lookup : bool
        Whether the refusal is the answer of a read-only call that found nothing.
    rule : Rule or str
        What counts as executable.

    Returns
    -------
    bool
        True for an error.

    Examples
    --------
    >>> [is_error("invalid", "dependency", True, rule) for rule in ("strict", "lookup", "interface")]
    [True, False, True]
    >>> [is_error("invalid", "precondition", False, rule) for rule in ("strict", "lookup", "interface")]
    [True, True, False]
    """
    if outcome != Outcome.INVALID:
        return False
    match Rule(rule):
        case Rule.STRICT:
            return True
        case Rule.LOOKUP:
            return not lookup
        case Rule.INTERFACE:
            return error_class in _INTERFACE


def _judge(call: Call, catalogue: Catalogue | None) -> Verdict:
    text = call.observation
    if text is None:
        return _UNJUDGED
    if is_infrastructure(text):
        return Verdict(Outcome.INFRASTRUCTURE, message=message_of(text))
    if not (call.error or (catalogue and catalogue.is_refusal(text, call.tool))):
        return _OK
    error_class, lookup = ErrorClass.UNCLASSIFIED, False
    if catalogue:
        error_class, lookup = catalogue.match(call.tool, text)
    return Verdict(Outcome.INVALID, error_class, message_of(text), lookup, (error_class,))
