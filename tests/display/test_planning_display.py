"""The table and the figure of a plan say what its frame says, legibly, whatever was asked."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from looking import misplaced, texts
from matplotlib.figure import Figure

from survexec.display import style
from survexec.display.figures.power import power_curves
from survexec.display.markup import html_table, latex, markdown
from survexec.display.planning_tables import GRIDS
from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.planning import plan

pytestmark = pytest.mark.filterwarnings("error")


def pilot(names):
    """Rollouts of two methods on 40 tasks."""
    rng = np.random.default_rng(1)
    length = rng.integers(1, 7, 80)
    return Rollouts(
        pd.DataFrame({
            "task_id": np.tile(range(40), 2), "method": np.repeat(names, 40), "length": length,
            "fed": np.minimum(rng.geometric(0.2, 80), length + 1),
        })
    )  # fmt: skip


@pytest.fixture(scope="module")
def plans():
    """One plan of each question, and those that are hard to show."""
    return {
        "tasks": plan(difference=-0.15, discordance=0.28),
        "difference": plan(pilot(["a$b$|<i>", "_x_{y}"]), tasks=90, metric="auc_pec"),
        "power": plan(tasks=100, difference=0.1, discordance=0.28, comparisons=6),
        "split": plan(budget=400, discordance=0.28, noise=0.6, task_cost=4),
        "limited": plan(budget=2000, metric="mean_fed", sd=2.5, noise=0.8, max_tasks=40, difference=0.7),
        "none": plan(tasks=3, discordance=0.2),
    }


def rows(found):
    return [[f"{cell.text}{cell.mark}" for cell in row.cells] for row in GRIDS["plan"](found).rows]


def test_the_table_has_the_answer_marked_among_its_alternatives(plans):
    for found in plans.values():
        shown = found.frame[found.frame["point"] != "curve"]
        assert len(rows(found)) == len(shown)
        marked = [row for row in rows(found) if row[0].endswith("*")]
        assert len(marked) == 1
        assert marked[0][:3] == [
            f"{found.answer['tasks']}*",
            str(found.answer["trials"]),
            str(found.answer["rollouts"]),
        ]


def test_the_table_rounds_as_a_paper_would(plans):
    assert rows(plans["tasks"])[1] == ["94*", "1", "94", "−0.15", "0.507", "0.802"]
    assert rows(plans["none"]) == [["3*", "1", "3", "–", "–", "–"]]


def test_the_table_says_what_was_asked_and_how_it_was_decided(plans):
    grids = {name: GRIDS["plan"](found) for name, found in plans.items()}
    assert grids["tasks"].caption == "Tasks needed to show a difference in TER."
    assert grids["difference"].caption == "The smallest difference in AUC-PEC that tasks show (strict rule)."
    assert "400 rollouts of each method" in grids["split"].caption
    assert "McNemar mid-p, exact; sign-flip, as paired t" in grids["split"].foot
    assert "alpha 0.05 / 6 comparisons" in grids["power"].foot
    assert "no difference is shown" in grids["none"].foot
    assert "no difference is shown" not in grids["tasks"].foot


def test_the_table_is_safe_in_every_markup(plans):
    made = replace(GRIDS["plan"](plans["difference"]), notes=plans["difference"].notes)
    assert "\\|<i>" not in latex(made)
    assert "a\\$b\\$" in latex(made)
    assert "<i>" not in html_table(made)
    lines = [line for line in markdown(made).splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {7}


@pytest.mark.parametrize("name", ["tasks", "difference", "power", "split", "limited"])
def test_no_text_of_the_figure_is_clipped_or_covered(plans, name):
    figure = power_curves(plans[name]).figure
    figure.boxes = texts(figure)
    assert misplaced(figure) == ([], [])
    assert figure.get_figwidth() == style.ONE_COLUMN


@pytest.mark.parametrize("name", ["tasks", "difference", "power", "split", "limited"])
def test_the_figure_draws_each_curve_and_leads_down_from_the_answer(plans, name):
    found, ax = plans[name], power_curves(plans[name])
    drawn = found.frame.dropna(subset="power")
    legend = ax.figure.legends[0]
    assert len(legend.get_texts()) == drawn.groupby(["trials", "difference"]).ngroups
    (line,) = ax.collections
    foot, top = line.get_segments()[0]
    assert foot.tolist() == [found.answer["tasks"], 0]
    assert top.tolist() == pytest.approx([found.answer["tasks"], found.answer["power"]])
    (label,) = [text.get_text() for text in ax.texts if text.get_gid() == "answer"]
    assert label == f"{found.answer['tasks']} tasks, power {found.answer['power']:.2f}"
    assert any(line.get_ydata()[0] == found.made["power"] and len(set(line.get_ydata())) == 1 for line in ax.lines)


def test_the_legend_says_once_what_all_curves_share(plans):
    def said(name):
        legend = power_curves(plans[name]).figure.legends[0]
        return legend.get_title().get_text(), [text.get_text() for text in legend.get_texts()]

    assert said("tasks") == ("Difference in TER, 1 trial", ["−0.188", "−0.15", "−0.112"])
    title, labels = said("split")
    assert title.startswith("Difference in TER, 0.15")
    assert labels[:2] == ["1 trial", "2 trials"]


def test_curves_differ_without_colour(plans):
    lines = [line for line in power_curves(plans["split"]).lines if not line.get_label().startswith("_")]
    looks = {(line.get_linestyle(), line._dash_pattern[1] and tuple(line._dash_pattern[1])) for line in lines}
    # six curves and five dashes: the markers of their answers tell the rest
    assert len(looks) == min(len(lines), 5)


def test_an_empty_figure_says_why(plans):
    ax = power_curves(plans["none"])
    assert "No difference is shown" in ax.texts[0].get_text().replace("\n", " ")


def test_a_bare_frame_and_given_axes_serve(plans):
    ax = Figure().add_subplot()
    assert power_curves(plans["tasks"].frame, ax) is ax
    assert not any(line.get_linestyle() == "--" and len(line.get_ydata()) == 2 for line in ax.lines)
    with pytest.raises(InputError, match="missing: power"):
        power_curves(plans["tasks"].frame.drop(columns="power"))
