"""Tables and figures of the paper: they regenerate, agree with what was published, and tell where they do not."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import survexec as sx
from survexec.datasets import PUBLISHED, load_published
from survexec.errors import InputError, SurvexecError
from survexec.paper import PIECES, cohort, compare, make, paper, piece_of
from survexec.paper.piece import ENDINGS
from survexec.paper.script import script

SCRIPTS = Path(__file__).resolve().parents[1] / "paper_figures"
COMMITTED = SCRIPTS / "out"
# Of pieces that need no cohort.
QUICK = ("metrics", "cost", "verifier_study")
# The greatest distance of two images that show the same: glyphs move by parts of a pixel from one FreeType to another.
NEAR = 0.02


def pooled(path):
    """The grey values of an image in blocks of 12 x 12 dots: what an eye sees of it at column width."""
    grey = imread(path)[..., :3].mean(axis=2)
    rows, columns = (size // 12 * 12 for size in grey.shape)
    return grey[:rows, :columns].reshape(rows // 12, 12, columns // 12, 12).mean(axis=(1, 3))


def distance(a, b):
    """Root mean square of the differences of two images; infinite where their sizes differ."""
    one, other = pooled(a), pooled(b)
    return float(np.sqrt(((one - other) ** 2).mean())) if one.shape == other.shape else np.inf


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    return folder, paper(folder)


def same(folder, name):
    for ending in ("md", "tex"):
        assert (folder / f"{name}.{ending}").read_text() == (COMMITTED / f"{name}.{ending}").read_text(), ending
    assert distance(folder / f"{name}.png", COMMITTED / f"{name}.png") < NEAR


@pytest.mark.slow
def test_the_tables_and_figures_regenerate_and_every_published_cell_matches(made):
    folder, found = made
    assert (len(found.frame), int(found.frame["agrees"].sum())) == (190, 190)
    for name in PIECES:
        same(folder, name)
        assert all((folder / f"{name}.{ending}").stat().st_size for ending in ENDINGS)
    assert (folder / "index.md").read_text() == (COMMITTED / "index.md").read_text()


def test_a_piece_declares_the_tables_that_it_reads(monkeypatch):
    read = {}
    for name in ("main", "tau3"):
        seen = read.setdefault(name, [])

        def noted(table, *, seen=seen, **how):
            seen.append(table)
            return load_published(table, **how)

        monkeypatch.setattr(cohort, "load_published", noted)
        cohort.stated(name)
    cached = r'\b(?:estimates|summary)\("main"\)|\b(?:pec|pec_bounds|differences)\('
    for name in PIECES:
        text = inspect.getsource(importlib.import_module(f"survexec.paper.{name}"))
        needed = set(re.findall(r'load_published\("(\w+)"', text))
        needed |= set(read["main"]) if re.search(cached, text) else set()
        needed |= set(read["tau3"]) if 'estimates("tau3")' in text else set()
        assert needed == set(piece_of(name).inputs), name


@pytest.mark.parametrize("name", QUICK)
def test_a_piece_without_a_cohort_regenerates(tmp_path, name):
    assert make(piece_of(name), tmp_path) == ""
    same(tmp_path, name)


def test_the_committed_tables_agree_with_every_published_cell():
    found = compare.compare(COMMITTED)
    found.demand()
    assert str(found) == (
        "190 of 190 published cells matched: 144 (main_table) + 28 (pec_at_k) + 12 (tau3_transfer) + 6 (cost)"
    )


def test_every_published_number_is_compared():
    counted = {"main": 24 * 6, "pec_at_k": 28, "tau3": 12, "cost": 6}
    for name, count in counted.items():
        table = load_published(name, printed=True)
        numbers = table.drop(columns=[c for c in ("benchmark", "model", "method", "n") if c in table])
        assert int((numbers != "").to_numpy().sum()) == count


@pytest.mark.parametrize(
    ("table", "row", "column", "told"),
    [
        ("main", 10, "rr", "main_table, BFCL-v3 · Llama-4 Maverick, Plan-Cond. ReAct, RR: ours 0.73, published 0.72"),
        ("pec_at_k", 9, "pec_4", "pec_at_k, BFCL-v3 · Llama-4 Maverick, Dual-Loop, PEC@4: ours 0.78, published 0.72"),
        ("tau3", 5, "success", "tau3_transfer, tau3-bench · GPT-4.1, Prompt Planning, Success: ours 0.51, publ"),
        ("cost", 2, "token_change", "cost, Llama-4 Maverick, Agent tokens: ours -0.03, published 0.72"),
    ],
)  # fmt: skip
def test_an_altered_published_cell_is_named(monkeypatch, table, row, column, told):
    def altered(name, *, printed=False):
        frame = load_published(name, printed=printed)
        if name == table:
            frame.loc[row, column] = "0.72"
        return frame

    monkeypatch.setattr(compare, "load_published", altered)
    with pytest.raises(SurvexecError, match="1 of 190 cells differ") as caught:
        compare.compare(COMMITTED).demand()
    assert told in str(caught.value)


def test_a_printed_cell_that_is_missing_or_has_another_digit_is_named(tmp_path):
    text = (COMMITTED / "cost.md").read_text()
    (tmp_path / "cost.md").write_text(text.replace("+0.12", "+0.120").replace("| +0.22 |", "|  |"))
    wrong = compare.compare(tmp_path, ["cost"]).frame.query("not agrees")
    assert wrong[["row", "ours", "published"]].to_numpy().tolist() == [
        ["GPT-5.4 (high)", "", "+0.22"],
        ["GPT-4.1", "+0.120", "+0.12"],
    ]


def test_images_of_different_things_are_far_apart(tmp_path):
    assert distance(COMMITTED / "cost.png", COMMITTED / "metrics.png") == np.inf
    flipped = np.flip(imread(COMMITTED / "rank_inversion.png"), axis=1)
    from matplotlib.image import imsave

    imsave(tmp_path / "flipped.png", np.ascontiguousarray(flipped))
    assert distance(COMMITTED / "rank_inversion.png", tmp_path / "flipped.png") > 3 * NEAR


def test_what_comes_from_a_cohort_says_so():
    for name in PIECES:
        text = (COMMITTED / f"{name}.md").read_text()
        assert "Reconstructed from published aggregates" in text or name in QUICK, name
    for name in ("cost", "verifier_study"):
        assert "As published" in (COMMITTED / f"{name}.md").read_text()


def test_there_is_a_script_for_every_piece_that_names_its_inputs():
    scripts = {path.stem: path.read_text() for path in SCRIPTS.glob("*.py")}
    assert set(scripts) == set(PIECES)
    for name, text in scripts.items():
        inputs = re.search(r"Inputs: (.*)\.", text)
        assert f'script("{name}")' in text
        assert inputs[1] == (", ".join(piece_of(name).inputs) or "none, the definitions")
        spec = importlib.util.spec_from_file_location(f"script_{name}", SCRIPTS / f"{name}.py")
        spec.loader.exec_module(importlib.util.module_from_spec(spec))  # imports alone, and does nothing


def test_a_script_runs_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPTS / "cost.py", "-o", tmp_path], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == "6 of 6 published cells matched: 6 (cost)\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cost.md", "cost.pdf", "cost.png", "cost.tex"]


def test_a_script_tells_why_rollouts_do_not_make_it(tmp_path, capsys):
    rollouts = sx.datasets.load_tau_retail_methods()
    rollouts.to_parquet(tmp_path / "runs.parquet")
    (tmp_path / "cost.md").write_text("of an earlier run")
    assert script("cost", ["-o", str(tmp_path), "--rollouts", str(tmp_path / "runs.parquet")]) == 0
    assert capsys.readouterr().out.startswith("cost: left out: the cost table repeats published")
    assert not (tmp_path / "cost.md").exists()


def test_a_script_tells_an_error_in_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert script("cost", ["-o", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err == f"cost: {tmp_path / 'file'}: is a file; tables and figures need a folder\n"


@pytest.mark.slow
def test_real_rollouts_give_the_same_tables_with_intervals(tmp_path):
    rollouts = sx.datasets.load_tau_retail_methods()
    assert paper(tmp_path, rollouts, resamples=200) is None
    skipped = ("tau3_transfer", "cost", "verifier_study")
    assert {path.stem for path in tmp_path.glob("*.tex")} == set(PIECES) - set(skipped)
    summary = (tmp_path / "main_table.md").read_text()
    assert "| tool_calling | 0.77 [0.68, 0.84] |" in summary
    assert "| M1" not in summary
    assert "econstructed" not in "".join(path.read_text() for path in tmp_path.glob("*.md"))
    index = (tmp_path / "index.md").read_text()
    assert all(piece_of(name).skipped in index for name in skipped)
    assert "| What each metric sees | definitions |" in index


def test_one_method_alone_has_no_ranks_and_no_differences(tmp_path):
    one = sx.datasets.load_tau_airline_gpt4o()
    for name in ("rank_inversion", "differences"):
        assert make(piece_of(name), tmp_path, one, 200)
    assert list(tmp_path.iterdir()) == []


def test_the_published_tables_are_those_of_the_source(shared):
    names = {"main": "table_main", "pec_at_k": "table_pec_at_k", "tau3": "table_tau3", "cost": "table_tau3_cost"}
    folder = Path(sx.datasets.__file__).parent / "published"
    for ours, theirs in names.items():
        assert (folder / f"{ours}.csv").read_text() == (shared / "paper" / f"{theirs}.csv").read_text()


def test_published_tables_are_numbers_or_text():
    assert load_published("tau3")["ter"].isna().sum() == 1
    assert load_published("tau3", printed=True)["ter"].tolist()[-1] == ""
    assert all(len(load_published(name)) for name in PUBLISHED)
    with pytest.raises(InputError, match="no published table 'table_1'; there are: main, pec_at_k"):
        load_published("table_1")


def test_an_unknown_piece_is_refused():
    with pytest.raises(InputError, match="no table or figure 'table_1'; there are: metrics, main_table"):
        piece_of("table_1")
