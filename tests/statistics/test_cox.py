"""Cox's partial likelihood and Fine and Gray's subdistribution hazard: equal to R, and to sums over all choices."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from cohorts import REFERENCE, load, rollouts
from hypothesis import given

from survexec.rollouts import Rollouts
from survexec.statistics.cox import RiskRows, partial_likelihood, score_residuals
from survexec.statistics.fine_gray import risk_rows, weigh
from survexec.statistics.hazards import hazard_model


def in_r(name: str) -> pd.DataFrame:
    """R's values; the item "null" is a name, not a missing value."""
    return pd.read_csv(REFERENCE / f"{name}.csv", keep_default_na=False, na_values={"value": ["NA", "NaN"]})


COX = in_r("04_logrank_cox").query("analysis.str.startswith('cox_')")
FITS = COX["analysis"].str.rsplit("_", n=1).str[0]
GROUPS = sorted(set(zip(COX["dataset"], FITS, COX["group"], strict=True)))


@pytest.fixture(scope="module")
def cohorts() -> dict[str, Rollouts]:
    return {name: load(name) for name in ("a_paired", "b_clustered", "c_degenerate")}


@pytest.mark.parametrize(("dataset", "fit", "group"), GROUPS)
def test_cox_equals_survival_in_r(cohorts, dataset, fit, group):
    runs = cohorts[dataset] if group == "all" else cohorts[dataset].select(method=group.split(":"))
    ties, options = fit.split("_")[1], {"cluster": "task" if fit.endswith("cluster_task") else None}
    options |= {"strata": "task"} if "strata" in fit else {}
    result = hazard_model(runs, "method", model="cox", ties=ties, **options)
    plain = hazard_model(runs, "method", model="cox", ties=ties, cluster=None) if options["cluster"] else result
    frame, naive = (model.frame.set_index("term") for model in (result, plain))
    wanted = COX[(COX["dataset"] == dataset) & (fit == FITS) & (COX["group"] == group)]
    compared = 0
    for row in wanted.itertuples():
        what, name = row.analysis.rsplit("_", 1)[1], f"method[{row.item[6:]}]"
        if what == "loglik":
            ours = result.made["log_likelihood_null" if row.item == "null" else "log_likelihood"]
        elif what in ("coef", "se", "robse"):
            if not np.isfinite(frame["coefficient"][name]):
                # R stops on the way to infinity, at an error of thousands
                assert np.isnan(frame["coefficient"][name])
                assert what == "coef" or row.value > 1000
                continue
            column = "coefficient" if what == "coef" else "standard_error"
            ours = (naive if what == "se" else frame)[column][name]
        elif what == "wald" and len(frame) == 1 and np.isfinite(frame["statistic"].iloc[0]):
            ours = frame["statistic"].iloc[0] ** 2
        else:
            assert what in ("score", "robscore", "wald")  # tests we do not print
            continue
        compared += 1
        assert ours == pytest.approx(row.value, abs=1e-7, rel=1e-10), (row.analysis, row.item)
    assert compared >= 2


def test_fine_gray_equals_cmprsk_in_r(cohorts):
    wanted = in_r("03_finegray")
    fits = {name: hazard_model(cohorts[name], "method", model="fine_gray", cluster=None) for name in
            ("a_paired", "b_clustered")}  # fmt: skip
    assert len(wanted) == 8
    for row in wanted.itertuples():
        frame = fits[row.dataset].frame.set_index("term")
        error = row.analysis.endswith("se")
        # R stops before its maximum on the paired data: see the next test
        tolerance = 1e-6 if error else {"a_paired": 1e-5, "b_clustered": 1e-7}[row.dataset]
        ours = frame["standard_error" if error else "coefficient"][f"method[{row.group[6:]}]"]
        assert ours == pytest.approx(row.value, abs=tolerance)


def test_fine_gray_in_r_is_the_third_newton_step_to_the_last_digit(cohorts):
    """Neither is looser in the model: cmprsk stops at a relative gradient of 1e-6, we go on to the maximum."""
    runs = cohorts["a_paired"]
    time = runs.durations.to_numpy()
    state = np.where(runs.events, 1, np.where(runs.frame["ending"] == "completed", 2, 0))
    pattern, _ = pd.factorize(runs.frame["method"])
    rows = risk_rows(weigh(time, state)[0], time, state, pattern, np.eye(4)[:, 1:])
    beta = np.zeros(3)
    for _ in range(3):
        _, score, information = partial_likelihood(rows, beta, "breslow")
        beta = beta + np.linalg.solve(information, score)
    r = in_r("03_finegray").query("dataset == 'a_paired' and analysis == 'finegray_coef'")["value"].to_numpy()
    assert np.allclose(beta, r, atol=1e-13, rtol=0)
    ours = hazard_model(runs, "method", model="fine_gray", cluster=None).frame["coefficient"].to_numpy()
    ahead, behind = (np.abs(partial_likelihood(rows, b, "breslow")[1]).max() for b in (ours, r))
    assert ahead < 1e-10 < 1e-4 < behind


def test_fine_gray_without_censoring_is_cox_with_those_who_ended_kept_at_risk(cohorts):
    frame = cohorts["b_clustered"].frame.assign(ending="completed")
    deepest = int(frame["length"].max())
    clean = frame["fed"] > frame["length"]
    kept = frame.assign(length=frame["length"].mask(clean, deepest), fed=frame["fed"].mask(clean, deepest + 1))
    fine_gray = hazard_model(Rollouts(frame), "method", model="fine_gray", cluster="task")
    cox = hazard_model(Rollouts(kept), "method", model="cox", ties="breslow", cluster="task")
    assert fine_gray.frame["coefficient"][0] == pytest.approx(cox.frame["coefficient"][0], abs=1e-10)
    assert fine_gray.frame["standard_error"][0] == pytest.approx(cox.frame["standard_error"][0], abs=1e-10)


def test_fine_gray_keeps_rollouts_without_a_call_at_risk():
    """They ended at depth 0 in a way that rules an error out: leaving them out would raise their method's hazard."""
    rows = [(f"t{i}", m, 2, fed) for m in "mn" for i, fed in enumerate([1, 2, 3, 3, 1 if m == "n" else 2, 3])]
    idle = [(f"idle{i}", "n", 0, 1) for i in range(4)]
    frame = pd.DataFrame(rows + idle, columns=["task_id", "method", "length", "fed"])
    with_idle = hazard_model(Rollouts(frame), model="fine_gray")
    without = hazard_model(Rollouts(frame.head(len(rows))), model="fine_gray")
    assert with_idle.frame["coefficient"][0] < without.frame["coefficient"][0] - 0.2
    assert any("ended at depth 0" in note for note in with_idle.notes)


def random_rows(seed: int) -> RiskRows:
    rng = np.random.default_rng(seed)
    risk, pattern = np.repeat([0, 1], 3), np.tile(np.arange(3), 2)
    n = rng.integers(1, 4, 6)
    d = np.minimum(rng.integers(0, 3, 6), n)
    d[[0, 3]] = 1
    return RiskRows.of(risk, pattern, np.zeros(6, int), n.astype(float), d.astype(float), rng.normal(size=(3, 2)))


@pytest.mark.parametrize("seed", range(5))
def test_the_exact_likelihood_is_the_share_of_one_choice_among_all(seed):
    rows, beta = random_rows(seed), np.array([0.3, -0.7])
    expected = 0.0
    for risk in (0, 1):
        inside = rows.risk == risk
        people = np.repeat(rows.x[inside] @ beta, rows.at_risk[inside].astype(int))
        erred = rows.events[inside] @ (rows.x[inside] @ beta)
        choices = itertools.combinations(people, int(rows.events[inside].sum()))
        expected += erred - math.log(sum(math.exp(sum(choice)) for choice in choices))
    assert partial_likelihood(rows, beta, "exact")[0] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("ties", ["efron", "breslow", "exact"])
@pytest.mark.parametrize("seed", range(3))
def test_score_and_information_are_derivatives_of_the_likelihood(ties, seed):
    rows, beta, h = random_rows(seed), np.array([0.2, 0.4]), 1e-5
    _, score, information = partial_likelihood(rows, beta, ties)
    steps = np.eye(2) * h
    up, down = ([partial_likelihood(rows, beta + sign * step, ties) for step in steps] for sign in (1, -1))
    assert np.allclose(score, [(a[0] - b[0]) / (2 * h) for a, b in zip(up, down, strict=True)], atol=1e-6)
    assert np.allclose(information, [-(a[1] - b[1]) / (2 * h) for a, b in zip(up, down, strict=True)], atol=1e-6)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@given(runs=rollouts())
def test_score_residuals_add_to_the_score(ties, runs):
    time, event = runs.durations.to_numpy(), runs.events.to_numpy()
    pattern = (runs.frame["method"] == "m1").to_numpy(int)
    state = np.where(event, 1, 2)
    if not event.any():
        return
    weight = (time[:, None] >= np.arange(time.max() + 1)).astype(float)
    rows = risk_rows(weight, time, state, pattern, np.array([[0.0], [1.0]]))
    beta = np.array([0.5])
    residuals = score_residuals(rows, beta, ties).sum(axis=0)
    assert np.allclose(residuals, partial_likelihood(rows, beta, ties)[1], atol=1e-9)


def test_each_stratum_has_a_hazard_of_its_own(cohorts):
    """Errors ten times as frequent in one stratum move nothing where each is compared within itself."""
    runs = cohorts["b_clustered"]
    apart = [hazard_model(runs.select(stratum=s), "method", model="cox", strata="task", cluster=None)
             for s in runs.frame["stratum"].unique()]  # fmt: skip
    whole = hazard_model(runs, "method", model="cox", strata="task", cluster=None)
    assert sum(fit.made["log_likelihood_null"] for fit in apart) == pytest.approx(whole.made["log_likelihood_null"])
