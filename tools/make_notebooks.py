"""Run the notebooks and keep their outputs, without what would differ from one machine or hour to another.

The `.ipynb` files are the source: edit them in JupyterLab (`make notebooks`), then

    python tools/make_notebooks.py                       # all of them
    python tools/make_notebooks.py notebooks/1_first_look.ipynb
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def tidied(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with cells numbered and counted from 1, and with no metadata but the name of its kernel and tags."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    count = 0
    for number, cell in enumerate(notebook.cells, start=1):
        tags = cell.metadata.get("tags")
        cell.id, cell.metadata = f"cell-{number}", nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        for output in cell.outputs:
            if "metadata" in output:
                output.metadata = nbformat.NotebookNode()
            if "execution_count" in output:
                output.execution_count = count
            data = output.get("data", {})
            if len(data) > 1:  # what a page or GitHub shows is enough
                data.pop("text/plain", None)
    return notebook


def run(path: Path) -> None:
    """Run a notebook in its folder and write it back; an error is raised and nothing is written."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, record_timing=False, resources={"metadata": {"path": path.parent}}).execute()
    nbformat.write(tidied(notebook), path)


if __name__ == "__main__":
    for given in [Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        run(given)
        sys.stdout.write(f"{given.name}: {given.stat().st_size / 1000:.0f} kB\n")
