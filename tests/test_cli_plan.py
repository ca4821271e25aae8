"""survexec plan: questions before agents are run."""

import csv
import io

from typer.testing import CliRunner

from survexec import datasets
from survexec.cli import app


def run(*words):
    return CliRunner().invoke(app, ["plan", *map(str, words)])


def answer(*words):
    result = run(*words, "--format", "csv")
    assert result.exit_code == 0, result.stderr
    return next(row for row in csv.DictReader(io.StringIO(result.stdout)) if row["point"] == "answer")


def test_tasks_needed_come_from_rates_alone():
    row = answer("--difference", 0.1, "--discordance", 0.25)
    assert (int(row["tasks"]), float(row["power"]) >= 0.8) == (190, True)


def test_the_difference_that_tasks_show_shrinks_with_more_of_them():
    few, many = (float(answer("--tasks", n, "--discordance", 0.25)["difference"]) for n in (50, 200))
    assert 0 < many < few


def test_a_pilot_gives_the_assumptions(tmp_path):
    path = tmp_path / "pilot.parquet"
    datasets.load_tau_retail_methods().select(method=["tool_calling", "assertions"]).to_parquet(path)
    row = answer(path, "--a", "tool_calling", "--b", "assertions", "--metric", "success", "--difference", 0.1)
    assert int(row["tasks"]) > 100


def test_an_impossible_assumption_says_what_is_possible():
    result = run("--difference", 0.4, "--discordance", 0.2)
    assert result.exit_code == 1
    assert "must lie between 0.4 and 1" in result.stderr
