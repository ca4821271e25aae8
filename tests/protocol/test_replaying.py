"""Many trajectories: order, arguments, and nothing on a screen that is none."""

import pytest

from survexec.errors import InputError
from survexec.protocol.environments import load
from survexec.protocol.replay import replay
from survexec.protocol.replaying import _IDLE, replay_all
from survexec.protocol.trajectory import Call, Ending, Trajectory

TASKS = load("phone").tasks()
ROLLOUTS = [
    Trajectory(task, (Call("set_wifi", {"on": False}),) * calls, Ending.COMPLETED, benchmark="phone")
    for task in TASKS
    for calls in range(4)
]


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_trajectories_and_are_those_of_replay_one_by_one(jobs):
    assert replay_all(ROLLOUTS, "phone", jobs=jobs) == [replay(load("phone"), rollout) for rollout in ROLLOUTS]
    assert not _IDLE  # no child is left behind


def test_many_trajectories_are_handed_out_in_portions_and_come_back_in_order():
    assert replay_all(ROLLOUTS * 10, "phone", jobs=2) == replay_all(ROLLOUTS, "phone") * 10


def test_an_environment_of_ones_own_is_named_by_its_place():
    place = "survexec.protocol.environments.phone:Phone"
    assert replay_all(ROLLOUTS[:2], place) == replay_all(ROLLOUTS[:2], "phone")


def test_no_trajectories_give_no_results():
    assert replay_all([], "phone") == []


def test_trajectories_may_be_an_iterator():
    assert len(replay_all(iter(ROLLOUTS[:3]), "phone")) == 3


def test_nothing_is_shown_where_there_is_no_terminal(capfd):
    replay_all(ROLLOUTS[:3], "phone")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 0}, "jobs = 0; it must be"),
        ({"time_limit": 0}, "time_limit = 0; it must be"),
        ({"time_limit": float("nan")}, "time_limit = nan; it must be"),
        ({"memory_limit": 0}, "memory_limit = 0; it must be"),
        ({"options": {"a": object()}}, "options of an environment must be what JSON can hold"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        replay_all(ROLLOUTS[:1], "phone", **arguments)
