"""Environments: one module a benchmark, each with a class that is an `Environment`; loaded by name."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Final

from survexec.errors import InputError
from survexec.protocol.environments.base import Environment, Observation, Task, Tool

__all__ = ["ENVIRONMENTS", "Environment", "Observation", "Task", "Tool", "load"]

ENVIRONMENTS: Final = {
    "bfcl": "survexec.protocol.environments.bfcl:BFCL",
    "tau2": "survexec.protocol.environments.tau2:Tau2",
    "toolsandbox": "survexec.protocol.environments.toolsandbox:ToolSandbox",
    "mcp": "survexec.protocol.environments.mcp:MCP",
    "phone": "survexec.protocol.environments.phone:Phone",
}


def load(name: str, **options: Any) -> Environment:
    """Make an environment.

    Parameters
    ----------
    name : str
        A name of `ENVIRONMENTS`, or ``"module:Class"`` for one of your own.
    **options
        Of its class.

    Returns
    -------
    Environment

    Raises
    ------
    InputError
        If there is none of this name, what it needs is not installed, or an option is not its own.

    Examples
    --------
    >>> load("phone").benchmark
    'phone'
    >>> load("telephone")
    Traceback (most recent call last):
    ...
    survexec.errors.InputError: environment 'telephone' is not known: bfcl, tau2, toolsandbox, mcp, phone are, or
    'module:Class' for one of your own
    """
    module, _, kind = ENVIRONMENTS.get(name, name).partition(":")
    if not kind:
        known = ", ".join(ENVIRONMENTS)
        raise InputError(f"environment {name!r} is not known: {known} are, or 'module:Class' for one of your own")
    try:
        found = getattr(importlib.import_module(module), kind, None)
    except ModuleNotFoundError as error:
        raise InputError(f"environment {name!r}: the module {error.name!r} is not installed") from error
    if not isinstance(found, type):
        raise InputError(f"environment {name!r}: the module {module!r} has no class {kind!r}")
    try:
        inspect.signature(found).bind(**options)
    except TypeError as error:
        raise InputError(f"environment {name!r}: {error}") from None
    return found(**options)
