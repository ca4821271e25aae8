"""What checking plans costs on tau3-bench.

Run: ``python paper_figures/cost.py -o out/ [--rollouts FILE ...]``.
Inputs: cost.
"""

import sys

from survexec.paper.script import script

if __name__ == "__main__":
    sys.exit(script("cost"))
