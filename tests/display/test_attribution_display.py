"""Waterfalls, rank charts and their tables show what the frames say, legibly, whatever the data."""

import re

import numpy as np
import pandas as pd
import pytest
from looking import misplaced, texts, whole
from matplotlib.colors import to_hex

from survexec.display import style, wording
from survexec.display.attribution_tables import GRIDS
from survexec.display.figures.bump import rank_bump
from survexec.display.figures.waterfall import DOWN, UP, waterfall
from survexec.display.markup import html_table, latex, markdown
from survexec.rollouts import Rollouts
from survexec.statistics.attribution import attribute
from survexec.statistics.ranks import RANKED, rank

NAMES = ("tool_calling", "tool_calling_preconditions", "a$b$ méthode λ", "assertions_no_postconditions")
NASTY = "a|b_c$%&#{}~^\\<script>alert(1)</script>[x](y)\n*_é–中^^M"
DRAW = {"attribution": waterfall, "ranks": rank_bump}

pytestmark = pytest.mark.filterwarnings("error")


def cohort(methods=NAMES, tasks=60, seed=4, ters=(0.4, 0.8, 0.6, 0.9, 0.5, 0.7, 0.3, 0.85), **columns):
    """Rollouts of some methods on the same tasks in two strata; those who err more recover more."""
    rng = np.random.default_rng(seed)
    rows = []
    for method, ter in zip(methods, ters, strict=False):
        length = rng.integers(1, 12, tasks)
        clean = rng.random(tasks) < ter
        rows.append(pd.DataFrame({
            "method": method, "task_id": range(tasks), "length": length, "stratum": np.arange(tasks) % 2,
            "fed": np.where(clean, length + 1, rng.integers(1, length + 1)),
            "success": (rng.random(tasks) < np.where(clean, 0.8, 1 - ter)).astype(int),
        }))  # fmt: skip
    return Rollouts(pd.concat(rows, ignore_index=True).assign(**columns))


def results_of(rollouts, **how):
    return {"attribution": attribute(rollouts, resamples=200, **how), "ranks": rank(rollouts, resamples=200)}


@pytest.fixture(scope="module")
def results():
    return results_of(cohort(), strata=True)


@pytest.fixture(scope="module")
def two_places():
    frames = [cohort(NAMES[:2], 30, seed, model=f"model-{seed}", benchmark="shop").frame for seed in (1, 2)]
    return results_of(Rollouts(pd.concat(frames)))


@pytest.fixture(scope="module")
def drawn(results, two_places):
    """Each figure once; `boxes` of it are the texts that drawing it put on the page."""
    several = {"attribution": attribute(cohort(NAMES[:2]), resamples=200), "ranks": rank(cohort(), resamples=200)}
    eight = {"ranks": rank(cohort([f"method {letter}" for letter in "abcdefgh"]), resamples=200)}
    kept = {}
    for name, some in {"all": results, "one panel": several, "two places": two_places, "eight": eight}.items():
        for kind, result in some.items():
            figure = kept[kind, name] = whole(DRAW[kind](result))
            figure.boxes = texts(figure)
    return kept


def test_no_text_leaves_the_figure_or_covers_another(drawn):
    for name, figure in drawn.items():
        assert len(figure.boxes) > 8, name
        outside, covered = misplaced(figure)
        assert outside == [], name
        # the values at neighbouring points of a rank chart may touch; no name or number of a tick does
        values = {text.get_text() for text, _ in figure.boxes if text.get_gid() == "value"}
        assert [pair for pair in covered if not set(pair) <= values] == [], name


def test_names_print_literally(drawn):
    for kind in DRAW:
        printed = [text._preprocess_math(text.get_text()) for text, _ in drawn[kind, "all"].boxes]
        assert any("a$b$" in words for words, _ in printed)
        assert not any(mathematics is True for _, mathematics in printed)


def test_figures_are_one_or_two_columns_wide(drawn):
    for (_, name), figure in drawn.items():
        one = name in ("one panel", "eight") or (_ == "ranks" and name == "all")
        assert figure.get_figwidth() == pytest.approx(style.ONE_COLUMN if one else style.TWO_COLUMNS)


def numbers(ax, gid):
    return [text.get_text() for text in ax.texts if text.get_gid() == gid]


def bars(ax):
    return [(bar.get_x(), bar.get_width(), to_hex(bar.get_facecolor())) for bar in ax.patches]


def test_steps_lead_from_one_success_to_the_other(drawn, results):
    frame = results["attribution"].frame
    for ax, ((a, b), pair) in zip(drawn["attribution", "all"].axes, frame.groupby(["a", "b"], sort=False), strict=True):
        pair = pair.set_index("part")
        low, high, *steps = bars(ax)
        assert (low[:2], high[:2]) == ((0, pair["estimate_b"]["total"]), (0, pair["estimate_a"]["total"]))
        assert [width for _, width, _ in steps] == pytest.approx(pair["estimate"].drop("total").tolist())
        assert steps[0][0] == low[1]
        assert [start for start, _, _ in steps[1:]] == pytest.approx([start + width for start, width, _ in steps[:2]])
        assert sum(steps[2][:2]) == pytest.approx(high[1])
        expected = [to_hex((DOWN if width < 0 else UP).color) for _, width, _ in steps]
        assert [color for *_, color in steps] == expected
        names = [text.get_text().replace("\n", "").replace(r"\$", "$") for text in ax.texts[::2]]
        assert (names[0], names[-1]) == (f"{b} (b)", f"{a} (a)")


def test_a_whisker_is_the_interval_of_its_step(drawn, results):
    pair = results["attribution"].frame.head(3)
    ax = drawn["attribution", "all"].axes[0]
    lines = [segment for lines in ax.collections for segment in lines.get_segments() if segment[0, 1] == segment[1, 1]]
    starts = [start for start, _, _ in bars(ax)[2:]]
    ends = np.array([line[:, 0] for line in lines])
    assert ends == pytest.approx(np.array(starts)[:, None] + pair[["lower", "upper"]].to_numpy())


def test_steps_are_written_with_sign_and_interval():
    frame = pd.DataFrame({
        "a": "x", "b": "y", "part": ["ter", "clean_success", "rr", "total"], "estimate_a": [0.9, 1, np.nan, 0.9],
        "estimate_b": [0.5, 1, 0.5, 0.75], "estimate": [0.2, -0.05, np.nan, 0.15], "lower": [0.1, -0.1, np.nan, 0.0],
        "upper": [0.3, 0.01, np.nan, 0.3], "n_pairs": 40,
    })  # fmt: skip
    ax = waterfall(frame).axes[0]
    assert numbers(ax, "number") == ["0.750", "+0.200 [0.100, 0.300]", "−0.050 [−0.100, 0.010]", "–", "0.900"]
    assert [text.get_text() for text in ax.texts[::2]][3] == "Recovery (RR): 0.500 → –"
    assert ax.get_title() == "40 pairs"
    dashes = ["dotted" if lines.get_linestyle()[0][1] else "solid" for lines in ax.collections[-4:]]
    assert dashes == ["solid", "solid", "dotted", "dotted"]


def test_places_stand_over_their_panels(drawn):
    for kind, counted in (("attribution", "pairs"), ("ranks", "tasks")):
        assert [ax.get_title() for ax in drawn[kind, "two places"].axes] == [f"model-{n}\n30 {counted}" for n in (1, 2)]


def rank_lines(ax):
    return [line for line in ax.lines if line.get_marker() not in ("None", "", None)]


def test_lines_run_through_the_ranks_and_whiskers_span_their_intervals(drawn, results):
    frame, ax = results["ranks"].frame, drawn["ranks", "all"].axes[0]
    metrics = frame["metric"].unique()
    assert len(rank_lines(ax)) == len(NAMES)
    for line, whiskers, name in zip(rank_lines(ax), ax.collections, NAMES, strict=True):
        rows = frame[frame["value"] == name]
        assert line.get_ydata().tolist() == rows["rank"].tolist()
        assert [tuple(w[:, 1]) for w in whiskers.get_segments()] == list(zip(rows["lower"], rows["upper"], strict=True))
        assert np.abs(line.get_xdata() - np.arange(len(metrics))).max() < 0.5
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_the_names_stand_in_the_order_of_the_last_metric(drawn, results):
    last = results["ranks"].frame.query("metric == 'rr'").sort_values("rank", kind="stable")["value"].tolist()
    named = [text for text in drawn["ranks", "all"].axes[0].texts if text.get_gid() == "name"]
    assert [text.get_text().replace("\n", "").replace(r"\$", "$") for text in named] == last
    assert [text.xy[1] for text in named] == [1, 2, 3, 4]


def test_under_each_metric_stands_how_sure_its_leader_is(drawn, results):
    frame = results["ranks"].frame
    expected = [f"{part.sort_values('rank')['first'].iloc[0]:.2f}" for _, part in frame.groupby("metric", sort=False)]
    assert numbers(drawn["ranks", "all"].axes[0], "first") == expected
    leads = frame["rank"] == 1
    turned = frame.assign(first=frame["first"].where(~leads, 0.01))
    assert set(numbers(rank_bump(turned).axes[0], "first")) == {"0.01"}


def test_a_value_is_written_once_where_ranks_are_tied():
    frame = cohort(NAMES[:1]).frame
    same = rank(Rollouts(pd.concat([frame.assign(method=name) for name in "xyz"])), resamples=100)
    ax = rank_bump(same).axes[0]
    assert len(numbers(ax, "value")) == 5


def test_values_of_different_ranks_look_different():
    frame = pd.DataFrame({
        "value": ["x", "y", "z"] * 2, "metric": ["ter"] * 3 + ["mean_fed"] * 3, "rank": [1.0, 2.0, 3.0] * 2,
        "estimate": [0.863, 0.857, 0.8, 7.8, 7.2, 6.0], "lower": 1.0, "upper": 3.0, "first": 0.5, "n_tasks": 50,
    })  # fmt: skip
    assert numbers(rank_bump(frame).axes[0], "value") == ["0.863", "7.8", "0.857", "7.2", "0.800", "6.0"]
    apart = frame.assign(estimate=[0.863, 0.85, 0.8, 7.22, 7.17, 6.0])
    assert numbers(rank_bump(apart).axes[0], "value") == ["0.86", "7.22", "0.85", "7.17", "0.80", "6.00"]


def test_more_than_five_metrics_take_two_columns_so_that_no_name_covers_another():
    everything = rank(cohort(NAMES), metrics=RANKED, resamples=100)
    figure = rank_bump(everything)
    figure.boxes = texts(figure)
    assert figure.get_figwidth() == style.TWO_COLUMNS
    outside, covered = misplaced(figure)
    values = set(numbers(figure.axes[0], "value"))
    assert (outside, [pair for pair in covered if not set(pair) <= values]) == ([], [])


def test_a_method_without_a_rank_leaves_a_hole_and_keeps_its_name():
    frame = cohort(("x", "y"), ters=(1.0, 0.5))
    ax = rank_bump(rank(frame, resamples=100)).axes[0]
    assert [np.isnan(line.get_ydata()).tolist()[-1] for line in rank_lines(ax)] == [True, False]
    assert numbers(ax, "name") == ["y", "x"]


DEGENERATE = {
    "one task": [("x", "a", 3, 4, 1), ("y", "a", 3, 1, 0)],
    "no call at all": [(m, t, 0, 1, 1) for m in "xy" for t in "ab"],
    "no error": [(m, t, 4, 5, 0) for m in "xy" for t in "abcd"],
    "all err at the first call": [(m, t, 4, 1, int(m == "x")) for m in "xy" for t in "abcd"],
    "no success known": [(m, t, 4, 1, None) for m in "xy" for t in "abcd"],
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_input_is_drawn_and_tabled_without_a_warning(case):
    data = Rollouts(pd.DataFrame(DEGENERATE[case], columns=["method", "task_id", "length", "fed", "success"]))
    for kind, result in results_of(data).items():
        figure = whole(DRAW[kind](result))
        figure.draw_without_rendering()
        assert len(figure.axes) == 1
        assert "nan" not in markdown(GRIDS[kind](result))


@pytest.mark.parametrize("kind", DRAW)
def test_an_empty_frame_gives_a_figure_that_says_why(results, kind):
    said = [text.get_text() for text, _ in texts(whole(DRAW[kind](results[kind].frame.iloc[:0])))]
    assert said in (["No differences to draw"], ["No ranks to draw"])


def test_drawing_changes_no_frame(results):
    for kind, result in results.items():
        before = result.frame.copy()
        DRAW[kind](result)
        pd.testing.assert_frame_equal(result.frame, before)


# tables


def row(result, place):
    return [f"{cell.text} {cell.small}".strip() for cell in GRIDS[result.kind](result).rows[place].cells]


def test_a_part_stands_beside_the_factor_on_both_sides(results):
    at = results["attribution"].frame.iloc[0]
    interval = f"{at['estimate']:.3f} [{at['lower']:.3f}, {at['upper']:.3f}]".replace("-", "−")
    sides = [f"{at[f'estimate_{side}']:.3f} ({at[f'denominator_{side}']})" for side in "ab"]
    assert row(results["attribution"], 0) == ["TER", *sides, interval]
    made = GRIDS["attribution"](results["attribution"])
    assert [r.cells[0].text for r in made.rows[:4]] == ["TER", "Success if clean (s)", "RR", "Success"]
    assert made.rows[0].group == "a = tool_calling, b = tool_calling_preconditions (60 pairs)"
    assert "Intervals: expanded percentile bootstrap over tasks" in made.foot
    assert made.foot.endswith("; 200 resamples.")


def test_a_part_that_rests_on_few_has_a_mark_that_the_foot_explains():
    result = results_of(cohort(("x", "y"), ters=(0.9, 0.8)))["attribution"]
    assert dict(zip(result.frame["part"], result.frame["interval"], strict=True))["rr"] == "mover"
    made = GRIDS["attribution"](result)
    shown = {r.cells[0].text: r.cells[-1].mark for r in made.rows[:4]}
    assert shown["RR"] != shown["Success"]
    assert f"{shown['RR'] + ': ' if shown['RR'] else ''}MOVER from Wilson limits" in made.foot


def test_strata_follow_in_groups_of_their_own(results):
    made = GRIDS["attribution"](results["attribution"])
    strata = [r for r in made.rows if r.group.endswith("(all tasks of each, by stratum)")]
    assert [r.cells[0].text for r in strata[:7]] == [
        "Share of 0", "Success in 0", "Share of 1", "Success in 1", "Mix of strata", "Success within strata", "Success",
    ]  # fmt: skip
    assert [cell.text for cell in strata[0].cells[1:3]] == ["0.500", "0.500"]
    assert [cell.text for cell in strata[4].cells] == ["Mix of strata", "", "", "0.000"]


def test_ranks_stand_by_metric_the_best_first(results):
    made = GRIDS["ranks"](results["ranks"])
    assert made.header == ("Method", "Value", "Rank", "P(first)")
    assert made.rows[0].group == "Success (60 tasks)"
    at = results["ranks"].frame.query("metric == 'success'").sort_values("rank").iloc[0]
    shown = f"{at['rank']:g} [{at['lower']:g}, {at['upper']:g}]"
    assert row(results["ranks"], 0) == [at["value"], f"{at['estimate']:.3f} (60)", shown, f"{at['first']:.2f}"]


def test_what_is_undefined_is_a_dash():
    result = results_of(cohort(("x", "y"), ters=(1.0, 0.5)))
    made = {kind: GRIDS[kind](one) for kind, one in result.items()}
    assert [cell.text for cell in made["attribution"].rows[2].cells][1] == wording.DASH
    assert made["attribution"].foot.endswith(f"{wording.DASH}: undefined (0/0); the notes say why.")
    assert [cell.text for cell in made["ranks"].rows[-1].cells] == ["x", wording.DASH, wording.DASH, wording.DASH]


def test_hostile_names_are_only_text():
    for kind, result in results_of(cohort((NASTY, "[0.1, 0.2]"), benchmark=NASTY)).items():
        made = GRIDS[kind](result)
        text = markdown(made)
        widths = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in text.splitlines() if line.startswith("|")}
        assert len(widths) == 1
        assert "<script" not in text + html_table(made)
        assert "\\<script" not in latex(made)
