"""survexec plan: questions before agents are run."""

import csv
import io

import pytest
from typer.testing import CliRunner

import survexec.paper
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


def test_the_rate_of_a_stands_for_the_difference():
    shares = ("--metric", "rr", "--rate", 0.3, "--eligible", 0.4)
    one, other = (answer(*shares, *words, "--tasks", 200) for words in (("--rate-a", 0.55), ("--difference", 0.25)))
    assert float(one["power"]) == pytest.approx(float(other["power"]), abs=1e-9)
    assert float(one["difference"]) == pytest.approx(0.25)
    # worse than b
    assert float(answer("--rate", 0.6, "--rate-a", 0.5, "--discordance", 0.3)["difference"]) == pytest.approx(-0.1)


def test_eligible_shares_may_differ_between_the_sides():
    shares = ("--metric", "rr", "--rate", 0.3, "--rate-a", 0.55, "--tasks", 200)
    one, both, apart = (float(answer(*shares, "--eligible", e)["power"]) for e in ("0.4", "0.4,0.4", "0.4,0.2"))
    assert one == both > apart
    made = survexec.plan(metric="rr", rate=0.3, difference=0.25, tasks=200, eligible=(0.4, 0.2))
    assert apart == pytest.approx(made.frame["power"].iloc[0])


@pytest.mark.parametrize("text", ["many", "0.1,0.2,0.3", "0.1,"])
def test_eligible_shares_that_are_none_are_refused_with_what_would_be_right(text):
    result = run("--metric", "rr", "--rate", 0.3, "--difference", 0.2, "--eligible", text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "such as 0.2,0.3" in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("others", [(), ("--difference", 0.1), ("--rate", 0.3, "--difference", 0.1)])
def test_the_rate_of_a_needs_that_of_b_and_excludes_a_difference(others):
    result = run("--rate-a", 0.5, "--discordance", 0.3, *others)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--rate-a" in result.stderr


def test_a_budget_is_spent_on_the_tasks_there_are_and_pays_for_them():
    means = ("--metric", "auc_pec", "--sd", 0.4, "--noise", 0.6, "--budget", 600)
    assert (answer(*means)["tasks"], answer(*means)["trials"]) == ("600", "1")
    few = answer(*means, "--max-tasks", 100)
    assert (few["tasks"], few["trials"]) == ("100", "6")
    dear = answer(*means, "--task-cost", 6)
    # trials near sqrt(6 x 0.6 / 0.4) = 3
    assert (dear["tasks"], dear["trials"]) == ("66", "3")


def test_a_budgets_options_without_one_are_refused():
    result = run("--difference", 0.1, "--discordance", 0.3, "--max-tasks", 100)
    assert result.exit_code == 1
    assert "give the budget too" in result.stderr


@pytest.fixture
def faulty(tmp_path):
    """A table of two methods whose last row has a first error before the first call."""
    rows = [f"{task},{method},4,{fed},1" for task in range(9) for method, fed in (("x", 5), ("y", 2 + task % 4))]
    path = tmp_path / "faulty.csv"
    path.write_text("\n".join(["task_id,method,length,fed,success", *rows, "late,x,3,0,1"]))
    return path


def test_a_fault_of_the_pilot_is_told_and_the_rest_is_used(faulty):
    result = run(faulty, "--difference", 0.2, "--discordance", 0.5, "--format", "csv")
    assert result.exit_code == 1
    assert result.stdout.startswith("metric,point,tasks")
    assert result.stderr.count("\n") == 1
    assert "fed = 0" in result.stderr


def test_a_fault_in_the_rollouts_of_the_paper_is_told_and_the_rest_is_used(faulty, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(survexec.paper, "paper", lambda folder, rollouts: seen.append(len(rollouts)))
    result = CliRunner().invoke(app, ["paper", "--rollouts", str(faulty), "-o", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert seen == [18]
    assert "fed = 0" in result.stderr
    assert "Tables and figures are in" in result.stdout
