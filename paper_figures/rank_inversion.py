"""Who is first depends on the metric.

Run: ``python paper_figures/rank_inversion.py -o out/ [--rollouts FILE ...]``.
Inputs: main, pec_at_k, claims.
"""

import sys

from survexec.paper.script import script

if __name__ == "__main__":
    sys.exit(script("rank_inversion"))
