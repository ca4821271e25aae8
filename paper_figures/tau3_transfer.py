"""Transfer to tau3-bench: where checking the plan beforehand brings nothing.

Run: ``python paper_figures/tau3_transfer.py -o out/ [--rollouts FILE ...]``.
Inputs: tau3, claims.
"""

import sys

from survexec.paper.script import script

if __name__ == "__main__":
    sys.exit(script("tau3_transfer"))
