"""The definitions: against R, against the paper's worked examples, and the identities between them."""

import numpy as np
import pandas as pd
import pytest
from cohorts import rollouts
from hypothesis import given

from survexec.rollouts import Rollouts
from survexec.statistics.curves import curves
from survexec.statistics.estimands import CURVES, METRICS
from survexec.statistics.summary import summarize
from survexec.statistics.tally import count

NAMES = {
    "TER": "ter", "meanFED": "mean_fed", "AUCPEC": "auc_pec", "RR": "rr", "success": "success", "s": "clean_success",
}  # fmt: skip


@pytest.mark.parametrize("dataset", ["a_paired", "b_clustered", "c_degenerate"])
def test_metrics_equal_r(dataset, metrics_in_r, request):
    data = request.getfixturevalue({"a_paired": "paired", "b_clustered": "clustered"}.get(dataset, "degenerate"))
    tally = count(data, by="method")
    methods = tally.cells["method"].tolist()
    compared = 0
    for (name, analysis, method, item), value in metrics_in_r.values.items():
        if name == dataset and analysis == "metric" and item in NAMES:
            ours = METRICS[NAMES[item]](tally.total)[methods.index(method)]
            assert ours == pytest.approx(value, abs=1e-12, nan_ok=True), (method, item)
            compared += 1
    assert compared == 6 * len(methods)


@pytest.mark.parametrize("dataset", ["a_paired", "b_clustered", "c_degenerate"])
def test_curves_equal_r(dataset, metrics_in_r, request):
    data = request.getfixturevalue({"a_paired": "paired", "b_clustered": "clustered"}.get(dataset, "degenerate"))
    tally = count(data, by="method", depth=15)
    methods = tally.cells["method"].tolist()
    names = {"PEC": CURVES["pec"], "PEC_elig": CURVES["pec_elig"]}
    for (name, analysis, method, k), value in metrics_in_r.values.items():
        if name != dataset:
            continue
        if analysis in names:
            ours = names[analysis](tally.total)[methods.index(method), int(k)]
            assert ours == pytest.approx(value, abs=1e-12, nan_ok=True), (method, analysis, k)
        if analysis == "n_k":
            assert tally.total["reached"][methods.index(method), int(k)] == value


def numbers(table: dict) -> pd.Series:
    """All metrics of one cell."""
    frame = summarize(Rollouts(pd.DataFrame(table)), by=(), resamples=100).frame
    return frame.set_index("metric")["estimate"]


def test_the_contact_removed_after_a_refused_call_has_ter_0_and_auc_pec_0():
    # remove_contact(phone number) refused; search_contacts; remove_contact(id)
    got = numbers({"task_id": ["contact"], "length": [3], "fed": [1], "success": [1]})
    assert (got["ter"], got["auc_pec"], got["mean_fed"], got["rr"], got["success"]) == (0, 0, 1, 1, 1)


def test_the_contact_searched_first_has_ter_1_and_auc_pec_1():
    got = numbers({"task_id": ["contact"], "length": [2], "fed": [3], "success": [1]})
    assert (got["ter"], got["auc_pec"], got["mean_fed"], got["success"]) == (1, 1, 3, 1)
    assert np.isnan(got["rr"])


def test_llama_4_case_of_the_paper_has_93_percent_of_its_successes_after_an_error():
    clean, recovered, lost = 10, 138, 52
    got = numbers(
        {
            "task_id": range(200), "length": 4, "fed": [5] * clean + [1] * (recovered + lost),
            "success": [1] * (clean + recovered) + [0] * lost,
        }
    )  # fmt: skip
    assert got["ter"] == 0.05
    assert got["rr_eligible"] == 190
    assert got["rr"] == pytest.approx(0.726, abs=5e-4)
    assert got["success"] == 0.74
    assert got["success_after_error"] == pytest.approx(0.932, abs=5e-4)


def test_a_rollout_without_a_call_is_executable_with_area_one_and_gone_from_pec():
    data = Rollouts(pd.DataFrame({"task_id": ["a", "b"], "length": [0, 2], "fed": [1, 2], "success": [1, 0]}))
    got = summarize(data, by=(), resamples=100)
    values = got.frame.set_index("metric")["estimate"]
    assert (values["ter"], values["auc_pec"], values["mean_fed"], values["zero_calls"]) == (0.5, 0.75, 1.5, 1)
    assert any("1 of 2 rollouts made no call" in note for note in got.notes)
    pec = curves(data, by=(), resamples=100).frame.set_index("k")["estimate"]
    assert pec.to_dict() == {0: 1.0, 1: 0.5, 2: 0.0}


def test_undefined_numbers_are_nan_with_a_reason(degenerate):
    summary = summarize(degenerate, by="method", resamples=100)
    values = summary.frame.set_index(["method", "metric"])
    for method, metric in (("m0", "rr"), ("m1", "clean_success"), ("m1", "success_after_error")):
        assert values.loc[(method, metric), ["estimate", "lower", "upper"]].isna().all()
        assert any(method in note and METRICS[metric].label in note and "0/0" in note for note in summary.notes)


@given(rollouts())
def test_ter_is_at_most_auc_pec(data):
    total = count(data, by="method").total
    ter, area = METRICS["ter"](total), METRICS["auc_pec"](total)
    assert (ter >= 0).all()
    assert (ter <= area + 1e-12).all()
    assert (area <= 1 + 1e-12).all()


@given(rollouts())
def test_success_splits_into_never_erred_and_recovered(data):
    summary = summarize(data, by="method", resamples=100)
    values = summary.frame.pivot(index="method", columns="metric", values="estimate")
    split = summary.decomposition.pivot(index="method", columns="part", values="estimate")
    assert split.sum(axis=1, skipna=False).loc[values.index].to_numpy() == pytest.approx(
        values["success"].to_numpy(), abs=1e-12, nan_ok=True
    )
    labelled = data.frame[data.frame["success"].notna()]
    for method, part in labelled.groupby("method"):
        q = (part["fed"] > part["length"]).mean()
        s, r = values.loc[method, "clean_success"], values.loc[method, "rr"]
        joined = (0 if q == 0 else q * s) + (0 if q == 1 else (1 - q) * r)
        assert joined == pytest.approx(values.loc[method, "success"], abs=1e-12)


@given(rollouts())
def test_pec_never_rises_and_equals_eligible_share_times_pec_elig(data):
    tally = count(data, by="method", depth=7)
    total = tally.total
    pec, eligible = CURVES["pec"](total), CURVES["pec_elig"](total)
    assert (np.diff(pec, axis=-1) <= 1e-12).all()
    share = total["reached"] / total["rollouts"][:, None]
    defined = share > 0
    assert pec[defined] == pytest.approx((share * eligible)[defined], abs=1e-12)
    assert (pec[~defined] == 0).all()
