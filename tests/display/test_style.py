"""The look of figures: literal text, wrapping, saving, and nothing left behind."""

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.figure import Figure

from survexec.display import style


def shown(text: str) -> str:
    """What matplotlib prints for a text."""
    words, mathematics = Figure().text(0, 0, text)._preprocess_math(text)
    assert mathematics is not True
    return words


@pytest.mark.parametrize("text", ["a$b$", "$x^2$", r"cost \$5", r"\$$", "50% of $5", "Ünïcode λ Ж", "a_b^c"])
def test_text_from_data_prints_literally(text):
    assert shown(style.literal(text)) == text


def test_control_characters_of_a_log_become_spaces():
    assert style.literal("a\x07b\nc") == "a b c"


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_missing_label_is_a_dash(missing):
    assert style.literal(missing) == "–"


@pytest.mark.parametrize("text", ["tool_calling_preconditions", "x" * 60, "gpt-4.1 mini / retail", r"a\$b" * 9])
def test_wrapped_lines_fit_and_keep_every_character(text):
    lines = style.wrap(text, 60, 8).split("\n")
    assert all(style.width_of(line, 8) <= 60 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_a_short_text_stays_on_its_line():
    assert style.wrap("assertions", 100, 8) == "assertions"


def test_twelve_series_differ_in_marker_or_dash_even_in_greyscale():
    looks = [style.stroke(index) for index in range(12)]
    assert len({(look.dash, look.marker) for look in looks}) == 12


def test_drawing_leaves_the_readers_settings_alone():
    before = dict(matplotlib.rcParams)
    inside = style.styled(lambda: matplotlib.rcParams["font.size"])()
    assert inside == style.TEXT
    assert dict(matplotlib.rcParams) == before


def test_a_readers_dark_theme_does_not_reach_a_figure():
    with plt.style.context("dark_background"):
        face = style.styled(lambda: style.new_axes(3, 2).get_facecolor())()
    assert face == (1, 1, 1, 1)


def test_saving_keeps_dots_in_the_name_and_the_size(tmp_path):
    ax = style.new_axes(style.ONE_COLUMN, 2.0)
    pdf, png = style.save(ax, tmp_path / "gpt-4.1")
    assert (pdf.name, png.name) == ("gpt-4.1.pdf", "gpt-4.1.png")
    height, width = plt.imread(png).shape[:2]
    assert (width, height) == (3.4 * 300, 600)


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    first, second = (
        style.save(style.new_axes(style.ONE_COLUMN, 2.0), tmp_path / name, ["pdf", "svg"])[0].read_bytes()
        for name in "ab"
    )
    assert first == second


def test_a_notebook_shows_figure_and_axes_without_pyplot():
    ax = style.new_axes(style.ONE_COLUMN, 2.0)
    assert ax._repr_png_().startswith(b"\x89PNG")
    assert ax.figure._repr_png_().startswith(b"\x89PNG")
    assert plt.get_fignums() == []
