"""What the agent could know when it made a call, and what it lacked: stand-ins, empty values, values from nowhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

TEXT_LIMIT: Final = 100_000  # characters of one text that are searched
_FREE_TEXT: Final = 6  # words; what is longer the agent wrote itself, and it refers to nothing

# A whole value of one of these forms stands for something that the agent did not know, whatever the case.
PLACEHOLDERS: Final = (
    r"<(?:unknown|missing|placeholder|tbd|to be|your|insert|enter)\b[^<>]*>",
    r"<(?-i:[A-Z][A-Z0-9]{2,}(?:[_ -][A-Z0-9]+)*)>",
    r"<[a-z]\w*(?:[_ -]\w+)+>",
    r"\$?\{\{?\s*[a-z_][\w .]*\}?\}",
    r"\[(?:unknown|missing|placeholder|your|insert|enter)\b[^\[\]]*\]",
    r"your_\w+",
    r"unknown|placeholder|tbd|to be determined|undefined|not (?:provided|specified|given|known)",
    r"x{4,}|\?+",
)
_PLACEHOLDER = re.compile("|".join(f"(?:{form})" for form in PLACEHOLDERS), re.IGNORECASE)
_CODE = re.compile("[A-Z]{2,5}")  # of an airport, a currency, a share: common knowledge
_WORD = re.compile(r"\d+|[^\W\d_]+")


class Knowledge:
    """What was said to the agent so far, by the user and by the environment."""

    def __init__(self) -> None:
        self._fresh: list[str] = []
        self._texts: list[str] = []
        self._words: set[str] = set()

    def add(self, text: str) -> None:
        """Take in a text."""
        self._fresh.append(text)

    def says(self, value: str) -> bool:
        """Whether a value stands somewhere in what was said, whatever the case.

        Examples
        --------
        >>> knowledge = Knowledge()
        >>> knowledge.add("Please mail Report.pdf to Ann")
        >>> knowledge.says("report.pdf"), knowledge.says("notes.pdf")
        (True, False)
        """
        self._read()
        wanted = value.casefold()
        return any(wanted in text for text in self._texts)

    def accounts_for(self, value: str, also: frozenset[str] = frozenset()) -> bool:
        """Whether a word of a value, or one of its numbers where it has any, was said; true of what needs no source.

        Parameters
        ----------
        value : str
            An argument.
        also : frozenset of str
            Words that are known otherwise, as `words_of` gives them.

        Returns
        -------
        bool
            False for a value from nowhere.

        Notes
        -----
        It errs on the side of the agent: one word in common is enough, or one number, a code such as "LAX" is common
        knowledge and a text of more than six words is the agent's own. Of the calls in BFCL's reference solutions of
        its base tasks, where nothing is said to be missing, 2.8% lack a required text by this rule, nearly all of them
        truly; of the calls that answer a turn of a miss_param task, if made before that turn, 21% do.

        Examples
        --------
        >>> knowledge = Knowledge()
        >>> knowledge.add("Please mail Report.pdf to Ann")
        >>> [knowledge.accounts_for(value) for value in ("old report.docx", "report 2", "bob@example.org")]
        [True, False, False]
        """
        if _CODE.fullmatch(value) or self.says(value):
            return True
        words = words_of(value)
        if not words or len(words) > _FREE_TEXT:
            return True
        words = frozenset(word for word in words if word.isdecimal()) or words
        return not (words.isdisjoint(self._words) and words.isdisjoint(also))

    def _read(self) -> None:
        """Read what came in since the last question: most calls raise none."""
        for text in self._fresh:
            folded = text[:TEXT_LIMIT].casefold()
            self._texts.append(folded)
            self._words |= words_of(folded)
        self._fresh.clear()


def words_of(text: str) -> frozenset[str]:
    """Words and numbers of a text, without the s of a plural and the zeros in front.

    Examples
    --------
    >>> sorted(words_of("Reports_2024-05"))
    ['2024', '5', 'report']
    """
    found = _WORD.findall(text[:TEXT_LIMIT].casefold())
    return frozenset((word.lstrip("0") or "0") if word.isdecimal() else word.rstrip("s") or word for word in found)


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that a call needed and the agent did not have.

    Parameters
    ----------
    what : str
        In words.
    certain : bool
        Whether it holds even of a call that the environment accepted.
    """

    what: str
    certain: bool


def lack_of(
    arguments: Mapping[str, Any],
    required: tuple[str, ...],
    knowledge: Knowledge,
    *,
    interface: frozenset[str] = frozenset(),
    missing: bool = False,
    refused: bool = False,
) -> Lack | None:
    """First thing that a call lacked.

    Parameters
    ----------
    arguments : mapping
        Of the call.
    required : tuple of str
        Parameters that the tool requires.
    knowledge : Knowledge
        What was said before the call.
    interface : frozenset of str
        Words of the tool's own interface, as `words_of` gives them: a choice among what it names has a source.
    missing : bool
        Whether the task holds back in this turn something that the request needs: then a required value from nowhere
        is at fault even where the environment takes it.
    refused : bool
        Whether the call was refused. Of a call that was not, outside such turns, only stand-ins are looked for: an
        empty text can be what the user asked for.

    Returns
    -------
    Lack or None

    Examples
    --------
    >>> lack_of({"id": "<UNKNOWN>"}, ("id",), Knowledge())
    Lack(what="id = '<UNKNOWN>' stands for a value that was not known", certain=True)
    >>> lack_of({"id": "c-9"}, ("id",), Knowledge(), refused=True)
    Lack(what="id = 'c-9' comes from nothing that was said", certain=False)
    """
    for name, value in arguments.items():
        for text in _texts(value):
            if _PLACEHOLDER.fullmatch(text) and not (knowledge.says(text) or frozenset() < words_of(text) <= interface):
                return Lack(f"{name} = {_shown(text)} stands for a value that was not known", True)
    if not (refused or missing):
        return None
    for name in required:
        if name not in arguments:
            if missing:
                return Lack(f"{name} has not been given yet", True)
            continue
        for text in _texts(arguments[name]):
            if not text.strip():
                return Lack(f"{name} is empty", missing)
            if not knowledge.accounts_for(text, interface):
                return Lack(f"{name} = {_shown(text)} comes from nothing that was said", missing)
    return None


def _texts(value: Any) -> Iterator[str]:
    """Texts in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "...")


def interface_words(name: str, schema: Mapping[str, Any]) -> frozenset[str]:
    """Words of a tool's name, parameters, descriptions and choices.

    Examples
    --------
    >>> sorted(interface_words("lock", {"properties": {"door": {"enum": ["left", "right"]}}}))
    ['door', 'enum', 'left', 'lock', 'propertie', 'right']
    """
    return words_of(f"{name} {json.dumps(schema, ensure_ascii=False, default=str)}")
