"""The command line: what it prints where, what it writes, and how it ends on good, bad and missing input."""

import io
import json
import os
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

import survexec as sx
from survexec.cli import app, options
from survexec.statistics.curves import BANDS, INTERVALS, KINDS

GOOD = "task_id,method,length,fed,success\na,x,3,1,1\nb,x,3,4,1\nc,x,2,2,0\na,y,3,4,0\nb,y,2,3,1\nc,y,5,6,1\n"
QUICK = ("--by", "method", "--resamples", "200")
EMPTY, CUT, OTHER = "", '[{"task_id": 1, "traj": [', '{"animal": "cat"}'


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a good table, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_help_teaches_each_command_with_two_examples():
    for name in ("score", "summarize", "curves", "compare", "report", "demo"):
        shown = run(name, "--help")
        assert shown.exit_code == 0
        assert shown.output.count(f"survexec {name}") >= 2


def test_help_loads_none_of_the_heavy_libraries():
    code = (
        "import survexec.cli, sys; print([m for m in ('numpy', 'pandas', 'matplotlib', 'scipy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_summarize_prints_a_markdown_table_and_nothing_else(place):
    done = run("summarize", "good.csv", *QUICK)
    assert done.exit_code == 0
    assert done.stdout.startswith("**Execution and success")
    assert done.stderr == ""


def test_csv_has_full_precision(place):
    done = run("summarize", "good.csv", *QUICK, "--format", "csv")
    frame = pd.read_csv(io.StringIO(done.stdout), float_precision="round_trip")
    expected = sx.summarize(sx.read("good.csv"), "method", resamples=200).frame
    pd.testing.assert_frame_equal(frame.fillna({"interval": ""}), expected, check_exact=True, check_dtype=False)


def test_json_has_rows_notes_and_how_they_were_made(place):
    about = json.loads(run("summarize", "good.csv", *QUICK, "--format", "json", "--seed", "3").stdout)
    assert about["kind"] == "summary"
    assert about["made"]["seed"] == 3
    assert any("undefined" in note for note in about["notes"])
    rr = [row for row in about["rows"] if row["metric"] == "rr" and row["method"] == "y"]
    assert rr[0]["estimate"] is None


def test_curves_and_compare_write_latex_into_a_file(place):
    assert run("curves", "good.csv", "--kind", "states", *QUICK, "-f", "tex", "-o", "c.tex").stdout == ""
    assert "\\toprule" in (place / "c.tex").read_text()
    done = run("compare", "good.csv", "--baseline", "x", "--metrics", "ter", "--resamples", "200", "-f", "csv")
    assert pd.read_csv(io.StringIO(done.stdout))[["metric", "a", "b"]].values.tolist() == [["ter", "y", "x"]]


@pytest.mark.parametrize("kind", list(options.Kind))
def test_every_kind_of_curve_has_a_table(place, kind):
    done = run("curves", "good.csv", "--kind", kind, *QUICK)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("**")


def test_curves_take_class_interval_and_band(place):
    (place / "classes.csv").write_text("task_id,length,fed,error_class\na,3,1,schema\nb,3,4,\nc,2,2,dependency\n")
    done = run("curves", "classes.csv", "--kind", "cif", "--by-class", *QUICK, "-f", "csv")
    assert pd.read_csv(io.StringIO(done.stdout))["cause"].unique().tolist() == ["schema", "dependency", "finish"]
    options = ("--kind", "km", "--interval", "plain", "--band", "sup_t")
    made = json.loads(run("curves", "good.csv", *options, *QUICK, "-f", "json").stdout)["made"]
    assert (made["interval"], made["band"]) == ("plain", "sup_t")


def test_the_choices_for_curves_are_those_of_the_analysis():
    assert [set(options.Kind), set(options.Interval), set(options.Band)] == [set(KINDS), set(INTERVALS), set(BANDS)]


def test_score_writes_a_table_that_the_other_commands_read(place):
    done = run("score", "good.csv", "--set", "benchmark=shop", "-o", "runs.parquet")
    assert done.stdout == "6 rollouts of 1 file written to runs.parquet; 0 set aside\n"
    assert run("summarize", "runs.parquet", *QUICK).stdout == run("summarize", "good.csv", *QUICK).stdout
    assert sx.Rollouts.from_parquet("runs.parquet").frame["benchmark"].unique().tolist() == ["shop"]


def test_columns_of_other_names_and_of_the_path_are_taken(place):
    (place / "one").mkdir()
    (place / "one" / "m1.csv").write_text("task,T,FED,Y\na,3,1,0.5\n")
    options = [f"--column={pair}" for pair in ("task_id=task", "length=T", "fed=FED", "success=Y")]
    done = run("score", "one/*.csv", *options, "--from-path", "{model}/{method}.csv", "--success-threshold", "0.5")
    assert done.exit_code == 0, done.output
    row = sx.Rollouts.from_parquet("rollouts.parquet").frame.iloc[0]
    assert (row["model"], row["method"], bool(row["success"])) == ("one", "m1", True)


def test_crashed_rollouts_can_count_as_failures(place):
    (place / "crash.csv").write_text("task_id,length,fed,ending\na,3,4,completed\nb,1,2,crashed\n")
    assert run("score", "crash.csv").stdout.startswith("1 rollout of 1 file written to rollouts.parquet; 1 set aside")
    assert run("score", "crash.csv", "--crashed", "fail").stdout.startswith("2 rollouts")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("empty.json", EMPTY, "empty"), ("cut.json", CUT, "cut off"), ("other.json", OTHER, "none of the formats")],
)
def test_a_file_that_cannot_be_read_is_named_and_the_good_one_still_read(place, name, content, words):
    (place / name).write_text(content)
    alone = run("summarize", name, *QUICK)
    assert alone.exit_code == 1
    assert alone.stdout == ""
    assert alone.stderr.startswith("survexec: ")
    assert name in alone.stderr
    assert words in alone.stderr
    both = run("summarize", "good.csv", name, *QUICK, "-f", "csv")
    assert both.exit_code == 1
    assert len(pd.read_csv(io.StringIO(both.stdout))) == 24
    assert both.stderr.count("\n") == 1
    assert name in both.stderr


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("d,x,3,0,1", "row 7: fed = 0; with length = 3 a first-error depth is between 1 and 4"),
        ("d,x,3,5,1", "row 7: fed = 5; with length = 3 a first-error depth is between 1 and 4"),
        ("a,x,3,1,1", "row 7"),
    ],
)  # fmt: skip
def test_a_faulty_row_is_told_on_one_line_and_the_rest_is_used(place, row, words):
    (place / "bad.csv").write_text(GOOD + row + "\n")
    done = run("summarize", "bad.csv", *QUICK, "-f", "csv")
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("survexec: bad.csv: ")
    assert words in done.stderr
    assert done.stdout == run("summarize", "good.csv", *QUICK, "-f", "csv").stdout


def test_methods_without_a_common_task_cannot_be_compared(place):
    (place / "apart.csv").write_text("task_id,method,length,fed\na,x,3,1\nb,y,3,1\n")
    done = run("compare", "apart.csv")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no task in common" in done.stderr


def test_a_path_that_matches_nothing_is_named(place):
    done = run("report", "nowhere/*.json", "-o", "out")
    assert done.exit_code == 1
    assert done.stderr == "survexec: nowhere/*.json: no file or folder matches\n"
    assert not (place / "out").exists()


def test_what_cannot_be_written_is_told_without_a_traceback(place):
    done = run("summarize", "good.csv", *QUICK, "-o", "no/such/folder.md")
    assert done.exit_code == 1
    assert done.stderr.startswith("survexec: ")
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("summarize",),
        ("summarize", "good.csv", "--rule", "kind"),
        ("score", "good.csv", "--set", "x"),
        ("report", "good.csv"),
    ],
)
def test_wrong_usage_is_exit_code_2(place, arguments):
    assert run(*arguments).exit_code == 2


def test_a_report_is_written_into_its_folder_alone(place):
    done = run("report", "good.csv", "--resamples", "200", "-o", "out")
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == os.path.join("out", "report.html")
    assert {entry.name for entry in place.iterdir()} == {"good.csv", "out"}


@pytest.mark.slow
def test_the_demo_ends_by_naming_its_report(place):
    done = run("demo", "-o", "here")
    assert done.exit_code == 0, done.output
    assert "| tool_calling | 0.77 [" in done.stdout
    assert done.stdout.splitlines()[-1] == f"The report is {os.path.join('here', 'report.html')}"
    assert {entry.name for entry in place.iterdir()} == {"good.csv", "here"}


def test_the_module_runs_as_a_command_without_python_noise(place):
    (place / "empty.json").write_text("")
    command = [sys.executable, "-m", "survexec", "summarize", "good.csv", "empty.json", *QUICK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("**Execution and success")
    assert done.stderr.startswith("survexec: empty.json")
    assert "Warning" not in done.stderr


@pytest.mark.slow
def test_real_logs_give_a_report_in_one_command(place, shared):
    logs = shared / "data" / "tau" / "retail_four_methods" / "*.json"
    done = run("report", logs, "--from-path", "{method}.json", "--resamples", "500", "-o", "out")
    assert done.exit_code == 0, done.output
    summary = pd.read_csv(place / "out" / "tables" / "summary.csv")
    ter = summary[summary["metric"] == "ter"].set_index("method")["estimate"]
    assert ter["tool_calling"] == 0.77
    assert ter["assertions"] == pytest.approx(49 / 66)
