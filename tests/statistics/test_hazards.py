"""Regression of the hazard: equal to R, exact in closed forms, and honest where nothing can be estimated."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from cohorts import REFERENCE, rollouts
from hypothesis import given, settings

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.hazards import HazardModel, hazard_model

MODELS = ({}, {"link": "cloglog"}, {"depth": "smooth"}, {"model": "gee"}, {"model": "cox"}, {"model": "fine_gray"})


def in_r(name: str, analysis: str) -> pd.DataFrame:
    """The rows of one file of R's values whose analysis begins so; the item "null" is a name, not a missing value."""
    table = pd.read_csv(REFERENCE / f"{name}.csv", keep_default_na=False, na_values={"value": ["NA", "NaN"]})
    return table[table["analysis"].str.startswith(analysis)]


def term(name: str, last: str = "8+") -> str:
    """R's name of a coefficient as ours."""
    if name.startswith("dep"):
        return f"depth[{last if name[3:] == '8' else name[3:]}]"
    return f"method[{name[6:]}]" if name.startswith("method") else "intercept"


def table(*rows: tuple) -> Rollouts:
    """Rollouts from (task, method, length, fed)."""
    return Rollouts(pd.DataFrame(rows, columns=["task_id", "method", "length", "fed"]))


def coefficients(model: HazardModel) -> pd.Series:
    return model.frame.set_index("term")["coefficient"]


@pytest.fixture(scope="module", params=["a_paired", "b_clustered"])
def cohort(request: pytest.FixtureRequest) -> tuple[str, Rollouts]:
    return request.param, request.getfixturevalue({"a_paired": "paired", "b_clustered": "clustered"}[request.param])


@pytest.mark.parametrize(("cap", "max_depth"), [(8, 8), (99, None)])
@pytest.mark.parametrize("link", ["logit", "cloglog"])
def test_discrete_hazards_equal_glm_and_sandwich_in_r(cohort, link, cap, max_depth):
    name, runs = cohort
    clustered = hazard_model(runs, link=link, max_depth=max_depth)
    plain = hazard_model(runs, link=link, max_depth=max_depth, cluster=None)
    error = clustered.frame.set_index("term")["standard_error"]
    tasks, n = clustered.made["tasks"], clustered.made["person_depths"]
    # R also has a coefficient for each depth without an error, which we leave out
    depths = int(runs.durations.max()) if max_depth is None else max_depth
    k = depths + runs.frame["method"].nunique() - 1
    ours = {
        "coef": coefficients(clustered),
        "se": plain.frame.set_index("term")["standard_error"],
        "cl_HC0_nocadj": error * math.sqrt((tasks - 1) / tasks),
        "cl_HC0_cadj": error,
        "cl_HC1_cadj": error * math.sqrt((n - 1) / (n - k)),
        "dev": {"intercept": -2 * clustered.made["log_likelihood"]},
        "npp": {"intercept": n},
    }
    wanted = in_r("05_discrete", f"dth_{link}_cap{cap}_")
    wanted = wanted[wanted["dataset"] == name]
    methods = runs.frame["method"].nunique() - 1
    assert len(wanted) == 5 * (methods + (8 if cap == 8 else 0)) + 2
    for row in wanted.itertuples():
        what = row.analysis.split("_", 3)[3]
        assert ours[what][term(row.item)] == pytest.approx(row.value, abs=1e-7, rel=1e-11), (row.analysis, row.item)


@pytest.mark.parametrize("correlation", ["independence", "exchangeable"])
def test_estimating_equations_equal_geepack(cohort, correlation):
    """Exchangeable too: with the moments of the correlation divided as geepack does, nothing is left to explain.

    statsmodels' default divides by less (it subtracts the number of coefficients), which moves coefficients by up to
    1.7e-3 and makes its errors the larger ones, by up to 2.4e-4.
    """
    name, runs = cohort
    frame = hazard_model(runs, model="gee", correlation=correlation).frame.set_index("term")
    wanted = in_r("05_discrete", f"gee_{correlation}")
    wanted = wanted[wanted["dataset"] == name]
    assert len(wanted) == 2 * len(frame)
    for row in wanted.itertuples():
        column = "coefficient" if row.analysis.endswith("coef") else "standard_error"
        assert frame[column][term(row.item)] == pytest.approx(row.value, abs=1e-10), (row.analysis, row.item)


def test_conditional_logistic_regression_by_task_and_depth_equals_clogit(cohort):
    name, runs = cohort
    frame = hazard_model(runs, model="cox", ties="exact", strata="task", cluster=None).frame.set_index("term")
    wanted = in_r("05_discrete", "clogit")
    wanted = wanted[wanted["dataset"] == name]
    assert len(wanted) == 2 * len(frame)
    for row in wanted.itertuples():
        column = "coefficient" if row.analysis.endswith("coef") else "standard_error"
        assert frame[column][term(row.item)] == pytest.approx(row.value, abs=1e-7)


def test_every_value_of_the_discrete_models_in_r_is_compared_above():
    prefixes = ("dth_logit_cap8_", "dth_logit_cap99_", "dth_cloglog_cap8_", "dth_cloglog_cap99_", "gee_", "clogit_")
    assert sum(len(in_r("05_discrete", prefix)) for prefix in prefixes) == len(in_r("05_discrete", "")) == 344


def test_one_depth_and_two_groups_give_the_log_odds_ratio():
    runs = table(*[(f"t{i}", "old", 1, 1 if i < 6 else 2) for i in range(20)],
                 *[(f"t{i}", "new", 1, 1 if i < 3 else 2) for i in range(15)])  # fmt: skip
    fit = hazard_model(runs, cluster=None)
    assert fit.frame["term"].tolist() == ["intercept", "method[new]"]
    row = fit.frame.iloc[1]
    assert row["coefficient"] == pytest.approx(math.log(3 / 12) - math.log(6 / 14), abs=1e-10)
    assert row["standard_error"] == pytest.approx(math.sqrt(1 / 3 + 1 / 12 + 1 / 6 + 1 / 14), abs=1e-8)
    assert row["ratio"] == pytest.approx(math.exp(row["coefficient"]))
    assert (row["label"], row["nuisance"]) == ("new vs old", False)
    hazard = hazard_model(runs, link="cloglog", cluster=None).frame["coefficient"][1]
    assert hazard == pytest.approx(math.log(math.log(12 / 15) / math.log(14 / 20)), abs=1e-10)


def test_errors_clustered_by_task_have_t_with_one_degree_less_than_tasks(paired):
    fit = hazard_model(paired)
    row = fit.frame.iloc[1]
    assert row["df"] == 119
    assert math.log(row["upper"]) - row["coefficient"] == pytest.approx(1.9801 * row["standard_error"], rel=1e-4)
    assert hazard_model(paired, cluster=None).frame["df"].eq(np.inf).all()
    wider = hazard_model(paired, level=0.99).frame.iloc[1]
    assert wider["lower"] < row["lower"] < row["ratio"] < row["upper"] < wider["upper"]


@pytest.mark.parametrize("options", MODELS)
def test_the_order_of_rows_changes_the_reference_only(clustered, options):
    turned = Rollouts(clustered.frame.iloc[::-1])
    forth, back = hazard_model(clustered, **options).frame, hazard_model(turned, **options).frame
    a, b = forth[forth["term"] == "method[verify]"].iloc[0], back[back["term"] == "method[base]"].iloc[0]
    assert a["coefficient"] == pytest.approx(-b["coefficient"], abs=1e-9)
    assert a["standard_error"] == pytest.approx(b["standard_error"], abs=1e-9)
    assert a["lower"] == pytest.approx(1 / b["upper"], abs=1e-9)


def test_one_interaction_a_method_and_depth_fits_each_hazard_exactly(clustered):
    fit = coefficients(hazard_model(clustered, "method:depth - 1", max_depth=3))
    frame, time = clustered.frame, clustered.durations
    assert len(fit) == 6
    for method in ("base", "verify"):
        at_risk, erred = (time >= 2) & (frame["method"] == method), clustered.events & (time == 2)
        share = (at_risk & erred).sum() / at_risk.sum()
        assert fit[f"method[{method}]:depth[2]"] == pytest.approx(math.log(share / (1 - share)), abs=1e-9)


def test_a_spline_through_two_depths_is_the_factor():
    runs = table(
        ("a", "m", 2, 1), ("b", "m", 2, 2), ("c", "m", 2, 3), ("a", "n", 2, 2), ("b", "n", 2, 3), ("c", "n", 2, 1)
    )
    smooth, factor = hazard_model(runs, depth="smooth"), hazard_model(runs)
    assert smooth.frame["term"].tolist() == factor.frame["term"].tolist()
    assert np.allclose(smooth.frame["coefficient"], factor.frame["coefficient"], atol=1e-9)


def test_a_cause_counts_its_class_and_censors_the_others(clustered):
    classes = ["schema", "dependency"] * (len(clustered) // 2)
    frame = clustered.frame.assign(error_class=np.where(clustered.events, classes, None))
    fit = hazard_model(Rollouts(frame), cause="dependency")
    other = frame["error_class"] == "schema"
    # the same calls, with the other class as calls that went through just before a limit
    went = frame.assign(
        length=frame["length"].mask(other, frame["fed"]), fed=frame["fed"].mask(other, frame["fed"] + 1)
    )
    went = went.assign(error_class=frame["error_class"].mask(other), ending=frame["ending"].mask(other, "truncated"))
    assert fit.made["events"] == int((frame["error_class"] == "dependency").sum())
    assert np.allclose(coefficients(fit), coefficients(hazard_model(Rollouts(went))), atol=1e-10)


def test_rollouts_without_a_call_add_no_row_and_are_noted(clustered):
    idle = clustered.frame.head(1).assign(task_id="idle", length=0, fed=1)
    fit = hazard_model(Rollouts(pd.concat([clustered.frame, idle])))
    assert np.allclose(coefficients(fit), coefficients(hazard_model(clustered)), atol=1e-12)
    assert fit.made["tasks"] == 60
    assert any(note.startswith("1 rollouts made no call (T = 0)") for note in fit.notes)


def test_depths_without_an_error_are_left_out_and_deep_ones_pooled(paired):
    every = hazard_model(paired, max_depth=None)
    assert any(note.startswith("no error at depth 11, 12, 13, 15:") for note in every.notes)
    assert not every.frame["term"].str.contains("11").any()
    pooled = hazard_model(paired)
    assert pooled.frame["term"].iloc[-1] == "depth[8+]"
    assert "depths from 8 on are pooled" in pooled.notes


@pytest.mark.parametrize(
    "formula",
    [
        "__import__('os').system('x')", "np.log(depth)", "C(method)", "method.values", "method[0]", "{method}",
        "method + 2", "", "-", "method +", "method::depth", "method | task_id", "__class__", "length", "methods",
        "method ** 2", "depth@2",
    ],
)  # fmt: skip
def test_a_formula_takes_names_and_operators_only(clustered, formula):
    with pytest.raises(InputError, match="formula = "):
        hazard_model(clustered, formula)


def test_an_unknown_column_is_told_what_there_is(clustered):
    with pytest.raises(InputError, match="'tool' is no covariate; there are: benchmark, model, method"):
        hazard_model(clustered, "tool + depth")


def test_values_out_of_logs_are_text_whatever_they_say(clustered):
    hostile = "__import__('os').system('x')]:depth[T.2] + C(method)"
    frame = clustered.frame.assign(method=clustered.frame["method"].replace("verify", hostile))
    fit = hazard_model(Rollouts(frame))
    assert fit.frame["label"][1] == f"{hostile} vs base"
    assert np.allclose(fit.frame["coefficient"], hazard_model(clustered).frame["coefficient"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "weibull"}, "model = 'weibull'; it must be one of discrete, gee, cox, fine_gray"),
        ({"cause": "typo"}, "cause = 'typo'"),
        ({"strata": "task"}, "goes with model = 'cox'"),
        ({"cluster": "method"}, "cluster = 'method'"),
        ({"model": "gee", "cluster": None}, "needs cluster = 'task'"),
        ({"model": "cox", "ties": "exact"}, "has no clustered errors"),
        ({"model": "cox", "formula": "method * depth"}, "method:depth needs model"),
        ({"model": "cox", "formula": "depth"}, "nothing to estimate"),
        ({"max_depth": 0}, "depths count from 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(clustered, options, message):
    with pytest.raises(InputError, match=message):
        hazard_model(clustered, **options)


@pytest.mark.parametrize("options", MODELS)
def test_without_an_error_nothing_is_estimated_and_the_note_says_so(options):
    fit = hazard_model(table(("a", "m", 2, 3), ("b", "m", 1, 2), ("a", "n", 3, 4)), **options)
    assert fit.frame["coefficient"].isna().all()
    assert "no error in 3 rollouts: the hazard is 0, and no ratio can be estimated" in fit.notes


@pytest.mark.parametrize("options", MODELS)
def test_errors_all_at_the_first_call_leave_the_method_a_finite_ratio(options):
    rows = [(f"t{i}", m, 3, 1 if i < n else 4) for m, n in (("m", 2), ("n", 5)) for i in range(8)]
    row = hazard_model(table(*rows), **options).frame.set_index("term").loc["method[n]"]
    assert 0 < row["coefficient"] < 3
    assert row["standard_error"] > 0


@pytest.mark.parametrize("options", MODELS)
def test_a_method_without_an_error_has_no_finite_ratio_and_the_others_keep_theirs(clustered, options):
    never = clustered.frame.query("method == 'base'").assign(method="never")
    never = never.assign(fed=never["length"] + 1, error_class=None)
    fit = hazard_model(Rollouts(pd.concat([clustered.frame, never])), **options)
    alone = hazard_model(clustered, **options)
    assert np.isnan(coefficients(fit)["method[never]"])
    assert any(note == "separation, the estimate goes to minus infinity: never vs base" for note in fit.notes)
    assert "no error in method never" in fit.notes
    # Fine-Gray's weights of censoring are over all rollouts, so the third method moves them
    tolerance = 0.1 if options.get("model") == "fine_gray" else 1e-8
    assert coefficients(fit)["method[verify]"] == pytest.approx(coefficients(alone)["method[verify]"], abs=tolerance)
    error, before = (f.frame.set_index("term")["standard_error"]["method[verify]"] for f in (fit, alone))
    assert error == pytest.approx(before, rel=tolerance)


def test_one_method_has_no_coefficient(clustered):
    base = clustered.select(method="base")
    fit = hazard_model(base)
    assert "method has one value only, 'base': it has no coefficient" in fit.notes
    assert not fit.frame["term"].str.contains("method").any()
    with pytest.raises(InputError, match="nothing to estimate"):
        hazard_model(base, model="cox")


@pytest.mark.parametrize("options", MODELS)
def test_one_task_has_estimates_and_no_errors(options):
    rows = [("a", "m", 2, 1), ("a", "m", 2, 3), ("a", "n", 2, 2), ("a", "n", 2, 3), ("a", "n", 2, 1), ("a", "m", 2, 3)]
    runs = Rollouts(pd.DataFrame(rows, columns=["task_id", "method", "length", "fed"]).assign(trial=range(6)))
    fit = hazard_model(runs, **options)
    assert np.isfinite(coefficients(fit)["method[n]"])
    assert fit.frame["standard_error"].isna().all()
    assert "one task, so nothing is known of the spread over tasks: no standard errors" in fit.notes


def test_a_column_that_repeats_another_is_not_told_apart(clustered):
    frame = clustered.frame.assign(model=clustered.frame["method"] + "-model")
    fit = hazard_model(Rollouts(frame), "method + model + depth")
    assert np.isnan(coefficients(fit)["model[verify-model]"])
    assert "not to be told apart from what stands before: verify-model vs base-model" in fit.notes
    assert coefficients(fit)["method[verify]"] == pytest.approx(coefficients(hazard_model(clustered))["method[verify]"])


def test_rollouts_without_a_value_are_left_out_and_counted(clustered):
    frame = clustered.frame.assign(stratum=clustered.frame["stratum"].mask(clustered.frame["task_id"] == "t001"))
    fit = hazard_model(Rollouts(frame), "method + stratum + depth")
    assert "8 of 480 rollouts have no value of stratum and are left out" in fit.notes
    assert fit.made["tasks"] == 59


@pytest.mark.parametrize("options", [*MODELS, {"model": "cox", "ties": "exact", "strata": "task", "cluster": None}])
@settings(max_examples=20)
@given(runs=rollouts())
def test_any_small_table_gives_numbers_or_says_why_not(options, runs):
    if options.get("model") in ("cox", "fine_gray") and runs.frame["method"].nunique() < 2:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = hazard_model(runs, **options)
    assert not any("converge" in note for note in fit.notes)
    if fit.frame["coefficient"].isna().any():
        assert any("separation" in note or "no error in" in note or "told apart" in note for note in fit.notes)
    assert (fit.frame["coefficient"].dropna().abs() < 20).all()
