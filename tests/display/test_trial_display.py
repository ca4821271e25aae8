"""Figures and tables of several trials of a task show what their frames say, legibly, whatever the data."""

import re

import numpy as np
import pandas as pd
import pytest
from looking import misplaced, texts
from matplotlib.colors import to_hex
from matplotlib.text import Text

from survexec.display import markup, style, trial_tables, wording
from survexec.display.figures.trials import pass_curves, trial_errors
from survexec.rollouts import Rollouts
from survexec.statistics.pass_rates import pass_at
from survexec.statistics.trials import MEASURES, trial_variance

NAMES = ("plain", "with_a_much_longer_name", "a$b$ méthode λ")
NASTY = "a|b_c$%&#{}~^\\<script>alert(1)</script>[x](y)\n*_é–中^^M"

pytestmark = pytest.mark.filterwarnings("error")


def cohort(methods=NAMES, tasks=30, trials=4, seed=4, **columns):
    """Rollouts of some methods; tasks have their own chance of success."""
    rng = np.random.default_rng(seed)
    rows = []
    for method in methods:
        task, trial = (index.ravel() for index in np.indices((tasks, trials)))
        length = rng.integers(0, 9, tasks * trials)
        fed = np.minimum(rng.geometric(0.1, tasks * trials), length + 1)
        hit = rng.random(tasks * trials) < rng.beta(1, 1, tasks)[task]
        rows.append(pd.DataFrame(
            {"method": method, "task_id": task, "trial": trial, "length": length, "fed": fed, "success": hit}
        ))  # fmt: skip
    return Rollouts(pd.concat(rows, ignore_index=True).assign(**columns))


def chosen(frame, **cell):
    """Rows with these values."""
    for name, value in cell.items():
        frame = frame[frame[name] == value]
    return frame


@pytest.fixture(scope="module")
def rates():
    return pass_at(cohort(), resamples=100)


@pytest.fixture(scope="module")
def variance():
    return trial_variance(cohort())


@pytest.fixture(scope="module")
def drawn(rates, variance):
    """Both figures; `boxes` of each are the texts that drawing it put on the page."""
    kept = {"rates": pass_curves(rates), "variance": trial_errors(variance)}
    for figure in kept.values():
        figure.boxes = texts(figure)
    return kept


@pytest.mark.parametrize("kind", ["rates", "variance"])
def test_figures_are_legible_and_names_print_literally(drawn, kind):
    figure = drawn[kind]
    assert len(figure.boxes) > 20
    assert misplaced(figure) == ([], [])
    printed = [text._preprocess_math(text.get_text()) for text, _ in figure.boxes]
    assert any("a$b$" in words for words, _ in printed)
    assert not any(mathematics is True for _, mathematics in printed)
    assert not any(key.get_window_extent().overlaps(ax.bbox) for key in figure.legends for ax in figure.axes)
    assert round(figure.get_figwidth(), 6) == style.TWO_COLUMNS


def test_each_outcome_has_a_panel_with_two_lines_a_cell(rates, drawn):
    axes = drawn["rates"].axes
    assert [ax.get_title() for ax in axes] == ["Success", "Success without error", "TER"]
    for ax, outcome in zip(axes, rates.made["outcomes"], strict=True):
        lines = iter([line for line in ax.lines if len(line.get_xdata()) == 4])
        for index, method in enumerate(NAMES):
            for convention in ("pass^k", "pass@k"):
                line = next(lines)
                rows = chosen(rates.frame, method=method, outcome=outcome, convention=convention)
                assert line.get_xydata() == pytest.approx(rows[["k", "estimate"]].to_numpy(float))
                assert to_hex(line.get_color()).upper() == style.stroke(index).color
                assert (line.get_linestyle() == "-") == (convention == "pass@k")
                assert (line.get_markerfacecolor() == "white") == (convention == "pass^k")


def test_conventions_are_told_apart_in_the_legend(drawn):
    labels = [text.get_text() for text in drawn["rates"].legends[0].get_texts()]
    assert labels[-3:] == ["pass@k: at least one of k trials", "pass^k: all k trials", "95% interval"]
    assert len(labels) == len(NAMES) + 3


def test_the_tasks_behind_each_k_stand_under_it():
    data = cohort(NAMES[:1])
    lost = Rollouts(data.frame[(data.frame["trial"] < 3) | (data.frame["task_id"].astype(int) > 10)])
    ax = pass_curves(pass_at(lost, resamples=100)).axes[0]
    counts = [text.get_text() for text in ax.texts if text.get_gid() == "at risk"]
    assert counts == ["30", "30", "30", "19"]


def test_ribbons_are_the_intervals_and_absent_ones_leave_no_trace(rates):
    ax = pass_curves(rates).axes[0]
    ribbon = ax.collections[0].get_paths()[0].vertices[:, 1]
    rows = chosen(rates.frame, method="plain", outcome="success", convention="pass^k")
    assert (ribbon.min(), ribbon.max()) == pytest.approx((rows["lower"].min(), rows["upper"].max()))
    bare = pass_curves(rates.frame.assign(lower=np.nan, upper=np.nan)[rates.frame["method"] == "plain"])
    assert "interval" not in " ".join(text.get_text() for text in bare.legends[0].get_texts())


def test_many_trials_are_drawn_on_doublings():
    data = cohort(NAMES[:2], tasks=8, trials=100)
    figure = pass_curves(pass_at(data, resamples=100))
    figure.boxes = texts(figure)
    assert misplaced(figure) == ([], [])
    assert figure.axes[0].get_xscale() == "log"
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["1", "2", "4", "8", "16", "32", "64"]
    few = pass_curves(pass_at(data, k=(1, 10, 100), resamples=100)).axes[0]
    assert [label.get_text() for label in few.get_xticklabels()] == ["1", "10", "100"]


def test_standard_errors_fall_along_the_curve_with_its_points_marked(variance, drawn):
    axes = drawn["variance"].axes
    titles = [MEASURES[name].label for name in variance.made["metrics"]]
    assert [ax.get_title() for ax in axes if ax.axison] == [*titles[:-1], "Mean FED (calls)"]
    for ax, metric in zip(axes, variance.made["metrics"], strict=False):
        curve = chosen(variance.curve, metric=metric)
        for point in ("now", "enough"):
            marks = [tuple(line.get_xydata()[0]) for line in ax.lines if line.get_gid() == point]
            expected = chosen(curve, point=point)[["trials", "standard_error"]].replace(np.inf, np.nan).dropna()
            assert marks == list(expected.itertuples(index=False, name=None))
        limits = [line.get_ydata()[0] for line in ax.lines if line.get_gid() == "limit"]
        assert limits == chosen(curve, point="limit")["standard_error"].tolist()
        for at, method in enumerate(NAMES):
            asked = chosen(curve, method=method, point="asked")
            dots = [line for line in ax.lines if line.get_markersize() == 3.0][at]
            assert dots.get_xydata() == pytest.approx(asked[["trials", "standard_error"]].to_numpy(float))
        assert ax.get_ylim()[0] == 0
        assert ax.get_xscale() == "log"


def test_a_metric_or_a_result_without_a_split_says_so(variance):
    single = trial_errors(trial_variance(cohort(NAMES[:1], trials=1)))
    said = [text.get_text() for text in single.findobj(Text) if "No variance to split" in text.get_text()]
    assert len(said) == 1
    curve = variance.curve
    part = curve.assign(standard_error=curve["standard_error"].where(curve["metric"] != "ter"))
    said = [text.get_text() for text in trial_errors(part).findobj(Text) if text.get_text().startswith("No variance")]
    assert len(said) == 1


def test_tasks_that_do_not_differ_get_no_large_marker():
    frame = pd.DataFrame({
        "task_id": [*"aabbcc"], "trial": [0, 1] * 3, "length": 2, "fed": 3, "success": [1, 0, 0, 1, 1, 0],
    })  # fmt: skip
    figure = trial_errors(trial_variance(Rollouts(frame), metrics="success"))
    figure.draw_without_rendering()
    assert "enough" not in [line.get_gid() for line in figure.axes[0].lines]


@pytest.mark.parametrize("trials", [(5, 6), (3,), (1, 1000)])
def test_any_numbers_of_trials_get_an_axis(trials):
    figure = trial_errors(trial_variance(cohort(NAMES[:1]), metrics="ter", trials=trials))
    figure.boxes = texts(figure)
    assert misplaced(figure) == ([], [])
    low, high = figure.axes[0].get_xlim()
    assert low < min(trials)
    assert high > max(trials)
    assert len(figure.axes[0].get_xticks()) > 0


DEGENERATE = {
    "one rollout": [("x", "a", 0, 3, 4, 1)],
    "no call at all": [(m, t, r, 0, 1, 0) for m in "xy" for t in "ab" for r in (0, 1)],
    "all err at the first call": [(m, t, r, 3, 1, 1) for m in "xy" for t in "ab" for r in (0, 1)],
    "nothing labelled": [(m, t, r, 3, 2 + r, None) for m in "xy" for t in "ab" for r in (0, 1)],
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_input_is_shown_without_a_warning(case):
    columns = ["method", "task_id", "trial", "length", "fed", "success"]
    data = Rollouts(pd.DataFrame(DEGENERATE[case], columns=columns))
    variance = trial_variance(data, metrics=("ter", "success"))
    for result, draw in ((pass_at(data, resamples=100), pass_curves), (variance, trial_errors)):
        before = result.frame.copy()
        figure = draw(result)
        figure.draw_without_rendering()
        assert figure.axes
        assert markup.markdown(trial_tables.GRIDS[result.kind](result))
        pd.testing.assert_frame_equal(result.frame, before)


def test_an_empty_frame_gives_a_figure_that_says_why(rates, variance):
    for figure in (pass_curves(rates.frame.iloc[:0]), trial_errors(variance.curve.iloc[:0])):
        said = [text.get_text() for text in figure.findobj(Text) if text.get_text().startswith("No ")]
        assert len(said) == 1


def grid(result):
    return trial_tables.GRIDS[result.kind](result)


def row(result, place):
    return [f"{cell.text} {cell.small}".strip() for cell in grid(result).rows[place].cells]


def test_a_table_of_rates_has_a_group_an_outcome_and_a_column_a_k(rates):
    made = grid(rates)
    assert made.header == ("Method", "Convention", "k = 1", "k = 2", "k = 3", "k = 4", "Tasks")
    groups = [line.group for line in made.rows]
    assert groups == [label for label in ("Success", "Success without error", "TER") for _ in range(6)]
    at = chosen(rates.frame, method="plain", outcome="success", convention="pass^k", k=2).iloc[0]
    shown = row(rates, 1)
    assert shown[:2] == ["plain", "pass^k"]
    assert shown[3] == f"{at['estimate']:.2f} [{at['lower']:.2f}, {at['upper']:.2f}]"
    assert shown[-1] == "30"
    assert "100 resamples" in made.foot


def test_the_tasks_of_a_rate_are_a_range_where_they_differ():
    data = cohort(NAMES[:1])
    lost = Rollouts(data.frame[(data.frame["trial"] < 3) | (data.frame["task_id"].astype(int) > 10)])
    assert row(pass_at(lost, resamples=100), 0)[-1] == "19 to 30"
    none = pass_at(data, k=(4, 5), resamples=100)
    assert row(none, 0)[2] == wording.DASH
    assert grid(none).foot.endswith("–: no task has so many trials.")


def test_a_table_of_variances_has_every_part(variance):
    made = grid(variance)
    assert made.header[0] == "Method"
    assert [line.group for line in made.rows[::3]] == ["TER", "Success", "Success without error", "AUC-PEC", "Mean FED"]
    at = chosen(variance.frame, method="plain", metric="success").iloc[0]
    assert row(variance, 3) == [
        "plain", f"{at['estimate']:.3f}", f"{at['standard_error']:.3f}", f"{at['between']:.3f}", f"{at['within']:.3f}",
        f"{at['icc']:.2f} [{at['icc_lower']:.2f}, {at['icc_upper']:.2f}]", f"{100 * at['trial_share']:.0f}",
        f"{at['enough']:.0f}", "4", "30", "120",
    ]  # fmt: skip
    alone = grid(trial_variance(cohort(NAMES[:1])))
    assert alone.header[0] == "Metric"
    assert not alone.grouped


def test_what_cannot_be_split_is_a_dash_and_what_never_ends_is_said():
    single = trial_variance(cohort(trials=1), metrics="ter")
    assert row(single, 0)[3:8] == [wording.DASH] * 5
    assert grid(single).foot.endswith("–: cannot be told; the notes say why.")
    frame = pd.DataFrame({
        "task_id": [*"aabbcc"], "trial": [0, 1] * 3, "length": 2, "fed": 3, "success": [1, 0, 0, 1, 1, 0],
    })  # fmt: skip
    endless = trial_variance(Rollouts(frame), metrics="success")
    assert row(endless, 0)[7] == "never"
    assert "Never: tasks do not differ" in grid(endless).foot


def test_hostile_names_are_escaped_in_every_markup():
    data = cohort((NASTY, "[0.1, 0.2]"), benchmark=NASTY)
    for result in (pass_at(data, resamples=100), trial_variance(data)):
        text = markup.markdown(grid(result))
        widths = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in text.splitlines() if line.startswith("|")}
        assert len(widths) == 1
        assert "<script" not in text
        assert "<script" not in markup.html_table(grid(result))
        assert "\\<script" not in markup.latex(grid(result))
