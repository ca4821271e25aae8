"""Figures show what their frames say, legibly, and leave nothing behind."""

from itertools import combinations
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from looking import misplaced, texts, whole
from matplotlib.text import Text

from survexec.display import figures, style
from survexec.errors import InputError

METHODS = ["tool_calling", "tool_calling_preconditions", "assertions", "assertions_no_postconditions"]
DRAW = {
    "states": lambda made: figures.state_stacks(made.states),
    "pec beside pec_elig": lambda made: figures.pec_beside_eligible(made.pec, made.pec_elig),
    "curve": lambda made: figures.curve(made.pec),
    "recovery": lambda made: figures.success_against_ter(made.summary),
    "decomposition": lambda made: figures.decomposition_bars(made.decomposition),
    "forest": lambda made: figures.forest(made.comparison),
    "first errors": lambda made: figures.first_error_profile(made.first_errors),
    "swimmer": lambda made: figures.swimmer(made.calls),
}
HARD_NAMES = {"a_method_with_a_rather_long_name_" * 3: 0.0, "a$b$": 0.0, "méthode λ проверка": 0.0}

pytestmark = pytest.mark.filterwarnings("error")


def at_risk(ax):
    return [text for text in ax.texts if text.get_gid() == "at risk"]


@pytest.fixture(scope="module")
def drawn(made):
    """Each figure once; `boxes` of it are the texts that drawing it put on the page."""
    kept = {}
    for name, draw in DRAW.items():
        kept[name] = whole(draw(made))
        kept[name].boxes = texts(kept[name])
    return kept


@pytest.mark.parametrize("name", DRAW)
def test_no_text_leaves_the_figure_or_covers_another(drawn, name):
    assert len(drawn[name].boxes) > 5
    assert misplaced(drawn[name]) == ([], [])


@pytest.mark.parametrize("name", DRAW)
def test_hard_names_at_depth_one_print_literally_inside_the_figure(build, name):
    figure = whole(DRAW[name](build(HARD_NAMES, size=8, last=1)))
    boxes = texts(figure)
    printed = [text._preprocess_math(text.get_text()) for text, _ in boxes]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 for _, box in boxes)
    assert any("a$b$" in words for words, _ in printed)
    assert any("méthode λ" in words for words, _ in printed)
    assert not any(mathematics for _, mathematics in printed)


@pytest.mark.parametrize("name", DRAW)
def test_legends_cover_no_panel(drawn, name):
    figure = drawn[name]
    keys = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    assert not any(key.get_window_extent().overlaps(ax.bbox) for key in keys for ax in figure.axes)


def test_drawing_changes_no_input_and_leaves_no_figure_open(build):
    made = build({"a": 0.5}, size=12)
    before = {key: frame.copy() for key, frame in vars(made).items()}
    for draw in DRAW.values():
        draw(made)
    for key, frame in vars(made).items():
        pd.testing.assert_frame_equal(frame, before[key])
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", DRAW)
def test_a_figure_is_one_or_two_columns_wide(drawn, name):
    assert round(drawn[name].get_figwidth(), 6) in (style.ONE_COLUMN, style.TWO_COLUMNS)


def test_pdf_embeds_truetype_fonts_only(made, tmp_path):
    (pdf,) = style.save(figures.decomposition_bars(made.decomposition), tmp_path / "bars", ["pdf"])
    assert b"/FontFile2" in pdf.read_bytes()
    assert b"/Type3" not in pdf.read_bytes()


@pytest.mark.parametrize("name", ["states", "pec beside pec_elig", "curve", "first errors"])
def test_numbers_at_risk_stand_centred_under_their_ticks(drawn, name):
    for ax in drawn[name].axes:
        ticks = {round(x): ax.transData.transform((x, 0))[0] for x in ax.get_xticks()}
        for text in at_risk(ax):
            box = Text.get_window_extent(text)
            assert (box.x0 + box.x1) / 2 == pytest.approx(ticks[text.xy[0]], abs=1.5)
        assert {text.xy[0] for text in at_risk(ax)} == set(ticks)


def test_numbers_at_risk_are_those_of_the_frame(made, drawn):
    for name, frame in (("states", made.states), ("first errors", made.first_errors)):
        for ax, (_, rows) in zip(drawn[name].axes, frame.groupby("method", sort=False), strict=True):
            known = rows.drop_duplicates("k").set_index("k")["at_risk"]
            assert {text.xy[0]: int(text.get_text()) for text in at_risk(ax)} == {
                k: known[k] for k in ax.get_xticks().astype(int)
            }


def test_every_curve_has_its_row_of_numbers(made, drawn):
    first, ks = drawn["curve"].axes[0], drawn["curve"].axes[0].get_xticks().astype(int)
    written = [int(text.get_text()) for text in at_risk(first)]
    expected = [made.pec.query("method == @method").set_index("k")["at_risk"][k] for method in METHODS for k in ks]
    assert written == expected


def test_a_stack_fills_its_panel_with_the_shares_of_the_frame(made, drawn):
    for ax, (_, rows) in zip(drawn["states"].axes, made.states.groupby("method", sort=False), strict=True):
        areas = [area.get_paths()[0].to_polygons()[0] for area in ax.collections]
        for k in (0, 3, 15):
            expected = rows[rows["k"] == k].set_index("state")["estimate"]
            heights = [height_at(area, k + 0.1 - 0.2 * (k > 0)) for area in areas]
            assert heights == pytest.approx([expected[state] for state in style.STATES])
            assert sum(heights) == pytest.approx(1)


def height_at(polygon, x):
    """Length of a vertical cut through a polygon made of steps."""
    ends = zip(polygon, np.roll(polygon, -1, axis=0), strict=True)
    crossed = [a[1] for a, b in ends if min(a[0], b[0]) < x < max(a[0], b[0])]
    return np.ptp(crossed)


def test_curves_pass_through_the_estimates_and_ribbons_through_their_limits(made, drawn):
    ax = drawn["pec beside pec_elig"].axes[1]
    rows = made.pec_elig[made.pec_elig["method"] == "assertions"]
    line = ax.lines[2 * METHODS.index("assertions")]  # each is followed by its sample beside the numbers
    assert line.get_ydata() == pytest.approx(rows["estimate"])
    band = ax.collections[2 * METHODS.index("assertions")].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((rows["band_lower"].min(), rows["band_upper"].max()))


def test_each_group_of_cells_gets_its_own_row_and_methods_keep_their_colour(build):
    made = build({"plan": 0.5, "react": 0.3}, models=("gpt-4o", "qwen"), size=20)
    figure = figures.pec_beside_eligible(made.pec, made.pec_elig)
    assert [ax.get_title().split("\n")[0] for ax in figure.axes] == ["gpt-4o", "gpt-4o", "qwen", "qwen"]
    assert len({ax.lines[0].get_color() for ax in figure.axes}) == 1


def test_what_all_cells_share_is_said_once(drawn):
    figure = drawn["states"]
    assert figure.legends[0].get_title().get_text() == "tau-retail · gpt-4o"
    assert figure.axes[0].get_title() == "tool_calling"


def names(ax):
    return [text for text in ax.texts if text.get_gid() == "name"]


def test_points_stand_at_ter_and_success_and_are_named(made, drawn):
    ax = drawn["recovery"].axes[0]
    wide = made.summary.pivot(index="method", columns="metric", values="estimate")
    assert {text.get_text(): text.xy for text in names(ax)} == {
        method: (row["ter"], row["success"]) for method, row in wide.iterrows()
    }


def test_no_label_of_a_recovery_line_lies_under_a_point():
    at = {"x": (0.08, 0.55), "y": (0.8, 0.61), "z": (0.5, 0.4)}
    frame = pd.DataFrame(at, index=["ter", "success"]).melt(
        var_name="method", value_name="estimate", ignore_index=False
    )
    frame = frame.rename_axis("metric").reset_index()[["method", "metric", "estimate"]]
    frame = frame.assign(lower=frame["estimate"] - 0.05, upper=frame["estimate"] + 0.05)
    ax = figures.success_against_ter(frame)
    ax.figure.draw_without_rendering()
    labels = [text.get_window_extent() for text in ax.texts if text.get_text().startswith("r = ")]
    assert len(labels) >= 3
    for x, y in ax.transData.transform(list(at.values())):
        assert not any(box.contains(x, y) for box in labels)


def test_points_are_named_unless_a_legend_of_several_panels_does_it(made):
    named, bare = (figures.success_against_ter(made.summary, names=names) for names in (True, False))
    assert sum(text.get_gid() == "name" for text in named.texts) == 4
    assert [text for text in bare.texts if text.get_gid() == "name"] == []
    assert bare.get_legend() is None


def test_recovery_lines_hold_for_clean_success_of_one(drawn):
    ax = drawn["recovery"].axes[0]
    lines = [line.get_ydata() for line in ax.lines if list(line.get_xdata()) == [0, 1]]
    assert [tuple(y) for y in lines] == [(0.0, 1), (0.25, 1), (0.5, 1), (0.75, 1), (1.0, 1)]
    assert "for s = 1" in ax.get_title()


@pytest.mark.parametrize("seed", range(2))
def test_no_two_names_overlap_wherever_the_points_are(seed):
    rng = np.random.default_rng(seed)
    rows = [
        (f"method_number_{i}", metric, at, at - 0.05, at + 0.05)
        for i in range(8)
        for metric, at in (("ter", rng.uniform(0.4, 0.7)), ("success", rng.uniform(0.4, 0.7)))
    ]
    ax = figures.success_against_ter(pd.DataFrame(rows, columns=["method", "metric", "estimate", "lower", "upper"]))
    named = [*names(ax), *(ax.get_legend().get_texts() if ax.get_legend() else [])]
    boxes = [box for text, box in texts(ax.figure) if text in named]
    assert len(boxes) == 8
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_points_with_no_room_for_names_get_a_key_below(build):
    made = build({f"method_{i}": 0.5 for i in range(12)}, size=20)
    ax = figures.success_against_ter(made.summary)
    assert names(ax) == []
    assert len(ax.get_legend().get_texts()) == 12


def test_bars_are_as_long_as_success_and_numbers_stand_beside(made, drawn):
    ax = drawn["decomposition"].axes[0]
    totals = made.decomposition.groupby("method", sort=False)["estimate"].sum()
    ends = pd.Series([(bar.get_y(), bar.get_x() + bar.get_width()) for bar in ax.patches]).groupby(
        lambda i: ax.patches[i].get_y()
    )
    assert [max(end for _, end in group) for _, group in ends] == pytest.approx(list(totals))
    written = [text.get_text() for text in ax.texts if text.get_gid() == "number"]
    assert written[2:12:3] == [f"{total:.3f}" for total in totals]


def test_an_undefined_part_is_a_dash_and_so_is_the_sum():
    frame = pd.DataFrame({"method": "m", "part": ["clean", "recovered"], "estimate": [0.5, np.nan]})
    written = [text.get_text() for text in figures.decomposition_bars(frame).texts if text.get_gid() == "number"]
    assert written[:3] == ["0.500", "–", "–"]


def cells(ax):
    return [text.get_text() for text in ax.texts if text.get_gid() == "cell"]


def test_forest_draws_the_chosen_metrics_in_their_order(made):
    figure = figures.forest(made.comparison, metrics=["success", "ter"])
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["Success", "TER"]
    rows = made.comparison[made.comparison["metric"] == "success"]
    assert figure.axes[0].lines[1].get_xdata() == pytest.approx(rows["difference"])
    assert cells(figure.axes[0])[-len(rows) :] == ["100"] * len(rows)


def test_forest_writes_difference_interval_p_and_pairs(made):
    row = {"difference": -0.1234, "lower": -0.2, "upper": 0.05, "p_adjusted": 0.0004, "n_pairs": 66}
    one = made.comparison[made.comparison["metric"] == "rr"].head(1).assign(**row)
    assert cells(figures.forest(one).axes[0]) == ["−0.123 [−0.200, 0.050]", "<0.001", "66"]
    untested = one.assign(p_adjusted=np.nan, lower=np.nan, upper=np.nan)
    assert cells(figures.forest(untested).axes[0]) == ["−0.123", "–", "66"]


def test_forest_explains_the_numbers_that_stand_for_long_names(drawn, made):
    assert drawn["forest"]._supxlabel.get_text().startswith("M1: tool_calling_preconditions,")
    assert drawn["forest"].axes[0].texts[-6].get_text() == "M1 − M2"
    short = figures.forest(
        made.comparison.replace({"tool_calling_preconditions": "pre", "assertions_no_postconditions": "no"}),
        ["ter"],
    )
    assert short._supxlabel is None


def test_forest_says_the_level_where_the_result_knows_it(made):
    result = SimpleNamespace(frame=made.comparison, by=("benchmark", "model"), made={"level": 0.9})
    assert "a − b [90% interval]" in [text.get_text() for text in figures.forest(result).axes[0].texts]


def test_first_error_bars_add_to_the_events(made, drawn):
    for ax, (_, rows) in zip(drawn["first errors"].axes, made.first_errors.groupby("method", sort=False), strict=True):
        assert sum(bar.get_height() for bar in ax.patches) == rows["events"].sum()


def test_a_depth_without_an_error_still_says_who_was_at_risk():
    columns = {"k": [1, 2, 3], "error_class": ["schema", None, None], "events": [2, 0, 0], "at_risk": [9, 5, 4]}
    ax = figures.first_error_profile(pd.DataFrame({"method": "m", **columns})).axes[0]
    assert [text.get_text() for text in at_risk(ax)] == ["9", "5", "4"]
    assert len(ax.patches) == 1


def test_a_class_the_palette_does_not_know_is_drawn_and_named(made):
    frame = made.first_errors.replace({"error_class": {"information": "new_class"}})
    figure = figures.first_error_profile(frame)
    assert "new_class" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_swimmer_sorts_by_first_error_then_length_and_thins_evenly(made, drawn):
    ax = drawn["swimmer"].axes[0]
    assert ax.get_title() == "tool_calling\n60 of 100 rollouts shown"
    (errors,) = (area for area in ax.collections if area.get_gid() == "first error")
    depths = [round(path.vertices[0, 0] + 0.46) for path in errors.get_paths()]
    order = np.argsort([path.vertices[0, 1] for path in errors.get_paths()])
    assert list(np.array(depths)[order]) == sorted(depths)
    ends = sum(len(line.get_xdata()) for line in ax.lines)
    assert ends == 60


def test_swimmer_shows_every_call_of_every_rollout_when_there_is_room(made):
    ax = figures.swimmer(made.calls, rows=100).axes[0]
    expected = made.calls.query("method == 'tool_calling'")["state"].value_counts().to_dict()
    assert {area.get_gid(): len(area.get_paths()) for area in ax.collections} == expected
    assert ax.get_title() == "tool_calling\n100 rollouts"


def test_a_rollout_of_unknown_success_has_no_mark(made):
    calls = made.calls.assign(success=pd.array([pd.NA] * len(made.calls), "boolean"))
    assert len(figures.swimmer(calls).axes[0].lines) == 0


EDGES = {
    "one rollout": {"ters": {"only": 0.5}, "size": 1},
    "depth 0 only and no error": {"ters": {"a": 1.0}, "size": 3, "last": 0},
    "twelve cells": {"ters": dict.fromkeys("abcd", 0.5), "models": ("gpt-4.1", "gpt-4o", "qwen"), "size": 4},
}


@pytest.mark.parametrize("edge", [*list(EDGES)[:-1], pytest.param("twelve cells", marks=pytest.mark.slow)])
def test_degenerate_input_is_drawn_without_a_warning(build, edge):
    with np.errstate(all="ignore"):
        made = build(**EDGES[edge])
    for draw in DRAW.values():
        figure = whole(draw(made))
        figure.draw_without_rendering()
        assert figure.axes


def test_undefined_estimates_are_left_out_without_a_warning(build):
    numbers = ["estimate", "lower", "upper", "band_lower", "band_upper", "difference", "p_adjusted"]
    blank = {
        key: frame.assign(**{column: np.nan for column in numbers if column in frame})
        for key, frame in vars(build({"a": 0.5, "b": 0.5}, size=8, last=2)).items()
    }
    for draw in DRAW.values():
        whole(draw(SimpleNamespace(**blank))).draw_without_rendering()


def test_an_empty_frame_gives_a_figure_that_says_why(made):
    empty = SimpleNamespace(**{key: frame.iloc[:0] for key, frame in vars(made).items()})
    for draw in DRAW.values():
        said = [text.get_text() for text in whole(draw(empty)).findobj(Text) if text.get_text().startswith("No ")]
        assert len(said) == 1


def test_no_first_error_is_said_in_the_panel(build):
    figure = figures.first_error_profile(build({"a": 1.0}, size=20).first_errors)
    assert "No error" in [text.get_text() for text, _ in texts(figure)]


def result(made, kind):
    frame = {"pec": made.pec, "states": made.states, "summary": made.summary, "comparison": made.comparison}[kind]
    by = ("benchmark", "model") if kind == "comparison" else ("benchmark", "model", "method")
    return SimpleNamespace(kind=kind, frame=frame, by=by, made={"level": 0.95})


@pytest.mark.parametrize(("kind", "label"), [("pec", "Share without an error"), ("summary", "Success")])
def test_plot_draws_one_panel_kinds_on_given_axes(made, kind, label):
    ax = style.new_axes(4, 3)
    assert figures.plot(result(made, kind), ax=ax) is ax
    assert ax.get_ylabel() == label


def test_plot_lets_a_figure_of_several_panels_take_the_place_of_axes(made):
    figure = style.new_figure(14, 3)
    left, right = figure.subplots(1, 2)
    part = figures.plot(result(made, "states"), ax=right)
    figure.draw_without_rendering()
    assert len(part.axes) == 4
    assert all(ax.bbox.x0 > left.bbox.x1 for ax in part.axes)


def test_plot_refuses_several_panels_on_axes_outside_a_grid(made):
    ax = style.new_figure(4, 3).add_axes((0, 0, 1, 1))
    with pytest.raises(InputError, match="stand in no grid"):
        figures.plot(result(made, "states"), ax=ax)


def test_plot_names_the_kinds_it_can_draw():
    with pytest.raises(InputError, match="'map'; there is one for: at_risk, attribution, cif, comparison"):
        figures.plot(SimpleNamespace(kind="map"))


def test_a_frame_without_its_columns_is_refused_by_name(made):
    with pytest.raises(InputError, match="missing: at_risk"):
        figures.state_stacks(made.states.drop(columns="at_risk"))
