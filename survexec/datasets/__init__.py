"""Small real tables of rollouts, drawn from public logs, with their sources: to learn on and to test with."""

from __future__ import annotations

from importlib import resources

from survexec.rollouts import Rollouts


def load_tau_retail_methods() -> Rollouts:
    """Four methods on the same 100 retail tasks of tau-bench.

    Returns
    -------
    Rollouts
        361 rollouts with their judged calls (tool, outcome, class; no arguments and no text of the conversation).
        The ledger tells of 39 crashed ones.

    Notes
    -----
    Codebook: ``method`` is one of ``tool_calling`` (plain), ``tool_calling_preconditions`` (tools that check
    preconditions), ``assertions`` (agent that writes assertions) and ``assertions_no_postconditions``; ``task_id`` 0
    to 99, one trial each; ``length`` T, ``fed`` first-error depth under the strict rule (`Rollouts.under` gives the
    others), ``success`` reward >= 1, ``error_class`` class of the first error, ``invalid_calls`` refused calls.

    The assertion agents lost 34 and 5 rollouts to the infrastructure (rate limits, connection resets, unparsable
    output), so comparisons with them rest on the tasks that both sides finished.

    Source: per-rollout facts drawn with survexec from the public results of avaljotsingh/tau-bench (MIT), a fork of
    sierra-research/tau-bench.

    Examples
    --------
    >>> from survexec.datasets import load_tau_retail_methods
    >>> load_tau_retail_methods()
    Rollouts: 361 of 100 tasks in 4 cells, 81 with an error (strict rule)
    """
    return _load("tau_retail_methods")


def load_tau_airline_gpt4o() -> Rollouts:
    """gpt-4o on the 50 airline tasks of tau-bench, four trials each.

    Returns
    -------
    Rollouts
        200 rollouts with their judged calls (tool, outcome, class; no arguments and no text of the conversation).

    Notes
    -----
    Codebook: ``task_id`` 0 to 49, ``trial`` 0 to 3; ``length`` T, 0 in 18 rollouts that called nothing; ``fed``
    first-error depth under the strict rule, ``success`` reward >= 1, ``error_class`` class of the first error,
    ``invalid_calls`` refused calls. Four trials of a task are a cluster: 200 rollouts, but 50 tasks.

    Source: per-rollout facts drawn with survexec from the public results of sierra-research/tau-bench (MIT).

    Examples
    --------
    >>> from survexec.datasets import load_tau_airline_gpt4o
    >>> load_tau_airline_gpt4o()
    Rollouts: 200 of 50 tasks in 1 cells, 36 with an error (strict rule)
    """
    return _load("tau_airline_gpt4o")


def _load(name: str) -> Rollouts:
    """A table that stands beside this module."""
    with resources.as_file(resources.files(__package__) / f"{name}.parquet") as path:
        return Rollouts.from_parquet(path)
