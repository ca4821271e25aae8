"""The benchmarks run: a number in their table can be had again."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def benchmark_module(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))

    def load(name):
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return load


def test_the_bootstrap_benchmark_does_the_same_work_on_both_sides(benchmark_module, monkeypatch):
    bench = benchmark_module("bootstrap")
    monkeypatch.setattr(bench, "RESAMPLES", 200)
    tally = bench.count(bench.cohort(), depth=bench.DEPTHS)
    bench.engine(tally, slice(bench.AUC, bench.AUC + 1))
    bench.scipy_gather(tally, 50)


def test_the_coverage_benchmark_counts_what_bands_hold(benchmark_module):
    bench = benchmark_module("coverage_curves")
    setting = bench.SETTINGS["moderate errors"]
    tally = bench.simulate(np.random.default_rng(0), 40, 2, **setting)
    judged = np.ones(bench.DEPTH + 1, bool)
    own = {name: curve(tally.total) for name, curve in bench.KINDS.items()}
    # with the sample's own curve as the truth everything is held
    assert (bench.one_run(tally, own, judged, seed=1) == 1).all()
    far = {name: 1 - curve for name, curve in own.items()}
    assert bench.one_run(tally, far, judged, seed=1)[:, 1:].sum() == 0


def test_the_coverage_of_numbers_is_counted_by_quantity(benchmark_module, monkeypatch):
    bench = benchmark_module("coverage")
    monkeypatch.setattr(bench, "RESAMPLES", 200)
    setting = bench.SETTINGS["moderate errors"]
    monkeypatch.setattr(bench, "truth", lambda setting: np.full(len(bench.QUANTITIES), 1e9))
    counted = bench.some_runs(range(2), setting, 40, 2)
    assert counted.shape == (len(bench.QUANTITIES), 2)
    assert (counted[:, 0] == 0).all()
    assert (counted[:, 1] == 2).all()


def test_the_truth_of_the_coverage_benchmark_adds_up(benchmark_module, monkeypatch):
    bench = benchmark_module("coverage")
    monkeypatch.setattr(
        bench, "whole_population",
        lambda setting: bench.simulate(np.random.default_rng(0), 2000, 1, setting).total,
    )  # fmt: skip
    true = dict(zip(bench.QUANTITIES, bench.truth(bench.SETTINGS["few errors"]), strict=True))
    assert true["total, attribution"] == pytest.approx(true["success, difference"])
    parts = [true[f"{name}, attribution"] for name in ("ter", "clean_success", "rr")]
    assert sum(parts) == pytest.approx(true["total, attribution"])


def test_the_size_benchmark_rejects_what_differs(benchmark_module, monkeypatch):
    bench = benchmark_module("size")
    monkeypatch.setattr(bench, "RESAMPLES", 200)
    apart = bench.Setting((-1.0, -4.0, -4.0), success=(-2.0, 2.0, 2.0))
    counted = bench.some_runs(range(2), apart, 120, 1)
    rejected = dict(zip(bench.TESTS, counted[:, 0], strict=True))
    assert all(rejected[name] == 2 for name in bench.TESTS if not name.endswith(", rr"))


@pytest.fixture
def small_population(benchmark_module, monkeypatch):
    bench = benchmark_module("planning")
    monkeypatch.setattr(bench, "TASKS", 400)
    return bench


def test_the_population_of_the_planning_benchmark_is_its_own_beginning(small_population):
    one, four = (
        small_population.population(**small_population.SETTINGS["few errors"], trials=trials).frame for trials in (1, 4)
    )
    assert len(four) == 4 * len(one) == 4 * 2 * 400
    first = four[four["trial"] == 0].reset_index(drop=True)
    assert (one[["task_id", "method", "length", "fed", "success"]].to_numpy()
            == first[["task_id", "method", "length", "fed", "success"]].to_numpy()).all()  # fmt: skip
    # b errs more often
    erred = one["fed"] <= one["length"]
    assert erred[one["method"] == "b"].mean() > erred[one["method"] == "a"].mean() > 0


def test_a_row_of_the_planning_benchmark_has_the_power_planned_and_that_of_studies(small_population):
    design = ("moderate errors", "ter", 1, 40, "pilot")
    row = small_population.one_row(design, 20).split()
    power, own = small_population.planned(*design)
    planned, studies, error, gap = (float(cell) for cell in row[6:])
    assert planned == pytest.approx(100 * power, abs=0.05)
    assert studies == pytest.approx(100 * own.simulate(20, rng=2).power, abs=0.05)
    assert gap == pytest.approx(planned - studies, abs=0.11)
    assert 0 < error < 12


def test_a_row_of_the_planning_benchmark_says_where_shares_rest_on_few(small_population):
    row = small_population.one_row(("few errors", "rr", 1, 60, "from rates"), 5)
    assert row.startswith("few errors       rr")
    assert row.endswith(" few")
