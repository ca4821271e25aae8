"""What the agent could know: stand-ins, empty values, values from nowhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survexec.protocol.information import TEXT_LIMIT, Knowledge, interface_words, lack_of, words_of


def knowing(*texts):
    knowledge = Knowledge()
    for text in texts:
        knowledge.add(text)
    return knowledge


@pytest.mark.parametrize(
    "value",
    [
        "<UNKNOWN>",
        "<unknown>",
        "<USER_ID>",
        "<user_id>",
        "<your phone number>",
        "{user_id}",
        "{{ user.id }}",
        "${ID}",
        "[insert name]",
        "[Your Name]",
        "YOUR_API_KEY",
        "unknown",
        "TBD",
        "not provided",
        "xxxx",
        "???",
    ],
)
def test_a_stand_in_is_a_lack_even_where_the_call_is_accepted(value):
    found = lack_of({"id": value}, (), Knowledge())
    assert found.certain
    assert value in found.what


@pytest.mark.parametrize(
    "value",
    ["", "x", "xx", "Ann", "<br>", "a < b > c", "[x]", "{}", "{1}", "your order is late", "unknown pleasures", "c-7"],
)
def test_an_ordinary_text_is_no_stand_in(value):
    assert lack_of({"id": value}, ("id",), Knowledge()) is None


def test_a_stand_in_is_found_inside_lists_and_objects():
    assert lack_of({"to": [{"id": "<UNKNOWN>"}]}, (), Knowledge()).certain


def test_what_the_user_said_is_no_stand_in():
    assert lack_of({"status": "unknown"}, (), knowing("Set the status to Unknown.")) is None


def test_what_the_interface_offers_is_no_stand_in():
    words = interface_words("set_status", {"properties": {"status": {"enum": ["known", "unknown"]}}})
    assert lack_of({"status": "unknown"}, (), Knowledge(), interface=words) is None


def test_an_accepted_call_may_hold_an_empty_text_or_one_from_nowhere():
    assert lack_of({"id": "", "to": "Zed"}, ("id", "to"), Knowledge()) is None


def test_a_refused_call_with_an_empty_required_text_lacked_it():
    found = lack_of({"id": "  "}, ("id",), Knowledge(), refused=True)
    assert (found.what, found.certain) == ("id is empty", False)


def test_only_required_parameters_need_a_source():
    assert lack_of({"id": "", "to": "Zed"}, (), Knowledge(), refused=True) is None


def test_where_the_task_holds_something_back_a_required_text_from_nowhere_is_a_lack_in_any_case():
    found = lack_of({"to": "Zed"}, ("to",), knowing("Write to him."), missing=True)
    assert (found.what, found.certain) == ("to = 'Zed' comes from nothing that was said", True)
    assert lack_of({"to": "Zed"}, ("to",), knowing("Write to zed!"), missing=True) is None


def test_where_the_task_holds_something_back_an_absent_required_value_is_a_lack():
    assert lack_of({}, ("to",), Knowledge(), missing=True).what == "to has not been given yet"
    assert lack_of({}, ("to",), Knowledge(), refused=True) is None


def test_numbers_and_truth_values_need_no_source():
    assert (
        lack_of({"n": 12446, "x": 2.5, "b": True, "z": None}, ("n", "x", "b", "z"), Knowledge(), refused=True) is None
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("reports", "the report of May"),
        ("report_final.pdf", "my Report"),
        ("2024-05-02", "on the 2nd of may: 2"),
        ("LAX", "to Los Angeles"),
        ("I would like to say many different things here", ""),
        ("--", ""),
        ("Ünal", "ask ünal"),
    ],
)
def test_one_word_in_common_is_source_enough(value, said):
    assert knowing(said).accounts_for(value)


def test_the_numbers_of_a_value_decide_where_it_has_any():
    assert not knowing("order 7").accounts_for("order 8")
    assert knowing("on 20 May").accounts_for("2024-05-20")


@pytest.mark.parametrize(("value", "said"), [("Zed", "ask Zoe"), ("u-9", "c-7 is Ann"), ("ABCDEF", ""), ("lax", "LA")])
def test_a_text_without_a_word_in_common_comes_from_nowhere(value, said):
    assert not knowing(said).accounts_for(value)


def test_later_texts_count_too():
    knowledge = knowing("hello")
    assert not knowledge.accounts_for("Zed")
    knowledge.add("this is Zed")
    assert knowledge.accounts_for("Zed")
    assert knowledge.says("is zed")


def test_a_text_is_searched_up_to_a_limit():
    assert not knowing("a " * TEXT_LIMIT + "Zed").accounts_for("Zed")


@given(st.lists(st.text(max_size=30), max_size=5), st.data())
def test_whatever_was_said_has_a_source(texts, data):
    knowledge = knowing(*texts)
    for text in texts:
        start = data.draw(st.integers(0, len(text)))
        assert knowledge.accounts_for(text[start : start + 8])


@given(st.text(max_size=60))
def test_words_do_not_depend_on_case(text):
    assert words_of(text) == words_of(text.casefold())
