"""Which tasks to run: a sample of a benchmark that keeps the shares of its strata, the same on every machine."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

from survexec.errors import InputError

Labels = Mapping[str, str | Iterable[str]]


def sample_tasks(tasks: Labels, size: int, *, seed: int = 0) -> list[str]:
    """A sample of tasks in which each label has the share that it has among all.

    Parameters
    ----------
    tasks : mapping of task id to label or labels
        A stratum for each task, such as a BFCL category, or several categories, as in ToolSandbox.
    size : int
        Tasks to take.
    seed : int
        Another seed gives another sample.

    Returns
    -------
    list of str
        Task ids in the order of `tasks`. It depends on ids, labels, size and seed alone, not on the machine.

    Raises
    ------
    InputError
        If there are fewer tasks than asked for.

    Notes
    -----
    The rarest label still to be placed goes first: each of its tasks goes to the sample or to the rest, whichever lacks
    more of that label, then whichever lacks more tasks. With one label a task this is stratified sampling with
    proportional allocation. Order within a label is that of a hash of seed and id.

    The samples of the paper: BFCL multi-turn, ``size=200`` of its 800 tasks, which is 50 of each category; ToolSandbox,
    ``size=200`` with the categories of its scenarios; tau2, all tasks of the base splits, airline 50 and retail 114.

    References
    ----------
    Sechidis, Tsoumakas and Vlahavas (2011), On the stratification of multi-label data, ECML PKDD, 145-158.

    Examples
    --------
    >>> tasks = {f"{kind}_{i}": kind for kind in ("base", "miss") for i in range(4)}
    >>> sample_tasks(tasks, 4)
    ['base_1', 'base_3', 'miss_0', 'miss_3']
    """
    if not 0 <= size <= len(tasks):
        raise InputError(f"size = {size}; there are {len(tasks)} tasks, so it must be from 0 to {len(tasks)}")
    labels = {task: ({given} if isinstance(given, str) else set(given)) for task, given in tasks.items()}
    order = sorted(labels, key=lambda task: hashlib.sha256(f"{seed}:{task}".encode()).digest())
    counts = Counter(label for own in labels.values() for label in own)
    wanted = {label: size * count / len(labels) for label, count in counts.items()}
    # what the rest still lacks of each label, and of tasks
    spare = {label: counts[label] - wanted[label] for label in counts}
    room, left = size, len(labels) - size
    waiting, chosen = dict.fromkeys(order), set()
    while waiting:
        remaining = Counter(label for task in waiting for label in labels[task])
        rarest = min(remaining, key=lambda label: (remaining[label], label), default=None)
        for task in [task for task in waiting if rarest is None or rarest in labels[task]]:
            need, other = (wanted[rarest], spare[rarest]) if rarest is not None else (0, 0)
            taken = room > 0 and (left == 0 or (round(need - other, 9), room - left) >= (0, 0))
            lacking = wanted if taken else spare
            for label in labels[task]:
                lacking[label] -= 1
            room, left = room - taken, left - (not taken)
            if taken:
                chosen.add(task)
            del waiting[task]
    return [task for task in tasks if task in chosen]
