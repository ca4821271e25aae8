"""The forest plot and the table of a comparison by group show what the frames say, whatever the data."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from looking import misplaced, texts
from matplotlib.colors import to_hex

from survexec.display import style
from survexec.display.figures.meta import meta_forest
from survexec.display.heterogeneity_tables import GRIDS
from survexec.display.markup import html_table, latex, markdown
from survexec.display.wording import number
from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.heterogeneity import heterogeneity
from survexec.statistics.pooling import POOLED

NASTY = "a|b_c$%&#{}~^\\<script>alert(1)</script>[x](y)\n*_é–中^^M"

pytestmark = pytest.mark.filterwarnings("error")


def cohort(strata=("web", "code", "a$b$ λ"), methods=("plain", "checked"), tasks=24, seed=5):
    """Rollouts of some methods on the tasks of some strata."""
    rng = np.random.default_rng(seed)
    rows = []
    for place, stratum in enumerate(strata):
        for shift, method in enumerate(methods):
            length = rng.integers(2, 9, tasks)
            fed = np.minimum(rng.geometric(0.2 / (1 + shift * (place > 0)), tasks), length + 1)
            rows.append(pd.DataFrame({
                "stratum": stratum, "method": method, "task_id": [f"{place}-{task}" for task in range(tasks)],
                "length": length, "fed": fed, "success": rng.random(tasks) < 0.5,
            }))  # fmt: skip
    return Rollouts(pd.concat(rows, ignore_index=True))


@pytest.fixture(scope="module")
def result():
    """Three groups that are pooled, and one task that cannot be."""
    lone = cohort(strata=("lone",), tasks=1).frame.assign(task_id="only")
    return heterogeneity(Rollouts(pd.concat([cohort().frame, lone])), metrics=["ter", "mean_fed", "success", "rr"])


@pytest.fixture(scope="module")
def drawn(result):
    figure = meta_forest(result)
    figure.boxes = texts(figure)
    return figure


def rows_of(result, metric):
    return result.frame[result.frame["metric"] == metric].reset_index(drop=True)


# The figure


def test_no_text_leaves_the_figure_or_covers_another(drawn):
    assert len(drawn.boxes) > 80
    assert misplaced(drawn) == ([], [])
    assert drawn.get_figwidth() == style.TWO_COLUMNS


def test_names_print_literally(drawn):
    printed = [text._preprocess_math(text.get_text()) for text, _ in drawn.boxes]
    assert ("a$b$ λ", False) in printed
    assert not any(mathematics is True for _, mathematics in printed)


def test_each_row_is_written_beside(result, drawn):
    rows, ax = rows_of(result, "ter"), drawn.axes[0]
    written = [text.get_text() for text in ax.texts if text.get_gid() == "cell"]
    at, weights, counts = (written[start : start + len(rows)] for start in range(0, len(written), len(rows)))
    assert counts == [str(n) for n in rows["n_pairs"]]
    assert at[rows.index[rows["group"] == "lone"][0]] == number(rows.set_index("group")["difference"]["lone"], 3)
    for text, row in zip(at, rows.itertuples(), strict=True):
        if row.group != "lone":
            assert text == f"{row.difference:.3f} [{row.lower:.3f}, {row.upper:.3f}]".replace("-", "−")
    shares = [
        f"{100 * f:.0f} / {100 * r:.0f}" for f, r in zip(rows["weight_fixed"], rows["weight_random"], strict=True)
    ]
    assert weights == ["–" if group == "lone" else "" if group in POOLED else share
                       for group, share in zip(rows["group"], shares, strict=True)]  # fmt: skip


def test_the_area_of_a_square_is_the_weight_and_what_has_none_is_open(result, drawn):
    rows = rows_of(result, "mean_fed").query("role == 'group'")
    (squares,) = (c for c in drawn.axes[1].collections if len(c.get_offsets()) == len(rows) and len(c.get_sizes()) > 1)
    assert squares.get_offsets()[:, 0].tolist() == pytest.approx(rows["difference"].tolist())
    known = rows["weight_fixed"].notna().to_numpy()
    assert squares.get_sizes()[known] == pytest.approx(64 * rows["weight_fixed"].to_numpy()[known])
    colors = [to_hex(color) for color in squares.get_facecolors()]
    assert [color == "#ffffff" for color in colors] == (~known).tolist()


def test_a_diamond_is_as_wide_as_its_interval_and_ends_in_an_arrow_where_it_is_cut(result, drawn):
    for metric, ax in zip(result.made["metrics"], drawn.axes, strict=True):
        rows, (low, high) = rows_of(result, metric).query("role == 'pooled'"), ax.get_xlim()
        for diamond, row in zip(ax.patches, rows.itertuples(), strict=True):
            across = diamond.get_xy()[:, 0]
            assert (across.min(), across.max()) == pytest.approx((max(row.lower, low), min(row.upper, high)))
        arrows = [line.get_marker() for line in ax.lines if line.get_marker() in "<>"]
        assert arrows.count("<") == (rows["lower"] < low).sum()
        assert arrows.count(">") == (rows["upper"] > high).sum()
        groups = rows_of(result, metric).query("role == 'group'")
        assert low < np.nanmin(groups["lower"])
        assert high > np.nanmax(groups["upper"])


def test_two_groups_cut_hartung_and_knapp_not_the_rest():
    result = heterogeneity(cohort(strata=("web", "code")), metrics=["ter"])
    ax = meta_forest(result).axes[0]
    knapp = result.frame.set_index("group").loc[POOLED[2]]
    assert knapp["upper"] - knapp["lower"] > np.ptp(ax.get_xlim())
    assert [line.get_marker() for line in ax.lines if line.get_marker() in "<>"] == ["<", ">"]


def test_the_interaction_test_stands_below_its_groups(result, drawn):
    test = result.tests.set_index("metric").loc["ter"]
    (words,) = (text for text in drawn.axes[0].texts if text.get_gid() == "test")
    assert words.get_text().startswith(f"Q(2) = {test['q']:.2f}, p ")
    assert words.get_text().endswith(f"I² = {100 * test['i2']:.0f}%, τ² = {test['tau2']:.4f}")
    assert words.xy[1] == len(rows_of(result, "ter"))


def test_several_pairs_stand_under_their_names_with_a_test_each():
    result = heterogeneity(cohort(methods=("plain", "checked", "asserting")), metrics=["ter", "success"])
    figure = meta_forest(result)
    figure.boxes = texts(figure)
    assert misplaced(figure) == ([], [])
    ax = figure.axes[0]
    bold = [text.get_text() for text in ax.texts if text.get_weight() == "bold"]
    assert bold == ["plain − checked", "plain − asserting", "checked − asserting"]
    assert sum(text.get_gid() == "test" for text in ax.texts) == 3


def test_long_names_leave_the_blocks_their_width():
    long = "a_stratum_with_a_rather_long_name_that_goes_on_and_on_" * 2
    figure = meta_forest(heterogeneity(cohort((long, "short"), (long, "b")), metrics=["ter", "success"]))
    figure.boxes = texts(figure)
    assert misplaced(figure) == ([], [])
    assert all(ax.get_window_extent().width > 0.25 * figure.bbox.width for ax in figure.axes)


def test_what_cannot_be_pooled_has_no_diamond_and_says_so():
    result = heterogeneity(cohort(strata=("one",)), metrics=["ter"])
    ax = meta_forest(result).axes[0]
    assert len(ax.patches) == 0
    assert [text.get_text() for text in ax.texts if text.get_gid() == "test"] == ["no interaction test"]


def test_a_frame_alone_is_drawn_without_tests_and_nothing_is_drawn_of_nothing(result):
    figure = meta_forest(result.frame, ["ter"])
    assert not any(text.get_gid() == "test" for text in figure.axes[0].texts)
    empty = meta_forest(result.frame[:0])
    assert [text.get_text() for text in empty.axes[0].texts] == ["No differences to draw"]
    with pytest.raises(InputError, match="missing: weight_fixed"):
        meta_forest(result.frame.drop(columns="weight_fixed"))


# The table


def lines(result, metric):
    """Cells of the rows of one metric, as text."""
    grid = GRIDS["heterogeneity"](result)
    labels = {"ter": "(TER)", "mean_fed": "(Mean FED)"}
    return [
        [f"{cell.text} {cell.small}".strip() for cell in row.cells]
        for row in grid.rows
        if row.group.endswith(labels[metric])
    ]


def test_the_table_has_a_row_a_group_a_row_a_pooled_difference_and_the_test(result):
    found = lines(result, "ter")
    names = ["a$b$ λ", "code", "lone", "web", "Fixed effect", "Random (DL)", "Random (HK)", "Interaction"]
    assert [cells[0] for cells in found] == names
    frame, test = rows_of(result, "ter"), result.tests.set_index("metric").loc["ter"]
    row = frame.set_index("group").loc["code"]
    assert found[1][1] == f"{row['difference']:.3f} [{row['lower']:.3f}, {row['upper']:.3f}]".replace("-", "−")
    assert found[1][2:4] == [
        f"{row['standard_error']:.3f}", f"{100 * row['weight_fixed']:.1f} ({100 * row['weight_random']:.1f})"
    ]  # fmt: skip
    assert found[2][2:] == ["–", "–", "", "", "1"]
    assert found[-1][1:4] == [f"Q(2) = {test['q']:.2f}", f"tau2 {test['tau2']:.4f}", f"I2 {100 * test['i2']:.1f}%"]
    assert [cells[-1] for cells in found[4:7]] == ["72"] * 3


def test_the_foot_says_how_and_over_how_many_tests(result):
    grid = GRIDS["heterogeneity"](result)
    tested = int(result.tests["p_value"].notna().sum())
    assert f"adjusted by Holm over {tested} interaction tests. Weights: fixed (random)." in grid.foot
    assert "cannot be weighed" in grid.foot
    assert grid.caption.startswith("Paired differences by stratum")
    assert "95% intervals" in grid.caption


def test_without_an_interaction_test_the_table_has_dashes():
    found = lines(heterogeneity(cohort(strata=("one",)), metrics=["ter"]), "ter")
    assert found[-1] == ["Interaction", "–", "", "", "–", "–", ""]
    assert found[1] == ["Fixed effect", "–", "–", "", "–", "", "24"]


def test_every_markup_writes_hostile_names_as_text():
    result = heterogeneity(cohort(strata=(NASTY, "b|c"), methods=(NASTY, "[0.1]")), metrics=["ter", "mean_fed"])
    grid = GRIDS["heterogeneity"](result)
    table = markdown(grid)
    cells = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table.splitlines() if line.startswith("|")}
    assert len(cells) == 1
    for text in (table, html_table(grid), latex(grid)):
        assert "nan" not in text
        assert "<script" not in text.replace("\\textless{}script", "")


def test_latex_keeps_the_columns_beside_one_another(result):
    assert latex(GRIDS["heterogeneity"](result)).count("\\begin{tabular}") == latex(
        GRIDS["heterogeneity"](result)
    ).count("\\begin{table}")


def test_a_result_of_any_origin_with_these_frames_is_drawn(result):
    plain = SimpleNamespace(frame=result.frame, tests=result.tests, by=result.by, made={"level": 0.9})
    heads = [text.get_text() for text in meta_forest(plain, ["ter"]).axes[0].texts]
    assert "a − b [90% interval]" in heads
