"""The table: its checks name row, value and what would be right; its rules, its Parquet file and its calls."""

import pandas as pd
import polars as pl
import pytest

from survexec.errors import InputError, RolloutsError
from survexec.protocol.readers import read_file
from survexec.rollouts import Rollouts


def table(**columns):
    return pd.DataFrame({"task_id": ["a", "b", "c"], "length": [3, 2, 0], "fed": [2, 3, 1], **columns})


def test_absent_columns_get_neutral_values():
    frame = Rollouts(table()).frame
    assert (frame["benchmark"] == "unknown").all()
    assert (frame["ending"] == "completed").all()
    assert (frame["trial"] == 0).all()
    assert frame["success"].isna().all()
    assert frame["error_class"].tolist() == ["unclassified", None, None]


def test_any_data_frame_is_taken():
    assert Rollouts(pl.from_pandas(table())).frame.equals(Rollouts(table()).frame)


def test_numbers_as_text_and_tasks_as_numbers_are_understood():
    given = pd.DataFrame({"task_id": [7.0, 8.0], "length": ["3", "2"], "fed": ["1", "3"], "success": ["True", "0"]})
    frame = Rollouts(given).frame
    assert frame["task_id"].tolist() == ["7", "8"]
    assert frame["fed"].tolist() == [1, 3]
    assert frame["success"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("column", "values", "fault"),
    [
        ("fed", [0, 3, 1], "row 1: fed = 0; with length = 3 a first-error depth is between 1 and 4"),
        ("fed", [2, 4, 1], "row 2: fed = 4; with length = 2 a first-error depth is between 1 and 3"),
        ("fed", [2, 3, None], "row 3: fed = nothing; it must be a whole number"),
        ("fed", [2, 2.5, 1], "row 2: fed = 2.5; it must be a whole number"),
        ("length", [3, -1, 0], "row 2: length = -1; a length is a number of calls, 0 or more"),
        ("success", [1, 0.5, 0], "row 2: success = 0.5; it must be 0 or 1 (graded scores need a success threshold)"),
        ("ending", ["completed", "done", None],
         "row 2: ending = 'done'; an ending is one of completed, truncated, crashed"),
        ("error_class", ["schema", "schema", None],
         "row 2: error_class = 'schema' but there is no error (fed = 3 > length = 2); it must be empty"),
        ("error_class", ["typo", None, None],
         "row 1: error_class = 'typo'; a class is one of schema, dependency, precondition, state-consistency, "
         "information, unclassified"),
        ("task_id", ["a", None, "c"], "row 2: task_id = nothing; a rollout needs the identity of its task"),
        ("task_id", ["a", "b", "a"],
         "row 3: benchmark = 'unknown', model = 'unknown', method = 'unknown', task_id = 'a', trial = 0 is already in "
         "row 1; number the repetitions of a task in the column trial"),
        ("tokens", [1, "many", 2], "row 2: tokens = 'many'; it must be a number"),
    ],
)  # fmt: skip
def test_a_fault_names_row_value_and_what_would_be_right(column, values, fault):
    with pytest.raises(RolloutsError) as error:
        Rollouts(table(**{column: values}))
    assert error.value.faults == [fault]


def test_all_faults_are_reported_at_once():
    with pytest.raises(RolloutsError, match="3 faults") as error:
        Rollouts(table(fed=[0, 9, 1], ending=["completed", "completed", "gone"]))
    assert [fault.split(":")[0] for fault in error.value.faults] == ["row 1", "row 2", "row 3"]


def test_missing_columns_are_named_beside_those_there_are():
    with pytest.raises(RolloutsError, match=r"no column 'length', 'fed'; the columns are: task_id"):
        Rollouts(pd.DataFrame({"task_id": [1]}))


def test_durations_and_events_are_ready_for_lifelines():
    data = Rollouts(table())
    assert data.durations.tolist() == [2, 2, 0]
    assert data.events.tolist() == [True, False, False]


def test_select_keeps_rows_and_their_calls(tau_like):
    part = tau_like.select(task_id="1")
    assert part.frame["task_id"].unique().tolist() == ["1"]
    assert part.calls["task_id"].unique().tolist() == ["1"]
    with pytest.raises(InputError, match="no column 'colour'"):
        tau_like.select(colour="red")


@pytest.fixture
def tau_like():
    """Two rollouts with their calls: a search that finds nothing, then a refusal; and a clean one."""
    frame = pd.DataFrame({"task_id": ["1", "2"], "length": [4, 2], "fed": [2, 3], "success": [1, 0],
                          "error_class": ["dependency", None], "invalid_calls": [2, 0]})  # fmt: skip
    key = {"benchmark": "unknown", "model": "unknown", "method": "unknown", "trial": 0}
    rows = [
        ("1", 1, "ok", None, False), ("1", 2, "invalid", "dependency", True),
        ("1", 3, "invalid", "precondition", False),
        ("1", None, "infrastructure", None, False), ("1", 4, "ok", None, False),
        ("2", 1, "ok", None, False), ("2", 2, "ok", None, False),
    ]  # fmt: skip
    calls = pd.DataFrame(
        [{**key, "task_id": t, "k": k, "tool": "f", "arguments": "{}", "outcome": o, "error_class": c, "message": None,
          "lookup": found} for t, k, o, c, found in rows]
    ).astype({"k": "Int64"})  # fmt: skip
    return Rollouts(frame, calls)


@pytest.mark.parametrize(
    ("rule", "fed", "error_class", "invalid"),
    [("strict", 2, "dependency", 2), ("lookup", 3, "precondition", 1), ("interface", 2, "dependency", 1)],
)
def test_stored_calls_can_be_judged_under_another_rule(tau_like, rule, fed, error_class, invalid):
    frame = tau_like.under(rule).frame
    assert frame.loc[0, ["fed", "error_class", "invalid_calls"]].tolist() == [fed, error_class, invalid]
    assert frame.loc[1, ["fed", "invalid_calls"]].tolist() == [3, 0]
    assert tau_like.under(rule).under("strict").frame.equals(tau_like.frame)


def test_depths_alone_cannot_be_judged_again():
    with pytest.raises(InputError, match="needs the calls"):
        Rollouts(table()).under("lookup")


def test_call_states_tell_first_errors_from_later_ones(tau_like):
    states = tau_like.call_states()
    assert states["state"].tolist() == ["ok", "first error", "later error", "ok after error", "ok", "ok"]
    assert Rollouts(table()).call_states().empty


def test_parquet_keeps_the_table_its_calls_its_ledger_and_its_rule(tau_like, tmp_path):
    path = tmp_path / "runs.parquet"
    lookup = tau_like.under("lookup")
    lookup.to_parquet(path)
    again = Rollouts.from_parquet(path)
    pd.testing.assert_frame_equal(again.frame, lookup.frame)
    pd.testing.assert_frame_equal(again.ledger, lookup.ledger)
    assert again.rule == "lookup"
    assert again.call_states().equals(lookup.call_states())
    assert again.under("strict").frame.equals(tau_like.frame)
    assert read_file(path).format == "survexec"


def test_parquet_of_another_origin_is_told_apart(tmp_path):
    table().to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="not written by survexec"):
        Rollouts.from_parquet(tmp_path / "other.parquet")


def test_it_shows_itself_in_jupyter_with_escaped_text():
    html = Rollouts(table(method="<b>bold</b>"))._repr_html_()
    assert "3 of 3 tasks" in html
    assert "<b>bold" not in html
