"""Success against TER: equal success from clean execution or from repair.

Run: ``python paper_figures/success_against_ter.py -o out/ [--rollouts FILE ...]``.
Inputs: main, pec_at_k, claims.
"""

import sys

from survexec.paper.script import script

if __name__ == "__main__":
    sys.exit(script("success_against_ter"))
