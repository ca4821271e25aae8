"""PEC over depth: one cohort's curve, the bounds of every cohort, and the stated points.

Run: ``python paper_figures/pec_curves.py -o out/ [--rollouts FILE ...]``.
Inputs: main, pec_at_k, claims.
"""

import sys

from survexec.paper.script import script

if __name__ == "__main__":
    sys.exit(script("pec_curves"))
