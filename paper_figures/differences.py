"""What Dual-Loop changes against Plan-Conditioned ReAct.

Run: ``python paper_figures/differences.py -o out/ [--rollouts FILE ...]``.
Inputs: main, pec_at_k, claims.
"""

import sys

from survexec.paper.script import script

if __name__ == "__main__":
    sys.exit(script("differences"))
