"""Catalogues: what an environment says when it refuses a call, as versioned data, and the class of that.

A catalogue is a TOML file in this folder: `tau.toml` says how its patterns are matched, `bfcl.toml` what a soft rule is
and how one is kept to some tools.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from survexec.protocol.trajectory import ErrorClass

_INFRASTRUCTURE = "infrastructure.toml"
_LONGEST = 10_000  # characters of a message that are matched
_PREFIX = re.compile(r"(?:error(?: during execution)?:\s*)+", re.IGNORECASE)
_STRING = r"""(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)')"""
# A variable's value: # var_4 = "..." (quotes inside are not escaped), and a list of one text: ['...'].
_ASSIGNED = re.compile(r"""#\s*\w+\s*=\s*(?P<quote>["'])(?P<text>.*)(?P=quote)\s*""", re.DOTALL)
_LISTED = re.compile(rf"\[\s*{_STRING}\s*\]\s*", re.DOTALL)
# An object that holds an error and nothing else, alone or in a list: {"error": "..."}.
_OBJECT = re.compile(rf"""\[?\s*\{{\s*["']error["']\s*:\s*{_STRING}\s*\}}\s*\]?\s*""", re.DOTALL)
_ESCAPE = re.compile(r"""\\(["'\\/])""")
# An object that holds an error among other things.
_ERROR = re.compile(r"\"error\"\s*:")
_JSON = msgspec.json.Decoder(dict[str, Any])


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
    tools : frozenset of str
        The tools that say so; empty where any may.
    """

    pattern: re.Pattern[str]
    error_class: ErrorClass
    lookup: bool
    example: str
    tools: frozenset[str] = frozenset()

    def meets(self, tool: str, message: str) -> bool:
        """Whether a normalised message of a tool is of this kind."""
        return (not self.tools or tool in self.tools) and self.pattern.fullmatch(message) is not None


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
    other_tools : frozenset of str
        Tools that act, where the catalogue lists them.
    error_member : bool
        Whether every object with a member "error" is a refusal, whatever else it holds.
    entries : tuple of Entry
        In order: the first that matches decides.
    soft : dict of str to re.Pattern
        Tool -> its answers that only an entry tells to be refusals, though they have no error in their form.
    """

    benchmark: str
    versions: dict[str, str]
    refusals: re.Pattern[str]
    lookup_tools: frozenset[str]
    other_tools: frozenset[str]
    error_member: bool
    entries: tuple[Entry, ...]
    soft: dict[str, re.Pattern[str]]

    def is_refusal(self, text: str, tool: str = "") -> bool:
        """Whether an observation is a refusal, by its form or as a soft entry of its tool; "error" inside data is none.

        Examples
        --------
        >>> tau = catalogue_for("tau-retail")
        >>> tau.is_refusal("Error: user not found"), tau.is_refusal('{"error": "user not found"}')
        (True, True)
        >>> tau.is_refusal('{"name": "Error: the board game"}')
        False
        >>> bfcl = catalogue_for("bfcl")
        >>> [bfcl.is_refusal('{"success": false}', tool) for tool in ("logout", "TicketAPI.logout", "get_ticket")]
        [True, True, False]
        """
        message, is_error = unwrap(text)
        if is_error or self.refusals.match(message) or (self.error_member and error_in(text) is not None):
            return True
        soft = self.soft.get(tool.rpartition(".")[2])
        return soft is not None and soft.fullmatch(normalise(text)) is not None

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
        text, name = normalise(message), tool.rpartition(".")[2]
        for entry in self.entries:
            if entry.meets(name, text):
                return entry.error_class, entry.lookup and name in self.lookup_tools
        return ErrorClass.UNCLASSIFIED, False


def catalogue_for(benchmark: str | None) -> Catalogue | None:
    """Catalogue of a benchmark such as "tau2-airline"; None where there is none.

    Examples
    --------
    >>> catalogue_for("tau2-airline").benchmark
    'tau'
    """
    name = _families().get((benchmark or "").partition("-")[0])
    return None if name is None else _load(name)


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


def error_in(text: str) -> str | None:
    """The member "error" of a JSON object as text; None where there is none or it is null.

    Examples
    --------
    >>> error_in('{"booking_status": false, "error": "Token expired"}'), error_in('{"error": 404}')
    ('Token expired', '404')
    """
    if not _ERROR.search(text) or not text.lstrip().startswith("{"):
        return None
    try:
        error = _JSON.decode(text).get("error")
    except (ValueError, RecursionError):
        return None
    return None if error is None else str(error)


def message_of(text: str) -> str:
    """Refusal without wrappers and prefix, as one line.

    Examples
    --------
    >>> message_of('# var_4 = "Error: Order not found."')
    'Order not found.'
    >>> message_of('{"booking_status": false, "error": "Token expired"}')
    'Token expired'
    """
    message, is_error = unwrap(text)
    if not is_error and (error := error_in(message)) is not None:
        message = error
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


@cache
def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath(name).read_text("utf-8"))


@cache
def _families() -> dict[str, str]:
    """Family of benchmarks -> the file of this folder that covers it."""
    names = sorted(file.name for file in resources.files(__package__).iterdir() if file.name.endswith(".toml"))
    return {family: name for name in names if name != _INFRASTRUCTURE for family in _table(name)["versions"]}


@cache
def _load(name: str) -> Catalogue:
    table = _table(name)
    entries = []
    soft: dict[str, list[str]] = {}
    for rule in table["rule"]:
        tools = frozenset(rule.get("tools", ()))
        pattern = re.compile(rule["pattern"])
        entries.append(Entry(pattern, ErrorClass(rule["class"]), rule.get("lookup", False), rule["example"], tools))
        for tool in tools if rule.get("soft", False) else ():
            soft.setdefault(tool, []).append(rule["pattern"])
    return Catalogue(
        table["benchmark"],
        table["versions"],
        _any_of(table["refusals"]),
        frozenset(table["lookup_tools"]),
        frozenset(table.get("other_tools", ())),
        table.get("error_member", False),
        tuple(entries),
        {tool: _any_of(patterns) for tool, patterns in soft.items()},
    )


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


@cache
def _infrastructure() -> tuple[int, tuple[re.Pattern[str], ...]]:
    table = _table(_INFRASTRUCTURE)
    return table["longest"], tuple(re.compile(rule["pattern"]) for rule in table["rule"])
