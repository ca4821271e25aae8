"""Small tidy frames as the statistics wing gives them, from simulated rollouts of four methods."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

METHODS = {
    "tool_calling": 0.37,
    "tool_calling_preconditions": 0.60,
    "assertions": 0.05,
    "assertions_no_postconditions": 0.88,
}
CLASSES = ("schema", "dependency", "precondition", "state-consistency", "information", "unclassified")
METRICS = [
    "ter", "mean_fed", "auc_pec", "rr", "success", "clean_success", "success_after_error", "mean_length",
]  # fmt: skip
CELL = ["benchmark", "model", "method"]


def rollouts(ters: dict[str, float], models: tuple[str, ...] = ("gpt-4o",), size: int = 100) -> pd.DataFrame:
    """One row a rollout."""
    rng = np.random.default_rng(1)
    parts = []
    for model in models:
        for method, ter in ters.items():
            length = rng.integers(3, 16, size)
            clean = rng.random(size) < ter
            fed = np.where(clean, length + 1, np.minimum(rng.geometric(0.3, size), length))
            ending = np.where(rng.random(size) < 0.08, "truncated", "completed")
            success = rng.random(size) < np.where(clean, 0.8, 0.45)
            error = np.where(clean, None, rng.choice(CLASSES, size, p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05]))
            parts.append(pd.DataFrame({
                "benchmark": "tau-retail", "model": model, "method": method,
                "task_id": np.arange(size).astype(str), "trial": 0, "length": length, "fed": fed,
                "ending": ending, "success": pd.array(success, "boolean"), "error_class": error,
            }))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def _interval(share: np.ndarray, count: np.ndarray, z: float) -> tuple[np.ndarray, np.ndarray]:
    half = z * np.sqrt((share * (1 - share) + 0.25 / count) / count)
    return np.clip(share - half, 0, 1), np.clip(share + half, 0, 1)


def _curve(part: pd.DataFrame, depths: np.ndarray, eligible: bool) -> pd.DataFrame:
    fed, length = part["fed"].to_numpy()[:, None], part["length"].to_numpy()[:, None]
    reached = (length >= depths).sum(0)
    count = np.maximum(reached if eligible else len(part), 1)
    share = ((fed > depths) & (length >= depths)).sum(0) / count
    columns = {"k": depths, "estimate": share}
    for (low, high), z in {("lower", "upper"): 1.96, ("band_lower", "band_upper"): 2.9}.items():
        columns[low], columns[high] = _interval(share, count, z)
    return pd.DataFrame(columns | {"at_risk": ((length >= depths) & (fed >= depths)).sum(0)})


def _states(part: pd.DataFrame, depths: np.ndarray) -> pd.DataFrame:
    fed, length = part["fed"].to_numpy()[:, None], part["length"].to_numpy()[:, None]
    errored = fed <= np.minimum(depths, length)
    ended = ~errored & (length < depths)
    shares = {"errored": errored, "finished": ended, "running": ~errored & ~ended}
    at_risk = ((length >= depths) & (fed >= depths)).sum(0)
    return pd.concat(
        pd.DataFrame({"state": state, "k": depths, "estimate": held.mean(0), "at_risk": at_risk})
        for state, held in shares.items()
    )


def _summary(part: pd.DataFrame) -> pd.DataFrame:
    clean, success = part["fed"] > part["length"], part["success"].astype(float)
    values = {"ter": clean.mean(), "success": success.mean(), "rr": success[~clean].mean()}
    frame = pd.DataFrame({"metric": list(values), "estimate": list(values.values())})
    return frame.assign(lower=(frame["estimate"] - 0.08).clip(0), upper=(frame["estimate"] + 0.08).clip(upper=1))


def _decomposition(part: pd.DataFrame) -> pd.DataFrame:
    clean, success = part["fed"] > part["length"], part["success"].astype(bool)
    return pd.DataFrame(
        {"part": ["clean", "recovered"], "estimate": [(clean & success).mean(), (~clean & success).mean()]}
    )


def _first_errors(part: pd.DataFrame, depths: np.ndarray) -> pd.DataFrame:
    rows = []
    for k in depths[depths > 0]:
        at_risk = int(((part["length"] >= k) & (part["fed"] >= k)).sum())
        first = part[(part["fed"] == k) & (part["fed"] <= part["length"])]
        rows += [(int(k), name, int((first["error_class"] == name).sum()), at_risk) for name in CLASSES]
    return pd.DataFrame(rows, columns=["k", "error_class", "events", "at_risk"])


def call_states(table: pd.DataFrame) -> pd.DataFrame:
    """One row a call, as `Rollouts.call_states()` gives them."""
    calls = table.loc[table.index.repeat(table["length"])].reset_index(drop=True)
    calls["k"] = calls.groupby([*CELL, "task_id"]).cumcount() + 1
    later = np.where((calls["k"] * 7 + calls["length"]) % 4 == 0, "later error", "ok after error")
    calls["state"] = np.select([calls["k"] < calls["fed"], calls["k"] == calls["fed"]], ["ok", "first error"], later)
    return calls


def comparison(methods: list[str], metrics: list[str], groups: tuple[str, ...] = ("gpt-4o",)) -> pd.DataFrame:
    """Every pair of methods in every metric."""
    rng = np.random.default_rng(2)
    rows = []
    for metric in metrics:
        for group in groups:
            for place, a in enumerate(methods):
                for b in methods[:place]:
                    scale = 3.0 if metric in ("mean_fed", "mean_length") else 0.3
                    middle, half = rng.uniform(-scale, scale), scale * rng.uniform(0.2, 0.5)
                    tested = metric in ("ter", "success", "auc_pec", "mean_fed")
                    p = float(np.exp(-8 * rng.random())) if tested else np.nan
                    rows.append(("tau-retail", group, metric, a, b, middle, middle - half, middle + half, p, 100))
    columns = [
        "benchmark",
        "model",
        "metric",
        "a",
        "b",
        "difference",
        "lower",
        "upper",
        "p_adjusted",
        "n_pairs",
    ]
    return pd.DataFrame(rows, columns=columns)


def results(table: pd.DataFrame, last: int | None = None) -> SimpleNamespace:
    """Every frame the figures draw, computed plainly."""
    depths = np.arange((int(table["length"].max()) if last is None else last) + 1)

    def per_cell(function, *extra):
        parts = [
            function(part, *extra).assign(**dict(zip(CELL, key, strict=True)))
            for key, part in table.groupby(CELL, sort=False, dropna=False)
        ]
        frame = pd.concat(parts, ignore_index=True)
        return frame[CELL + [column for column in frame if column not in CELL]]

    return SimpleNamespace(
        pec=per_cell(_curve, depths, False),
        pec_elig=per_cell(_curve, depths, True),
        states=per_cell(_states, depths),
        summary=per_cell(_summary),
        decomposition=per_cell(_decomposition),
        first_errors=per_cell(_first_errors, depths),
        calls=call_states(table),
        comparison=comparison(list(dict.fromkeys(table["method"])), METRICS),
    )


@pytest.fixture(scope="session")
def build():
    """A function that makes the frames of any methods and models; methods map to their TER."""

    def built(
        ters: dict[str, float] = METHODS,
        models: tuple[str, ...] = ("gpt-4o",),
        size: int = 100,
        last: int | None = None,
    ) -> SimpleNamespace:
        return results(rollouts(ters, models, size), last)

    return built


@pytest.fixture(scope="session")
def made(build) -> SimpleNamespace:
    """Frames of four methods on 100 tasks."""
    return build()
