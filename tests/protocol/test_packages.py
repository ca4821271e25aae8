"""Where benchmarks' packages are, and that an installation is whole or not there."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from survexec.errors import InputError, SurvexecError
from survexec.protocol.environments import packages


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(packages.platformdirs, "user_cache_dir", lambda *_, **__: str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not Path(entry, "bfcl_eval").is_dir()])
    monkeypatch.delitem(sys.modules, "bfcl_eval", raising=False)
    return tmp_path / "cache" / "environments"


@pytest.fixture
def pip(monkeypatch):
    """A pip that writes a module for each requirement, and fails at those it is told to."""
    runs, fails = [], set()

    def run(command, **_):
        target, wanted = Path(command[command.index("--target") + 1]), command[-1]
        runs.append(command[4:])
        target.mkdir(exist_ok=True)
        (target / f"{wanted.partition('==')[0].replace('-', '_')}.py").write_text("")
        bad = wanted in fails
        return subprocess.CompletedProcess(command, bad, "", "ERROR: no such version\n" if bad else "")

    monkeypatch.setattr(packages.subprocess, "run", run)
    return runs, fails


def test_nothing_is_installed_at_first():
    assert packages.path_of("bfcl") is None
    assert not packages.importable("bfcl")
    with pytest.raises(InputError, match="survexec env install bfcl"):
        packages.use("bfcl")


def test_the_benchmark_comes_without_its_requirements_and_its_needs_with_theirs(pip, cache):
    folder = packages.install("bfcl")
    assert folder == packages.path_of("bfcl") == cache / f"bfcl-eval-2026.3.23-{sys.implementation.cache_tag}"
    assert sorted(file.name for file in folder.iterdir()) == ["bfcl_eval.py", "mpmath.py"]
    assert [("--no-deps" in run, run[-1]) for run in pip[0]] == [(True, "bfcl-eval==2026.3.23"), (False, "mpmath")]
    assert [entry.name for entry in cache.iterdir()] == [folder.name]


def test_another_python_needs_an_installation_of_its_own(pip, monkeypatch):
    packages.install("bfcl")
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(**vars(sys.implementation) | {"cache_tag": "other-1"}))
    assert packages.path_of("bfcl") is None
    with pytest.raises(InputError, match="survexec env install bfcl"):
        packages.use("bfcl")


def test_a_failed_installation_leaves_what_was_there(pip, cache):
    packages.install("bfcl")
    (packages.path_of("bfcl") / "mine.txt").write_text("x")
    pip[1].add("mpmath")
    with pytest.raises(SurvexecError, match="could not install mpmath:\nERROR: no such version"):
        packages.install("bfcl")
    assert (packages.path_of("bfcl") / "mine.txt").exists()
    pip[1].clear()
    packages.install("bfcl")
    assert not (packages.path_of("bfcl") / "mine.txt").exists()
    assert len(list(cache.iterdir())) == 1


def test_what_was_installed_can_be_imported_after_all_else(pip):
    folder = packages.install("bfcl")
    assert packages.importable("bfcl")
    packages.use("bfcl")
    packages.use("bfcl")
    assert sys.path.count(str(folder)) == 1
    assert sys.path[-1] == str(folder)


def test_the_users_own_environment_comes_first(pip, tmp_path, monkeypatch):
    (tmp_path / "bfcl_eval.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert packages.importable("bfcl")
    packages.use("bfcl")
    assert packages.path_of("bfcl") is None


def test_an_unknown_benchmark_is_an_error():
    for function in (packages.path_of, packages.importable, packages.use, packages.install):
        with pytest.raises(InputError, match="'chess' is not known: bfcl, tau2 are"):
            function("chess")


def test_every_package_is_pinned_to_a_tested_version():
    for package in packages.PACKAGES.values():
        assert package.requirement.partition("==")[2] in package.tested
        assert package.requirements[0] == package.requirement
