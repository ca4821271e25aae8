"""Catalogues: what an environment says when it refuses a call, as versioned data, and the class of that.

A catalogue is a TOML file in this folder; `tau.toml` says how its patterns are matched.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from survexec.protocol.trajectory import ErrorClass

_NAMES = ("tau",)
_LONGEST = 10_000  # characters of a message that are matched
_PREFIX = re.compile(r"(?:error:\s*)+", re.IGNORECASE)
_STRING = r"""(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)')"""
# A variable's value: # var_4 = "..." (quotes inside are not escaped), and a list of one text: ['...'].
_ASSIGNED = re.compile(r"""#\s*\w+\s*=\s*(?P<quote>["'])(?P<text>.*)(?P=quote)\s*""", re.DOTALL)
_LISTED = re.compile(rf"\[\s*{_STRING}\s*\]\s*", re.DOTALL)
# An object that holds an error and nothing else, alone or in a list: {"error": "..."}.
_OBJECT = re.compile(rf"""\[?\s*\{{\s*["']error["']\s*:\s*{_STRING}\s*\}}\s*\]?\s*""", re.DOTALL)
_ESCAPE = re.compile(r"""\\(["'\\/])""")


@dataclass(frozen=True, slots=True)
class Entry:
    """One kind of refusal.

    Parameters
    ----------
    pattern : re.Pattern
        Matched against the whole normalised message.
    error_class : ErrorClass
        Its class.
    lookup : bool
        True where, said by a tool that only reads, it is an answer.
    example : str
        A message as the environment gives it.
    """

    pattern: re.Pattern[str]
    error_class: ErrorClass
    lookup: bool
    example: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The refusals of one family of benchmarks.

    Parameters
    ----------
    benchmark : str
        Name of the family.
    versions : dict of str to str
        Benchmarks it covers, each with the version whose source was read.
    refusals : re.Pattern
        How a text begins that is a refusal.
    lookup_tools : frozenset of str
        Tools that only read.
    entries : tuple of Entry
        In order: the first that matches decides.
    """

    benchmark: str
    versions: dict[str, str]
    refusals: re.Pattern[str]
    lookup_tools: frozenset[str]
    entries: tuple[Entry, ...]

    def is_refusal(self, text: str) -> bool:
        """Whether an observation is a refusal by its form alone; the word "error" inside data is none.

        Examples
        --------
        >>> tau = catalogue_for("tau-retail")
        >>> tau.is_refusal("Error: user not found"), tau.is_refusal('{"error": "user not found"}')
        (True, True)
        >>> tau.is_refusal('{"name": "Error: the board game"}')
        False
        """
        message, is_error = unwrap(text)
        return is_error or self.refusals.match(message) is not None

    def match(self, tool: str, message: str) -> tuple[ErrorClass, bool]:
        """Class of a refusal, and whether it is the answer of a tool that only reads.

        Parameters
        ----------
        tool : str
            The tool that was called.
        message : str
            What came back.

        Returns
        -------
        error_class : ErrorClass
            ``unclassified`` where no entry matches.
        lookup : bool
            True where the rule "lookup" takes the call as executed.

        Examples
        --------
        >>> catalogue_for("tau-retail").match("get_order_details", "Error: order not found")
        (<ErrorClass.DEPENDENCY: 'dependency'>, True)
        """
        text = normalise(message)
        for entry in self.entries:
            if entry.pattern.fullmatch(text):
                return entry.error_class, entry.lookup and tool in self.lookup_tools
        return ErrorClass.UNCLASSIFIED, False


def catalogue_for(benchmark: str | None) -> Catalogue | None:
    """Catalogue of a benchmark such as "tau2-airline"; None where there is none.

    Examples
    --------
    >>> catalogue_for("tau2-airline").benchmark
    'tau'
    """
    family = (benchmark or "").partition("-")[0]
    for name in _NAMES:
        if family in _load(name).versions:
            return _load(name)
    return None


def is_infrastructure(text: str) -> bool:
    """Whether an observation says that the call never reached the environment.

    Examples
    --------
    >>> is_infrastructure("503 Service Unavailable"), is_infrastructure("Flight 503 is unavailable")
    (True, False)
    """
    longest, patterns = _infrastructure()
    if len(text) > longest:
        return False
    message = normalise(text)
    return any(pattern.fullmatch(message) for pattern in patterns)


def unwrap(text: str) -> tuple[str, bool]:
    """Take a message out of what a log has wrapped it in.

    Parameters
    ----------
    text : str
        An observation.

    Returns
    -------
    message : str
        The text inside, or the text itself where nothing is around it.
    is_error : bool
        True where the wrapping itself says that it is an error.

    Examples
    --------
    >>> unwrap('# var_4 = "Error: user not found"')
    ('Error: user not found', False)
    >>> unwrap('[{"error": "user not found"}]')
    ('user not found', True)
    """
    text = text.strip()
    if not text.startswith(("#", "[", "{")):
        return text, False
    if found := _ASSIGNED.fullmatch(text):
        return found["text"].strip(), False
    is_error = True
    found = _OBJECT.fullmatch(text)
    if not found:
        is_error = False
        found = _LISTED.fullmatch(text)
    if not found:
        return text, False
    inside = found["double"] if found["double"] is not None else found["single"]
    return _ESCAPE.sub(r"\1", inside).strip(), is_error


def message_of(text: str) -> str:
    """Refusal without wrappers and prefix, as one line.

    Examples
    --------
    >>> message_of('# var_4 = "Error: Order not found."')
    'Order not found.'
    """
    message = unwrap(text)[0]
    prefix = _PREFIX.match(message)
    return " ".join(message[prefix.end() if prefix else 0 :][:_LONGEST].split())


def normalise(text: str) -> str:
    """Give a message the form that patterns are matched against.

    Examples
    --------
    >>> normalise('["Error:  Order not  found."]')
    'order not found'
    """
    return message_of(text).lower().removesuffix(".")


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


@cache
def _load(name: str) -> Catalogue:
    table = _table(name)
    entries = tuple(
        Entry(
            re.compile(rule["pattern"]),
            ErrorClass(rule["class"]),
            rule.get("lookup", False),
            rule["example"],
        )
        for rule in table["rule"]
    )
    refusals = re.compile("|".join(f"(?:{form})" for form in table["refusals"]), re.IGNORECASE)
    return Catalogue(table["benchmark"], table["versions"], refusals, frozenset(table["lookup_tools"]), entries)


@cache
def _infrastructure() -> tuple[int, tuple[re.Pattern[str], ...]]:
    table = _table("infrastructure")
    return table["longest"], tuple(re.compile(rule["pattern"]) for rule in table["rule"])
