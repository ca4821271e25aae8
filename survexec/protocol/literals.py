"""Calls written as Python, `[f(a=1), C.g("x")]`, read by syntax alone: literals, and nothing is ever evaluated.

Values are those that JSON can hold; a tuple is read as a list. Names, attributes, operators, nested calls,
comprehensions, f-strings, unpacking, sets, bytes and complex numbers are refused.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from survexec.errors import InputError
from survexec.protocol.trajectory import Call

TEXT_LIMIT: Final = 100_000  # characters; a syntax tree takes several hundred times the memory of its text
_BITS: Final = 14_000  # of an integer: as many digits as Python itself reads and writes
_SHOWN: Final = 60


class UnreadableCallError(InputError):
    """A text is no call, or an argument of one is no literal."""


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call as it was written.

    Parameters
    ----------
    name : str
        Of the tool, without what stands before its last dot.
    positional : tuple
        Values without a name, in order; `bind` names them.
    keywords : dict
        Values with a name.
    """

    name: str
    positional: tuple[Any, ...]
    keywords: dict[str, Any]


def parse_calls(text: str) -> list[ParsedCall]:
    """Read one call, or a list of calls.

    Parameters
    ----------
    text : str
        Such as ``[ls(a=True), FileSystem.mv("a.txt", "b.txt")]``; brackets around the calls may be left out.

    Returns
    -------
    list of ParsedCall
        In order.

    Raises
    ------
    UnreadableCallError
        If the text is anything else, or a value is no literal that JSON can hold.

    Examples
    --------
    >>> parse_calls("[ls(a=True), FileSystem.mv('a.txt', 'b (f) .txt')]")
    [ParsedCall(name='ls', positional=(), keywords={'a': True}),
     ParsedCall(name='mv', positional=('a.txt', 'b (f) .txt'), keywords={})]
    >>> parse_calls("mv(source=__import__('os').getcwd())")
    Traceback (most recent call last):
    ...
    survexec.protocol.literals.UnreadableCallError: `__import__('os').getcwd()` is no literal
    """
    return [_parsed(node) for node in _nodes(text)]


def read_calls(text: str) -> list[Call]:
    """Read calls for a trajectory, each for itself: one that cannot be read does not take the others along.

    Parameters
    ----------
    text : str
        As in `parse_calls`.

    Returns
    -------
    list of Call
        Where all values of a call have names and are literals, with decoded arguments; otherwise its arguments are the
        text of the call, which replay binds to the tool's parameters or refuses.

    Raises
    ------
    UnreadableCallError
        If the text is neither a call nor a list of calls.

    Examples
    --------
    >>> for call in read_calls("[cd(folder='docs'), sort('a.txt'), rm(name=pwd())]"):
    ...     print(call.tool, call.arguments)
    cd {'folder': 'docs'}
    sort sort('a.txt')
    rm rm(name=pwd())
    """
    return [_read(node) for node in _nodes(text)]


def bind(call: ParsedCall, parameters: Sequence[str]) -> dict[str, Any]:
    """Give positional values the names of the parameters.

    Parameters
    ----------
    call : ParsedCall
    parameters : sequence of str
        In the order in which positional values are bound, such as `Tool.positional`.

    Returns
    -------
    dict
        Argument -> value.

    Raises
    ------
    UnreadableCallError
        If there are more values than parameters, or a parameter gets two.

    Examples
    --------
    >>> bind(ParsedCall("mv", ("a.txt",), {"destination": "b.txt"}), ("source", "destination"))
    {'source': 'a.txt', 'destination': 'b.txt'}
    """
    if len(call.positional) > len(parameters):
        given, taken = len(call.positional), len(parameters)
        raise UnreadableCallError(f"{given} values without a name; the tool takes at most {taken}")
    named = dict(zip(parameters, call.positional, strict=False))
    for name in named:
        if name in call.keywords:
            raise UnreadableCallError(f"two values for {name!r}")
    return named | call.keywords


def _nodes(text: str) -> list[ast.Call]:
    """The calls of a text as syntax."""
    if len(text) > TEXT_LIMIT:
        raise UnreadableCallError(f"{len(text):,} characters; a call is read up to {TEXT_LIMIT:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the log's text
            body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise UnreadableCallError(f"no call in Python syntax: {_reason(error)}") from None
    nodes = body.elts if isinstance(body, ast.List | ast.Tuple) else [body]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if len(calls) < len(nodes):
        raise UnreadableCallError("neither a call nor a list of calls")
    return calls


def _reason(error: BaseException) -> str:
    """Why Python could not read a text, without quoting it."""
    if isinstance(error, SyntaxError):
        return (error.msg or "invalid syntax").partition(":")[0]
    return "characters that are no text" if isinstance(error, ValueError) else "nested too deep"


def _parsed(node: ast.Call) -> ParsedCall:
    name = _name(node.func)
    if not name:
        raise UnreadableCallError(f"`{_shown(node.func)}` is no name of a tool")
    keywords: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise UnreadableCallError("`**` is no literal")
        if keyword.arg in keywords:
            raise UnreadableCallError(f"two values for {keyword.arg!r}")
        keywords[keyword.arg] = _value(keyword.value)
    return ParsedCall(name, tuple(_value(value) for value in node.args), keywords)


def _read(node: ast.Call) -> Call:
    try:
        parsed = _parsed(node)
    except UnreadableCallError:
        return Call(_name(node.func) or _written(node.func), _written(node))
    return Call(parsed.name, _written(node) if parsed.positional else parsed.keywords)


def _name(node: ast.expr) -> str:
    """Last part of a dotted name; "" where it is none."""
    inner = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    if not isinstance(inner, ast.Name):
        return ""
    return node.attr if isinstance(node, ast.Attribute) else inner.id


def _value(node: ast.expr) -> Any:
    """Value of a literal."""
    match node:
        case ast.Constant(value=None | bool() as value):
            return value
        case ast.Constant(value=str() as value):
            return _text(value)
        case ast.Constant(value=int() | float() as value):
            return _number(value)
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)) if not isinstance(value, bool):
            return -_number(value)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_value(element) for element in elements]
        case ast.Dict(keys=keys, values=values):
            return {_key(key): _value(value) for key, value in zip(keys, values, strict=True)}
    raise UnreadableCallError(f"`{_shown(node)}` is no literal")


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UnreadableCallError("half a surrogate pair is no text") from None
    return value


def _number(value: float) -> float:
    if isinstance(value, int):
        if value.bit_length() > _BITS:
            raise UnreadableCallError("an integer of more than 4,000 digits")
    elif not math.isfinite(value):
        raise UnreadableCallError("a number beyond what floating point holds")
    return value


def _key(node: ast.expr | None) -> str:
    match node:
        case ast.Constant(value=str() as key):
            return _text(key)
    raise UnreadableCallError("a key of an object is no text")


def _shown(node: ast.expr) -> str:
    text = _written(node)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _written(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):  # nested too deep, or an integer that Python does not write
        return "..."
