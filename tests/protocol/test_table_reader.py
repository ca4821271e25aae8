"""Tables with one row a rollout."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from survexec.errors import InputError
from survexec.protocol.readers import read_file, read_table
from survexec.protocol.readers.tables import COLUMNS

TABLE = pd.DataFrame({"task_id": [1, 2], "length": [4, 6], "fed": [5, 2]})


@pytest.fixture
def csv(tmp_path):
    def csv(text, **options):
        path = tmp_path / "table.csv"
        path.write_text(text)
        return read_file(path, **options)

    return csv


@pytest.mark.parametrize(
    "make", [lambda t: t, pl.from_pandas, pa.Table.from_pandas, lambda t: pl.from_pandas(t).lazy()]
)
def test_any_frame_that_narwhals_knows_is_read(make):
    frame = read_table(make(TABLE)).frame
    assert list(frame.columns) == [*COLUMNS, "row"]
    assert frame["task_id"].tolist() == ["1", "2"]
    assert frame["fed"].tolist() == [5, 2]
    assert frame["row"].tolist() == [1, 2]


def test_absent_columns_get_their_defaults():
    frame = read_table(TABLE, source="mine").frame
    assert frame["ending"].tolist() == ["completed"] * 2
    assert frame["trial"].tolist() == [0, 0]
    assert frame["source"].tolist() == ["mine"] * 2
    assert frame[["benchmark", "model", "method", "success", "error_class", "tokens"]].isna().all(axis=None)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_csv_file_is_read_whatever_its_separator(csv, separator):
    reading = csv("task_id,length,fed,method\n007,3,4,None\nx-1,2,1,\n".replace(",", separator))
    assert reading.format == "table"
    assert reading.frame["task_id"].tolist() == ["007", "x-1"]
    assert reading.frame["length"].tolist() == [3, 2]
    assert reading.frame["method"].tolist() == ["None", None]


def test_a_parquet_file_is_read(tmp_path):
    path = tmp_path / "table"
    TABLE.assign(success=[True, None], cost_usd=[0.1, None]).to_parquet(path)
    frame = read_file(path).frame
    assert frame["success"].tolist() == [True, pd.NA]
    assert frame["cost_usd"].iloc[0] == 0.1


def test_columns_are_mapped_by_the_callers_names(csv):
    mapping = {"task_id": "task", "length": "T", "fed": "FED", "success": "Y"}
    frame = csv("task,T,FED,Y\na,3,4,1\nb,2,1,0\n", columns=mapping).frame
    assert frame["fed"].tolist() == [4, 1]
    assert frame["success"].tolist() == [True, False]


@pytest.mark.parametrize("written", ["True,False", "true,FALSE", "1,0", "1.0,0.0"])
def test_success_is_read_from_the_usual_ways_to_write_it(csv, written):
    yes, no = written.split(",")
    frame = csv(f"task_id,length,fed,success\na,1,1,{yes}\nb,1,1,{no}\nc,1,1,\n").frame
    assert frame["success"].tolist() == [True, False, pd.NA]


def test_values_that_cannot_be_read_are_left_as_they_are(csv):
    frame = csv("task_id,length,fed,success\na,three,4,maybe\nb,2,0,1\n").frame
    assert frame["length"].tolist() == ["three", 2]
    assert frame["fed"].tolist() == [4, 0]
    assert frame["success"].tolist() == ["maybe", True]


def test_an_identity_that_a_gap_made_a_float_is_the_number_again():
    frame = read_table(TABLE.assign(task_id=[3.0, None])).frame
    assert frame["task_id"].tolist() == ["3", None]


def test_numbers_keep_every_digit(csv):
    frame = csv("task_id,length,fed,cost_usd\na,1,1,0.1234567890123456\n").frame
    assert frame["cost_usd"].iloc[0] == 0.1234567890123456


def test_columns_that_are_not_used_are_named():
    assert read_table(TABLE.assign(notes="x", fee=1)).remarks == ["columns not used: notes, fee"]


def test_a_missing_column_is_named_with_what_there_is_and_what_might_be_meant(csv):
    reading = csv("task_id,Lenght,fed\na,1,1\n")
    assert reading.frame is None
    (fault,) = reading.faults
    assert "no column 'length'" in fault.reason
    assert "there are: task_id, Lenght, fed" in fault.reason
    assert 'columns={"length": "Lenght"}' in fault.reason
    assert "--column length=Lenght" in fault.reason


def test_a_mapped_column_that_is_not_there_is_a_fault_even_where_it_is_optional(csv):
    reading = csv("task_id,length,fed\na,1,1\n", columns={"success": "solved"})
    assert "no column 'solved'" in reading.faults[0].reason


def test_a_frame_in_memory_raises_what_a_file_sets_aside():
    with pytest.raises(InputError, match="no column 'fed'"):
        read_table(TABLE.drop(columns="fed"))
    with pytest.raises(InputError, match="list is no frame"):
        read_table([1, 2])


@pytest.mark.parametrize("rows", ['"a,1,1\n', "a,1,1,9,9\n", "a,1,1\nb,1,1,2,3\n"])
def test_a_csv_file_whose_rows_do_not_fit_its_header_is_a_fault(csv, rows):
    reading = csv("task_id,length,fed\n" + rows)
    assert reading.frame is None
    assert "CSV" in reading.faults[0].reason


def test_a_table_without_rows_is_a_fault(csv):
    assert "no rows" in csv("task_id,length,fed\n").faults[0].reason


def test_a_frame_with_a_column_twice_is_refused():
    with pytest.raises(InputError, match="fed"):
        read_table(pd.concat([TABLE, TABLE["fed"]], axis=1))
    with pytest.raises(InputError, match="fed"):
        read_table(pa.table([[1], [2], [3], [4]], names=["task_id", "length", "fed", "fed"]))


def test_the_frame_of_the_caller_is_left_alone():
    given = TABLE.copy()
    read_table(given)
    pd.testing.assert_frame_equal(given, TABLE)
