"""Small real tables of rollouts drawn from public logs, and what the paper printed, with their sources."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Final

from survexec.errors import InputError
from survexec.rollouts import Rollouts

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED: Final = ("main", "pec_at_k", "tau3", "cost", "verifier", "claims")


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


def load_published(name: str, *, printed: bool = False) -> pd.DataFrame:
    """What the paper "Prefix Executability" printed, as far as its two public write-ups state it.

    Parameters
    ----------
    name : {"main", "pec_at_k", "tau3", "cost", "verifier", "claims"}
    printed : bool
        Every cell as the text that was printed, "" where none is stated; else numbers and NaN.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    InputError
        If there is no such table.

    Notes
    -----
    Codebook. A printed share stands for an interval of half-width half its last digit; no rollout is public.

    - ``main``: 2 benchmarks x 3 models x 4 methods, ``n`` = 200 tasks each; ``ter``, ``mean_fed`` (calls),
      ``auc_pec``, ``rr_eligible`` (rollouts with FED <= T), ``rr``, ``success``.
    - ``pec_at_k``: PEC at depths 1 to 4; of the last four rows only depth 4 is stated.
    - ``tau3``: tau3-bench airline (50) and retail (114), one rollout a task; many cells are not stated.
    - ``cost``: Dual-Loop relative to Plan-Conditioned ReAct on tau3-bench, as shares: change of the tokens on the
      agent's side and of the cumulative latency.
    - ``verifier``: fixed plans of GPT-5.4 (high) on the 164 tau3 tasks, another verifier: change of TER, of tokens and
      of seconds. Of every variant it is stated that the paired 95% intervals of the changes of TER and AUC-PEC cover 0.
    - ``claims``: numbers of the text: the worked case of Llama-4, three differences, the ranges of Llama-4 on tau3.

    References
    ----------
    Rezaeian, Sun, Benajiba and Roth (2026), Prefix Executability: Evaluating Tool-Using Agents Beyond Final Success,
    arXiv 2610.40444.

    Examples
    --------
    >>> from survexec.datasets import load_published
    >>> load_published("main").shape
    (24, 10)
    >>> load_published("cost", printed=True)["token_change"].tolist()
    ['+0.03', '+0.12', '-0.03']
    """
    if name not in PUBLISHED:
        raise InputError(f"no published table {name!r}; there are: {', '.join(PUBLISHED)}")
    import pandas as pd

    with resources.as_file(resources.files(__package__) / "published" / f"{name}.csv") as path:
        return pd.read_csv(path, dtype=str, keep_default_na=False) if printed else pd.read_csv(path)


def _load(name: str) -> Rollouts:
    """A table that stands beside this module."""
    with resources.as_file(resources.files(__package__) / f"{name}.parquet") as path:
        return Rollouts.from_parquet(path)
