"""Tables of the survival results: every kind reads in every markup, and says what its numbers are."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import survexec as sx
from survexec.display import tables, wording
from survexec.rollouts import Rollouts

NASTY = "a|b_c$%&#{}~^\\<script>alert(1)</script>[x](y)\n*_é–中^^M"
KINDS = ("km", "na", "hazard", "cif", "states", "at_risk")


def cohort(methods, tasks=40, seed=2, **columns):
    """Rollouts of some methods on the same tasks, one in ten cut by a limit."""
    rng = np.random.default_rng(seed)
    rows = []
    for method in methods:
        length = rng.integers(1, 9, tasks)
        fed = np.minimum(rng.geometric(0.15, tasks), length + 1)
        rows.append(pd.DataFrame({
            "method": method, "task_id": range(tasks), "length": length, "fed": fed,
            "ending": np.where(rng.random(tasks) < 0.1, "truncated", "completed"),
            "error_class": np.where(fed <= length, rng.choice(["schema", "dependency"], tasks), None),
        }))  # fmt: skip
    return Rollouts(pd.concat(rows, ignore_index=True).assign(**columns))


def all_kinds(rollouts):
    """One result of each kind by name."""
    made = {kind: sx.curves(rollouts, kind=kind, by_class=kind == "cif", resamples=100) for kind in KINDS}
    return made | {
        "curve_differences": sx.curve_differences(rollouts, resamples=100),
        "depths": sx.clean_depths(rollouts),
        "depth_differences": sx.depth_differences(rollouts),
        "survival_tests": sx.survival_tests(rollouts, tests=("prentice_wilcoxon", "log_rank_by_task")),
        "hazard_model": sx.hazard_model(rollouts),
    }


@pytest.fixture(scope="module")
def results():
    """Results of two methods."""
    return all_kinds(cohort(("plain", "checked"), benchmark="shop"))


@pytest.fixture(scope="module")
def nasty():
    """Results whose every name is hostile."""
    return all_kinds(cohort((NASTY, "[0.1, 0.2]"), benchmark=NASTY))


def test_every_kind_has_a_table_with_its_notes_in_every_markup(results):
    for kind, result in results.items():
        assert result.kind == kind
        for text in (result.to_markdown(), result.to_latex(), result.to_html()):
            assert len(text.splitlines()) > 0
            assert "nan" not in text
        assert result.to_html().count("<li>") == len(result.notes)
        assert f"\\label{{tab:{kind}}}" in result.to_latex()


def test_hostile_names_are_only_text(nasty):
    for kind, result in nasty.items():
        text = result.to_markdown()
        cells = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in text.splitlines() if line.startswith("|")}
        assert len(cells) == 1, kind
        assert "<script" not in text
        assert "<script" not in result.to_html()
        assert "\\<script" not in result.to_latex()


def row(result, place):
    return [f"{cell.text} {cell.small}".strip() for cell in tables.grid(result).rows[place].cells]


@pytest.mark.parametrize(
    ("kind", "interval"), [("km", "log-log"), ("na", "log"), ("hazard", "Wilson"), ("cif", "log-log")]
)
def test_the_foot_names_the_interval(results, kind, interval):
    assert f"Pointwise {interval} intervals." in tables.grid(results[kind]).foot
    plain = results[kind].with_interval(interval="plain")
    assert f"Pointwise {'log' if kind == 'na' else 'plain'} intervals." in tables.grid(plain).foot


def test_a_curve_stands_beside_those_at_risk(results):
    at = results["km"].frame.iloc[3]
    shown = row(results["km"], 3)[:3]
    assert shown == ["3", f"{at['estimate']:.2f} [{at['lower']:.2f}, {at['upper']:.2f}]", str(at["at_risk"])]


def test_a_hazard_stands_beside_its_fraction_from_the_first_call_on(results):
    at = results["hazard"].frame.iloc[1]
    assert row(results["hazard"], 0)[0] == "1"
    assert row(results["hazard"], 0)[2] == f"{at['events']} / {at['at_risk']}"


def test_incidences_have_a_column_a_class(results):
    made = tables.grid(results["cif"])
    assert made.header == ("k", "Schema", "Dependency", "Finished clean", "At risk")
    assert made.rows[0].group == "plain"


def test_those_at_risk_add_up_from_call_to_call(results):
    made = tables.grid(results["at_risk"])
    counts = [[int(cell.text) for cell in row.cells] for row in made.rows if row.group == "plain"]
    assert all(at[1] - sum(at[2:]) == following[1] for at, following in pairwise(counts))
    assert "intervals" not in made.caption


def test_a_difference_by_depth_has_interval_and_band(results):
    at = results["curve_differences"].frame.iloc[4]
    expected = [f"[{at[f'{name}lower']:.2f}, {at[f'{name}upper']:.2f}]".replace("-", "−") for name in ("", "band_")]
    shown = row(results["curve_differences"], 4)
    assert shown[3].endswith(expected[0])
    assert shown[4] == expected[1]
    assert shown[5:] == [str(at["at_risk_a"]), str(at["at_risk_b"])]
    assert tables.grid(results["curve_differences"]).rows[0].group == "a = plain, b = checked (40 pairs)"


def test_where_a_curve_has_ended_there_is_a_dash_and_its_reason():
    rollouts = Rollouts(pd.DataFrame({
        "task_id": range(6), "length": [1, 2, 2, 1, 2, 4], "fed": [2, 3, 1, 2, 3, 5], "method": [*"xxxxx", "y"],
        "ending": "truncated",
    }))  # fmt: skip
    made = tables.grid(sx.curves(rollouts, kind="km", resamples=100))
    assert made.rows[4].cells[1].text == wording.DASH
    assert made.foot.endswith("–: nobody is left at risk.")


def test_depths_stand_by_quantity_and_a_quantile_may_lack_a_limit(results):
    made = tables.grid(results["depths"])
    assert made.header == ("Method", "Estimate", "Standard error", "Tasks")
    groups = list(dict.fromkeys(row.group for row in made.rows))
    assert groups[0].startswith("Mean clean depth of")
    assert groups[-1] == "FED quantile 0.75"
    few = Rollouts(pd.DataFrame({"task_id": range(9), "length": [4] * 9, "fed": [2, 2, 3, 5, 5, 5, 5, 5, 5]}))
    last = [f"{cell.text} {cell.small}".strip() for cell in tables.grid(sx.clean_depths(few)).rows[3].cells]
    assert last[:2] == ["FED quantile 0.25", "3 [1, –]"]


def test_a_difference_of_depths_has_its_standard_error_and_p(results):
    at = results["depth_differences"].frame.iloc[0]
    shown = row(results["depth_differences"], 0)
    assert shown[4:] == [f"{at['standard_error']:.3f}", wording.p_value(at["p_value"])]


def test_tests_stand_under_their_pair_with_the_basis(results):
    made = tables.grid(results["survival_tests"])
    frame = results["survival_tests"].frame
    assert made.rows[0].group == "a = plain, b = checked (40 tasks)"
    assert [row.cells[0].text for row in made.rows] == ["paired Prentice-Wilcoxon", "log-rank stratified by task"]
    assert [row.cells[2].text for row in made.rows] == ["–", "1"]
    assert made.rows[0].cells[-1].text == "40 + 40"
    assert "rollouts about to make call k (within each task), in log-rank stratified by task" in made.foot
    assert made.rows[1].cells[3].text == wording.p_value(frame["p_value"][1])


@pytest.mark.filterwarnings("ignore::survexec.errors.SurvexecWarning")
def test_a_test_of_all_at_once_and_of_each_cause_is_named():
    three = cohort(("x", "y", "z"), 20)
    made = tables.grid(sx.survival_tests(three, tests="gray", by_class=True, rho=1))
    assert made.rows[0].group == "all at once (20 tasks)"
    assert {row.cells[0].text for row in made.rows} == {"Gray, schema", "Gray, dependency", "Gray, finish"}
    assert made.foot.endswith("Weights: rho = 1.")


def test_a_regression_reads_as_one(results):
    made, frame = tables.grid(results["hazard_model"]), results["hazard_model"].frame
    assert made.header == ("Term", "Coefficient", "Odds ratio", "t", "p")
    assert [row.cells[0].text for row in made.rows[:3]] == ["intercept", "checked", "depth 2 vs 1"]
    assert made.foot.startswith("Against method plain. 80 rollouts of 40 tasks")
    at = frame.iloc[1]
    shown = row(results["hazard_model"], 1)
    assert shown[1] == f"{at['coefficient']:.3f} ({at['standard_error']:.3f})".replace("-", "−")
    assert shown[2] == f"{at['ratio']:.2f} [{at['lower']:.2f}, {at['upper']:.2f}]"
    assert "t with 39 degrees of freedom" in made.foot
    assert "method + depth; discrete time, logit link" in made.caption


def test_an_unclustered_model_of_one_cause_says_so():
    rollouts = cohort(("x", "y"))
    made = tables.grid(sx.hazard_model(rollouts, "method", model="cox", cluster=None, cause="schema"))
    assert made.header[2:4] == ("Hazard ratio", "z")
    assert "a first error of class schema" in made.caption
    assert "of independent rollouts; the normal distribution" in made.foot
    assert "Strata: task." in tables.grid(sx.hazard_model(rollouts, "method", model="cox", strata="task")).foot


def test_a_term_that_cannot_be_estimated_is_a_dash():
    frame = pd.DataFrame({"task_id": [*range(9)] * 2, "method": [*"x" * 9, *"y" * 9], "length": 3, "fed": 4})
    made = tables.grid(sx.hazard_model(Rollouts(frame), "method"))
    assert {cell.text for row in made.rows for cell in row.cells[1:]} == {wording.DASH}
    assert made.foot.endswith("–: not estimable; the notes say why.")


def test_ratios_beyond_a_thousand_are_bounded():
    assert [wording.ratio(value) for value in (0.0005, 0.02, 0.1, 9.994, 50, 999, 1001, np.inf, np.nan)] == [
        "<0.001", "0.020", "0.10", "9.99", "50.0", "999", ">1000", ">1000", "–",
    ]  # fmt: skip
