"""Exceptions and warnings. Everything survexec raises on purpose derives from `SurvexecError`."""

from __future__ import annotations


class SurvexecError(Exception):
    """Base of every error that survexec raises on purpose."""


class InputError(SurvexecError):
    """The input is at fault: the message names the file, the row, the value and what would be right."""


class RolloutsError(InputError):
    """A table of rollouts breaks its own rules.

    Parameters
    ----------
    faults : list of str
        One line a fault, each naming row, column, value and what would be right. All faults of a table
        are reported at once.
    """

    def __init__(self, faults: list[str]) -> None:
        self.faults = list(faults)
        shown = self.faults[:20]
        more = len(self.faults) - len(shown)
        lines = [f"{len(self.faults)} fault{'s' if len(self.faults) != 1 else ''} in the table of rollouts:"]
        lines += [f"  - {fault}" for fault in shown]
        if more:
            lines.append(f"  - and {more} more")
        super().__init__("\n".join(lines))


class PairingError(InputError):
    """Two sides cannot be paired by task: they have no task in common."""


class SurvexecWarning(UserWarning):
    """Something was set aside, or a number needs care; the same text stands in the ledger or the notes."""
