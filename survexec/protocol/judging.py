"""One call -> every class of error that applies to it: what its interface, the environment and the task say.

A refusal is classified by the benchmark's catalogue; one that no entry matches is unclassified, never guessed.
"""

from __future__ import annotations

from collections.abc import Set
from functools import cached_property
from typing import Any, Final

from survexec.errors import InputError
from survexec.protocol.catalogues import Catalogue, message_of
from survexec.protocol.environments.base import Observation, Tool
from survexec.protocol.information import Lack, interface_words
from survexec.protocol.literals import UnreadableCallError, bind, parse_calls
from survexec.protocol.trajectory import ErrorClass, Outcome, Verdict

_MESSAGE_LIMIT: Final = 300  # characters
_INTERFACE_LIMIT: Final = 4096  # tools that are kept ready
_OK = Verdict(Outcome.OK)
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "$comment", "deprecated"})
_TYPES: Final[dict[str, frozenset[type]]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "object": frozenset({dict}),
    "array": frozenset({list}),
}
_Kinds = tuple[frozenset[type], frozenset[type]]  # types of a value, and of its items where they are said
_NONE: Final[_Kinds] = (frozenset(), frozenset())


class Interface:
    """What a tool takes, made ready for the check of many calls.

    Parameters
    ----------
    tool : Tool

    Examples
    --------
    >>> schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    >>> interface = Interface(Tool("remove_contact", schema))
    >>> interface.fault({"id": "c-7"}), interface.fault({"id": 7}), interface.fault({})
    (None, "id: 7 is not of type 'string'", "'id' is a required property")
    """

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self._simple = _simple(tool.schema)
        self.required: tuple[str, ...] = tuple(tool.schema.get("required", ()))

    def decode(self, arguments: dict[str, Any] | str | None) -> dict[str, Any]:
        """Arguments by name.

        Parameters
        ----------
        arguments : dict or str or None
            As a reader gave them; a text is a whole call in Python syntax, whose values without a name are bound here.

        Returns
        -------
        dict
            Without the nulls that say that an optional parameter was left out.

        Raises
        ------
        UnreadableCallError
            If a text is no call of this tool.
        """
        if isinstance(arguments, str):
            arguments = self._bound(arguments)
        if not arguments or None not in arguments.values():
            return arguments or {}
        return {name: value for name, value in arguments.items() if value is not None or not self._leaves_out(name)}

    def fault(self, arguments: dict[str, Any]) -> str | None:
        """What is wrong with arguments; None where they fit the schema.

        Raises
        ------
        InputError
            If the schema is no JSON Schema.
        """
        if self._surely_fits(arguments):
            return None
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        try:
            error = best_match(self._validator.iter_errors(arguments))
        except Unresolvable as missing:
            raise InputError(f"tool {self.tool.name!r}: its schema refers to what is not there: {missing}") from None
        if error is None:
            return None
        where = ".".join(str(part) for part in error.absolute_path)
        return _cut(f"{where}: {error.message}" if where else error.message)

    def _surely_fits(self, arguments: dict[str, Any]) -> bool:
        """Whether arguments fit by their types alone; False leaves it to the validator, which is slower."""
        if self._simple is None or not all(name in arguments for name in self.required):
            return False
        for name, value in arguments.items():
            kinds, of_items = self._simple.get(name, _NONE)
            if type(value) not in kinds or (of_items and not all(type(item) in of_items for item in value)):
                return False
        return True

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of the interface: a choice among what it names has a source."""
        return interface_words(self.tool.name, self.tool.schema)

    @cached_property
    def _validator(self) -> Any:
        import jsonschema
        import referencing

        kind = jsonschema.validators.validator_for(self.tool.schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(self.tool.schema)
        except jsonschema.SchemaError as error:
            raise InputError(f"tool {self.tool.name!r}: its schema is no JSON Schema: {error.message}") from None
        # an empty registry: a reference to elsewhere is never fetched
        return kind(self.tool.schema, registry=referencing.Registry())

    def _bound(self, text: str) -> dict[str, Any]:
        calls = parse_calls(text)
        if len(calls) != 1 or calls[0].name != self.tool.name:
            raise UnreadableCallError("not one call of this tool")
        return bind(calls[0], self.tool.positional)

    def _leaves_out(self, name: str) -> bool:
        """Whether null for a parameter can only mean that it was left out."""
        schema = self.tool.schema.get("properties", {}).get(name)
        if name in self.required or schema is None:
            return False
        return not self._validator.evolve(schema=schema).is_valid(None)


def interface_of(tool: Tool) -> Interface:
    """The interface of a tool, made once for each tool.

    Examples
    --------
    >>> tool = Tool("ls", {"type": "object"})
    >>> interface_of(tool) is interface_of(tool)
    True
    """
    # By identity, for a schema has no hash; the interface holds the tool, so that no other gets its id.
    found = _INTERFACES.get(id(tool))
    if found is None:
        if len(_INTERFACES) >= _INTERFACE_LIMIT:
            _INTERFACES.clear()
        found = _INTERFACES[id(tool)] = Interface(tool)
    return found


_INTERFACES: dict[int, Interface] = {}


def judge(
    tool: str,
    answer: Observation | None,
    *,
    refused: bool,
    fault: str | None = None,
    error_class: ErrorClass | None = None,
    idle: bool = False,
    lack: Lack | None = None,
    catalogue: Catalogue | None = None,
) -> Verdict:
    """Put together what speaks against a call.

    Parameters
    ----------
    tool : str
        Its name.
    answer : Observation or None
        What came back; None where it was not executed.
    refused : bool
        Whether the environment refused the call; see `is_refused`.
    fault : str, optional
        Why it does not fit the interface.
    error_class : ErrorClass, optional
        Class of the refusal where it is known without the catalogue.
    idle : bool
        Whether it was to change the state and did not.
    lack : Lack, optional
        What the agent did not know.
    catalogue : Catalogue, optional
        The refusals of the benchmark.

    Returns
    -------
    Verdict
        With every class that applies, in order of priority.

    Examples
    --------
    >>> judge("remove_contact", Observation("no contact has the id 'Ann'"), refused=True).classes
    (<ErrorClass.UNCLASSIFIED: 'unclassified'>,)
    >>> judge("set_wifi", Observation("wifi is on"), refused=False, idle=True).message
    'accepted, but it changed nothing'
    """
    against: dict[ErrorClass, str] = {}
    lookup = False
    if fault is not None:
        against[ErrorClass.SCHEMA] = fault
    if answer is not None and refused:
        if error_class is None:
            error_class, lookup = ErrorClass.UNCLASSIFIED, False
            if catalogue:
                error_class, lookup = catalogue.match(tool, answer.text)
        if not (against and error_class is ErrorClass.UNCLASSIFIED):  # its reason is known then
            against.setdefault(error_class, message_of(answer.text))
    elif idle and not against:
        against[ErrorClass.STATE_CONSISTENCY] = "accepted, but it changed nothing"
    if lack and (against or lack.certain):
        against[ErrorClass.INFORMATION] = lack.what
    if not against:
        return _OK
    # a misfit, or a search for what was not known at all, is an error whatever came back
    lookup = lookup and fault is None and not (lack and lack.certain)
    classes = tuple(name for name in ErrorClass if name in against)
    return Verdict(Outcome.INVALID, classes[0], next(iter(against.values())), lookup, classes)


def is_refused(tool: str, answer: Observation, catalogue: Catalogue | None) -> bool:
    """Whether an environment refused a call, by its flag or by what the catalogue knows of its answers.

    Examples
    --------
    >>> is_refused("f", Observation("Error: no"), None), is_refused("f", Observation("no", error=True), None)
    (False, True)
    """
    return answer.error or (catalogue is not None and catalogue.is_refusal(answer.text, tool))


def _simple(schema: dict[str, Any]) -> dict[str, _Kinds] | None:
    """Python types of the parameters of which a schema says no more than that, and of their items where they are lists.

    None where it says more of the whole than which parameters there are and which are required.
    """
    properties, required = schema.get("properties", {}), schema.get("required", [])
    said = schema.keys() - _ANNOTATIONS - {"type", "properties", "required", "additionalProperties"}
    plain = isinstance(properties, dict) and isinstance(required, list) and all(isinstance(r, str) for r in required)
    closed = schema.get("additionalProperties", True) in (True, False)
    if said or not plain or not closed or schema.get("type") != "object":
        return None
    simple = {}
    for name, part in properties.items():
        kinds = _types(part, {"items"})
        if kinds and "items" not in part:
            simple[name] = (kinds, _NONE[0])
        elif kinds == _TYPES["array"] and (items := _types(part["items"])):
            simple[name] = (kinds, items)
    return simple


def _types(schema: Any, beside: Set[str] = frozenset()) -> frozenset[type] | None:
    """Python types that a schema allows, where that is all it says."""
    if not isinstance(schema, dict) or schema.keys() - _ANNOTATIONS - {"type"} - beside:
        return None
    kind = schema.get("type")
    return _TYPES.get(kind) if isinstance(kind, str) else None


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE_LIMIT else text[:_MESSAGE_LIMIT] + "..."
