"""Calls in one step of a BFCL rollout: objects, JSON, or Python call syntax.

Where a step cannot be decoded, the harness executes nothing of it, and every call that it lists is invalid. What such a
text lists is decided by this rule. It is a list of calls if it begins with a name and a parenthesis or with a bracket
and the name of a tool; otherwise it is an answer in words and lists none. In a list of calls, every name right before a
parenthesis and every tool's name right after a bracket is a call, unless it stands inside quotes or parentheses.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any, Final

import msgspec

from survexec.protocol.catalogues import catalogue_for
from survexec.protocol.literals import UnreadableCallError, read_calls
from survexec.protocol.readers.messages import decode_arguments
from survexec.protocol.trajectory import Call

UNDECODABLE: Final = "Error decoding the model response. Proceed to next turn."
_SHOWN: Final = 300  # characters of a step that cannot be decoded
_LISTED: Final = 1_000  # calls counted in one text that runs on
_JSON: Final = msgspec.json.Decoder()
_NAME: Final = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_FENCE: Final = re.compile(r"[`\s]*(?:(?:python|json|tool_code)\b[`\s]*)?")
_BEGINS: Final = re.compile(rf"\[\s*{_NAME}\(|\[\s*(?P<bare>{_NAME})|(?P<call>{_NAME})\(")
_TOKEN: Final = re.compile(
    rf"""
      "(?:[^"\\]|\\.)*(?:"|$)
    | (?<!\w)'(?:[^'\\]|\\.)*(?:'|$)     # not the apostrophe of a word
    | (?P<name>{_NAME})(?=\()
    | \[\s*(?P<bare>{_NAME})(?![\w(.])
    | (?P<open>\()
    | (?P<close>\))
    """,
    re.DOTALL | re.VERBOSE,
)


def calls_of(step: Any) -> list[Call]:
    """Calls of a step.

    Parameters
    ----------
    step : list, dict or str
        Objects with one member each, tool -> arguments, or texts; one of these alone; a text lists calls as JSON or in
        Python syntax.

    Returns
    -------
    list of Call
        Empty for an answer in words. The calls of a step that cannot be decoded have text as their arguments and an
        error as their observation.

    Examples
    --------
    >>> for call in calls_of([{"cd": '{"folder": "docs"}'}, {"GorillaFileSystem.ls": {}}]):
    ...     print(call.tool, call.arguments)
    cd {'folder': 'docs'}
    ls {}
    >>> calls_of("I listed the files with ls().")
    []
    >>> [(call.tool, call.error) for call in calls_of("[pwd()], [ls]")]
    [('pwd', True), ('ls', True)]
    """
    if isinstance(step, list):
        calls = [call for part in step for call in calls_of(part)]
        # the harness decodes the objects of a step together or not at all
        if any(isinstance(part, dict) for part in step) and any(call.error for call in calls):
            return [_refused(call.tool, step) for call in calls]
        return calls
    if isinstance(step, dict):
        return [_from_object(tool, arguments) for tool, arguments in step.items()]
    return _from_text(step) if isinstance(step, str) else []


def undecodable(step: Any) -> list[Call]:
    """Calls that a step lists although the harness could not decode it, each of them invalid.

    Parameters
    ----------
    step : list, dict or str
        As in `calls_of`.

    Returns
    -------
    list of Call

    Examples
    --------
    >>> [call.tool for call in undecodable("[get_ticket(ticket_id=1)] user [get_ticket(ticket_id=2)]")]
    ['get_ticket', 'get_ticket']
    """
    if not isinstance(step, str):
        return [_refused(call.tool, step) for call in calls_of(step)]
    calls = _from_json(step)
    return [_refused(tool, step) for tool in (_listed(step) if calls is None else [call.tool for call in calls])]


def _from_object(tool: str, arguments: Any) -> Call:
    name, decoded = tool.rpartition(".")[2], decode_arguments(arguments)
    return Call(name, decoded) if isinstance(decoded, dict) else _refused(name, arguments)


def _from_text(text: str) -> list[Call]:
    calls = _from_json(text)
    if calls is not None:
        return calls
    inner = text.strip("`\n ")
    try:
        calls = read_calls(("" if inner.startswith("[") else "[") + inner + ("" if inner.endswith("]") else "]"))
    except UnreadableCallError:
        return undecodable(text)
    return [_with_names(call) if isinstance(call.arguments, str) else call for call in calls]


def _from_json(text: str) -> list[Call] | None:
    """Calls of JSON objects, one or an array; None where the text is no such thing."""
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        value = _JSON.decode(text)
    except (ValueError, RecursionError):
        return None
    parts = value if isinstance(value, list) else [value]
    return calls_of(parts) if all(isinstance(part, dict) and len(part) == 1 for part in parts) else None


def _with_names(call: Call) -> Call:
    """A call whose bare names are read as text, for that is what the harness makes of `true` and of any other name."""
    try:
        node = ast.parse(str(call.arguments), mode="eval").body
        if isinstance(node, ast.Call):
            node.args = [_named(value) for value in node.args]
            node.keywords = [ast.keyword(keyword.arg, _named(keyword.value)) for keyword in node.keywords]
            return read_calls(ast.unparse(node))[0]
    except (SyntaxError, ValueError, MemoryError, RecursionError, UnreadableCallError):
        pass
    return call


def _named(node: ast.expr) -> ast.expr:
    match node:
        case ast.Name():
            return ast.Constant(node.id)
        case ast.List() | ast.Tuple():
            node.elts = [_named(element) for element in node.elts]
        case ast.Dict():
            node.values = [_named(value) for value in node.values]
    return node


def _listed(text: str) -> list[str]:
    """Names of the calls that a text lists, by the rule above."""
    fence = _FENCE.match(text)
    text = text[fence.end() :] if fence else text
    begins = _BEGINS.match(text)
    if begins is None or any(name and _tool(name) not in _tools() for name in begins.groups()):
        return []
    names: list[str] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        depth = max(0, depth + (token["open"] is not None) - (token["close"] is not None))
        name = _tool(token["name"] or token["bare"] or "")
        if name and depth == 0 and (token["name"] or name in _tools()):
            names.append(name)
    return names[:_LISTED]


def _refused(tool: str, step: Any) -> Call:
    text = step if isinstance(step, str) else str(step)
    # a name and a colon in front: whatever the text is, it does not read as a call
    return Call(tool, f"{tool}: {text[:_SHOWN]}{'...' if len(text) > _SHOWN else ''}", UNDECODABLE, True)


def _tool(name: str) -> str:
    """Name of a tool without its class."""
    return name.rpartition(".")[2]


@cache
def _tools() -> frozenset[str]:
    catalogue = catalogue_for("bfcl")
    return catalogue.lookup_tools | catalogue.other_tools if catalogue else frozenset()
