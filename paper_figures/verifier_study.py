"""The verifier study: another verifier changes cost, not execution.

Run: ``python paper_figures/verifier_study.py -o out/ [--rollouts FILE ...]``.
Inputs: verifier.
"""

import sys

from survexec.paper.script import script

if __name__ == "__main__":
    sys.exit(script("verifier_study"))
