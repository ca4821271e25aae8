"""survexec compare: its tables and what goes together."""

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from survexec import datasets
from survexec.cli import app, options
from survexec.statistics.difference_intervals import INTERVALS
from survexec.statistics.multiplicity import METHODS


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "rollouts.parquet"
    datasets.load_tau_retail_methods().select(method=["tool_calling", "assertions"]).to_parquet(path)
    return str(path)


def run(*words):
    return CliRunner().invoke(app, ["compare", *words, "--resamples", "200"])


def rows(result):
    assert result.exit_code == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_the_choices_for_comparisons_are_those_of_the_analysis():
    assert [set(options.Adjustment), set(options.DifferenceInterval)] == [set(METHODS), set(INTERVALS)]


def test_every_test_can_be_listed(stored):
    found = rows(run(stored, "--tests", "mcnemar_exact,wilcoxon", "--metrics", "ter", "--show", "tests", "-f", "csv"))
    assert [row["role"] for row in found] == ["primary", "further"]


def test_ratios_stand_in_their_own_table(stored):
    found = rows(run(stored, "--metrics", "ter", "--show", "ratios", "-f", "csv"))
    assert [row["measure"] for row in found] == ["risk_ratio", "odds_ratio"]


def test_equivalence_needs_a_margin_and_a_margin_equivalence(stored):
    found = rows(run(stored, "--metrics", "ter", "--show", "equivalence", "--margin", "0.2", "-f", "csv"))
    assert found[0]["margin"] == "0.2"
    assert run(stored, "--show", "equivalence").exit_code == 2
    assert run(stored, "--margin", "0.2").exit_code == 2


def test_the_adjustment_is_named_in_the_table_and_in_json(stored):
    assert "adjusted by Romano-Wolf max-T over these 4 tests" in run(stored, "--adjust", "romano_wolf").stdout
    assert json.loads(run(stored, "--adjust", "bh", "-f", "json").stdout)["made"]["adjust"] == "bh"


def test_an_interval_can_be_chosen(stored):
    assert rows(run(stored, "--interval", "tango", "--metrics", "ter", "-f", "csv"))[0]["interval"] == "tango"


def test_an_unknown_test_is_the_fault_of_the_call(stored):
    result = run(stored, "--tests", "wald")
    assert result.exit_code == 1
    assert "test 'wald' is unknown; there are: mcnemar_midp" in result.stderr
