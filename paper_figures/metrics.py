"""Table 1: what each metric can see.

Run: ``python paper_figures/metrics.py -o out/ [--rollouts FILE ...]``.
Inputs: none, the definitions.
"""

import sys

from survexec.paper.script import script

if __name__ == "__main__":
    sys.exit(script("metrics"))
