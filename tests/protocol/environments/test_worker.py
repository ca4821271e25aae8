"""A process of its own for an environment: what goes wrong there costs one call."""

import os
import signal
import subprocess
import sys
import time

import joblib
import pytest

from survexec.errors import InputError
from survexec.protocol.environments import worker
from survexec.protocol.environments.worker import Child
from survexec.protocol.replay import prepare, replay
from survexec.protocol.replaying import replay_all
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Outcome, Trajectory

ROUGH = "rough:Rough"
LOOK = Call("look")


def rollout(*tools, task="1", user_calls=()):
    calls = tuple(tool if isinstance(tool, Call) else Call(tool) for tool in tools)
    return Trajectory(task, calls, Ending.COMPLETED, user_calls=user_calls)


ROLLOUTS = {
    "sleep": rollout("look", "sleep", "look"),
    "match": rollout("match", "look"),
    "eat": rollout("look", "eat", "look"),
    "die": rollout("die", "look", "die", "look"),
    "leave": rollout("leave", "look"),
    "print": rollout("print", "look"),
    "number": rollout("look", "number"),
    "nothing": rollout("nothing"),
    "broken": rollout("broken", "silent", "look"),
    "half": rollout("half"),
    "draw": rollout("draw"),
    "draw again": rollout("draw"),
    "bad reset": rollout("look", task="bad reset"),
    "dying reset": rollout("look", task="dying reset"),
    "unknown": rollout("look", task="2"),
    "bad check": rollout("look", task="bad check"),
    "dying check": rollout("look", task="dying check"),
    "user": rollout("look", "look", user_calls=((1, Call("die")), (1, LOOK), (2, Call("sleep")))),
    "none": rollout(),
    "last": rollout("look"),
}


def replayed(names, jobs):
    found = replay_all([ROLLOUTS[name] for name in names], ROUGH, jobs=jobs, time_limit=0.5, memory_limit=2**30)
    return dict(zip(names, found, strict=True))


@pytest.fixture(scope="module")
def found():
    return replayed(ROLLOUTS, 1)


def messages(result):
    return [verdict.message for verdict in result.verdicts]


def texts(result):
    return [observation and observation.text for observation in result.observations]


def test_the_result_does_not_depend_on_the_number_of_workers(found):
    names = ("last", "sleep", "draw", "unknown", "die", "draw again", "broken", "none")
    assert replayed(names, 2) == {name: found[name] for name in names}


@pytest.mark.parametrize("name", ["sleep", "eat"])
def test_a_call_that_exceeds_a_limit_is_invalid_and_the_rollout_goes_on_without_it(found, name):
    result = found[name]
    assert [verdict.outcome for verdict in result.verdicts] == [Outcome.OK, Outcome.INVALID, Outcome.OK]
    assert result.verdicts[1].classes == (ErrorClass.STATE_CONSISTENCY,)
    assert texts(result) == ["1", None, "2"]
    assert result.changed == (True, False, True)
    assert result.success is True


def test_the_limit_that_was_exceeded_is_named(found):
    assert messages(found["sleep"])[1] == "exceeded the limit of 0.5 s"
    assert messages(found["eat"])[1] == "exceeded the limit of 1 GiB of memory"


def test_a_call_that_never_lets_go_of_the_interpreter_is_ended_too(found):
    assert messages(found["match"]) == ["exceeded the limit of 0.5 s", None]
    assert texts(found["match"]) == [None, "1"]


def test_a_call_that_ends_the_process_costs_that_call(found):
    assert messages(found["die"]) == ["ended the process of the environment", None] * 2
    assert texts(found["die"]) == [None, "1", None, "2"]


def test_a_call_that_asks_to_leave_is_refused(found):
    assert found["leave"].verdicts[0].error_class is ErrorClass.UNCLASSIFIED
    assert (messages(found["leave"])[0], texts(found["leave"])) == ("bye", ["bye", "2"])


def test_what_the_environment_prints_or_reads_is_kept_apart(found):
    assert texts(found["print"]) == ["read ''", "2"]


@pytest.mark.parametrize("name", ["number", "nothing"])
def test_an_answer_that_is_no_text_is_the_environments_fault(found, name):
    assert found[name].verdicts == ()
    assert found[name].fault == f"the environment's answer to '{name}' is not an Observation with a text"


def test_what_a_call_raises_is_its_refusal(found):
    assert messages(found["broken"]) == ["'name'", "ValueError", None]
    assert [observation.error for observation in found["broken"].observations] == [True, True, False]


def test_any_text_comes_through(found):
    assert texts(found["half"]) == ["half ?\n\x00 of it"]
    [big] = replay_all([rollout("big", "look")], ROUGH)
    assert texts(big) == ["ä" * 5_000_000, "2"]


def test_an_environment_without_a_seed_draws_the_same_in_every_rollout(found):
    assert texts(found["draw"]) == texts(found["draw again"])


def test_a_rollout_that_cannot_begin_says_why_and_does_not_stop_the_others(found):
    assert found["bad reset"].fault == "the environment failed: RuntimeError: it does not start"
    assert found["dying reset"].fault == "the reset ended the process of the environment"
    assert found["unknown"].fault == "there is no task '2' in rough 1"
    assert texts(found["last"]) == ["1"]


def test_verdicts_stand_where_only_the_check_of_success_fails(found):
    assert found["bad check"].fault == "the success check failed: RuntimeError: cannot compare"
    assert found["dying check"].fault == "the success check ended the process of the environment"
    for name in ("bad check", "dying check"):
        assert found[name].success is None
        assert [verdict.outcome for verdict in found[name].verdicts] == [Outcome.OK]


def test_a_slow_check_of_success_is_ended(monkeypatch):
    monkeypatch.setattr(worker, "_START_LIMIT", 3.0)
    [result] = replay_all([rollout("look", task="slow check")], ROUGH)
    assert result.fault == "the success check exceeded the limit of 3 s"
    assert texts(result) == ["1"]


def test_calls_of_the_user_are_replayed_within_limits_but_not_judged(found):
    assert texts(found["user"]) == ["1", "3"]
    assert len(found["user"].verdicts) == 2


def test_a_rollout_without_calls_is_replayed_too(found):
    assert (found["none"].verdicts, found["none"].success, found["none"].fault) == ((), True, None)


def test_a_process_serves_many_rollouts(tmp_path):
    log = tmp_path / "log"
    replay_all([rollout("look")] * 5, ROUGH, options={"log": str(log)})
    assert len(log.read_text().split()) == 5
    assert len({*log.read_text().split()}) == 1


def test_what_earlier_rollouts_left_in_memory_is_not_the_fault_of_a_call():
    rollouts = [rollout(Call("eat", {"number": 2**27}))] * 3
    found = replay_all(rollouts, ROUGH, options={"leak": 2**28}, memory_limit=2**29)
    assert {result.verdicts[0].outcome for result in found} == {Outcome.OK}


def test_a_process_that_ended_between_rollouts_is_replaced():
    child = Child(ROUGH)
    first = child.replay(prepare(rollout("look")))
    os.kill(child._process.pid, signal.SIGKILL)
    assert child.replay(prepare(rollout("look"))) == first
    child.close()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (ROUGH, {"fails": "load"}, "environment 'rough:Rough' could not be loaded: RuntimeError: no such luck"),
        (ROUGH, {"fails": "exit"}, "environment 'rough:Rough' ended while it was loaded"),
        (ROUGH, {"colour": 1}, "environment 'rough:Rough': got an unexpected keyword argument 'colour'"),
        ("rough:Smooth", {}, "the module 'rough' has no class 'Smooth'"),
        ("smooth:Smooth", {}, "the module 'smooth' is not installed"),
        ("telephone", {}, "environment 'telephone' is not known"),
    ],
)
def test_an_environment_that_cannot_be_loaded_stops_the_run_with_the_reason(name, options, message):
    with pytest.raises(InputError, match=message):
        replay_all([rollout("look")] * 3, name, options=options, jobs=2)


def test_the_validator_is_loaded_without_what_only_formats_need_and_hides_nothing_afterwards():
    code = (
        "import sys; from survexec.protocol.environments import worker; worker._ready_validator();"
        "print('jsonschema' in sys.modules, set(worker._FORMATS) & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True set()\n"


def test_a_child_goes_away_with_its_parent():
    code = (
        "import os; from survexec.protocol.environments.worker import Child, Script;"
        "child = Child('phone'); child.replay(Script('add_contact', 1, (), ()));"
        "print(child._process.pid, flush=True); os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(int(done.stdout), 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the child is still there")


def test_a_child_that_is_not_asked_for_long_ends(monkeypatch):
    monkeypatch.setattr(worker, "_IDLE_LIMIT", 0.01)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as incoming:
        assert worker._next(incoming) == b""
        os.write(writing, b"{}\n")
        assert worker._next(incoming) == b"{}\n"
        os.close(writing)


def test_the_number_of_jobs_can_be_configured(tmp_path):
    log = tmp_path / "log"
    with joblib.parallel_config(n_jobs=2):
        replay_all([rollout(*["look"] * 200)] * 20, ROUGH, options={"log": str(log)})
    assert len({*log.read_text().split()}) == 2


@pytest.mark.slow
def test_a_cluster_is_one_configuration_away(found):
    with joblib.parallel_config(backend="loky", n_jobs=2):
        results = replay_all([ROLLOUTS[name] for name in ("draw", "die", "last")], ROUGH)
    assert results == [found[name] for name in ("draw", "die", "last")]


def test_a_script_needs_no_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from survexec.protocol.replaying import replay_all\n"
        "from survexec.protocol.trajectory import Call, Ending, Trajectory\n"
        "rollout = Trajectory('send_message', (Call('set_wifi', {'on': False}),), Ending.COMPLETED)\n"
        "print(*[r.verdicts[0].outcome for r in replay_all([rollout] * 4, 'phone', jobs=2)])\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("ok ok ok ok\n", "")


def test_replay_in_this_process_finds_the_same(found):
    from rough import Rough

    for name in ("leave", "number", "nothing", "broken", "half", "bad reset", "unknown", "bad check", "last"):
        assert replay(Rough(), ROLLOUTS[name]) == found[name]
