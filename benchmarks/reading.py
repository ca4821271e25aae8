"""How fast are logs read? Reading files to trajectories against msgspec decoding the same bytes to plain objects.

Run: python benchmarks/reading.py LOG [LOG ...]
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import msgspec

from survexec.protocol.readers import read_file

ROUNDS = 15


def main(paths: list[Path]) -> None:
    """Time both in turn and print the share of msgspec's speed that is left."""
    print(f"{'file':50s} {'MB':>6s} {'read, ms':>9s} {'decode, ms':>11s} {'share of speed':>15s}")
    totals = [0.0, 0.0, 0.0]
    for path in paths:
        data = path.read_bytes()
        taken: dict[str, list[float]] = {"read": [], "decode": []}
        for turn in range(ROUNDS + 1):
            for name, work in (("read", lambda: read_file(path)), ("decode", lambda: msgspec.json.decode(data))):  # noqa: B023
                start = time.perf_counter()
                work()
                if turn:
                    taken[name].append(1000 * (time.perf_counter() - start))
        read, decode = (statistics.median(taken[name]) for name in ("read", "decode"))
        totals = [totals[0] + len(data) / 1e6, totals[1] + read, totals[2] + decode]
        print(f"{path.name[-50:]:50s} {len(data) / 1e6:6.1f} {read:9.1f} {decode:11.1f} {decode / read:15.2f}")
    print(f"{'all':50s} {totals[0]:6.1f} {totals[1]:9.1f} {totals[2]:11.1f} {totals[2] / totals[1]:15.2f}")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
