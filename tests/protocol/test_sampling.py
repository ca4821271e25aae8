"""sample_tasks: shares kept, the same everywhere, nothing invented."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survexec import sample_tasks
from survexec.errors import InputError

BFCL = {
    f"multi_turn_{kind}_{i}": kind for kind in ("base", "miss_func", "miss_param", "long_context") for i in range(200)
}


def test_two_hundred_of_bfcl_are_fifty_of_each_category():
    sample = sample_tasks(BFCL, 200)
    assert Counter(BFCL[task] for task in sample) == dict.fromkeys(
        ("base", "miss_func", "miss_param", "long_context"), 50
    )


def test_the_sample_is_the_same_on_every_machine():
    # pinned: a hash of seed and id orders the tasks, no random number generator does
    assert sample_tasks(BFCL, 8) == [
        "multi_turn_base_135", "multi_turn_base_194",
        "multi_turn_miss_func_142", "multi_turn_miss_func_198",
        "multi_turn_miss_param_53", "multi_turn_miss_param_165",
        "multi_turn_long_context_4", "multi_turn_long_context_113",
    ]  # fmt: skip


def test_another_seed_gives_another_sample():
    assert sample_tasks(BFCL, 200, seed=1) != sample_tasks(BFCL, 200)


def test_all_tasks_are_a_sample_too_and_none_is():
    assert sample_tasks(BFCL, 800) == list(BFCL)
    assert sample_tasks(BFCL, 0) == []


def test_more_than_there_are_is_refused():
    with pytest.raises(InputError, match="there are 800 tasks"):
        sample_tasks(BFCL, 801)


@given(
    st.dictionaries(
        st.text("abcdef", min_size=1, max_size=4), st.sets(st.sampled_from("wxyz"), max_size=3), max_size=40
    ),
    st.data(),
)
def test_a_sample_has_its_size_and_depends_on_no_order(tasks, data):
    size = data.draw(st.integers(0, len(tasks)))
    sample = sample_tasks(tasks, size)
    assert len(sample) == len(set(sample)) == size
    assert set(sample) <= set(tasks)
    backwards = dict(reversed(list(tasks.items())))
    assert set(sample_tasks(backwards, size)) == set(sample)


@given(st.lists(st.integers(4, 30), min_size=1, max_size=5), st.data())
def test_each_stratum_has_its_share_within_one_task(sizes, data):
    tasks = {f"{kind}:{i}": str(kind) for kind, count in enumerate(sizes) for i in range(count)}
    size = data.draw(st.integers(0, len(tasks)))
    taken = Counter(tasks[task] for task in sample_tasks(tasks, size))
    for kind, count in enumerate(sizes):
        assert abs(taken[str(kind)] - size * count / len(tasks)) <= 1 + 0.5 * len(sizes)


def test_several_labels_keep_their_shares_at_once():
    tasks = {
        f"t{i}": {("easy", "hard")[i % 2], ("one", "two", "three")[i % 3], *(["rare"] if i % 20 == 0 else [])}
        for i in range(600)
    }
    taken = Counter(label for task in sample_tasks(tasks, 200) for label in tasks[task])
    assert taken["rare"] == 10
    assert {label: abs(taken[label] - share) <= 3 for label, share in
            {"easy": 100, "hard": 100, "one": 67, "two": 67, "three": 67}.items()} == dict.fromkeys(
                ("easy", "hard", "one", "two", "three"), True)  # fmt: skip
