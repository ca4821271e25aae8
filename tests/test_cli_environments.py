"""survexec env, and --replay on the command line."""

import json
import os
import subprocess
import sys

from typer.testing import CliRunner

from survexec.cli import app
from survexec.protocol.environments import packages


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_list_says_what_can_be_used_and_how_to_get_the_rest(monkeypatch):
    monkeypatch.setattr(packages, "importable", lambda name: name == "tau2")
    lines = {line.split()[0]: line for line in run("env", "list").stdout.splitlines()}
    assert lines["bfcl"].endswith("no: survexec env install bfcl")
    assert lines["tau2"].endswith("yes")
    assert lines["phone"].endswith("yes")
    assert {"toolsandbox", "mcp"} <= set(lines)


def test_install_puts_the_named_package_into_the_cache(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(packages, "install", lambda name: asked.append(name) or tmp_path)
    result = run("env", "install", "bfcl")
    assert asked == ["bfcl"]
    assert f"bfcl-eval==2026.3.23 is installed in {tmp_path}" in result.stdout


def test_what_cannot_be_installed_is_a_wrong_word():
    assert run("env", "install", "chess").exit_code == 2


def test_a_replay_names_the_package_that_is_missing_and_how_to_get_it(tmp_path):
    log = tmp_path / "result.json"
    log.write_text(json.dumps({"id": "multi_turn_base_0", "result": [[['{"ls": {}}']]]}) + "\n")
    # a process of its own: other tests of this one may have made the package importable
    words = [sys.executable, "-m", "survexec", "score", log, "--replay", "bfcl", "-o", tmp_path / "out.parquet"]
    here = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(words, env=here, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "survexec env install bfcl" in done.stderr


def test_options_of_an_environment_are_a_json_object(tmp_path):
    (tmp_path / "x.csv").write_text("task_id,length,fed\na,1,2\n")
    result = run(
        "score", tmp_path / "x.csv", "--replay", "mcp", "--replay-options", "[1]", "-o", tmp_path / "o.parquet"
    )
    assert result.exit_code == 2
    assert "is no JSON object" in result.stderr
