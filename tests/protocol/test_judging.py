"""One call: its interface, and every class that speaks against it."""

import time

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from survexec.errors import InputError
from survexec.protocol.catalogues import catalogue_for
from survexec.protocol.environments.base import Observation, Tool
from survexec.protocol.information import Lack
from survexec.protocol.judging import Interface, interface_of, is_refused, judge
from survexec.protocol.literals import UnreadableCallError
from survexec.protocol.trajectory import ErrorClass, Outcome

PHONE = catalogue_for("phone")
MOVE = Tool(
    "mv",
    {
        "type": "object",
        "properties": {
            "source": {"type": "string", "description": "what"},
            "destination": {"type": "string"},
            "tries": {"type": "integer", "default": 1},
            "owner": {"type": ["string", "null"]},
            "marks": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["source", "destination"],
        "additionalProperties": False,
    },
    ("source", "destination", "tries"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 2.0]) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": KINDS | st.just(["string", "null"]),
        "items": st.fixed_dictionaries({}, optional={"type": KINDS, "enum": st.just(["a"])}),
        "enum": st.lists(VALUES, min_size=1, max_size=2),
        "description": st.just("x"),
        "minLength": st.just(1),
    },
)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), PARTS, max_size=3)},
    optional={
        "required": st.lists(st.sampled_from("abc"), unique=True),
        "additionalProperties": st.booleans() | st.just({"type": "string"}),
        "minProperties": st.just(1),
    },
)


@given(SCHEMAS, st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=3))
def test_the_short_cut_agrees_with_the_validator(schema, arguments):
    fault = Interface(Tool("f", schema)).fault(arguments)
    assert (fault is None) == jsonschema.Draft202012Validator(schema).is_valid(arguments)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"source": "a", "destination": "b"}, None),
        ({"source": "a", "destination": "b", "tries": 2.0}, None),
        ({"source": "a"}, "'destination' is a required property"),
        ({"source": "a", "destination": 2}, "destination: 2 is not of type 'string'"),
        ({"source": "a", "destination": "b", "tries": True}, "tries: True is not of type 'integer'"),
        ({"source": "a", "destination": "b", "marks": ["x", 1]}, "marks.1: 1 is not of type 'string'"),
        ({"source": None, "destination": "b"}, "source: None is not of type 'string'"),
    ],
)
def test_arguments_are_checked_against_the_schema(arguments, fault):
    assert interface_of(MOVE).fault(arguments) == fault


def test_an_unknown_argument_is_named():
    fault = interface_of(MOVE).fault({"source": "a", "destination": "b", "force": True})
    assert "'force' was unexpected" in fault


def test_null_for_an_optional_parameter_is_taken_as_omitted():
    interface = interface_of(MOVE)
    assert interface.decode({"source": "a", "destination": "b", "tries": None}) == {"source": "a", "destination": "b"}


def test_null_is_kept_where_it_means_something():
    interface = interface_of(MOVE)
    given_ = {"source": None, "destination": "b", "owner": None, "unknown": None}
    assert interface.decode(given_) == given_


def test_values_without_a_name_are_bound_to_the_parameters():
    assert interface_of(MOVE).decode("Files.mv('a', 'b', tries=2)") == {"source": "a", "destination": "b", "tries": 2}


@pytest.mark.parametrize("text", ["cp('a', 'b')", "mv('a'), mv('b')", "mv(pwd())", '{"source": "a"', ""])
def test_a_text_that_is_no_call_of_the_tool_cannot_be_decoded(text):
    with pytest.raises(UnreadableCallError):
        interface_of(MOVE).decode(text)


def test_no_arguments_at_all_are_an_empty_object():
    assert interface_of(MOVE).decode(None) == {}


def test_the_message_about_a_huge_value_is_short():
    assert len(interface_of(MOVE).fault({"source": "a", "destination": ["x"] * 100_000})) < 400


def test_a_schema_that_is_none_is_the_environments_fault():
    with pytest.raises(InputError, match="tool 'f': its schema is no JSON Schema"):
        Interface(Tool("f", {"type": "object", "properties": {"a": {"type": "float"}}})).fault({"a": 1})


def test_a_reference_to_elsewhere_is_not_fetched():
    schema = {"type": "object", "properties": {"a": {"$ref": "http://localhost:9/schema.json"}}}
    with pytest.raises(InputError, match="refers to what is not there"):
        Interface(Tool("f", schema)).fault({"a": 1})


def test_a_reference_within_the_schema_is_followed():
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/word"}}, "$defs": {"word": {"type": "string"}}}
    interface = Interface(Tool("f", schema))
    assert interface.fault({"a": "x"}) is None
    assert interface.fault({"a": 1}) == "a: 1 is not of type 'string'"


def test_tools_of_one_name_keep_their_own_interfaces():
    loose, strict = Tool("f", {"type": "object"}), Tool("f", {"type": "object", "required": ["a"]})
    assert interface_of(loose).fault({}) is None
    assert interface_of(strict).fault({}) is not None


def test_a_small_call_is_checked_in_microseconds():
    interface = interface_of(MOVE)
    arguments = {"source": "a", "destination": "b", "tries": 2}
    best = min(_timed(lambda: interface.fault(arguments)) for _ in range(200))
    assert best < 50e-6


def _timed(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def test_an_accepted_call_is_ok():
    verdict = judge("f", Observation("done"), refused=False)
    assert (verdict.outcome, verdict.classes, verdict.message) == (Outcome.OK, (), None)


def test_a_refusal_is_classified_by_the_catalogue():
    verdict = judge("send_message", Observation("cellular is off", error=True), refused=True, catalogue=PHONE)
    assert (verdict.error_class, verdict.message) == (ErrorClass.PRECONDITION, "cellular is off")


def test_a_refusal_without_an_entry_is_unclassified():
    verdict = judge("f", Observation("the moon is in the wrong phase", error=True), refused=True, catalogue=PHONE)
    assert verdict.classes == (ErrorClass.UNCLASSIFIED,)


def test_every_class_that_applies_is_kept_and_the_first_names_it():
    verdict = judge(
        "send_message",
        Observation("cellular is off", error=True),
        refused=True,
        fault="'text' is a required property",
        lack=Lack("phone_number is empty", False),
        catalogue=PHONE,
    )
    assert verdict.classes == (ErrorClass.SCHEMA, ErrorClass.PRECONDITION, ErrorClass.INFORMATION)
    assert verdict.message == "'text' is a required property"


def test_an_unknown_refusal_of_a_call_that_breaks_its_schema_has_a_known_reason():
    assert judge("f", Observation("no", error=True), refused=True, fault="a: 1 is no string").classes == (
        ErrorClass.SCHEMA,
    )


def test_a_known_class_comes_before_none():
    verdict = judge("f", Observation("no", error=True), refused=True, lack=Lack("id is empty", False))
    assert verdict.classes == (ErrorClass.INFORMATION, ErrorClass.UNCLASSIFIED)


def test_an_accepted_call_that_changed_nothing_it_claims_to_change_is_inconsistent_with_the_state():
    assert judge("f", Observation("on"), refused=False, idle=True).error_class is ErrorClass.STATE_CONSISTENCY
    assert judge("f", Observation("no", error=True), refused=True, idle=True).classes == (ErrorClass.UNCLASSIFIED,)


def test_an_uncertain_lack_does_not_condemn_an_accepted_call():
    assert judge("f", Observation("done"), refused=False, lack=Lack("id is empty", False)).outcome is Outcome.OK
    assert judge("f", Observation("done"), refused=False, lack=Lack("id = '?'", True)).outcome is Outcome.INVALID


@pytest.mark.parametrize(
    ("fault", "lack", "is_answer"),
    [(None, None, True), (None, Lack("x", False), True), (None, Lack("x", True), False), ("y", None, False)],
)
def test_a_search_that_found_nothing_is_an_answer_unless_more_speaks_against_it(fault, lack, is_answer):
    answer = Observation("no contact was found", error=True)
    verdict = judge("search_contacts", answer, refused=True, fault=fault, lack=lack, catalogue=PHONE)
    assert verdict.lookup is is_answer


def test_a_refusal_in_words_is_known_by_the_catalogue():
    tau = catalogue_for("tau2-airline")
    assert is_refused("f", Observation("Error: user not found"), tau)
    assert not is_refused("f", Observation("Error: user not found"), None)
    assert not is_refused("f", Observation("fine"), tau)
