"""Counts add up: over tasks, over tallies, whatever the order of rows."""

import numpy as np
import pandas as pd
import pytest
from cohorts import rollouts
from hypothesis import given
from hypothesis import strategies as st

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.tally import count


def same(one, other):
    assert one.tasks["task_id"].tolist() == other.tasks["task_id"].tolist()
    place = [other.cells["method"].tolist().index(m) for m in one.cells["method"]]
    return one.counts.values, other.counts.values[:, place]


@given(rollouts(), st.data())
def test_merging_two_tallies_is_the_tally_of_the_union(data, draw):
    first = np.array(draw.draw(st.lists(st.booleans(), min_size=len(data), max_size=len(data))))
    if first.all() or not first.any():
        return
    parts = [count(Rollouts(data.frame[keep]), by="method", depth=6) for keep in (first, ~first)]
    merged, whole = parts[0].merge(parts[1]), count(data, by="method", depth=6)
    one, other = same(whole, merged)
    assert one == pytest.approx(other, abs=1e-12)


@given(rollouts(), st.randoms(use_true_random=False))
def test_the_tally_does_not_depend_on_the_order_of_rows(data, random):
    order = list(range(len(data)))
    random.shuffle(order)
    one, other = same(count(data, by="method", depth=6), count(Rollouts(data.frame.iloc[order]), by="method", depth=6))
    assert (one == other).all()


def test_trials_of_a_task_add_into_one_row():
    data = Rollouts(pd.DataFrame({"task_id": ["a", "a", "b"], "trial": [0, 1, 0], "length": 4, "fed": [2, 5, 5]}))
    tally = count(data)
    assert tally["rollouts"].ravel().tolist() == [2, 1]
    assert tally["clean"].ravel().tolist() == [1, 1]


def test_the_same_task_name_in_two_benchmarks_is_two_tasks():
    data = Rollouts(pd.DataFrame({"benchmark": ["x", "y"], "task_id": ["1", "1"], "length": 1, "fed": 2}))
    assert len(count(data, by=()).tasks) == 2


def test_cells_with_the_same_tasks_form_one_group(degenerate):
    groups = [(tasks.sum(), len(cells)) for tasks, cells in count(degenerate, by="method").groups()]
    assert sorted(groups) == [(5, 1), (6, 3)]


def test_selecting_features_keeps_their_counts(paired):
    tally = count(paired, by="method", depth=4)
    part = tally.select(["alive", "fed"])
    assert (part["alive"] == tally["alive"]).all()
    assert (part["fed"] == tally["fed"]).all()
    assert part.counts.values.shape[2] == 6


def test_tallies_of_different_features_are_not_merged(paired):
    with pytest.raises(InputError, match="different features"):
        count(paired, depth=3).merge(count(paired, depth=4))


@pytest.mark.parametrize(
    ("by", "message"), [("methods", "no column"), (["method", "method"], "twice")]
)  # fmt: skip
def test_an_unknown_or_repeated_column_is_refused(paired, by, message):
    with pytest.raises(InputError, match=message):
        count(paired, by=by)


def test_a_task_in_two_strata_is_refused():
    data = Rollouts(
        pd.DataFrame({"task_id": ["a", "a"], "trial": [0, 1], "length": 1, "fed": 2, "stratum": ["x", "y"]})
    )
    with pytest.raises(InputError, match=r"'a'.*several strata"):
        count(data)


def test_no_rollouts_are_refused(paired):
    with pytest.raises(InputError, match="no rollouts"):
        count(paired.select(method="none such"))
