"""curves and first_errors: counts at the depth itself, bands outside intervals, degenerate cohorts."""

import numpy as np
import pandas as pd
import pytest
from cohorts import rollouts
from hypothesis import given

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics import proportions
from survexec.statistics.curves import curves, first_errors

COUNTED = ["at_risk", "events", "finished", "censored"]


def test_at_risk_at_k_are_those_about_to_make_call_k():
    # a: error at call 2 of 3; b: clean, two calls; c: cut after one call; d: no call
    data = Rollouts(
        pd.DataFrame(
            {
                "task_id": list("abcd"), "length": [3, 2, 1, 0], "fed": [2, 3, 2, 1],
                "ending": ["completed", "completed", "truncated", "completed"],
            }
        )
    )  # fmt: skip
    frame = curves(data, by=(), resamples=100).frame.set_index("k")
    assert frame["at_risk"].to_dict() == {0: 4, 1: 3, 2: 2, 3: 0}
    assert frame["events"].to_dict() == {0: 0, 1: 0, 2: 1, 3: 0}
    assert frame["finished"].to_dict() == {0: 1, 1: 0, 2: 1, 3: 0}
    assert frame["censored"].to_dict() == {0: 0, 1: 1, 2: 0, 3: 0}
    # c was cut at depth 1: it is censored there, so that the three others share what it might have become
    states = curves(data, by=(), kind="states").frame.pivot(index="k", columns="state", values="estimate")
    assert states.loc[2].to_dict() == {"errored": 0.375, "finished": 0.25, "running": 0.375}


@given(rollouts())
def test_those_at_risk_are_those_before_less_those_who_left(data):
    frame = curves(data, by="method", kind="states").frame
    for _, part in frame[frame["state"] == "running"].groupby("method"):
        left = part[["events", "finished", "censored"]].sum(axis=1).to_numpy()
        at_risk = part["at_risk"].to_numpy()
        assert (at_risk[1:] == at_risk[:-1] - left[:-1]).all()


@pytest.mark.parametrize("kind", ["pec", "pec_elig", "states"])
def test_the_frame_is_tidy(paired, kind):
    frame = curves(paired, by="method", kind=kind, resamples=200).frame
    state = ["state"] if kind == "states" else []
    expected = [
        "method",
        *state,
        "k",
        "estimate",
        "lower",
        "upper",
        "band_lower",
        "band_upper",
        *COUNTED,
        "denominator",
    ]
    assert frame.columns.tolist() == expected
    depths = int(paired.frame["length"].max()) + 1
    assert len(frame) == 4 * depths * (3 if state else 1)


@pytest.mark.parametrize("kind", ["pec", "pec_elig"])
def test_the_band_holds_the_pointwise_interval_and_that_the_estimate(paired, kind):
    frame = curves(paired, by="method", kind=kind, resamples=500).frame
    order = ["band_lower", "lower", "estimate", "upper", "band_upper"]
    assert (frame[order].diff(axis=1).iloc[:, 1:].fillna(0) >= -1e-12).all(axis=None)


def test_pointwise_limits_are_wilsons(paired):
    row = curves(paired, by="method", resamples=200).frame.query("method == 'base' and k == 3").iloc[0]
    hits = round(row["estimate"] * 120)
    expected = list(map(float, proportions.wilson(hits, 120, proportions.normal_quantile(0.95))))
    assert [row["lower"], row["upper"]] == pytest.approx(expected, abs=1e-12)


def test_at_depth_0_pec_is_1_without_uncertainty(paired):
    start = curves(paired, by="method", resamples=200).frame.query("k == 0")
    assert (start[["estimate", "lower", "upper", "band_lower", "band_upper"]] == 1).all(axis=None)


def test_another_level_comes_from_the_same_replicates(paired):
    made = curves(paired, by="method", resamples=300, rng=2)
    pd.testing.assert_frame_equal(
        made.with_interval(level=0.8).frame, curves(paired, by="method", resamples=300, rng=2, level=0.8).frame
    )


def test_where_nobody_reaches_a_depth_the_eligible_curve_is_nan(degenerate):
    frame = curves(degenerate, by="method", kind="pec_elig", resamples=200).frame
    beyond = frame[(frame["method"] == "m3") & (frame["k"] > 5)]
    assert (beyond["denominator"] == 0).all()
    assert beyond[["estimate", "lower", "upper", "band_lower", "band_upper"]].isna().all(axis=None)


@pytest.mark.parametrize("length", [0, 1])
def test_all_rollouts_ending_at_once_is_no_trouble(length):
    data = Rollouts(pd.DataFrame({"task_id": range(5), "length": length, "fed": 1}))
    for kind in ("pec", "pec_elig", "states"):
        frame = curves(data, by=(), kind=kind, resamples=100).frame
        assert frame["k"].max() == length
        assert np.isfinite(frame["estimate"]).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "km2"}, "must be one of"),
        ({"interval": "wald"}, "interval"),
        ({"band": "wald"}, "band"),
        ({"max_depth": -1}, "0 or more"),
    ],
)
def test_wrong_arguments_are_refused(paired, wrong, message):
    with pytest.raises(InputError, match=message):
        curves(paired, **wrong)


@given(rollouts())
def test_first_errors_add_up_to_all_errors_and_never_exceed_those_at_risk(data):
    frame = first_errors(data, by="method").frame
    assert frame["events"].sum() == data.events.sum()
    at_depth = frame.groupby(["method", "k"])[["events", "at_risk"]].agg({"events": "sum", "at_risk": "first"})
    assert (at_depth["events"] <= at_depth["at_risk"]).all()
