"""The notebooks run from top to bottom, say nothing on stderr, and show what they show in the repository."""

import html
import re
from pathlib import Path

import nbformat
import pytest
from nbmake.nb_run import NotebookRun

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))
named = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
TIME_LIMIT = 300  # seconds a cell


def shown(notebook):
    """The words and numbers of every output, cell by cell; of an image only that there is one.

    Cells tagged "may-vary" show one of many cohorts, which another solver may replace by another.
    """
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    fixed = [cell for cell in cells if "may-vary" not in cell["metadata"].get("tags", ())]
    return [[_words(output) for output in cell["outputs"]] for cell in fixed]


def disturbances(notebook):
    """Outputs that are errors, come from stderr or speak of a warning."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return [
        _words(output)
        for output in outputs
        if output["output_type"] == "error" or output.get("name") == "stderr" or "Warning" in _words(output)
    ]


def _words(output):
    if output["output_type"] == "stream":
        return f"{output['name']}: {output['text']}"
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    data = output["data"]
    if "image/png" in data:
        return "an image"
    if "text/html" not in data:
        return data["text/plain"]
    text = re.sub(r"<style.*?</style>", "", data["text/html"], flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def test_there_are_five_notebooks():
    assert [path.name[:2] for path in NOTEBOOKS] == ["1_", "2_", "3_", "4_", "5_"]


@pytest.mark.slow
@named
def test_a_notebook_runs_and_shows_what_it_shows_in_the_repository(path):
    run = NotebookRun(path, TIME_LIMIT).execute()
    assert run.error is None, run.error.trace
    assert disturbances(run.nb) == []
    assert shown(run.nb) == shown(nbformat.read(path, as_version=4))


@named
def test_no_output_in_the_repository_is_an_error_or_a_warning(path):
    assert disturbances(nbformat.read(path, as_version=4)) == []


@named
def test_a_notebook_is_small_and_keeps_nothing_of_the_machine_it_ran_on(path):
    text, notebook = path.read_text(encoding="utf-8"), nbformat.read(path, as_version=4)
    assert len(text) < 400_000
    assert not re.search(r'"[^"\n]*(?:/home/|/root/|/tmp/|/Users/|site-packages|C:\\\\)', text)
    assert notebook["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert all(cell["metadata"] in ({}, {"tags": ["may-vary"]}) for cell in notebook["cells"])
    counts = [cell["execution_count"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
