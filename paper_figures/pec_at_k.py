"""The table of PEC at depths 1 to 4; what is not stated shows the bounds that the aggregates imply.

Run: ``python paper_figures/pec_at_k.py -o out/ [--rollouts FILE ...]``.
Inputs: main, pec_at_k, claims.
"""

import sys

from survexec.paper.script import script

if __name__ == "__main__":
    sys.exit(script("pec_at_k"))
