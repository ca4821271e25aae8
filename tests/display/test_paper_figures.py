"""The figures of published aggregates show what their frames say, and nothing in them is clipped or covered."""

import numpy as np
import pandas as pd
import pytest
from looking import misplaced, texts
from matplotlib.collections import LineCollection, PolyCollection

from survexec.display.figures.bounded import bounded_curves
from survexec.display.figures.picture import table_picture
from survexec.display.figures.places import difference_by_place
from survexec.display.figures.slopes import rank_slopes
from survexec.display.markup import Cell, Grid, Row

pytestmark = pytest.mark.filterwarnings("error")


def looked(figure):
    """A figure with the boxes of its texts."""
    figure.boxes = texts(figure)
    return figure


def curves(methods=("plan_conditioned", "react"), benchmarks=("bfcl", "toolsandbox")):
    """Curves to depth 6, stated to depth 3."""
    rows = [
        (b, m, k, 0.9**k, 0.8**k, min(0.95**k, 1), 0.9**k if 0 < k < 4 else np.nan)
        for b in benchmarks for m in methods for k in range(7)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["benchmark", "method", "k", "estimate", "lower", "upper", "stated"])


def ranks(values=("x", "y", "z"), places=("one", "two", "three", "four")):
    """By success x leads, by TER it is last; y and z are tied by success."""
    rows = []
    for place in places:
        for value, success, ter in zip(values, (1.0, 2.5, 2.5), (3.0, 2.0, 1.0), strict=True):
            rows += [(place, value, "success", 1 - success / 10, success), (place, value, "ter", 1 - ter / 10, ter)]
    return pd.DataFrame(rows, columns=["benchmark", "value", "metric", "estimate", "rank"])


def test_a_curve_has_its_bounds_and_a_ring_at_every_stated_depth():
    figure = bounded_curves(curves())
    assert len(figure.axes) == 4
    for ax in figure.axes:
        rings = [line for line in ax.lines if line.get_marker() == "o"]
        assert [list(line.get_xdata()) for line in rings] == [[1, 2, 3]]
        assert sum(isinstance(item, PolyCollection) for item in ax.collections) == 1
        longest = max(ax.lines, key=lambda line: len(line.get_xdata()))
        np.testing.assert_allclose(longest.get_ydata(), 0.9 ** np.arange(7))


def test_the_other_methods_of_a_row_are_repeated_only_where_values_are_stated():
    figure = bounded_curves(curves(("a", "b", "c")))
    others = [line for line in figure.axes[0].lines if line.get_linewidth() == 0.7]
    assert [list(line.get_xdata()) for line in others] == [[0, 1, 2, 3]] * 2


def test_tied_values_share_a_point_and_are_written_once():
    ax = rank_slopes(ranks(places=("one",))).axes[0]
    assert sorted(text.get_text() for text in ax.texts) == ["0.70", "0.75", "0.80", "0.90", "0.90"]
    assert [list(line.get_ydata()) for line in ax.lines] == [[1, 3], [2.5, 2], [2.5, 1]]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the best on top


def test_a_metric_that_is_not_defined_leaves_a_hole():
    frame = ranks(places=("one",))
    frame.loc[0, ["estimate", "rank"]] = np.nan
    assert np.isnan(rank_slopes(frame).axes[0].lines[0].get_ydata()[0])


def test_differences_stand_in_the_row_of_their_place_with_their_whiskers():
    frame = pd.DataFrame({
        "benchmark": ["a", "b"] * 2, "metric": ["ter"] * 2 + ["success"] * 2, "difference": [0.1, -0.2, 0.3, 0.0],
        "lower": [0.0, -0.3, 0.2, -0.1], "upper": [0.2, -0.1, 0.4, 0.1],
    })  # fmt: skip
    figure = difference_by_place(frame)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b"]
    whiskers = [
        item.get_segments()[0].tolist() for item in figure.axes[0].collections if isinstance(item, LineCollection)
    ]
    assert whiskers == [[[0.0, 0.0], [0.2, 0.0]], [[-0.3, 1.0], [-0.1, 1.0]]]
    assert [text.get_text() for text in figure.axes[1].texts] == ["0.300", "0.000"]


@pytest.mark.parametrize("stacked", [False, True])
def test_a_picture_has_every_text_of_the_table_at_a_place_of_its_own(stacked):
    rows = (
        Row((Cell("a_long_name_of_a_method"), Cell("0.77", "[0.68, 0.84]"), Cell("–", mark="†"))),
        Row((Cell("$x$"), Cell("−0.05", "[−0.10, 0.00]"), Cell("[0.325, 1.000]"))),
    )
    grid = Grid(("Method", "TER", "n"), rows, 1, "What it is " * 9, "tab:x", "How it was made. " * 9, stacked=stacked)
    figure = looked(table_picture(grid))
    assert misplaced(figure) == ([], [])
    drawn = {text.get_text().replace(r"\$", "$") for text, _ in figure.boxes}
    assert {"[0.68, 0.84]", "–†", "$x$", "−0.05", "[0.325, 1.000]", "Method", "TER"} <= drawn


def test_groups_of_a_picture_are_named_once():
    rows = tuple(Row((Cell(name), Cell("1")), group) for group, name in (("g", "x"), ("g", "y"), ("h", "x")))
    figure = looked(table_picture(Grid(("Method", "n"), rows, 1, "", "tab:x", group="Group")))
    assert [text.get_text() for text, _ in figure.boxes] == ["Method", "n", "g", "x", "1", "y", "1", "h", "x", "1"]
    assert misplaced(figure) == ([], [])


@pytest.mark.parametrize(
    "figure",
    [
        lambda: bounded_curves(curves(("plan_conditioned", "react", "dual_loop"))),
        lambda: rank_slopes(ranks(("plan_conditioned", "react", "prompt_planning"))),
        lambda: difference_by_place(
            ranks().assign(difference=0.7, lower=0.6, upper=0.8)[
                ["benchmark", "value", "metric", "difference", "lower", "upper"]
            ]
        ),
    ],
)
def test_nothing_is_clipped_or_covered(figure):
    assert misplaced(looked(figure())) == ([], [])


@pytest.mark.parametrize(
    ("draw", "frame"), [(bounded_curves, curves()), (rank_slopes, ranks()), (difference_by_place, None)]
)
def test_an_empty_frame_is_said_to_be_empty(draw, frame):
    if frame is None:
        frame = pd.DataFrame(columns=["benchmark", "metric", "difference", "lower", "upper"])
    assert [text.get_text()[:3] for text in draw(frame.iloc[:0]).axes[0].texts] == ["No "]
