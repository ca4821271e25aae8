"""Draw the tables of survexec/datasets from the public logs they rest on.

Facts alone are kept: of each rollout its task, trial, length, first-error depth, class and success, of each call its
tool, outcome and class. Arguments, messages and conversations stay behind.

Run: python tools/make_datasets.py FOLDER_WITH_TAU_LOGS
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import survexec as sx
from survexec.rollouts import Rollouts

HERE = Path(__file__).resolve().parents[1] / "survexec" / "datasets"


def bare(rollouts: Rollouts) -> Rollouts:
    """Without what people wrote, and without addresses in the reasons of the ledger."""
    calls = rollouts.calls.assign(arguments=None, message=None)
    ledger = rollouts.ledger.assign(reason=[re.sub(r" ?\(https?://[^)]*\)", "", r) for r in rollouts.ledger["reason"]])
    return Rollouts(rollouts.frame, calls, ledger, rollouts.rule)


def main(folder: str) -> None:
    """Write both tables."""
    # relative names, so that the ledger says where in the source a row came from and nothing of this machine
    os.chdir(folder)
    methods = ("tool_calling", "tool_calling_preconditions", "assertions", "assertions_no_postconditions")
    files = [f"retail_four_methods/{method}.json" for method in methods]
    retail = sx.read(files, from_path="{method}.json")
    bare(retail).to_parquet(HERE / "tau_retail_methods.parquet")
    airline = sx.read("gpt-4o_airline.json", set={"model": "gpt-4o"})
    bare(airline).to_parquet(HERE / "tau_airline_gpt4o.parquet")
    for rollouts in (retail, airline):
        print(rollouts)


if __name__ == "__main__":
    main(sys.argv[1])
