"""Reference data and values from R, and a strategy for random small tables of rollouts."""

from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from survexec.rollouts import Rollouts

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
ENDINGS = {"clean": "completed", "truncated": "truncated"}


def load(name: str, strata: bool = True) -> Rollouts:
    """A reference data set as rollouts."""
    given = pd.read_csv(REFERENCE / f"{name}.csv")
    frame = given.rename(columns={"task": "task_id", "T": "length", "FED": "fed", "Y": "success"})
    frame = frame.assign(ending=given["end"].map(ENDINGS)).drop(columns=["end", "err_class"])
    return Rollouts(frame if strata else frame.drop(columns="stratum"))


class Reference:
    """Values of one long file: ``reference(dataset, analysis, group, item)``."""

    def __init__(self, name: str) -> None:
        table = pd.read_csv(REFERENCE / f"{name}.csv", dtype={"item": str, "group": str})
        self.table = table
        self.values = table.set_index(["dataset", "analysis", "group", "item"])["value"].to_dict()

    def __call__(self, *key: str) -> float:
        return self.values[key]


@st.composite
def rollouts(draw: st.DrawFn, methods: int = 2, trials: int = 2, truncated: bool = True) -> Rollouts:
    """A few tasks, each with up to some trials of each method; T from 0, errors anywhere, success sometimes unknown."""
    rows = []
    for task in range(draw(st.integers(1, 6))):
        for method in range(methods):
            for trial in range(draw(st.integers(0 if task or method else 1, trials))):
                length = draw(st.integers(0, 6))
                rows.append(
                    {
                        "task_id": f"t{task}", "method": f"m{method}", "trial": trial, "length": length,
                        "fed": draw(st.integers(1, length + 1)), "stratum": "odd" if task % 2 else "even",
                        "success": draw(st.sampled_from([0, 1, None])),
                        "ending": draw(st.sampled_from(["completed", "truncated"])) if truncated else "completed",
                    }
                )  # fmt: skip
    return Rollouts(pd.DataFrame(rows))


def resample_counts(name: str) -> np.ndarray:
    """R's resample counts, shape (1999, task)."""
    return np.loadtxt(REFERENCE / f"07_freq_{name}.csv.gz", delimiter=",", dtype=np.int64)


def r_replicates(name: str) -> np.ndarray:
    """R's replicates for those counts."""
    return pd.read_csv(REFERENCE / f"07_t_{name}.csv")["t"].to_numpy()
