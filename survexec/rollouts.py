"""The hall: the table of rollouts that both wings share, its checks, its ledger and what one task is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from survexec.checks import KEY, conform, faults_in
from survexec.errors import InputError, RolloutsError
from survexec.protocol.checker import is_error
from survexec.protocol.trajectory import Ending, ErrorClass, Outcome, Rule

LEDGER_COLUMNS: Final = ("source", "status", "reason", "count", "unit", "examples")
CALL_COLUMNS: Final = ("k", "tool", "arguments", "outcome", "error_class", "message", "lookup", "classes")
PARQUET_KEY: Final = b"survexec"


class Rollouts:
    """A checked table of rollouts, one row a rollout, with the ledger of how it came about.

    Parameters
    ----------
    frame : any data frame that narwhals knows (pandas, polars, pyarrow, ...)
        Needs ``task_id``, ``length`` (number of calls T, >= 0) and ``fed`` (first-error depth, 1..T+1). May have
        ``benchmark, model, method, trial, stratum, ending, success, error_class, invalid_calls, tokens,
        latency_s, cost_usd, overhead_tokens, overhead_latency_s, source``; what is absent gets its neutral value.
    calls : pandas.DataFrame, optional
        One row a call: the key columns and ``k, tool, arguments, outcome, error_class, message, lookup, classes``.
    ledger : pandas.DataFrame, optional
        What was read, kept, set aside and why: ``source, status, reason, count, unit, examples``.
    rule : {"strict", "lookup", "interface"}
        The rule under which ``fed`` was decided.

    Raises
    ------
    RolloutsError
        If a value breaks a rule of the table. All faults are listed at once, with row and value.

    Examples
    --------
    >>> import pandas as pd
    >>> from survexec.rollouts import Rollouts
    >>> runs = Rollouts(pd.DataFrame({"task_id": ["a", "b"], "length": [3, 2], "fed": [1, 3], "success": [1, 1]}))
    >>> runs.events.tolist()
    [True, False]
    >>> len(runs)
    2
    """

    def __init__(
        self,
        frame: Any,
        calls: pd.DataFrame | None = None,
        ledger: pd.DataFrame | None = None,
        rule: Rule | str = Rule.STRICT,
    ) -> None:
        if not isinstance(frame, pd.DataFrame):
            import narwhals.stable.v1 as nw  # most frames are pandas' own, and loading it takes time

            frame = nw.from_native(frame, eager_only=True).to_pandas()
        conformed, faults = conform(frame)
        faults += faults_in(conformed)
        if faults:
            raise RolloutsError([fault.text for fault in sorted(faults)])
        self.frame: pd.DataFrame = conformed.drop(columns="row", errors="ignore").reset_index(drop=True)
        self.calls = None if calls is None else _with_classes(calls).reset_index(drop=True)
        self.ledger: pd.DataFrame = _kept_as_given(self.frame) if ledger is None else ledger.reset_index(drop=True)
        self.rule = Rule(rule)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        cells = self.frame[list(KEY[:3])].drop_duplicates().shape[0]
        tasks = self.frame[["benchmark", "task_id"]].drop_duplicates().shape[0]
        errors = int(self.events.sum())
        return f"Rollouts: {len(self)} of {tasks} tasks in {cells} cells, {errors} with an error ({self.rule} rule)"

    def _repr_html_(self) -> str:
        head = self.frame.head(10).to_html(index=False, na_rep="", escape=True, border=0)
        return f"<p>{self!r}</p>{head}"

    @cached_property
    def events(self) -> pd.Series:
        """True where the rollout has an error (FED <= T); with `durations`, ready for lifelines."""
        return (self.frame["fed"] <= self.frame["length"]).rename("event")

    @cached_property
    def durations(self) -> pd.Series:
        """min(FED, T): the depth at which a rollout erred or ended; 0 where no call was made."""
        return self.frame[["fed", "length"]].min(axis=1).rename("duration")

    @cached_property
    def tasks(self) -> tuple[np.ndarray, pd.DataFrame]:
        """The unit of analysis: one code a rollout (0..tasks-1), and the tasks as (benchmark, task_id, stratum).

        A task is its ``task_id`` within its ``benchmark``. Codes follow the sorted names, so that no result
        depends on the order of rows. A task with several strata is refused.

        Raises
        ------
        InputError
            If a task stands in two strata.
        """
        names = pd.MultiIndex.from_frame(self.frame[["benchmark", "task_id"]])
        codes, unique = names.factorize(sort=True)
        table = pd.DataFrame(unique.tolist(), columns=["benchmark", "task_id"])
        strata = pd.DataFrame({"code": codes, "stratum": self.frame["stratum"].fillna("").astype(str)})
        strata = strata.drop_duplicates().sort_values(["code", "stratum"], ascending=[True, False], kind="stable")
        strata = strata[(strata["stratum"] != "") | ~strata["code"].duplicated()]  # unknown beside known is known
        twice = strata[strata["code"].duplicated(keep=False)]
        if len(twice):
            task = table.iloc[twice["code"].iloc[0]]
            found = ", ".join(repr(s) for s in twice.loc[twice["code"] == twice["code"].iloc[0], "stratum"])
            raise InputError(
                f"task {task['task_id']!r} of {task['benchmark']!r} has several strata: {found}; it must have one"
            )
        return codes, table.assign(stratum=strata["stratum"].to_numpy())

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence for each thing in the ledger that was not simply kept."""
        rows = self.ledger[self.ledger["status"] != "kept"]
        return tuple(
            f"{row['source']}: {counted(row['count'], row['unit'])} {_STATUS_WORDS[row['status']]}: {row['reason']}"
            + (f" ({row['examples']})" if row["examples"] else "")
            for row in rows.to_dict("records")
        )

    def select(self, **columns: Any) -> Rollouts:
        """Rollouts whose columns have these values (one value, or a list of them).

        Parameters
        ----------
        **columns
            Column name = value or list of values.

        Returns
        -------
        Rollouts

        Examples
        --------
        >>> import pandas as pd
        >>> from survexec.rollouts import Rollouts
        >>> runs = Rollouts(pd.DataFrame({"task_id": ["a", "b"], "length": [3, 2], "fed": [1, 3]}))
        >>> len(runs.select(task_id="a"))
        1
        """
        keep = np.ones(len(self), dtype=bool)
        for name, wanted in columns.items():
            if name not in self.frame.columns:
                raise InputError(f"no column {name!r}; there are: {', '.join(self.frame.columns)}")
            values = [wanted] if isinstance(wanted, str) or not isinstance(wanted, Iterable) else list(wanted)
            keep &= self.frame[name].isin(values).to_numpy()
        frame = self.frame[keep]
        calls = None if self.calls is None else self.calls.merge(frame[list(KEY)], on=list(KEY))
        return Rollouts(frame, calls, self.ledger, self.rule)

    def under(self, rule: Rule | str) -> Rollouts:
        """The same rollouts judged under another rule, from the stored verdicts.

        Parameters
        ----------
        rule : {"strict", "lookup", "interface"}

        Returns
        -------
        Rollouts
            With ``fed``, ``error_class`` and ``invalid_calls`` decided anew.

        Raises
        ------
        InputError
            If the calls are not there: a table of depths alone cannot be judged again.
        """
        rule = Rule(rule)
        if rule == self.rule:
            return self
        if self.calls is None:
            raise InputError(f"the rule {rule} needs the calls, and this table has only depths; score the logs again")
        faulty = self.calls[self._errors(rule) & self.calls["k"].notna().to_numpy()]
        first = faulty.sort_values("k", kind="stable").groupby(list(KEY), sort=False)
        found = pd.DataFrame(
            {"fed": first["k"].first(), "error_class": first["error_class"].first(), "invalid_calls": first.size()}
        )
        keys = pd.MultiIndex.from_frame(self.frame[list(KEY)])
        found = found.reindex(keys).reset_index(drop=True)
        frame = self.frame.assign(
            fed=found["fed"].astype("Int64").fillna(self.frame["length"] + 1).astype("int64"),
            error_class=found["error_class"],
            invalid_calls=found["invalid_calls"].fillna(0).astype("int64"),
        )
        return Rollouts(frame, self.calls, self.ledger, rule)

    def _errors(self, rule: Rule) -> np.ndarray:
        """Which stored calls are errors under a rule."""
        assert self.calls is not None  # noqa: S101 - callers have checked
        kinds = self.calls[["outcome", "error_class", "lookup"]]
        codes = kinds.groupby(["outcome", "error_class", "lookup"], dropna=False, sort=False).ngroup().to_numpy()
        distinct = kinds.assign(code=codes).drop_duplicates("code").set_index("code").sort_index()
        verdicts = [
            is_error(Outcome(o), None if pd.isna(c) else ErrorClass(c), bool(found), rule)
            for o, c, found in distinct.itertuples(index=False)
        ]
        return np.array(verdicts, dtype=bool)[codes] if len(codes) else np.zeros(0, dtype=bool)

    def call_states(self) -> pd.DataFrame:
        """One row a judged call: what it was in its rollout, for the swimmer plot.

        Returns
        -------
        pandas.DataFrame
            Key columns, ``k``, ``state`` ("ok", "first error", "later error", "ok after error"), ``error_class``
            and ``length, fed, ending, success`` of the rollout. Empty without calls.
        """
        columns = [*KEY, "k", "state", "error_class", "length", "fed", "ending", "success"]
        if self.calls is None:
            return pd.DataFrame(columns=columns)
        calls = self.calls.assign(error=self._errors(self.rule))
        calls = calls[calls["k"].notna()].merge(self.frame[[*KEY, "length", "fed", "ending", "success"]], on=list(KEY))
        k, fed, error = calls["k"].to_numpy("int64"), calls["fed"].to_numpy("int64"), calls["error"].to_numpy(bool)
        state = np.select(
            [error & (k == fed), error, k > fed], ["first error", "later error", "ok after error"], default="ok"
        )
        return calls.assign(state=state, k=k)[columns]

    def to_parquet(self, path: str | Path) -> None:
        """Write the table, its calls (as one nested column), its ledger and its rule into one Parquet file.

        Parameters
        ----------
        path : str or Path

        Examples
        --------
        >>> import tempfile, pandas as pd
        >>> from survexec.rollouts import Rollouts
        >>> runs = Rollouts(pd.DataFrame({"task_id": ["a"], "length": [3], "fed": [4]}))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     runs.to_parquet(f"{folder}/runs.parquet")
        ...     print(len(Rollouts.from_parquet(f"{folder}/runs.parquet")))
        1
        """
        table = pa.Table.from_pandas(self.frame, preserve_index=False)
        if self.calls is not None:
            table = table.append_column("calls", _nested(self.frame, self.calls))
        about = {"format": 1, "rule": str(self.rule), "ledger": self.ledger.to_dict("records")}
        table = table.replace_schema_metadata(
            {**(table.schema.metadata or {}), PARQUET_KEY: json.dumps(about).encode()}
        )
        pq.write_table(table, path)

    @classmethod
    def from_parquet(cls, path: str | Path) -> Rollouts:
        """Read what `to_parquet` wrote.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Rollouts

        Raises
        ------
        InputError
            If the file is Parquet of another origin; `read` takes such a table with ``columns=``.
        """
        table = pq.read_table(path)
        about = (table.schema.metadata or {}).get(PARQUET_KEY)
        if about is None:
            raise InputError(f"{path}: not written by survexec; read it as a table, with columns= if its names differ")
        meta = json.loads(about)
        calls = None
        if "calls" in table.column_names:
            nested = table.column("calls").combine_chunks()
            table = table.drop_columns("calls")
            calls = _unnested(table.to_pandas(), nested)
        ledger = pd.DataFrame(meta["ledger"], columns=list(LEDGER_COLUMNS))
        return cls(table.to_pandas(), calls, ledger, meta["rule"])


_STATUS_WORDS: Final = {
    "crashed": "set aside as crashed",
    "fault": "set aside as faulty",
    "past": "set aside as faulty when the table was made",
    "noted": "noted",
}
# Statuses of rows that are not in the table.
ASIDE: Final = ("crashed", "fault", "past")


def counted(count: int, unit: str) -> str:
    """A count with its unit, one or many: "1 file", "3 rollouts"."""
    return f"{count} {unit.removesuffix('s') if count == 1 else unit}"


def _with_classes(calls: pd.DataFrame) -> pd.DataFrame:
    """Calls with all their classes: where only the first is known, that one."""
    return calls if "classes" in calls.columns else calls.assign(classes=calls["error_class"])


def _kept_as_given(frame: pd.DataFrame) -> pd.DataFrame:
    """The ledger of a table that was handed over as a frame."""
    return pd.DataFrame([("frame", "kept", "", len(frame), "rollouts", "")], columns=list(LEDGER_COLUMNS))


def _nested(frame: pd.DataFrame, calls: pd.DataFrame) -> pa.Array:
    """Calls as one list of structs a rollout, in the order of the frame."""
    keys = pd.MultiIndex.from_frame(frame[list(KEY)])
    row = keys.get_indexer(pd.MultiIndex.from_frame(calls[list(KEY)]))
    order = np.argsort(row, kind="stable")
    order = order[row[order] >= 0]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row[order], minlength=len(frame)))])
    struct = pa.Table.from_pandas(calls[list(CALL_COLUMNS)].iloc[order], preserve_index=False).combine_chunks()
    values = pa.StructArray.from_arrays(
        [struct.column(name).combine_chunks() for name in CALL_COLUMNS], names=list(CALL_COLUMNS)
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _unnested(frame: pd.DataFrame, nested: pa.ListArray) -> pd.DataFrame:
    """Undo `_nested`."""
    counts = np.diff(nested.offsets.to_numpy())
    flat = pa.Table.from_struct_array(nested.flatten()).to_pandas()
    keys = frame[list(KEY)].iloc[np.repeat(np.arange(len(frame)), counts)].reset_index(drop=True)
    return pd.concat([keys, flat.assign(k=flat["k"].astype("Int64"))], axis=1)


def ledger_of(rows: Iterable[tuple[str, str, str, int, str, str]]) -> pd.DataFrame:
    """A ledger from its rows (source, status, reason, count, unit, examples)."""
    return pd.DataFrame(list(rows), columns=list(LEDGER_COLUMNS))


def ending_is_crash(frame: pd.DataFrame) -> pd.Series:
    """Which rows ended in a crash of the infrastructure."""
    return frame["ending"] == str(Ending.CRASHED)
