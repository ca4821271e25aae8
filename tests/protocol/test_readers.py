"""Opening, detection by content, and the parts that all readers share."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from survexec.errors import InputError
from survexec.protocol.readers import READERS, read_file
from survexec.protocol.readers.documents import Document, Shape, one_line
from survexec.protocol.readers.messages import CallLog, decode_arguments, text_of

TAU_ROW = {
    "task_id": 7,
    "trial": 0,
    "reward": 1.0,
    "info": {},
    "traj": [{"role": "user", "content": "hello"}],
}


@pytest.fixture
def write(tmp_path):
    def write(content, name="log"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def only_fault(path: Path, **options):
    reading = read_file(path, **options)
    assert reading.trajectories == []
    assert reading.frame is None
    (fault,) = reading.faults
    assert "\n" not in fault.reason
    return fault


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        ('[{"a": 1}]', Shape.ARRAY),
        ('\n [\n{"a": 1}\n]\n', Shape.ARRAY),
        ('{"a": 1}', Shape.OBJECT),
        ('{\n"a": 1\n}', Shape.OBJECT),
        ('{"a": 1}\n', Shape.OBJECT),
        ('{"a": 1}\n{"b": 2}\n', Shape.LINES),
        ('{"a": NaN}\n{"b": 2}\n', Shape.LINES),
        ("task_id,length,fed\n1,2,3\n", Shape.TEXT),
    ],
)
def test_a_document_shows_its_shape_by_content(write, content, shape):
    assert Document(write(content)).shape is shape


def test_a_folder_is_a_shape_too(tmp_path):
    assert Document(tmp_path).shape is Shape.FOLDER


def test_the_name_of_a_file_tells_nothing(write):
    reading = read_file(write(json.dumps([TAU_ROW]), "table.csv"))
    assert reading.format == "tau"
    assert reading.faults == []


def test_a_byte_order_mark_is_tolerated_in_json_and_in_tables(write):
    log = read_file(write(b"\xef\xbb\xbf" + json.dumps([TAU_ROW]).encode()))
    table = read_file(write(b"\xef\xbb\xbftask_id,length,fed\n1,2,3\n", "table"))
    assert len(log.trajectories) == 1
    assert table.frame["task_id"].tolist() == ["1"]


@pytest.mark.parametrize("content", ["", " \n\t\n"])
def test_an_empty_file_is_a_fault(write, content):
    fault = only_fault(write(content))
    assert "empty" in fault.reason
    assert fault.unit == "files"


def test_a_missing_file_is_a_fault_and_no_exception(tmp_path):
    assert "No such file" in only_fault(tmp_path / "nowhere.json").reason


@pytest.mark.parametrize("cut", [30, 60, 100])
def test_a_truncated_file_says_at_which_byte_it_ends(write, cut):
    text = json.dumps([TAU_ROW])[:cut]
    fault = only_fault(write(text))
    assert fault.where == f"byte {cut}"
    assert "cut off" in fault.reason


def test_broken_json_says_where_and_shows_what_stands_there(write):
    text = '[{"task_id": 1, "traj": ölmuseo}]'
    fault = only_fault(write(text))
    assert fault.where == f"byte {len(text.split('ö')[0])}"
    assert "ölmuseo" in fault.reason


def test_json_of_another_kind_names_its_keys_and_the_formats_that_are_read(write):
    fault = only_fault(write('{"version": 2, "samples": []}'))
    assert "version, samples" in fault.reason
    assert all(reader.expects in fault.reason for reader in READERS)


def test_keys_out_of_a_log_are_shortened_and_printable(write):
    fault = only_fault(write(json.dumps({"\x1b[31m" + "x" * 500: 1})))
    assert "\x1b" not in fault.reason
    assert "x" * 50 not in fault.reason


@pytest.mark.parametrize("content", ["[]", "[1, 2]", "{}"])
def test_json_without_rows_is_a_fault(write, content):
    assert "without keys" in only_fault(write(content)).reason


def test_a_pointer_of_git_lfs_says_how_to_get_the_file(write):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    assert "git lfs pull" in only_fault(write(pointer)).reason


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0", b"PK\x03\x04\0\0", b"\xff\xfe\xfa", b"[\0\0"])
def test_binary_data_is_a_fault_that_shows_how_it_begins(write, content):
    assert content[:2].hex(" ") in only_fault(write(content)).reason


def test_prose_is_no_table(write):
    assert "plain text" in only_fault(write("Traceback (most recent call last)\n  File x\n")).reason


def test_json_nested_without_end_is_a_fault(write):
    only_fault(write("[" * 200_000))
    only_fault(write('[{"task_id": 1, "traj": ' + "[" * 200_000))


def test_a_format_can_be_forced(write):
    path = write(json.dumps([{"odd": 1}, TAU_ROW]))
    assert read_file(path).format == ""
    reading = read_file(path, format="tau")
    assert [trajectory.task_id for trajectory in reading.trajectories] == ["7"]
    assert [fault.where for fault in reading.faults] == ["row 1"]


@pytest.mark.parametrize("format", [reader.name for reader in READERS])
def test_a_forced_format_that_does_not_fit_is_a_fault(write, format):
    assert "wanted is" in only_fault(write('{"a": 1}'), format=format).reason


def test_an_unknown_format_or_column_is_the_callers_mistake(write):
    path = write(json.dumps([TAU_ROW]))
    with pytest.raises(InputError, match="tau, tau2, bfcl, toolsandbox, table"):
        read_file(path, format="inspect")
    with pytest.raises(InputError, match="did you mean 'length'"):
        read_file(path, columns={"lenght": "T"})


def test_a_parquet_file_of_survexec_itself_is_left_to_rollouts(tmp_path):
    table = pa.table({"task_id": ["1"]}).replace_schema_metadata({b"survexec": b"1"})
    pq.write_table(table, tmp_path / "x")
    reading = read_file(tmp_path / "x")
    assert (reading.format, reading.frame, reading.faults) == ("survexec", None, [])


def test_a_damaged_parquet_file_is_a_fault(tmp_path):
    path = tmp_path / "x"
    pd.DataFrame({"task_id": ["1"]}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:40])
    assert "Parquet" in only_fault(path).reason


@pytest.mark.parametrize(
    ("written", "decoded"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ("{'a': 'x', 'b': [True, None]}", {"a": "x", "b": [True, None]}),
        ("{'a': \"it's\"}", {"a": "it's"}),
        ("{'a': 'say \"hi\"'}", {"a": 'say "hi"'}),
        ("user mia", "user mia"),
        ("[1, 2]", "[1, 2]"),
        ("{'a': open('/etc/passwd')}", "{'a': open('/etc/passwd')}"),
        ("{'a': 1j}", "{'a': 1j}"),
        ("{1, 2}", "{1, 2}"),
        ("", None),
        (None, None),
    ],
)
def test_arguments_are_decoded_where_they_can_be_and_else_kept_as_text(written, decoded):
    assert decode_arguments(written) == decoded


@pytest.mark.parametrize(
    "text",
    [
        "{'a': " + "-" * 90_000 + "1}",
        "{'a': 1" + "+1" * 40_000 + "}",
        "{" * 90_000,
        "{'a': " + "[" * 90_000,
        "{'a': '\\",
    ],
)
def test_hostile_arguments_are_kept_as_text(text):
    assert decode_arguments(text) == text


def test_long_text_is_not_taken_for_a_literal():
    text = "{'a': \"it's " + "x" * 100_000 + '"}'
    assert decode_arguments(text) == text


def test_content_may_be_text_parts_or_nothing():
    assert text_of(None) == ""
    assert text_of([{"type": "text", "text": "a"}, "b", {"type": "image"}]) == "a\nb\n"
    assert text_of({"error": "x"}) == '{"error": "x"}'


def test_text_of_a_log_becomes_one_printable_line():
    assert one_line("a\n\tb\u00a0 c\x07", 10) == "a b c?"
    assert len(one_line("x" * 10_000, 50)) == 50


def observations(log):
    return [call.observation for call in log.calls()]


def test_results_find_their_calls_by_id_in_any_order():
    log = CallLog()
    log.message()
    log.call("f", None, "a")
    log.call("g", None, "b")
    log.result("of b", None, "b")
    log.result("of a", None, "a")
    assert observations(log) == ["of a", "of b"]


def test_results_without_ids_go_by_order_within_the_message():
    log = CallLog()
    log.message()
    log.call("f", None)
    log.call("cut", None)
    log.result("of f")
    log.message()
    log.call("g", None)
    log.result("of g")
    log.result("of nothing")
    assert observations(log) == ["of f", None, "of g"]
    assert log.unmatched == 1


def test_results_of_a_repeated_id_go_to_its_calls_in_order():
    log = CallLog()
    log.message()
    log.call("f", None, "same")
    log.call("g", None, "same")
    log.result("first", None, "same")
    log.result("second", None, "same")
    log.result("third", None, "same")
    assert observations(log) == ["first", "second"]
    assert log.unmatched == 1


def test_a_result_with_a_foreign_id_does_not_answer_a_call_with_another():
    log = CallLog()
    log.message()
    log.call("f", None, "a")
    log.call("g", None)
    log.result("x", None, "foreign")
    assert observations(log) == [None, "x"]
