"""The main table: execution, recovery and success of every method.

Run: ``python paper_figures/main_table.py -o out/ [--rollouts FILE ...]``.
Inputs: main, pec_at_k, claims.
"""

import sys

from survexec.paper.script import script

if __name__ == "__main__":
    sys.exit(script("main_table"))
