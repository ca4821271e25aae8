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
    bench = benchmark_module("coverage")
    setting = bench.SETTINGS["moderate errors"]
    tally = bench.simulate(np.random.default_rng(0), 40, 2, **setting)
    judged = np.ones(bench.DEPTH + 1, bool)
    own = {name: curve(tally.total) for name, curve in bench.KINDS.items()}
    # with the sample's own curve as the truth everything is held
    assert (bench.one_run(tally, own, judged, seed=1) == 1).all()
    far = {name: 1 - curve for name, curve in own.items()}
    assert bench.one_run(tally, far, judged, seed=1)[:, 1:].sum() == 0
