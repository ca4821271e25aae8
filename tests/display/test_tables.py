"""Tables: what is rounded how, what is named where, and that data is only ever text in Markdown, LaTeX and HTML."""

import io
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import survexec as sx
from survexec.display import markup, tables, wording
from survexec.errors import InputError
from survexec.rollouts import Rollouts

NASTY = "a|b_c$%&#{}~^\\<script>alert(1)</script>[x](y)\n*_é–中^^M"


def cohort(methods=("plain", "checked"), tasks=40, seed=1, **columns):
    """Rollouts of some methods on the same tasks."""
    rng = np.random.default_rng(seed)
    rows = []
    for method in methods:
        length = rng.integers(1, 9, tasks)
        fed = np.minimum(rng.integers(1, 14, tasks), length + 1)
        rows.append(
            pd.DataFrame(
                {
                    "method": method,
                    "task_id": range(tasks),
                    "length": length,
                    "fed": fed,
                    "success": rng.random(tasks) < 0.6,
                }
            )
        )
    return Rollouts(pd.concat(rows, ignore_index=True).assign(**columns))


def all_kinds(rollouts):
    """One result of each kind."""
    results = [sx.summarize(rollouts, resamples=200), sx.compare(rollouts, resamples=200), sx.first_errors(rollouts)]
    return results + [sx.curves(rollouts, kind=kind, resamples=200) for kind in ("pec", "pec_elig", "states")]


@pytest.fixture(scope="module")
def results():
    """Results of two methods."""
    return {result.kind: result for result in all_kinds(cohort(benchmark="tau-retail"))}


@pytest.fixture(scope="module")
def nasty():
    """Results whose every name is hostile."""
    return all_kinds(cohort((NASTY, "[0.1, 0.2]"), benchmark=NASTY))


def test_a_summary_has_a_row_a_cell_and_a_column_a_metric(results):
    made = tables.grid(results["summary"])
    assert made.header[:4] == ("Method", "TER", "Mean FED", "AUC-PEC")
    assert set(made.header[1:]) == set(tables.COLUMNS.values())
    assert [row.cells[0].text for row in made.rows] == ["plain", "checked"]


def test_an_estimate_is_rounded_with_its_interval(results):
    frame = results["summary"].frame
    ter = frame[(frame["method"] == "plain") & (frame["metric"] == "ter")].iloc[0]
    expected = f"{ter['estimate']:.2f} [{ter['lower']:.2f}, {ter['upper']:.2f}]"
    assert f"| plain | {expected} |" in tables.to_markdown(results["summary"])


def test_shares_get_a_third_decimal_once_their_intervals_are_narrow():
    made = tables.grid(sx.summarize(cohort(tasks=4000), resamples=200))
    assert re.fullmatch(r"0\.\d{3}", made.rows[0].cells[1].text)
    assert re.fullmatch(r"\d\.\d{2}", made.rows[0].cells[2].text)


def test_columns_that_every_cell_shares_move_to_the_caption_unless_unknown(results):
    made = tables.grid(results["summary"])
    assert "tau-retail" in made.caption
    assert "unknown" not in made.caption
    assert "Benchmark" not in made.header


def test_one_cell_alone_needs_no_name():
    made = tables.grid(sx.summarize(cohort(("solo",)), resamples=200))
    assert made.labels == 0
    assert "solo" in made.caption


def test_an_undefined_number_is_a_dash_and_its_reason_stands_below():
    text = tables.to_markdown(sx.summarize(cohort(success=None), resamples=200))
    row = next(line for line in text.splitlines() if line.startswith("| plain"))
    assert row.split(" | ")[6] == wording.DASH
    assert "–: undefined (0/0)" in text
    assert "no recorded success" in text


def test_a_difference_stands_with_denominators_and_its_p_value(results):
    row = results["comparison"].frame.iloc[0]
    made = tables.grid(results["comparison"])
    cells = made.rows[0].cells
    assert cells[0].text == "TER"
    assert cells[1].small == f"({row['denominator_a']})"
    assert cells[3].text == f"{row['difference']:.3f}".replace("-", "−")
    assert made.rows[0].group == "a = plain, b = checked (40 pairs)"
    assert "Holm over these 4 tests" in made.foot


def test_a_small_p_value_is_bounded_not_printed_as_zero():
    assert [wording.p_value(p) for p in (0.00099, 0.001, 0.0495, np.nan)] == ["<0.001", "0.001", "0.050", "–"]


def test_numbers_have_a_true_minus_and_a_dash_where_undefined():
    assert [wording.number(x, 3) for x in (-0.1234, 0.5, float("nan"))] == ["−0.123", "0.500", "–"]
    assert [wording.brief(x) for x in (-0.12345, 17.0, float("nan"))] == ["−0.123", "17", "–"]


def test_a_difference_that_rounds_to_nothing_has_no_sign():
    assert wording.number(-0.0004, 3) == "0.000"
    assert wording.number(-0.0006, 3) == "−0.001"


def test_an_unusual_interval_is_marked_and_named_in_the_foot():
    made = tables.grid(sx.compare(cohort(tasks=12), resamples=200))
    marked = {row.cells[0].text for row in made.rows if row.cells[3].mark}
    assert "RR" in marked
    assert "†: MOVER from Wilson limits" in made.foot


def test_curves_stand_side_by_side_with_those_at_risk(results):
    made = tables.grid(results["pec"])
    assert made.header == ("k", "plain", "At risk", "checked", "At risk")
    assert [cell.text for cell in made.rows[0].cells] == ["0", "1.00", "40", "1.00", "40"]


def test_states_of_a_depth_add_to_one(results):
    for row in tables.grid(results["states"]).rows:
        assert sum(float(cell.text) for cell in row.cells[1:4]) == pytest.approx(1, abs=0.021)


def test_first_errors_add_up_over_classes(results):
    made = tables.grid(results["first_errors"])
    total = sum(int(row.cells[made.header.index("All")].text) for row in made.rows)
    assert total == results["summary"].frame.query("metric == 'rr_eligible'")["estimate"].sum()


def test_an_unknown_kind_is_refused_by_name():
    with pytest.raises(InputError, match="no table for results of kind 'map'"):
        tables.grid(type("Result", (), {"kind": "map"})())


def test_csv_keeps_full_precision(results):
    frame = pd.read_csv(io.StringIO(results["summary"].to_csv()), float_precision="round_trip")
    assert np.array_equal(frame["lower"], results["summary"].frame["lower"], equal_nan=True)


def test_markdown_rows_have_as_many_cells_as_the_header_whatever_the_names(nasty):
    for result in nasty:
        lines = [line for line in tables.to_markdown(result).splitlines() if line.startswith("|")]
        cells = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines}
        assert len(cells) == 1, result.kind


def test_markdown_passes_no_markup_from_data(nasty):
    for result in nasty:
        text = tables.to_markdown(result)
        assert "<script" not in text
        assert "](y)" not in text.replace(r"\](y)", "")


def test_markdown_leaves_plain_names_and_intervals_alone():
    made = markup.Grid(("n",), (markup.Row((markup.Cell("tool_calling", "[0.1, 0.2]"),)),), 1, "C.", "l")
    assert "| tool_calling [0.1, 0.2] |" in markup.markdown(made)


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.words.append(data)


def test_html_shows_hostile_names_as_text(nasty):
    for result in nasty:
        page = Tags(tables.to_html(result))
        assert "script" not in page.tags
        assert "<script>" in "".join(page.words)


def test_a_result_shows_itself_as_a_table(results):
    assert all(result._repr_html_().startswith("<table") for result in results.values())
    assert str(results["summary"]) == results["summary"].to_markdown()


def test_latex_notes_are_comments_of_one_line(nasty):
    for result in nasty:
        before, *_ = tables.to_latex(result).split("\\begin{table}")
        assert all(line.startswith("%") for line in before.splitlines())
        assert len(before.splitlines()) == len(result.notes)


def test_latex_takes_a_caption_and_a_label(results):
    text = tables.to_latex(results["summary"], caption="50% & more", label="tab:main results")
    assert "\\caption{50\\% \\& more}" in text
    assert "\\label{tab:main-results}" in text


def test_latex_moves_columns_that_do_not_fit_into_a_further_block(results):
    text = tables.to_latex(results["summary"])
    assert text.count("\\begin{tabular}") == 2
    assert text.count("\\begin{table}") == 1


def test_latex_puts_rows_that_do_not_fit_a_page_into_a_further_float():
    rows = tuple(markup.Row((markup.Cell(str(k)), markup.Cell("1"))) for k in range(120))
    text = markup.latex(markup.Grid(("k", "n"), rows, 1, "Long.", "tab:long"))
    assert text.count("\\begin{table}") == 3
    assert text.count("(continued)") == 2
    assert text.count("\\label") == 1


@pytest.mark.slow
def test_latex_compiles_with_booktabs_alone_and_fits(nasty, results, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    letters = "".join(chr(code) for code in range(0x20, 0x250)) + "−–—×·≤≥†‡§¶‘’“”…中😀"
    odd = markup.Grid(
        ("k",), tuple(markup.Row((markup.Cell(f"{mark}x"),)) for mark in ("[", "*", "--", "{")), 1, letters, "tab:odd"
    )  # fmt: skip
    bodies = [tables.to_latex(result) for result in [*nasty, *results.values()]] + [markup.latex(odd)]
    document = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\\end{document}"
    (tmp_path / "t.tex").write_text(document % "\\clearpage\n".join(bodies), encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    log = (tmp_path / "t.log").read_text(encoding="latin-1")
    assert done.returncode == 0, log[-2000:]
    assert "Missing character" not in log
    assert "Float too large" not in log
