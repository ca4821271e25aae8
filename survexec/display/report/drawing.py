"""The figures of a report: what each shows, how to read it, and drawing them on two processors."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from survexec.display.report.analyses import Analyses

HEADLINES: Final = ("ter", "mean_fed", "auc_pec", "rr", "success")


@dataclass(frozen=True)
class Drawing:
    """One figure of a report.

    Parameters
    ----------
    name : str
        Of its files.
    title, reading : str
        What it shows and how to read it.
    draw : callable
        (`survexec.display.figures`, Analyses) -> a figure or axes.
    missing : callable
        Analyses -> why there is nothing to draw; "" where there is.
    wide : bool
        Two columns wide, so that a narrow screen scrolls it.
    """

    name: str
    title: str
    reading: str
    draw: Callable[[Any, Analyses], Any]
    missing: Callable[[Analyses], str] = lambda _: ""
    wide: bool = True


def _unlabelled(done: Analyses) -> str:
    success = done.summary.frame.query("metric == 'success'")["estimate"]
    return "no rollout has a recorded success" if success.isna().all() else ""


def _known(comparison: Any) -> list[str]:
    """The headline metrics that have a difference somewhere."""
    known = set(comparison.frame.dropna(subset="difference")["metric"])
    return [name for name in HEADLINES if name in known]


def _reason(value: Any) -> str:
    return value if isinstance(value, str) else ""


DRAWINGS: Final = (
    Drawing(
        "states",
        "What had become of the rollouts after k calls",
        "A vertical cut at depth k splits all rollouts of a cell. The upper edge of the palest area is PEC(k); a wide "
        "blue area says that PEC falls because rollouts end, not because they fail.",
        lambda figures, done: figures.state_stacks(done.states),
    ),
    Drawing(
        "pec",
        "Prefix executability over depth",
        "Left: of all rollouts; right: of those with at least k calls. Where the left curve falls and the right one "
        "does not, rollouts finish; where both fall, they fail. The dark ribbon holds at one depth, the pale one for "
        "the whole curve.",
        lambda figures, done: figures.pec_beside_eligible(done.pec, done.pec_elig),
    ),
    Drawing(
        "success_against_ter",
        "Success against clean execution",
        "On a grey line success = TER + (1 − TER) r: the higher the line, the more of the erring rollouts were "
        "repaired. Points in the shaded corner failed tasks without any error.",
        lambda figures, done: figures.success_against_ter(done.summary),
        _unlabelled,
        wide=False,
    ),
    Drawing(
        "decomposition",
        "Where success comes from",
        "A bar ends at the success rate. Its first part is success without an error (TER × s), its second success "
        "after one ((1 − TER) × RR).",
        lambda figures, done: figures.decomposition_bars(done.summary),
        _unlabelled,
        wide=False,
    ),
    Drawing(
        "differences",
        "Paired differences",
        "A point right of the zero line says that a has the higher value. Where the whisker does not reach the line, "
        "the interval excludes no difference.",
        lambda figures, done: figures.forest(done.comparison, metrics=_known(done.comparison)),
        lambda done: _reason(done.comparison),
    ),
    Drawing(
        "first_errors",
        "Depth and class of the first error",
        "The bar at k counts rollouts whose first error was call k. The number under it is how many were about to make "
        "that call without an earlier error: bar over number is the hazard.",
        lambda figures, done: figures.first_error_profile(done.first_errors),
        lambda done: "" if done.first_errors.frame["events"].sum() else "no rollout erred",
    ),
    Drawing(
        "swimmer",
        "Every call of every rollout",
        "A row is a rollout, a cell a call. The dark cell is the first call that could not be executed; the mark at "
        "the end says whether the task succeeded.",
        lambda figures, done: figures.swimmer(done.calls),
        lambda done: _reason(done.calls),
    ),
)


def draw(names: Iterable[str], done: Any, folder: Path) -> set[str]:
    """Draw figures into a folder, each as PDF and PNG, except those that another process draws already.

    Parameters
    ----------
    names : iterable of str
        Of `DRAWINGS`.
    done : Analyses
        Or anything with the frames of one.
    folder : Path
        Without files of these names; a figure is taken by creating its file.

    Returns
    -------
    set of str
        What was drawn here.
    """
    from survexec.display import figures, style

    known = {drawing.name: drawing for drawing in DRAWINGS}
    mine = set()
    collecting = gc.isenabled()
    gc.disable()  # a figure is a great many small objects, all in use: looking for garbage costs a tenth of the time
    try:
        for name in names:
            try:
                (folder / f"{name}.png").touch(exist_ok=False)
            except FileExistsError:
                continue
            mine.add(name)
            figure = known[name].draw(figures, done).figure
            style.settle(figure)  # the layout is found once, not again for each format
            style.save(figure, folder / name)
    finally:
        if collecting:
            gc.enable()
    return mine


class Helper:
    """A second Python that loads the drawing library while the first computes, then draws figures beside it.

    A process of its own, not a fork: it is safe whatever threads the caller runs, and a script needs no guard for it.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if (os.cpu_count() or 1) > 1 and sys.executable:
            places = os.pathsep.join(place for place in sys.path if place)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", "from survexec.display.report.drawing import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": places},
            )

    def hand(self, names: Sequence[str], done: Analyses, folder: Path) -> None:
        """Ask for figures, where there is such a process.

        Parameters
        ----------
        names : sequence of str
        done : Analyses
        folder : Path
        """
        if self._process is None or self._process.stdin is None:
            return
        told = pickle.dumps((names, _light(done), folder))
        # it reads when it has loaded: this process goes on meanwhile
        threading.Thread(target=_pour, args=(told, self._process.stdin), daemon=True).start()

    def finished(self) -> bool:
        """Wait for the figures; False where they could not be drawn."""
        return self._process is not None and self._process.wait() == 0

    def __enter__(self) -> Helper:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _pour(told: bytes, stream: IO[bytes]) -> None:
    """Write to a process and close; where it has ended already, it says so by how it ended."""
    with contextlib.suppress(OSError), stream:
        stream.write(told)


def serve() -> None:
    """Load the drawing library, then draw what the other process asks for."""
    from survexec.display import figures  # noqa: F401 - loading it is the point

    names, done, folder = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    draw(names, done, folder)


def _light(done: Analyses) -> SimpleNamespace:
    """What the figures read of the results, without the replicates behind them."""
    light = dict(vars(done))
    for name, result in light.items():
        if hasattr(result, "made"):
            read = ("frame", "by", "kind", "made", "decomposition")
            light[name] = SimpleNamespace(**{key: getattr(result, key) for key in read if hasattr(result, key)})
    return SimpleNamespace(**light)
