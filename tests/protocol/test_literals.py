"""Calls written as Python: read by syntax, refused in everything that would have to be evaluated."""

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survexec.protocol.literals import (
    TEXT_LIMIT,
    ParsedCall,
    UnreadableCallError,
    bind,
    parse_calls,
    read_calls,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(lambda name: name not in ("if", "in", "is", "or"))


def parsed(text):
    [call] = parse_calls(text)
    return call


@given(st.lists(JSON, max_size=3), st.dictionaries(NAMES.map(lambda name: f"p_{name}"), JSON, max_size=3))
def test_what_python_writes_as_literals_is_read_back(positional, keywords):
    written = [repr(value) for value in positional] + [f"{name}={value!r}" for name, value in keywords.items()]
    assert parsed(f"tool({', '.join(written)})") == ParsedCall("tool", tuple(positional), keywords)


@given(st.text(max_size=60))
def test_any_text_is_either_read_or_refused(text):
    try:
        calls = parse_calls(text)
    except UnreadableCallError:
        return
    json.dumps([call.keywords for call in calls], allow_nan=False)


@pytest.mark.parametrize("text", ["f(a=1), g()", "[f(a=1), g()]", " [f(a=1),\n g(),] ", "(f(a=1), g())"])
def test_a_list_of_calls_is_read_with_and_without_brackets(text):
    assert [call.name for call in parse_calls(text)] == ["f", "g"]


def test_no_calls_are_an_empty_list():
    assert parse_calls("[]") == []


def test_a_dotted_name_keeps_its_last_part():
    assert parsed("a.FileSystem.mv('x')").name == "mv"


def test_names_inside_strings_stay_as_they_are():
    assert parsed("echo(content='ls(a=True); cd(\"..\")')").keywords == {"content": 'ls(a=True); cd("..")'}


def test_a_tuple_is_read_as_a_list():
    assert parsed("f(a=(1, (2, 3)))").keywords == {"a": [1, [2, 3]]}


def test_negative_numbers_are_literals():
    assert parsed("f(-1, -2.5, x=[-0.0])").positional == (-1, -2.5)


@pytest.mark.parametrize(
    "value",
    [
        "__import__('os').system('touch canary')",
        "open('canary', 'w')",
        "pwd()",
        "x",
        "true",
        "os.environ",
        "().__class__",
        "[1][0]",
        "[i for i in range(10**9)]",
        "{i: i for i in 'ab'}",
        "(i for i in 'ab')",
        "{1, 2}",
        "f'{x}'",
        "lambda: 1",
        "1 + 1",
        "2 ** 10 ** 10",
        "'a' * 10 ** 10",
        "not True",
        "-True",
        "--1",
        "+1",
        "~1",
        "1 if True else 2",
        "1j",
        "b'a'",
        "...",
        "*[1]",
        "[*[1]]",
        "{**{}}",
        "{1: 2}",
        "1e999",
        "-1e999",
        "'\\ud800'",
        "{'\\ud800': 1}",
        "0x" + "f" * 20_000,
        "(y := 1)",
    ],
)
@pytest.mark.parametrize("call", ["f({})", "f(a={})", "f(a=[{}])", "f(a={{'b': {}}})"])
def test_what_is_no_literal_is_refused_and_not_executed(call, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = call.format(value)
    with pytest.raises(UnreadableCallError):
        parse_calls(text)
    with contextlib.suppress(UnreadableCallError):  # some are no syntax at all in some places
        [kept] = read_calls(text)
        assert isinstance(kept.arguments, str)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["f(**{'a': 1})", "f(a=1, a=2)", "f(1)(2)", "f()[0]()", "(lambda: 1)()", "'f'()"])
def test_a_call_of_another_shape_is_refused(text):
    with pytest.raises(UnreadableCallError):
        parse_calls(text)


@pytest.mark.parametrize(
    "text",
    ["", "hello there", "f", "1", "[f(), 1]", "[f()]\n[g()]", "f() or g()", "f(", "import os", "f()\x00", "[[f()]]"],
)
def test_a_text_that_is_no_list_of_calls_is_refused(text):
    for read in (parse_calls, read_calls):
        with pytest.raises(UnreadableCallError):
            read(text)


@pytest.mark.parametrize(
    "text",
    [
        "f(" + "[" * 100_000,
        "f(" + "[" * 90_000 + ")",
        "f(" + "-" * 90_000 + "1)",
        "f(" + "not " * 20_000 + "1)",
        "f(" + "1+" * 40_000 + "1)",
        "f" + "()" * 40_000,
        "f" + ".a" * 40_000 + "()",
        "f(" + "lambda:" * 10_000 + "1)",
        "f(" + "9" * 90_000 + ")",
        "f('" + "a" * 10_000_000 + "')",
        "a" * 10_000_000,
        "\ud800()",
    ],
    ids=lambda text: text[:8].encode(errors="replace").decode(),
)
def test_a_bomb_is_refused_at_once_and_without_quoting_it(text):
    start = time.perf_counter()
    with pytest.raises(UnreadableCallError) as refusal:
        parse_calls(text)
    assert time.perf_counter() - start < 3
    assert len(str(refusal.value)) < 300


def test_the_longest_text_that_is_read_is_read():
    text = "f('" + "a" * (TEXT_LIMIT - 5) + "')"
    assert len(parsed(text).positional[0]) == TEXT_LIMIT - 5
    with pytest.raises(UnreadableCallError, match="100,001 characters"):
        parse_calls(text + " ")


def test_no_warning_is_given_about_the_text_of_a_log(recwarn):
    parse_calls(r"f(a='\d', b='\ ')")
    assert not recwarn.list


def test_one_unreadable_call_does_not_take_the_others_along():
    first, second, third = read_calls("[cd(folder='a'), rm(name=pwd()), X.__import__('os').system('x')]")
    assert (first.tool, first.arguments) == ("cd", {"folder": "a"})
    assert (second.tool, second.arguments) == ("rm", "rm(name=pwd())")
    assert (third.tool, third.arguments) == ("X.__import__('os').system", "X.__import__('os').system('x')")


def test_positional_values_are_kept_in_the_text_until_the_tool_is_known():
    [call] = read_calls("FileSystem.sort('a (1).txt')")
    assert (call.tool, call.arguments) == ("sort", "FileSystem.sort('a (1).txt')")
    assert bind(parsed(call.arguments), ("file_name",)) == {"file_name": "a (1).txt"}


def test_more_values_than_parameters_are_refused():
    with pytest.raises(UnreadableCallError, match="2 values without a name; the tool takes at most 1"):
        bind(ParsedCall("f", (1, 2), {}), ("a",))


def test_two_values_for_one_parameter_are_refused():
    with pytest.raises(UnreadableCallError, match="two values for 'a'"):
        bind(ParsedCall("f", (1,), {"a": 2}), ("a",))
