"""What do replicates of all curves cost beside those of the scalars? Same weights, 12 cells, 20 depths, B = 10,000.

The scalars are the 8 metrics, the curves PEC, PEC_elig, Kaplan-Meier, Nelson-Aalen, hazard and the cumulative incidence
of erring and of finishing: 96 numbers against 1,764.

Run: python benchmarks/curves.py
"""

from __future__ import annotations

import statistics
import time

from bootstrap import METHODS, MODELS, RESAMPLES, cohort

from survexec.statistics.estimands import CURVES, METRICS, incidence
from survexec.statistics.resampling import replicate
from survexec.statistics.tally import count

DEPTHS, ROUNDS = 20, 7


def main() -> None:
    """Time both in turn and print the ratio."""
    tally = count(cohort(), depth=DEPTHS)
    works = {
        "scalars": list(METRICS.values()),
        "curves": [*CURVES.values(), incidence("errors", "error"), incidence("finished", "finish")],
    }
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(ROUNDS + 1):
        for name, estimators in works.items():
            start = time.perf_counter()
            replicate(tally, estimators, RESAMPLES, seed=1)
            if turn:
                seconds[name].append(time.perf_counter() - start)
    print(f"{MODELS * METHODS} cells, {DEPTHS} depths, B = {RESAMPLES:,}")
    for name, taken in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(taken, seconds["scalars"], strict=True))
        print(f"{name:8s} {statistics.median(taken):7.3f} s   {ratio:5.1f} of the scalars")


if __name__ == "__main__":
    main()
