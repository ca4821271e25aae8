"""Where the success of Llama-4 on BFCL comes from: clean rollouts, or repaired ones.

Run: ``python paper_figures/decomposition.py -o out/ [--rollouts FILE ...]``.
Inputs: main, pec_at_k, claims.
"""

import sys

from survexec.paper.script import script

if __name__ == "__main__":
    sys.exit(script("decomposition"))
