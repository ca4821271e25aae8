"""Kaplan-Meier, Nelson-Aalen, Aalen-Johansen: equal to R, exact at ties, honest at the edges."""

import numpy as np
import pandas as pd
import pytest
from cohorts import REFERENCE, load, rollouts
from hypothesis import given

from survexec.rollouts import Rollouts
from survexec.statistics.curve_intervals import precision
from survexec.statistics.curves import curves
from survexec.statistics.estimands import CURVES, STATES, incidence
from survexec.statistics.resampling import influence
from survexec.statistics.tally import count

DATASETS = ("a_paired", "b_clustered", "c_degenerate")
KM_IN_R = pd.read_csv(REFERENCE / "02_km.csv")
CIF_IN_R = pd.read_csv(REFERENCE / "03_cif.csv")
# the classes of the reference data, under names that the table takes
CLASSES = {"tool": "schema", "reason": "dependency", "plan": "precondition", "format": "information"}


def rollouts_apart(name: str) -> Rollouts:
    """Every rollout as a task of its own, which is what R's Greenwood and unclustered errors take."""
    data = load(name)
    return Rollouts(data.frame.assign(task_id=data.frame["task_id"] + "/" + data.frame["trial"].astype(str), trial=0))


def with_classes(name: str) -> Rollouts:
    data = rollouts_apart(name)
    given_classes = pd.read_csv(REFERENCE / f"{name}.csv")["err_class"].map(CLASSES)
    return Rollouts(data.frame.assign(error_class=given_classes.astype(object).where(given_classes.notna(), None)))


def against_r(data, r, kind, columns, **options):
    """Largest difference from R in some columns, over the depths that R has, and how many numbers were compared."""
    frame = curves(data, by="method", kind=kind, resamples=100, **options).frame
    merged = r.merge(frame, left_on=["method", "time"], right_on=["method", "k"], suffixes=("_r", ""))
    assert len(merged) == len(r)
    worst, compared = 0.0, 0
    for ours, theirs in columns.items():
        known = merged[theirs].notna() & merged[ours].notna()
        worst = max(worst, float((merged.loc[known, ours] - merged.loc[known, theirs]).abs().max()))
        compared += int(known.sum())
    return worst, compared


@pytest.mark.parametrize("name", DATASETS)
def test_kaplan_meier_and_at_risk_equal_r(name):
    r = KM_IN_R[KM_IN_R["dataset"] == name]
    worst, compared = against_r(load(name), r, "km", {"estimate": "surv", "at_risk": "n_risk", "events": "n_event"})
    assert worst < 1e-14
    assert compared == 3 * len(r)


@pytest.mark.parametrize("name", DATASETS)
def test_nelson_aalen_equals_r(name):
    r = KM_IN_R[KM_IN_R["dataset"] == name]
    worst, compared = against_r(load(name), r, "na", {"estimate": "na_cumhaz"})
    assert worst < 1e-14
    assert compared == len(r)


@pytest.mark.parametrize("name", DATASETS)
def test_errors_are_greenwoods_for_one_trial_and_rs_clustered_ones_for_several(name):
    tally, apart = (count(data, by="method", depth=16) for data in (load(name), rollouts_apart(name)))
    for counted, column in ((tally, "se_cluster_task"), (apart, "se_greenwood")):
        error = np.sqrt((influence(counted, [CURVES["km"]]) ** 2).sum(axis=0))
        methods = counted.cells["method"].tolist()
        r = KM_IN_R[(KM_IN_R["dataset"] == name) & KM_IN_R[column].notna()]
        ours = [error[methods.index(m), k] for m, k in zip(r["method"], r["time"], strict=True)]
        assert ours == pytest.approx(r[column].tolist(), abs=1e-14)


@pytest.mark.parametrize("interval", ["plain", "log", "loglog"])
@pytest.mark.parametrize("name", ["a_paired", "b_clustered"])
def test_pointwise_limits_equal_r(name, interval):
    # R has no limits where S is still 1 or already 0; survexec gives Wilson's there, on the tasks at risk
    r = KM_IN_R[(KM_IN_R["dataset"] == name) & (KM_IN_R["surv"] < 1) & (KM_IN_R["surv"] > 0)]
    columns = {"lower": f"{interval}_lo", "upper": f"{interval}_hi"}
    worst, compared = against_r(rollouts_apart(name), r, "km", columns, interval=interval)
    assert worst < 1e-12
    assert compared == 2 * len(r)


def test_clustered_loglog_limits_equal_r():
    r = KM_IN_R[(KM_IN_R["dataset"] == "b_clustered") & (KM_IN_R["surv"] < 1)]
    worst, compared = against_r(load("b_clustered"), r, "km", {"lower": "cl_loglog_lo", "upper": "cl_loglog_hi"})
    assert worst < 1e-12
    assert compared == 2 * len(r)


def test_the_error_of_nelson_aalen_is_aalens_the_looser_of_two():
    # the jackknife's sum d (n - d) / n^3 is right for tied depths but adds nothing where all at risk err
    tally = count(load("a_paired"), by="method", depth=15)
    binomial = np.sqrt((influence(tally, [CURVES["na"]]) ** 2).sum(axis=0))
    d, n = tally.total["errors"], np.maximum(tally.total["at_risk"], 1)
    assert binomial == pytest.approx(np.sqrt(np.cumsum(d * (n - d) / n**3, axis=1)), abs=1e-14)
    error = precision(CURVES["na"], tally).error
    r = KM_IN_R[KM_IN_R["dataset"] == "a_paired"]
    methods = tally.cells["method"].tolist()
    ours = [error[methods.index(m), k] for m, k in zip(r["method"], r["time"], strict=True)]
    assert ours == pytest.approx(r["na_se_aalen"].tolist(), abs=1e-14)
    assert (error >= binomial - 1e-15).all()


def test_deep_depths_with_few_at_risk_do_not_widen_the_band_elsewhere(paired):
    whole = curves(paired, by="method", kind="km", resamples=500).frame.query("k == 2").set_index("method")
    cut = curves(paired, by="method", kind="km", resamples=500, max_depth=6).frame.query("k == 2").set_index("method")
    widths = [(f["band_upper"] - f["band_lower"]) for f in (whole, cut)]
    assert (widths[0] <= 1.25 * widths[1]).all()


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize(("cause", "in_r"), [("error", "error"), ("finish", "clean")])
def test_cumulative_incidence_equals_r_exactly_at_ties(name, cause, in_r):
    r = CIF_IN_R[(CIF_IN_R["dataset"] == name) & (CIF_IN_R["split"] == "error_vs_clean") & (CIF_IN_R["cause"] == in_r)]
    frame = curves(load(name), by="method", kind="cif", resamples=100).frame
    merged = r.merge(frame[frame["cause"] == cause], left_on=["method", "time"], right_on=["method", "k"])
    assert len(merged) == len(r) > 0
    assert merged["estimate"].to_numpy() == pytest.approx(merged["cif"].to_numpy(), abs=1e-14)


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize(("feature", "in_r"), [("errors", "error"), ("finished", "clean")])
def test_errors_of_incidence_are_the_infinitesimal_jackknife_and_greenwood(name, feature, in_r):
    # cmprsk's Aalen-type error differs by up to 3% and is the looser one
    r = CIF_IN_R[(CIF_IN_R["dataset"] == name) & (CIF_IN_R["split"] == "error_vs_clean") & (CIF_IN_R["cause"] == in_r)]
    tally = count(rollouts_apart(name), by="method", depth=16)
    error = np.sqrt((influence(tally, [incidence(feature, in_r)]) ** 2).sum(axis=0))
    methods = tally.cells["method"].tolist()
    for column, power in (("se_survfit_ij", 1), ("var_etm_greenwood", 2)):
        known = r[r[column].notna()]
        if column == "var_etm_greenwood" and feature == "finished":
            continue  # etm was asked for errors only
        ours = [error[methods.index(m), k] ** power for m, k in zip(known["method"], known["time"], strict=True)]
        assert ours == pytest.approx(known[column].tolist(), abs=1e-12)


@pytest.mark.parametrize("name", ["a_paired", "b_clustered"])
def test_incidence_by_class_equals_r_and_adds_to_the_whole(name):
    frame = curves(with_classes(name), by="method", kind="cif", by_class=True, resamples=100).frame
    r = CIF_IN_R[(CIF_IN_R["dataset"] == name) & (CIF_IN_R["split"] == "by_class")]
    names = {**CLASSES, "clean": "finish"}
    merged = r.assign(cause=r["cause"].map(names)).merge(
        frame, left_on=["method", "cause", "time"], right_on=["method", "cause", "k"]
    )
    assert len(merged) == len(r)
    assert merged["estimate"].to_numpy() == pytest.approx(merged["cif"].to_numpy(), abs=1e-14)
    whole = curves(with_classes(name), by="method", kind="cif", resamples=100).frame
    total = frame[frame["cause"] != "finish"].groupby(["method", "k"])["estimate"].sum()
    expected = whole[whole["cause"] == "error"].set_index(["method", "k"])["estimate"]
    assert total.to_numpy() == pytest.approx(expected.loc[total.index].to_numpy(), abs=1e-12)


def test_lifelines_on_durations_and_events_gives_the_same_curve(paired):
    lifelines = pytest.importorskip("lifelines")
    frame = curves(paired, by="method", kind="km", resamples=100).frame
    for method, part in frame.groupby("method"):
        rows = (paired.frame["method"] == method).to_numpy()
        fitted = lifelines.KaplanMeierFitter().fit(paired.durations[rows], paired.events[rows])
        known = part[part["estimate"].notna()]
        theirs = fitted.survival_function_at_times(known["k"]).to_numpy()
        assert known["estimate"].to_numpy() == pytest.approx(theirs, abs=1e-12)


@given(rollouts(truncated=False))
def test_without_truncation_pec_is_what_neither_erred_by_k_nor_finished_before_k(data):
    total = count(data, by="method", depth=7).total
    expected = 1 - STATES["errored"](total) - STATES["finished"](total)
    assert CURVES["pec"](total) == pytest.approx(expected, abs=1e-12)
    assert STATES["running"](total) == pytest.approx(expected, abs=1e-12)


@given(rollouts())
def test_states_add_to_one_and_incidences_never_fall(data):
    total = count(data, by="method", depth=7).total
    assert sum(state(total) for state in STATES.values()) == pytest.approx(1, abs=1e-12)
    for name in ("errored", "finished"):
        assert (np.diff(STATES[name](total), axis=-1) >= -1e-12).all()


@given(rollouts())
def test_where_nobody_finishes_early_kaplan_meier_is_the_share_still_clean(data):
    frame = data.frame.assign(length=6)
    frame = frame.assign(fed=frame["fed"].clip(upper=7), error_class=None)
    total = count(Rollouts(frame), by="method", depth=6).total
    assert CURVES["km"](total) == pytest.approx(CURVES["pec"](total), abs=1e-12)
    assert CURVES["km"](total) == pytest.approx(CURVES["pec_elig"](total), abs=1e-12)


@given(rollouts())
def test_doubling_every_task_changes_no_curve_and_shrinks_errors_by_root_two(data):
    twice = pd.concat([data.frame, data.frame.assign(task_id=data.frame["task_id"] + "'")])
    one, two = (count(d, by="method", depth=6) for d in (data, Rollouts(twice)))
    for name, curve in CURVES.items():
        assert curve(one.total) == pytest.approx(curve(two.total), abs=1e-12, nan_ok=True), name
    errors = [
        np.sqrt((influence(t, [CURVES["km"], incidence("errors", "error")]) ** 2).sum(axis=0)) for t in (one, two)
    ]
    assert errors[0] == pytest.approx(errors[1] * np.sqrt(2), abs=1e-12)


@pytest.mark.parametrize("kind", ["pec", "pec_elig", "km", "na", "hazard", "cif", "states", "at_risk"])
@pytest.mark.parametrize(
    "table",
    [
        {"length": [3, 2, 5], "fed": [4, 3, 6]},  # no events
        {"length": [3, 2, 5], "fed": [1, 1, 1]},  # all events at depth 1
        {"length": [4, 4, 4], "fed": [5, 5, 5]},  # all finish at once
        {"length": [4], "fed": [2]},  # one rollout
        {"length": [0, 0], "fed": [1, 1]},  # nobody called anything
        {"length": [4, 3], "fed": [5, 4], "ending": ["truncated", "truncated"]},  # all cut
    ],
)
def test_degenerate_cohorts_give_boundary_values_or_nan_and_no_noise(kind, table):
    data = Rollouts(pd.DataFrame({"task_id": range(len(table["length"])), **table}))
    frame = curves(data, by=(), kind=kind, resamples=100).frame
    known = frame[frame["lower"].notna()]
    assert (known["lower"] <= known["estimate"] + 1e-12).all()
    assert (known["estimate"] <= known["upper"] + 1e-12).all()
    if kind == "km":
        assert frame["estimate"].iloc[0] == 1
        if table["fed"] == [1, 1, 1]:
            assert frame["estimate"].tolist()[1:] == [0.0] * (len(frame) - 1)


def test_a_curve_ends_where_nobody_is_left_at_risk_and_says_so():
    data = Rollouts(pd.DataFrame({"task_id": ["a", "b"], "method": ["x", "y"], "length": [2, 4], "fed": [3, 5]}))
    result = curves(data, by="method", kind="km", resamples=100)
    x = result.frame[result.frame["method"] == "x"].set_index("k")["estimate"]
    assert x.loc[[0, 1, 2]].tolist() == [1, 1, 1]
    assert x.loc[[3, 4]].isna().all()
    assert any("nobody is left at risk" in note for note in result.notes)
