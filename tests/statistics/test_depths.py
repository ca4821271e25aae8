"""Restricted means, quantiles and differences of curves: equal to R, paired by task, consistent with each other."""

import numpy as np
import pandas as pd
import pytest
from cohorts import Reference, load
from test_survival_curves import rollouts_apart

from survexec.errors import InputError, PairingError
from survexec.rollouts import Rollouts
from survexec.statistics import proportions
from survexec.statistics.curve_differences import curve_differences
from survexec.statistics.curves import curves
from survexec.statistics.depths import clean_depths, depth_differences

SCALARS = Reference("02_km_scalars")


def quantity(frame, name):
    return frame[frame["quantity"] == name].set_index("method")


@pytest.mark.parametrize("name", ["a_paired", "b_clustered", "c_degenerate"])
@pytest.mark.parametrize("tau", [5, 8])
def test_restricted_mean_and_its_error_equal_r(name, tau):
    longest = int(load(name).frame["length"].max())
    if tau > longest:
        pytest.skip("no rollout is that long")
    got = quantity(clean_depths(rollouts_apart(name), by="method", tau=tau).frame, f"Mean clean depth of {tau}")
    for method, row in got.iterrows():
        assert row["estimate"] == pytest.approx(SCALARS(name, "rmst_manual", method, f"tau{tau}"), abs=1e-12)
        assert row["standard_error"] == pytest.approx(SCALARS(name, "rmst_manual_se", method, f"tau{tau}"), abs=1e-12)


@pytest.mark.parametrize("name", ["a_paired", "b_clustered", "c_degenerate"])
def test_quantiles_equal_r(name):
    frame = clean_depths(load(name), by="method", tau=1).frame
    for percent in (25, 50, 75):
        for method, row in quantity(frame, f"FED quantile {percent / 100:g}").iterrows():
            expected = SCALARS(name, "km_quantile", method, str(percent))
            assert row["estimate"] == pytest.approx(expected, nan_ok=True), (method, percent)


def test_limits_of_the_median_equal_r():
    for method, row in quantity(
        clean_depths(rollouts_apart("a_paired"), by="method").frame, "FED quantile 0.5"
    ).iterrows():
        for side, name in (("lower", "lo"), ("upper", "hi")):
            expected = SCALARS("a_paired", f"km_median_loglog_{name}", method, "50")
            assert row[side] == pytest.approx(expected, nan_ok=True)


def test_conditional_and_residual_depth_are_read_off_the_curve(paired):
    whole = curves(paired, by="method", kind="km", resamples=100).frame
    km = whole[whole["method"] == "base"].set_index("k")["estimate"]
    frame = clean_depths(paired, by="method", start=2, further=3, tau=6).frame
    conditional = quantity(frame, "Clean to 5 if clean to 2").loc["base", "estimate"]
    assert conditional == pytest.approx(km[5] / km[2], abs=1e-12)
    residual = quantity(frame, "Mean further clean depth from 2").loc["base", "estimate"]
    assert residual == pytest.approx(km[2:6].sum() / km[2], abs=1e-12)


def test_the_difference_of_restricted_means_pairs_by_task(paired):
    row = depth_differences(paired, tau=6).frame.iloc[0]
    single = quantity(clean_depths(paired, by="method", tau=6).frame, "Mean clean depth of 6")
    a, b = single.loc[["base", "react"], "estimate"]
    assert row["difference"] == pytest.approx(a - b, abs=1e-12)
    unpaired = np.hypot(*single.loc[["base", "react"], "standard_error"])
    # tasks that are hard for one are hard for the other: pairing sharpens the difference
    assert row["standard_error"] < unpaired


def test_impossible_horizons_are_refused(paired):
    for wrong in ({"tau": 0}, {"tau": 99}, {"start": -1}, {"further": 0}, {"quantiles": [1.5]}):
        with pytest.raises(InputError):
            clean_depths(paired, by="method", **wrong)


def test_differences_of_pec_have_newcombes_paired_limits(paired):
    frame = curve_differences(paired, resamples=200).frame.query("a == 'base' and b == 'verify'").set_index("k")
    fed = paired.frame.pivot(index="task_id", columns="method", values="fed")
    z = proportions.normal_quantile(0.95)
    for k in (1, 4, 8):
        x, y = fed["base"] > k, fed["verify"] > k
        table = [(x & y).sum(), (x & ~y).sum(), (~x & y).sum(), (~x & ~y).sum()]
        a, b, c, d = table
        phi = (a * d - b * c) / np.sqrt(float((a + b) * (c + d) * (a + c) * (b + d)))
        sides = [proportions.wilson(n, 120, z) for n in (a + b, a + c)]
        low, high = proportions.mover((a + b) / 120, sides[0], (a + c) / 120, sides[1], phi)
        assert frame.loc[k, "difference"] == pytest.approx((b - c) / 120, abs=1e-12)
        assert frame.loc[k, ["lower", "upper"]].tolist() == pytest.approx([float(low), float(high)], abs=1e-10)


@pytest.mark.parametrize("kind", ["pec", "pec_elig", "km", "cif"])
@pytest.mark.parametrize("band", ["wilson", "sup_t"])
def test_the_band_of_a_difference_holds_its_interval_and_that_the_difference(paired, kind, band):
    frame = curve_differences(paired, kind=kind, band=band, resamples=300).frame
    order = frame[["band_lower", "lower", "difference", "upper", "band_upper"]].dropna()
    assert (order.diff(axis=1).iloc[:, 1:] >= -1e-12).all(axis=None)
    assert len(order) > 50


def test_another_level_of_a_difference_comes_from_the_same_replicates(paired):
    result = curve_differences(paired, resamples=200)
    fresh = curve_differences(paired, resamples=200, level=0.8)
    pd.testing.assert_frame_equal(result.with_interval(0.8).frame, fresh.frame)


def test_curves_of_methods_without_common_tasks_are_not_subtracted():
    data = Rollouts(pd.DataFrame({"task_id": ["a", "b"], "method": ["x", "y"], "length": 1, "fed": 2}))
    for compare in (curve_differences, depth_differences):
        with pytest.raises(PairingError):
            compare(data)


def test_several_trials_and_missing_tasks_are_no_trouble(clustered, degenerate):
    for data in (clustered, degenerate):
        for kind in ("pec", "pec_elig", "km", "cif"):
            frame = curve_differences(data, kind=kind, resamples=100).frame
            known = frame.dropna(subset=["lower"])
            assert (known["lower"] <= known["difference"] + 1e-12).all()
