"""Figures of the survival results show what their frames say, legibly, whatever the data."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from looking import misplaced, texts, whole
from matplotlib.text import Text

import survexec as sx
from survexec.display import figures, style
from survexec.rollouts import Rollouts

NAMES = ("tool_calling", "tool_calling_preconditions", "a$b$ méthode λ")
KINDS = ("km", "na", "at_risk", "hazard", "cif", "states")

pytestmark = pytest.mark.filterwarnings("error")


def cohort(methods=NAMES, tasks=60, seed=4, **columns):
    """Rollouts of some methods on the same tasks, one in ten cut by a limit; the deepest were all cut."""
    rng = np.random.default_rng(seed)
    rows = []
    for method in methods:
        length = rng.integers(0, 14, tasks)
        fed = np.minimum(rng.geometric(0.12, tasks), length + 1)
        cut = (rng.random(tasks) < 0.1) | (length > 12)
        classes = rng.choice(["schema", "dependency", "information"], tasks)
        rows.append(pd.DataFrame({
            "method": method, "task_id": range(tasks), "length": length, "fed": fed,
            "ending": np.where(cut, "truncated", "completed"),
            "error_class": np.where(fed <= length, classes, None),
        }))  # fmt: skip
    return Rollouts(pd.concat(rows, ignore_index=True).assign(**columns))


def results_of(rollouts):
    """One result of each kind that has a figure here."""
    made = {kind: sx.curves(rollouts, kind=kind, by_class=kind == "cif", resamples=100) for kind in KINDS}
    made["curve_differences"] = sx.curve_differences(rollouts, resamples=100)
    made["hazard_model"] = sx.hazard_model(rollouts)
    return made


@pytest.fixture(scope="module")
def results():
    """Results of three methods, one with a name that would be mathematics."""
    return results_of(cohort())


@pytest.fixture(scope="module")
def drawn(results):
    """Each figure once; `boxes` of it are the texts that drawing it put on the page."""
    kept = {kind: whole(result.plot()) for kind, result in results.items()}
    for figure in kept.values():
        figure.boxes = texts(figure)
    return kept


EVERY = [*KINDS, "curve_differences", "hazard_model"]


@pytest.mark.parametrize("kind", EVERY)
def test_no_text_leaves_the_figure_or_covers_another(drawn, kind):
    assert len(drawn[kind].boxes) > 5
    assert misplaced(drawn[kind]) == ([], [])


@pytest.mark.parametrize("kind", EVERY)
def test_names_print_literally(drawn, kind):
    printed = [text._preprocess_math(text.get_text()) for text, _ in drawn[kind].boxes]
    assert any("a$b$" in words for words, _ in printed)
    assert not any(mathematics is True for _, mathematics in printed)


@pytest.mark.parametrize("kind", EVERY)
def test_legends_cover_no_panel_and_the_width_is_a_columns(drawn, kind):
    figure = drawn[kind]
    assert not any(key.get_window_extent().overlaps(ax.bbox) for key in figure.legends for ax in figure.axes)
    assert round(figure.get_figwidth(), 6) in (style.ONE_COLUMN, style.TWO_COLUMNS)


def rows_of(ax):
    """The numbers under a panel, a list a row from the top: (depth, text)."""
    rows = {}
    for text in ax.texts:
        if text.get_gid() == "at risk":
            rows.setdefault(-text.xyann[1], []).append((int(text.xy[0]), text.get_text()))
    return [rows[height] for height in sorted(rows)]


def expected(frame, column, ax, **cell):
    """What a frame says at the ticks of a panel."""
    for name, value in cell.items():
        frame = frame[frame[name] == value]
    known = frame.drop_duplicates("k").set_index("k")[column]
    return [(k, str(known[k])) for k in ax.get_xticks().astype(int)]


@pytest.mark.parametrize("kind", ["km", "na", "at_risk"])
def test_a_curve_is_its_estimates_over_its_numbers_at_risk(results, drawn, kind):
    frame, ax = results[kind].frame, drawn[kind].axes[0]
    assert rows_of(ax) == [expected(frame, "at_risk", ax, method=method) for method in NAMES]
    for line, method in zip(ax.lines[::2], NAMES, strict=True):  # each is followed by its sample beside the numbers
        assert np.array_equal(line.get_ydata(), frame.loc[frame["method"] == method, "estimate"], equal_nan=True)


def test_curves_say_what_they_are(drawn):
    assert drawn["km"].axes[0].get_ylabel() == "Share without an error"
    assert drawn["na"].axes[0].get_ylabel() == "Cumulative hazard"
    assert drawn["at_risk"].axes[0].get_ylabel() == "Rollouts at risk"
    assert drawn["km"].axes[0].get_title().startswith("Kaplan-Meier")
    assert drawn["na"].axes[0].get_ylim()[0] == 0


def test_a_line_and_its_ribbons_end_where_nobody_is_left_at_risk():
    frame = pd.DataFrame({
        "method": "m", "k": [0, 1, 2, 3], "estimate": [1, 0.8, np.nan, np.nan], "lower": [1, 0.6, np.nan, np.nan],
        "upper": [1, 0.9, np.nan, np.nan], "band_lower": [1, 0.5, np.nan, np.nan],
        "band_upper": [1, 0.95, np.nan, np.nan], "at_risk": [9, 9, 0, 0],
    })  # fmt: skip
    ax = figures.curve(frame)
    ends = [area.get_paths()[0].vertices[:, 0].max() for area in ax.collections]
    assert ends == [1.5, 1.5]
    assert ax.get_xlim() == (-0.5, 3.5)
    assert rows_of(ax) == [[(0, "9"), (1, "9"), (2, "0"), (3, "0")]]


def test_an_amount_axis_is_not_ruled_by_a_wild_limit():
    frame = pd.DataFrame({
        "method": "m", "k": [0, 1], "estimate": [0, 0.2], "lower": [np.nan, 0.1], "upper": [np.nan, 0.4],
        "band_lower": [np.nan, 0], "band_upper": [np.nan, 90.0], "at_risk": [9, 9],
    })  # fmt: skip
    made = SimpleNamespace(kind="na", frame=frame, by=("method",), made={})
    assert figures.plot(made).get_ylim()[1] == pytest.approx(0.52)


def cut_at(polygon, x):
    """Lower and upper end of a vertical cut through a polygon made of steps."""
    ends = zip(polygon, np.roll(polygon, -1, axis=0), strict=True)
    crossed = [a[1] for a, b in ends if min(a[0], b[0]) < x < max(a[0], b[0])]
    return min(crossed), max(crossed)


def test_errors_rise_from_the_floor_and_clean_finish_hangs_from_the_ceiling(results, drawn):
    frame = results["cif"].frame
    for ax, method in zip(drawn["cif"].axes, NAMES, strict=True):
        areas = [area.get_paths()[0].to_polygons()[0] for area in ax.collections]
        for k in (1, 5, 9):
            shares = frame[(frame["method"] == method) & (frame["k"] == k)].set_index("cause")["estimate"]
            *errors, gap, finish = [cut_at(area, k + 0.1) for area in areas]
            heights = [high - low for low, high in errors]
            assert heights == pytest.approx([shares[name] for name in ("schema", "dependency", "information")])
            assert finish == pytest.approx((1 - shares["finish"], 1))
            assert gap == pytest.approx((sum(heights), 1 - shares["finish"]))
        assert rows_of(ax) == [expected(frame, "at_risk", ax, method=method)]
    labels = [text.get_text() for text in drawn["cif"].legends[0].get_texts()]
    assert labels == ["schema", "dependency", "information", "still running", "finished clean"]


def test_errors_as_one_cause_and_an_unknown_class_are_drawn_and_named(results):
    frame = results["cif"].frame
    for new, label in (("error", "errored"), ("new_class", "new_class")):
        part = frame[frame["cause"].isin(["schema", "finish"])].replace({"cause": {"schema": new}})
        labels = [text.get_text() for text in figures.incidence_stack(part).legends[0].get_texts()]
        assert labels == [label, "still running", "finished clean"]


def test_areas_end_where_the_curves_do(results):
    frame = results["cif"].frame.query("method == 'tool_calling'")
    ended = frame.assign(estimate=frame["estimate"].where(frame["k"] < 6))
    for area in figures.incidence_stack(ended).axes[0].collections:
        assert np.ptp(cut_at(area.get_paths()[0].to_polygons()[0], 7.2)) == 0


def test_hazards_stand_over_their_fractions(results, drawn):
    frame = results["hazard"].frame
    for ax, method in zip(drawn["hazard"].axes[:3], NAMES, strict=True):  # the fourth place is blank
        rows = frame[(frame["method"] == method) & (frame["k"] > 0)]
        seen = rows[rows["at_risk"] >= 5]
        assert ax.lines[0].get_xydata() == pytest.approx(seen[["k", "estimate"]].to_numpy(float))
        assert rows_of(ax) == [expected(rows, column, ax) for column in ("events", "at_risk")]
        whiskers = ax.collections[1].get_segments()
        assert [tuple(line[:, 1]) for line in whiskers] == [tuple(pair) for pair in seen[["lower", "upper"]].to_numpy()]
        assert ax.get_ylim()[0] == 0


def test_depths_that_few_reached_have_no_hazard_drawn(results):
    few = results["hazard"].frame.assign(at_risk=4)
    said = [text.get_text() for text, _ in texts(figures.hazard_by_depth(few))]
    assert "No depth that 5 or\nmore rollouts reached" in said or "No depth that 5 or more rollouts reached" in said


def test_a_difference_is_drawn_about_zero_over_both_sides_at_risk(results, drawn):
    frame = results["curve_differences"].frame
    pairs = list(combinations(NAMES, 2))
    for ax, (a, b) in zip(drawn["curve_differences"].axes, pairs, strict=True):
        rows = frame[(frame["a"] == a) & (frame["b"] == b)]
        shown = ax.get_title().replace("\n", "").replace(r"\$", "$").replace(" ", "")
        assert shown == f"{a}(a)−{b}(b)60pairs".replace(" ", "")
        zero, line = ax.lines
        assert set(zero.get_ydata()) == {0}
        assert line.get_ydata() == pytest.approx(rows["difference"])
        assert rows_of(ax) == [expected(rows, f"at_risk_{side}", ax) for side in "ab"]
        band = ax.collections[0].get_paths()[0].vertices[:, 1]
        assert (band.min(), band.max()) == pytest.approx((rows["band_lower"].min(), rows["band_upper"].max()))
    assert drawn["curve_differences"].axes[0].get_ylabel() == "PEC(k): a − b"


def test_pairs_of_several_models_say_where_they_stand():
    both = pd.concat([cohort(NAMES[:2], 20, seed, model=model).frame for seed, model in ((1, "m1"), (2, "m2"))])
    made = sx.curve_differences(Rollouts(both), resamples=100)
    assert [ax.get_title().split("\n")[0] for ax in made.plot().axes] == ["m1", "m2"]


def cells(ax):
    return [text.get_text() for text in ax.texts if text.get_gid() == "cell"]


def test_a_regression_shows_its_comparisons_and_on_request_its_depths(results):
    frame = results["hazard_model"].frame
    ax = results["hazard_model"].plot()
    compared = frame[~frame["nuisance"]]
    points = next(line for line in ax.lines if line.get_marker() == "s")
    assert points.get_xdata() == pytest.approx(compared["ratio"])
    assert len(cells(ax)) == 2 * len(compared)
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "Odds ratio of a first error (log scale)"
    assert len(cells(figures.regression_forest(frame, nuisance=True))) == 2 * len(frame)


def regression(**columns):
    row = {"label": "x vs y", "ratio": 1.5, "lower": 1.1, "upper": 2.0, "p_value": 0.0004, "nuisance": False}
    return pd.DataFrame([row | columns])


def test_a_ratio_is_written_with_interval_and_bounded_p():
    assert cells(figures.regression_forest(regression())) == ["1.50 [1.10, 2.00]", "<0.001"]
    undefined = regression(ratio=np.nan, lower=np.nan, upper=np.nan, p_value=np.nan)
    assert cells(figures.regression_forest(undefined)) == ["–", "–"]


def test_a_whisker_without_end_gets_an_arrow_and_the_point_keeps_its_place():
    ax = figures.regression_forest(regression(lower=1e-9, upper=np.inf))
    assert cells(ax)[0] == "1.50 [<0.001, >1000]"
    assert [line.get_marker() for line in ax.lines if line.get_marker() in "<>" and len(line.get_xdata())] == ["<", ">"]
    low, high = ax.get_xlim()
    assert 0.05 < low < 1.5 < high < 20
    whole(ax).draw_without_rendering()


def test_a_model_of_depth_alone_says_that_there_is_no_comparison():
    ax = figures.regression_forest(regression(nuisance=True))
    assert "No terms to draw but those of depth" in [text.get_text() for text in ax.texts]


DEGENERATE = {
    "one rollout": [("x", "a", 3, 4)],
    "no call at all": [("x", "a", 0, 1), ("y", "a", 0, 1)],
    "no error": [(m, t, 4, 5) for m in "xy" for t in "abcdef"],
    "all err at the first call": [(m, t, 4, 1) for m in "xy" for t in "abcdef"],
    "all finish at once": [(m, t, 2, 3) for m in "xy" for t in "ab"],
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.filterwarnings("default::survexec.errors.SurvexecWarning")
def test_degenerate_input_is_drawn_without_a_warning(case):
    rollouts = Rollouts(pd.DataFrame(DEGENERATE[case], columns=["method", "task_id", "length", "fed"]))
    made = [sx.curves(rollouts, kind=kind, by_class=kind == "cif", resamples=100) for kind in KINDS]
    if rollouts.frame["method"].nunique() > 1:
        made += [sx.curve_differences(rollouts, resamples=100), sx.hazard_model(rollouts, "method")]
    for result in made:
        figure = whole(result.plot())
        figure.draw_without_rendering()
        assert figure.axes


def test_an_empty_frame_gives_a_figure_that_says_why(results):
    draw = {
        "km": figures.curve, "hazard": figures.hazard_by_depth, "cif": figures.incidence_stack,
        "curve_differences": figures.curve_difference, "hazard_model": figures.regression_forest,
    }  # fmt: skip
    for kind, function in draw.items():
        figure = whole(function(results[kind].frame.iloc[:0]))
        said = [text.get_text() for text in figure.findobj(Text) if text.get_text().startswith("No ")]
        assert len(said) == 1, kind


def test_figures_of_several_panels_take_the_place_of_axes(results):
    figure = style.new_figure(14, 3)
    left, right = figure.subplots(1, 2)
    part = results["cif"].plot(ax=right)
    figure.draw_without_rendering()
    assert all(ax.bbox.x0 > left.bbox.x1 for ax in part.axes)


def test_drawing_changes_no_frame(results):
    for result in results.values():
        before = result.frame.copy()
        result.plot()
        pd.testing.assert_frame_equal(result.frame, before)
