"""BFCL multi-turn: result files, score files, and the logs of Glyphh; JSON lines, a rollout a row.

A result is turns of steps of calls. Only an inference log has what the tools answered: a file without one has to be
replayed. A score file names failures alone, so what passed is what the score file beside a result file does not name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from survexec.protocol.readers.bfcl_steps import calls_of, undecodable
from survexec.protocol.readers.documents import (
    NULL,
    Document,
    Fault,
    Reading,
    Shape,
    UnreadableError,
    decode_as,
    elements,
    one_line,
)
from survexec.protocol.readers.messages import first_line, text_of
from survexec.protocol.trajectory import Call, Ending, Trajectory

_ID: Final = re.compile(r"multi_turn_(\w+)_\d+")
_STEPS: Final = 20  # of a turn, after which the benchmark's harness ends the rollout
_SCORE: Final = {"accuracy", "correct_count", "total_count"}
_LOG: Final = {"passed", "decoded_calls"}
_NO_ID: Final = "no `id`, so which task it is cannot be known"


class _Row(msgspec.Struct, gc=False):
    id: str | None = None
    result: Any = None
    input_token_count: Any = None
    output_token_count: Any = None
    latency: Any = None
    inference_log: msgspec.Raw = NULL
    # of a score file
    accuracy: float | None = None
    model_name: str | None = None
    error: Any = None
    model_result_raw: Any = None
    model_result: Any = None
    # of a log of Glyphh
    passed: bool | None = None
    decoded_calls: Any = None
    input_tokens: Any = None
    output_tokens: Any = None
    latency_s: Any = None


class _Entry(msgspec.Struct, gc=False):
    """Entry of a step in an inference log."""

    role: str | None = None
    content: Any = None
    model_response_decoded: Any = None


class _Scores(NamedTuple):
    """What the score file beside a result file says: the type of error of each failure."""

    name: str | None
    failures: dict[str, str]
    model: str | None


class _Told(NamedTuple):
    """What a row tells of its calls."""

    calls: list[Call]
    forced: bool  # whether the harness ended the rollout
    unmatched: int = 0  # results that answer no call


_ROW = msgspec.json.Decoder(_Row)
_TURN = msgspec.json.Decoder(dict[str, msgspec.Raw])
_STEP = msgspec.json.Decoder(list[_Entry])


class BfclReader:
    """Reads the multi-turn categories of BFCL."""

    name = "bfcl"
    expects = "JSON lines whose rows have `id` (multi_turn_...) and `result`, or a score file of them"

    def recognises(self, document: Document) -> bool:
        """Whether the rows look like BFCL's multi-turn results, failures or logs."""
        if document.shape not in (Shape.LINES, Shape.OBJECT):
            return False
        keys = set(document.keys)
        if keys >= _SCORE:
            return True
        if "id" not in keys or not (keys >= _LOG or "result" in keys):
            return False
        return any(_ID.fullmatch(row.id or "") for _, row in _rows(document, 20) if isinstance(row, _Row))

    def read(self, document: Document) -> Reading:
        """Read all rollouts; a row that cannot be read is set aside as a fault."""
        fits = document.shape in (Shape.LINES, Shape.OBJECT)
        if not fits or (document.keys and not {"id", "result", *_SCORE} & set(document.keys)):
            raise UnreadableError(f"{document.describe()}; wanted is {self.expects}")
        reading = Reading(document.source, self.name)
        failures_only = set(document.keys) >= _SCORE
        if failures_only and (results := _beside(document.path, "score", "result")):
            reading.remarks.append(f"the scores of {results.name}, which are read with that file")
            return reading
        scores = _scores_of(document.path)
        noted: Counter[str] = Counter()
        for number, row in _rows(document):
            if isinstance(row, _Row) and row.accuracy is not None:
                continue
            try:
                trajectory = _trajectory(row, scores, noted)
            except UnreadableError as error:
                reading.faults.append(Fault(document.source, f"row {number}", str(error), "rollouts"))
                continue
            reward = 0.0 if failures_only else trajectory.reward
            reading.trajectories.append(replace(trajectory, reward=reward, source=document.source, row=number))
        if failures_only:
            reading.remarks.append("a score file has failures alone: a rate of success needs the result file beside it")
        if scores.name:
            reading.remarks.append(f"success from {scores.name} beside it: what that does not name has passed")
        reading.remarks.extend(f"{count} {what}" for what, count in noted.items() if count)
        return reading


def _beside(path: Path, kind: str, other: str) -> Path | None:
    """The score file of a result file, or the other way round, where the benchmark would write it."""
    name = path.name.removesuffix(f"_{kind}.json") + f"_{other}.json"
    if not path.name.endswith(f"_{kind}.json"):
        return None
    places = [path.with_name(name)]
    folders = path.parent.parts
    if kind in folders:
        last = len(folders) - 1 - folders[::-1].index(kind)
        places.append(Path(*folders[:last], other, *folders[last + 1 :], name))
    return next((place for place in places if place.is_file()), None)


def _scores_of(path: Path) -> _Scores:
    file = _beside(path, "result", "score")
    if file is None or not set(Document(file).keys) >= _SCORE:
        return _Scores(None, {}, None)
    rows = [row for _, row in _rows(Document(file)) if isinstance(row, _Row) and row.id]
    model = next((row.model_name for row in rows if row.model_name), None)
    return _Scores(file.name, {str(row.id): _error_type(row) for row in rows}, model)


def _rows(document: Document, limit: int | None = None) -> Iterator[tuple[int, _Row | UnreadableError]]:
    """Rows with their numbers; a file of a single row is one object."""
    rows = [document.data] if document.shape is Shape.OBJECT else document.rows
    for number, part in enumerate(rows[:limit], start=1):
        if bytes(part).lstrip()[:1] == b"[":
            yield number, UnreadableError(f"a bare list: {_NO_ID}")
            continue
        try:
            yield number, decode_as(part, _ROW)
        except UnreadableError as error:
            yield number, error


def _trajectory(row: _Row | UnreadableError, scores: _Scores, noted: Counter[str]) -> Trajectory:
    if isinstance(row, UnreadableError):
        raise row
    category = _ID.fullmatch(row.id or "")
    if row.id is None or category is None:
        raise UnreadableError(
            f"id {one_line(row.id, 60)!r}: only the multi-turn categories can be judged" if row.id else _NO_ID
        )
    results = (row.result, row.model_result_raw, row.model_result, row.decoded_calls)
    result: Any = next((found for found in results if found), [])
    error_type = scores.failures.get(row.id) or _error_type(row)
    reward = float(row.id not in scores.failures) if scores.name else None if row.passed is None else float(row.passed)
    told, ending, reason = _Told([], False), Ending.COMPLETED, None
    if isinstance(result, str) or error_type == "inference_error":
        ending, reason = Ending.CRASHED, first_line(result) or error_type
    elif isinstance(result, list):
        told = _told(row, result)
        noted["calls without a recorded answer: only a replay can judge them"] += sum(
            c.observation is None for c in told.calls
        )
        noted["results answer no recorded call: left out"] += told.unmatched
        if told.forced or error_type == "force_terminated":
            ending, reason = Ending.TRUNCATED, f"forced to quit after {_STEPS} steps"
    else:
        raise UnreadableError("`result` is neither a list of turns nor the text of an error")
    return Trajectory(
        task_id=row.id,
        calls=tuple(told.calls),
        ending=ending,
        benchmark="bfcl",
        model=row.model_name or scores.model,
        stratum=category[1],
        reward=reward,
        tokens=_total(row.input_token_count, row.output_token_count, row.input_tokens, row.output_tokens),
        latency_s=_total(row.latency, row.latency_s),
        reason=reason,
        turns=len(result) if isinstance(result, list) else 1,
    )


def _told(row: _Row, result: list[Any]) -> _Told:
    """All calls with their turns: from the inference log where there is one."""
    log = _logged(row.inference_log)
    if log is None:
        turns = [steps if isinstance(steps, list) else [steps] for steps in result]
        parts = [(turn, _Told(calls_of(step), False)) for turn, steps in enumerate(turns) for step in steps]
        forced = len(turns) > 0 and len(turns[-1]) > _STEPS
    else:
        parts = [(turn, _observed(step)) for turn, steps in enumerate(log) for step in steps]
        forced = any(told.forced for _, told in parts)
    calls = [replace(call, turn=turn) for turn, told in parts for call in told.calls]
    return _Told(calls, forced, sum(told.unmatched for _, told in parts))


def _logged(raw: msgspec.Raw) -> list[list[list[_Entry]]] | None:
    """Turns -> steps -> entries of an inference log; None where there is none."""
    if bytes(raw).lstrip()[:1] != b"[":
        return None
    turns = []
    for part in elements(raw):
        if bytes(part).lstrip()[:1] == b"{":  # the lists between the turns tell the state of the world
            steps = decode_as(part, _TURN)
            turns.append([decode_as(step, _STEP) for name, step in steps.items() if name.startswith("step_")])
    return turns or None


def _observed(step: list[_Entry]) -> _Told:
    """Calls of a logged step with what came back: results are in the order of the calls, and have no ids."""
    said = [entry.content for entry in step if entry.role == "assistant"]
    notes = [text_of(entry.content) for entry in step if entry.role == "handler_log"]
    results = [text_of(entry.content) for entry in step if entry.role == "tool"]
    forced = any(note.startswith("Model has been forced to quit") for note in notes)
    if any(note.startswith("Error decoding") for note in notes):
        return _Told([call for content in said for call in undecodable(content)], forced)
    calls = [call for content in said for call in calls_of(content)]
    if len(calls) != len(results):  # what the harness decoded has one text for each result
        decoded = [call for entry in step for call in calls_of(entry.model_response_decoded)]
        calls = decoded if len(decoded) == len(results) else calls
    if not results:
        return _Told(calls, forced)
    answers = [*results, *[None] * len(calls)]
    observed = [replace(call, observation=answer, error=None) for call, answer in zip(calls, answers, strict=False)]
    return _Told(observed, forced, max(0, len(results) - len(calls)))


def _error_type(row: _Row) -> str:
    """Type of error of a failure, without its prefix."""
    error = row.error.get("error_type") if isinstance(row.error, dict) else None
    return text_of(error).rpartition(":")[2]


def _total(*values: Any) -> float | None:
    """Sum of numbers, however nested; None where there are none."""
    numbers = [number for value in values for number in _numbers(value)]
    return float(sum(numbers)) if numbers else None


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for inner in value:
            yield from _numbers(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value
