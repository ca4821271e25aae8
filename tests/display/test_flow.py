"""The flow of rollouts: every number adds up, from the sources to the tasks of each pair."""

import itertools
import json
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import survexec as sx
from survexec.display.report.flow import flow
from survexec.errors import SurvexecWarning
from survexec.rollouts import LEDGER_COLUMNS, Rollouts
from survexec.statistics.comparison import compare


def rollouts(methods="AB", tasks=10, ledger=None, **columns):
    """Clean rollouts of some methods on the same tasks, and a ledger if it has rows."""
    index = pd.MultiIndex.from_product([list(methods), range(tasks)], names=["method", "task_id"])
    frame = index.to_frame(index=False).assign(length=3, fed=4, **columns)
    return Rollouts(frame, ledger=None if ledger is None else pd.DataFrame(ledger, columns=list(LEDGER_COLUMNS)))


def flow_of(runs, comparison="not compared", by=("benchmark", "model", "method")):
    steps = flow(runs.ledger, runs.frame, comparison, by)
    adds_up(steps)
    return {step.stage: step for step in steps if step.stage != "pair"}, [s for s in steps if s.stage == "pair"]


def adds_up(steps):
    """What stays at a step comes to the next; parts add to their whole; nothing is negative or empty."""
    chain = [step for step in steps if step.stage != "pair"]
    assert [step.stage for step in chain] in (["found", "analysed"], ["found", "read", "analysed"])
    for step, after in itertools.pairwise(chain):
        assert step.staying == after.whole.count
    for step in steps:
        assert step.staying >= 0
        assert all(part.count > 0 for part in step.leaving)
        for part in (step.whole, *step.leaving):
            assert not part.parts or sum(inner.count for inner in part.parts) == part.count


def names(parts):
    return {part.name: part.count for part in parts}


def test_the_rollouts_of_the_four_retail_methods():
    runs = sx.datasets.load_tau_retail_methods()
    comparison = compare(runs, resamples=200)
    chain, pairs = flow_of(runs, comparison)
    assert (chain["found"].whole.count, chain["analysed"].whole.count) == (400, 361)
    assert names(chain["found"].leaving) == {"Crashed: no verdict on the agent": 39}
    assert names(chain["analysed"].whole.parts) == {
        "tool_calling": 100, "tool_calling_preconditions": 100, "assertions": 66, "assertions_no_postconditions": 95,
    }  # fmt: skip
    for step, compared in zip(pairs, comparison.pairs, strict=True):
        assert step.staying == len(compared.pair.tally.tasks)
        assert step.whole.count - step.staying == len(compared.pair.left_out)
        assert step.whole.name == f"{compared.pair.a} against {compared.pair.b}"
    assert names(pairs[-1].leaving) == {"only assertions has": 3, "only assertions_no_postconditions has": 32}


def test_what_was_found_in_real_logs_is_what_their_files_hold(shared):
    paths = sorted((shared / "data" / "tau" / "retail_four_methods").glob("*.json"))
    runs = sx.read(paths, from_path="{method}.json")
    held = {path.stem: json.loads(path.read_bytes()) for path in paths}
    chain, _ = flow_of(runs)
    assert {part.name.split("/")[-1]: part.count for part in chain["found"].whole.parts} == {
        f"{method}.json": len(rows) for method, rows in held.items()
    }
    crashed = sum("error" in row["info"] for rows in held.values() for row in rows)
    assert chain["found"].staying == chain["found"].whole.count - crashed == len(runs)


def test_crashed_rollouts_that_are_kept_are_told_of(shared):
    paths = sorted((shared / "data" / "tau" / "retail_four_methods").glob("*.json"))
    chain, _ = flow_of(sx.read(paths, from_path="{method}.json", crashed="fail"))
    assert chain["found"].leaving == ()
    assert chain["analysed"].note == "39 of them crashed and are kept"


def test_rollouts_that_leave_are_told_by_status_and_reason():
    ledger = [
        ("a.json", "kept", "", 20, "rollouts", ""),
        ("a.json", "crashed", "try again in 5 s", 2, "rollouts", "row 1"),
        ("b.json", "crashed", "try again in 17 s", 3, "rollouts", "row 2"),
        ("b.json", "crashed", "reset", 1, "rollouts", "row 4"),
        ("b.json", "fault", "fed = 0", 4, "rollouts", "row 9"),
        ("b.json", "past", "fed = 9", 5, "rollouts", "row 9"),
        ("b.json", "noted", "no class", 7, "rollouts", ""),
        ("b.json", "noted", "unjudged", 70, "calls", ""),
        ("c.json", "fault", "not JSON", 1, "files", ""),
    ]
    chain, _ = flow_of(rollouts(ledger=ledger))
    found = chain["found"]
    assert (found.whole.count, found.staying) == (35, 20)
    assert names(found.whole.parts) == {"a.json": 22, "b.json": 13}
    assert names(found.leaving) == {
        "Crashed: no verdict on the agent": 6, "Faulty": 4, "Faulty when the table was made": 5,
    }  # fmt: skip
    assert names(found.leaving[0].parts) == {"try again in 5 s": 5, "reset": 1}
    assert found.note == "1 file could not be read: nobody knows with how many rollouts"


def test_a_selection_leaves_the_others_out_in_a_step_of_their_own():
    runs = sx.datasets.load_tau_retail_methods().select(method=["assertions", "tool_calling"])
    chain, _ = flow_of(runs)
    assert names(chain["read"].leaving) == {"Not among those analysed here": 361 - 166}
    assert chain["analysed"].whole.count == 166


def test_a_ledger_that_does_not_tell_of_all_rollouts_says_so():
    chain, _ = flow_of(rollouts(ledger=[("a.json", "fault", "fed = 0", 2, "rollouts", "row 3")]))
    assert names(chain["found"].whole.parts) == {"a.json": 2, "of which the ledger does not tell": 20}


def test_a_stored_table_tells_what_was_set_aside_when_it_was_made(tmp_path):
    told = [("a.json", "kept", "", 20, "rollouts", ""), ("a.json", "fault", "fed = 0", 2, "rollouts", "row 3")]
    rollouts(ledger=told).to_parquet(tmp_path / "runs.parquet")
    chain, _ = flow_of(sx.read(tmp_path / "runs.parquet"))
    assert chain["found"].whole.count == 22
    assert names(chain["found"].leaving) == {"Faulty when the table was made": 2}


def test_faulty_rows_of_a_file_are_found_and_leave(tmp_path):
    (tmp_path / "runs.csv").write_text("task_id,length,fed\na,3,1\nb,2,9\nc,2,3\n")
    with pytest.warns(SurvexecWarning):
        runs = sx.read(tmp_path / "runs.csv")
    chain, _ = flow_of(runs)
    assert (chain["found"].whole.count, chain["found"].staying) == (3, 2)


def test_many_sources_and_reasons_are_counted_together():
    ledger = [(f"{n}.json", "kept", "", 2, "rollouts", "") for n in range(10)]
    ledger += [("0.json", "crashed", f"reason {'x' * n}", n + 1, "rollouts", "") for n in range(12)]
    chain, _ = flow_of(rollouts(ledger=ledger))
    assert names(chain["found"].whole.parts)["3 further sources"] == 6
    reasons = chain["found"].leaving[0].parts
    assert [part.count for part in reasons] == [12, 11, 10, 9, 8, 7, 6, 15]
    assert reasons[-1].name == "5 further reasons"


def test_a_reason_is_cut_where_it_is_long_and_named_where_it_is_missing():
    told = [("a", "kept", "", 20, "rollouts", ""), ("a", "crashed", "no " * 99, 1, "rollouts", "")]
    chain, _ = flow_of(rollouts(ledger=[*told, ("a", "crashed", None, 2, "rollouts", "")]))
    cut, missing = sorted(chain["found"].leaving[0].parts, key=lambda part: part.count)
    assert len(cut.name) == 160
    assert cut.name.endswith("…")
    assert missing.name == "no reason recorded"


def test_several_rollouts_of_a_task_are_one_paired_task():
    frame = rollouts().frame
    runs = Rollouts(pd.concat([frame, frame.assign(trial=1), frame[frame["method"] == "A"].assign(trial=2)]))
    _, (pair,) = flow_of(runs, compare(runs, resamples=100))
    assert (pair.whole.count, pair.staying, pair.note) == (10, 10, "30 and 20 rollouts")


def test_a_pair_without_a_common_task_is_shown_with_none():
    frame = rollouts("ABC").frame
    frame["task_id"] = frame["task_id"].where(frame["method"] != "C", "c" + frame["task_id"])
    comparison = compare(Rollouts(frame), resamples=100)
    _, pairs = flow_of(Rollouts(frame), comparison)
    assert {pair.whole.name: (pair.whole.count, pair.staying) for pair in pairs} == {
        "A against B": (10, 10), "A against C": (20, 0), "B against C": (20, 0),
    }  # fmt: skip
    assert len(comparison.pairs) == 1


def test_the_place_of_a_pair_is_named_where_there_are_several():
    frame = rollouts().frame
    runs = Rollouts(pd.concat([frame.assign(benchmark="shop"), frame.assign(benchmark="bank")]))
    chain, pairs = flow_of(runs, compare(runs, resamples=100))
    assert [pair.whole.name for pair in pairs] == ["A against B in shop", "A against B in bank"]
    assert names(chain["analysed"].whole.parts) == {
        "shop / A": 10, "shop / B": 10, "bank / A": 10, "bank / B": 10,
    }  # fmt: skip
    assert chain["analysed"].whole.note == "of 20 tasks"


def test_one_cell_has_no_arms_and_no_pairs():
    runs = rollouts("A")
    chain, pairs = flow_of(runs)
    assert chain["analysed"].whole.parts == ()
    assert pairs == []


STATUS = st.sampled_from(["kept", "crashed", "fault", "past", "noted"])
LINE = st.tuples(
    st.sampled_from(["a", "b", "<c>"]), STATUS, st.text(max_size=3), st.integers(1, 9),
    st.sampled_from(["rollouts", "files", "calls"]), st.just(""),
)  # fmt: skip
WHOLE = rollouts("ABCD", 9).frame
DESIGN = SimpleNamespace(made={"between": "method", "within": ("benchmark", "model"), "baseline": None})


@given(
    kept=st.lists(st.booleans(), min_size=len(WHOLE), max_size=len(WHOLE)).filter(any),
    lines=st.lists(LINE, max_size=12),
)
def test_any_flow_adds_up(kept, lines):
    frame, ledger = WHOLE[kept], pd.DataFrame(lines, columns=list(LEDGER_COLUMNS))
    there = frame.groupby("method", sort=False)["task_id"].agg(set)
    steps = flow(ledger, frame, DESIGN if len(there) > 1 else "nothing to compare")
    adds_up(steps)
    told = ledger[(ledger["unit"] == "rollouts") & (ledger["status"] != "noted")].groupby("status")["count"].sum()
    read = told.get("kept", 0)
    assert steps[0].whole.count == told.sum() - read + max(read, len(frame))
    pairs = [(step.whole.count, step.staying) for step in steps if step.stage == "pair"]
    assert pairs == [(len(a | b), len(a & b)) for a, b in itertools.combinations(there, 2)]
