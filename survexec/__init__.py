"""Judge tool-using agents by how they got there: prefix executability, survival estimators, paired tests.

The public names below are loaded when first used, so that importing survexec costs next to nothing.

Examples
--------
>>> import survexec as sx
>>> rollouts = sx.datasets.load_tau_retail_methods()
>>> summary = sx.summarize(rollouts, by="method", resamples=200)
>>> summary.frame.columns.tolist()
['method', 'metric', 'estimate', 'lower', 'upper', 'denominator', 'interval']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Rollouts": "survexec.rollouts",
    "read": "survexec.reading",
    "summarize": "survexec.statistics.summary",
    "curves": "survexec.statistics.curves",
    "first_errors": "survexec.statistics.curves",
    "attribute": "survexec.statistics.attribution",
    "audit": "survexec.statistics.audit",
    "compare": "survexec.statistics.comparison",
    "curve_differences": "survexec.statistics.curve_differences",
    "clean_depths": "survexec.statistics.depths",
    "depth_differences": "survexec.statistics.depths",
    "hazard_model": "survexec.statistics.hazards",
    "heterogeneity": "survexec.statistics.heterogeneity",
    "pass_at": "survexec.statistics.pass_rates",
    "plan": "survexec.statistics.planning",
    "rank": "survexec.statistics.ranks",
    "reconstruct": "survexec.statistics.reconstruction",
    "report": "survexec.display.report",
    "sample_tasks": "survexec.protocol.sampling",
    "survival_tests": "survexec.statistics.survival_tests",
    "trial_variance": "survexec.statistics.trials",
}
_MODULES = ("datasets", "errors")
__all__ = [
    "Rollouts",
    "__version__",
    "attribute",
    "audit",
    "clean_depths",
    "compare",
    "curve_differences",
    "curves",
    "datasets",
    "depth_differences",
    "errors",
    "first_errors",
    "hazard_model",
    "heterogeneity",
    "pass_at",
    "plan",
    "rank",
    "read",
    "reconstruct",
    "report",
    "sample_tasks",
    "summarize",
    "survival_tests",
    "trial_variance",
]

if TYPE_CHECKING:
    from survexec import datasets, errors
    from survexec.display.report import report
    from survexec.protocol.sampling import sample_tasks
    from survexec.reading import read
    from survexec.rollouts import Rollouts
    from survexec.statistics.attribution import attribute
    from survexec.statistics.audit import audit
    from survexec.statistics.comparison import compare
    from survexec.statistics.curve_differences import curve_differences
    from survexec.statistics.curves import curves, first_errors
    from survexec.statistics.depths import clean_depths, depth_differences
    from survexec.statistics.hazards import hazard_model
    from survexec.statistics.heterogeneity import heterogeneity
    from survexec.statistics.pass_rates import pass_at
    from survexec.statistics.planning import plan
    from survexec.statistics.ranks import rank
    from survexec.statistics.reconstruction import reconstruct
    from survexec.statistics.summary import summarize
    from survexec.statistics.survival_tests import survival_tests
    from survexec.statistics.trials import trial_variance


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"survexec.{name}")
    else:
        raise AttributeError(f"module 'survexec' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
