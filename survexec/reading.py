"""From files to Rollouts: read, judge each call, apply the threshold, and account for every row in the ledger."""

from __future__ import annotations

import glob
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import rich.console
import rich.progress

from survexec.checks import COLUMNS, KEY, Fault, conform, faults_in
from survexec.errors import InputError, SurvexecWarning
from survexec.protocol.checker import Checked, check
from survexec.protocol.readers import Reading, read_file
from survexec.protocol.rejudging import Replay, rejudge
from survexec.protocol.trajectory import UNKNOWN, Call, ErrorClass, Outcome, Rule, Trajectory, Verdict
from survexec.rollouts import CALL_COLUMNS, Rollouts, ending_is_crash, ledger_of

# Rewards carry floating noise; tau-bench itself accepts 1 within this distance.
REWARD_TOLERANCE: Final = 1e-6
_SETTABLE: Final = (*KEY, "stratum")
_LEFT_OUT: Final = {
    Outcome.INFRASTRUCTURE: "never reached the environment and are left out of the sequence",
    Outcome.UNJUDGED: "have no recorded result; their rollouts are censored there",
}
_Row = tuple[str, str, str, int, str, str]


def read(
    paths: str | Path | Iterable[str | Path],
    *,
    format: str | None = None,
    rule: Rule | str = Rule.STRICT,
    replay: str | None = None,
    replay_options: Mapping[str, Any] | None = None,
    reference: bool = False,
    jobs: int | None = None,
    columns: Mapping[str, str] | None = None,
    from_path: str | None = None,
    set: Mapping[str, str] | None = None,
    success_threshold: float = 1.0,
    crashed: str = "set_aside",
) -> Rollouts:
    r"""Read logs or tables of rollouts; what cannot be read is set aside in the ledger and the rest is kept.

    Parameters
    ----------
    paths : str, Path or several
        Files, folders or patterns such as ``"logs/*.json"``. The format of each is found by its content.
    format : {"tau", "tau2", "bfcl", "toolsandbox", "table"}, optional
        Insist on a format.
    rule : {"strict", "lookup", "interface"}
        What counts as executable; see `survexec.protocol.trajectory.Rule`.
    replay : {"bfcl", "tau2", "toolsandbox", "mcp", "phone"} or "module:Class", optional
        Judge each call by executing it again in this environment, in a child process with limits, instead of by its
        recorded answer; rollouts without a recorded success get the benchmark's own check. None: recorded answers.
    replay_options : mapping, optional
        Of the environment, such as ``{"command": ["my-server"]}`` for "mcp".
    reference : bool
        With a replay: add the benchmark's own solution of each task that was read, as model and method "reference".
    jobs : int, optional
        Rollouts replayed at a time; -1 for as many as there are processors.
    columns : mapping, optional
        For tables: survexec's name -> the column's name in the file, such as ``{"length": "T", "fed": "FED"}``.
    from_path : str, optional
        Take columns from the end of each path, such as ``"{model}/{method}.json"``. Fills what the log does not say.
    set : mapping, optional
        Fixed values for ``benchmark, model, method, task_id, trial, stratum``; they win over everything.
    success_threshold : float
        A rollout succeeded if its reward is at least this (within 1e-6).
    crashed : {"set_aside", "fail"}
        Rollouts that the infrastructure ended: left out, or kept as failures.

    Returns
    -------
    Rollouts
        Its ``ledger`` says per file what was read, kept, set aside and why.

    Raises
    ------
    InputError
        If no path matches, or nothing at all could be read.

    Warns
    -----
    SurvexecWarning
        If something could not be read.

    Examples
    --------
    >>> import survexec as sx, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "runs.csv").write_text("task_id,length,fed,success\na,3,1,1\nb,2,3,1\n")
    >>> sx.read(folder / "*.csv")
    Rollouts: 2 of 2 tasks in 1 cells, 1 with an error (strict rule)
    """
    if crashed not in ("set_aside", "fail"):
        raise InputError(f"crashed = {crashed!r}; it must be 'set_aside' or 'fail'")
    fixed = _settable(set or {})
    if replay is None and (replay_options or reference or jobs):
        raise InputError("replay_options, reference and jobs are for a replay; say replay= too")
    again = None if replay is None else Replay(replay, jobs, dict(replay_options or {}))
    template = _template(from_path) if from_path else None
    parts, solved = [], dict[tuple[str, str], None]()
    for path in _watched(_expanded(paths)):
        part, own = _read_one(path, format, Rule(rule), columns, success_threshold, again)
        if template is not None:
            part = _named_by_path(part, path, template, from_path or "")
        parts.append(replace(part, frame=part.frame.assign(**fixed)))
        if reference and again is not None:
            wanted = [t for t in own if (t.benchmark or "", t.task_id) not in solved]
            solved |= dict.fromkeys((t.benchmark or "", t.task_id) for t in own)
            solution = Reading(again.about, again.name, trajectories=again.reference(wanted))
            parts.append(_judged(solution, Rule(rule), success_threshold, again))
    return _assembled(parts, Rule(rule), crashed)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one file gave: rows, calls (``at`` is the position of their rollout in the rows), ledger lines."""

    frame: pd.DataFrame
    calls: pd.DataFrame | None
    accounts: list[_Row]


def _settable(given: Mapping[str, str]) -> dict[str, str]:
    """Check the names of fixed columns."""
    for name in given:
        if name not in _SETTABLE:
            raise InputError(f"{name!r} cannot be set; these can: {', '.join(_SETTABLE)}")
    return dict(given)


def _expanded(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """Files and folders that the patterns name, sorted within a pattern, each once."""
    patterns = [paths] if isinstance(paths, str | Path) else list(paths)
    found: dict[Path, None] = {}
    for pattern in patterns:
        # a name that exists is itself, even where it holds [ ] or *
        matches = [str(pattern)] if Path(pattern).exists() else sorted(glob.glob(str(pattern), recursive=True))
        if not matches:
            raise InputError(f"{pattern}: no file or folder matches")
        found.update(dict.fromkeys(Path(match) for match in matches))
    return list(found)


def _watched(paths: list[Path]) -> Iterable[Path]:
    """The paths, with a progress bar on a terminal where there are several."""
    console = rich.console.Console(stderr=True)
    hidden = len(paths) < 4 or not console.is_terminal
    return rich.progress.track(paths, "reading", console=console, transient=True, disable=hidden)


def _read_one(
    path: Path,
    format: str | None,
    rule: Rule,
    columns: Mapping[str, str] | None,
    threshold: float,
    again: Replay | None,
) -> tuple[_Part, Sequence[Trajectory]]:
    """One file: its rows, its calls, its lines of the ledger, and its trajectories where they can be replayed."""
    reading = read_file(path, format=format, columns=columns)
    if reading.format == "survexec":
        return _stored(path, rule), ()
    source = reading.source
    accounts = [(source, "fault", f.reason, 1, f.unit, f.where) for f in reading.faults]
    accounts += [(source, "noted", remark, 1, "files", "") for remark in reading.remarks]
    if reading.frame is None:
        part = _judged(reading, rule, threshold, again)
        return replace(part, accounts=accounts + part.accounts), reading.trajectories
    frame, remark = _thresholded(reading.frame, threshold)
    if remark:
        accounts.append((source, "noted", remark, 1, "files", ""))
    given = frame["source"] if "source" in frame.columns else pd.Series(None, index=frame.index, dtype=object)
    return _Part(frame.assign(source=given.fillna(source)), None, accounts), ()


def _stored(path: Path, rule: Rule) -> _Part:
    """A table that survexec wrote: judged again if another rule is asked for; what it kept is counted anew."""
    stored = Rollouts.from_parquet(path).under(rule)
    frame = stored.frame.assign(row=np.arange(1, len(stored) + 1))
    # what was at fault then is no fault of this file
    told = stored.ledger[stored.ledger["status"] != "kept"].replace({"status": {"fault": "past"}})
    calls = None
    if stored.calls is not None:
        at = pd.MultiIndex.from_frame(frame[list(KEY)]).get_indexer(pd.MultiIndex.from_frame(stored.calls[list(KEY)]))
        calls = stored.calls[list(CALL_COLUMNS)].assign(at=at)
    return _Part(frame, calls, list(told.itertuples(index=False, name=None)))


def _thresholded(frame: pd.DataFrame, threshold: float) -> tuple[pd.DataFrame, str]:
    """A table's graded success as 0/1, and a sentence that says so."""
    if "success" not in frame.columns or pd.api.types.is_bool_dtype(frame["success"]):
        return frame, ""
    score = pd.to_numeric(frame["success"], errors="coerce").astype("Float64")
    # words such as true and typing errors are left to the checks of the table
    if (score.isna() & frame["success"].notna()).any() or score.dropna().isin([0, 1]).all():
        return frame, ""
    success = (score >= threshold - REWARD_TOLERANCE).astype("boolean").mask(score.isna())
    return frame.assign(success=success), f"success is graded; taken as success where it is at least {threshold:g}"


def _judged(reading: Reading, rule: Rule, threshold: float, again: Replay | None = None) -> _Part:
    """Trajectories as rows and calls, with what the checker left out of the sequence and what a replay told."""
    rows, calls, accounts = [], [], list[_Row]()
    left: Counter[Outcome] = Counter()
    if again is None:
        all_checked = [check(trajectory) for trajectory in reading.trajectories]
    else:
        rejudged = rejudge(reading.trajectories, again)
        all_checked = rejudged.checked
        accounts += [(reading.source, "fault", why, 1, "rollouts", f"row {t.row}") for t, why in rejudged.lost]
        accounts += [(reading.source, "noted", *line) for line in rejudged.told]
    for at, checked in enumerate(all_checked):
        rows.append(_row(checked, rule, threshold))
        left.update(v.outcome for v in checked.verdicts if v.outcome in _LEFT_OUT)
        judged = zip(checked.trajectory.calls, checked.verdicts, checked.positions, strict=True)
        calls += [(at, *_call(call, verdict, k)) for call, verdict, k in judged]
    frame = pd.DataFrame(rows, columns=[*COLUMNS, "row", "reason"])
    table = pd.DataFrame(calls, columns=["at", *CALL_COLUMNS]).astype({"k": "Int64"})
    noted = accounts + [(reading.source, "noted", _LEFT_OUT[o], n, "calls", "") for o, n in sorted(left.items())]
    unknown = int((frame["error_class"] == str(ErrorClass.UNCLASSIFIED)).sum())
    if unknown:
        noted.append((reading.source, "noted", "first errors match no entry of the catalogue", unknown, "rollouts", ""))
    return _Part(frame, table, noted)


def _row(checked: Checked, rule: Rule, threshold: float) -> dict[str, Any]:
    """One checked rollout as a row of the table."""
    t = checked.trajectory
    fed, error_class, invalid = checked.first_error(rule)
    return {
        "benchmark": t.benchmark or UNKNOWN,
        "model": t.model or UNKNOWN,
        "method": t.method or UNKNOWN,
        "task_id": t.task_id,
        "trial": t.trial,
        "stratum": t.stratum,
        "length": checked.length,
        "fed": fed,
        "ending": str(checked.ending),
        "success": None if t.reward is None else t.reward >= threshold - REWARD_TOLERANCE,
        "error_class": None if error_class is None else str(error_class),
        "invalid_calls": invalid,
        "tokens": t.tokens,
        "latency_s": t.latency_s,
        "cost_usd": t.cost_usd,
        "source": t.source,
        "row": t.row,
        "reason": t.reason,
    }


def _call(call: Call, verdict: Verdict, k: int | None) -> tuple[Any, ...]:
    """One call as a row, in the order of `CALL_COLUMNS`."""
    arguments = call.arguments
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=str)
    name = None if verdict.error_class is None else str(verdict.error_class)
    classes = ",".join(verdict.classes) or None
    return k, call.tool, arguments, str(verdict.outcome), name, verdict.message, verdict.lookup, classes


def _template(pattern: str) -> re.Pattern[str]:
    """A path pattern such as ``{model}/{method}.json`` as a regular expression on the end of a path."""
    parts = re.split(r"\{(\w+)\}", pattern)
    names = parts[1::2]
    _settable(dict.fromkeys(names, ""))
    if not names or len({*names}) != len(names):
        raise InputError(f"--from-path {pattern!r} must name each column once, such as '{{method}}.json'")
    body = "".join(re.escape(part) if i % 2 == 0 else f"(?P<{part}>[^/]+)" for i, part in enumerate(parts))
    return re.compile(rf"(?:^|/){body}$")


def _named_by_path(part: _Part, path: Path, template: re.Pattern[str], pattern: str) -> _Part:
    """Columns from the path; having been asked for, they win over what the log says of itself."""
    found = template.search(path.as_posix())
    if found is None:
        reason = f"the path does not end like {pattern!r}, so its columns cannot be taken from it"
        return _Part(part.frame.iloc[:0], None, [*part.accounts, (str(path), "fault", reason, 1, "files", "")])
    return replace(part, frame=part.frame.assign(**found.groupdict()))


def _assembled(parts: list[_Part], rule: Rule, crashed: str) -> Rollouts:
    """All files as one checked table; what breaks a rule of the table is set aside with its reason."""
    whole, faults = _conformed([part.frame for part in parts])
    rows = [row for part in parts for row in part.accounts]
    for fault in faults:
        where, _, reason = fault.text.partition(": ")
        rows.append((str(whole["source"].iloc[fault.index]), "fault", reason, 1, "rollouts", where))
    kept = np.ones(len(whole), bool)
    kept[[fault.index for fault in faults]] = False
    crash = ending_is_crash(whole).to_numpy(bool) & kept
    rows += _crashes(whole[crash], crashed)
    if crashed == "fail":
        whole["success"] = whole["success"].mask(pd.Series(crash, index=whole.index), False)
    else:
        kept &= ~crash
    counts = whole[kept].groupby("source", sort=False).size()
    rows += [(str(source), "kept", "", int(count), "rollouts", "") for source, count in counts.items()]
    places = {source: at for at, source in reversed(list(enumerate(row[0] for row in rows)))}
    ledger = ledger_of(sorted(rows, key=lambda row: (places[row[0]], row[1] != "kept")))
    faulty = ledger[ledger["status"] == "fault"]
    if not kept.any():
        raise InputError("nothing could be read" + _said(faulty))
    if len(faulty):
        warnings.warn("some input was set aside" + _said(faulty), SurvexecWarning, stacklevel=3)
    frame = whole[kept].drop(columns=["reason", "row"])
    return Rollouts(frame, _joined(parts, whole, kept), ledger, rule)


def _conformed(frames: list[pd.DataFrame]) -> tuple[pd.DataFrame, list[Fault]]:
    """The files' rows under one another, conformed and checked; the index of a fault is its position in them."""
    conformed, faults, start = [], [], 0
    for given in frames:
        frame, found = conform(given)
        reason = given["reason"].to_numpy() if "reason" in given.columns else None
        conformed.append(frame.assign(reason=reason))
        faults += [Fault(f.row, f.text, f.index + start) for f in found]
        start += len(frame)
    whole = pd.concat([f for f in conformed if len(f)] or conformed[:1], ignore_index=True)
    told = {fault.index for fault in faults}
    return whole, faults + [fault for fault in faults_in(whole) if fault.index not in told]


def _crashes(crashes: pd.DataFrame, crashed: str) -> list[_Row]:
    """Ledger lines of crashed rollouts, by file and reason; numbers inside a reason do not tell reasons apart."""
    said = crashes["reason"].fillna("no reason recorded").astype(str)
    # numbers inside a reason, such as seconds to wait, do not make it another reason
    kinds = said.str.replace(r"\d+", "#", regex=True)
    lines: list[_Row] = []
    for (source, _), group in crashes.assign(said=said).groupby([crashes["source"], kinds], sort=False):
        shown = ", ".join(f"row {row}" for row in group["row"].head(3)) + (", ..." if len(group) > 3 else "")
        reason = str(group["said"].iloc[0])
        if crashed == "fail":
            lines.append(
                (str(source), "noted", f"crashed and counted as failures: {reason}", len(group), "rollouts", shown)
            )
        else:
            lines.append((str(source), "crashed", reason, len(group), "rollouts", shown))
    return lines


def _joined(parts: list[_Part], whole: pd.DataFrame, kept: np.ndarray) -> pd.DataFrame | None:
    """The calls of the kept rollouts under their keys; None unless every file has calls."""
    if any(part.calls is None for part in parts if len(part.frame)):
        return None
    starts = np.cumsum([0, *(len(part.frame) for part in parts)])
    calls = pd.concat(
        [
            part.calls.assign(at=part.calls["at"] + start)
            for part, start in zip(parts, starts, strict=False)
            if part.calls is not None
        ],
        ignore_index=True,
    )
    calls = calls[kept[calls["at"].to_numpy("int64")]]
    keys = whole[list(KEY)].iloc[calls["at"]].reset_index(drop=True)
    return pd.concat([keys, calls[list(CALL_COLUMNS)].reset_index(drop=True)], axis=1)


def _said(faulty: pd.DataFrame) -> str:
    """Faults as lines of a message."""
    lines = [
        f"\n  {row.source}: {row.examples + ': ' if row.examples else ''}{row.reason}"
        for row in faulty.head(20).itertuples()
    ]
    return ":" + "".join(lines) + (f"\n  and {len(faulty) - 20} more" if len(faulty) > 20 else "")
