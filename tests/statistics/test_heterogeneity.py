"""heterogeneity: groups as compare has them, pooling as its closed forms, honest about what cannot be pooled."""

import numpy as np
import pandas as pd
import pytest
from cohorts import rollouts as some_rollouts
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import survexec as sx
from survexec.errors import InputError, PairingError
from survexec.rollouts import Rollouts
from survexec.statistics.comparison import compare
from survexec.statistics.estimands import METRICS
from survexec.statistics.heterogeneity import heterogeneity
from survexec.statistics.pooling import POOLED, pool

FRAME = [
    "metric", "a", "b", "level_of", "group", "role", "difference", "standard_error", "lower", "upper", "p_value",
    "weight_fixed", "weight_random", "n_pairs",
]  # fmt: skip
TESTS = ["metric", "a", "b", "q", "df", "p_value", "p_adjusted", "i2", "tau2", "groups"]
# 13 trials of the BCG vaccine: cases and others with and without it (Colditz et al. 1994, JAMA 271:698-702).
BCG = np.array([
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619), (33, 5036, 47, 5761),
    (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232), (17, 1699, 65, 1600),
    (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825),
])  # fmt: skip


def two(differences, **columns):
    """Rollouts of methods x and y on one task a difference: -1, 0 or 1 of "every call could be executed"."""
    rows = [
        {"task_id": f"{task:03d}", "method": method, "length": 2, "fed": 3 if hit else 1, **columns}
        for task, difference in enumerate(differences)
        for method, hit in (("x", difference >= 0), ("y", difference < 1))
    ]
    return pd.DataFrame(rows)


def groups(over="stratum", **differences):
    """Groups by name, each with the differences of its tasks; benchmarks and models too have their own."""
    parts = [two(values, **{over: name}) for name, values in differences.items()]
    for name, part in zip(differences, parts, strict=True):
        part["task_id"] = part["task_id"] if over != "stratum" else name + part["task_id"]
    return Rollouts(pd.concat(parts))


def of(result, metric, *named):
    """Rows of one metric by the name of the group."""
    frame = result.frame[result.frame["metric"] == metric].set_index("group")
    return frame.loc[list(named)] if named else frame


@pytest.fixture(scope="module")
def strata(paired):
    return heterogeneity(paired, baseline="base")


# Groups


def test_columns_are_always_the_same(paired, strata):
    assert strata.frame.columns.tolist() == ["benchmark", "model", *FRAME]
    assert strata.tests.columns.tolist() == ["benchmark", "model", *TESTS]
    single = heterogeneity(paired, within=[], metrics=["ter"])
    assert (single.frame.columns.tolist(), single.tests.columns.tolist()) == (FRAME, TESTS)
    assert len(strata.frame) == 3 * len(METRICS) * (4 + 3)
    assert len(strata.tests) == 3 * len(METRICS)


def test_a_group_has_the_error_and_interval_of_the_mean_of_its_differences(paired, strata):
    frame = paired.frame[paired.frame["method"].isin(["base", "verify"])]
    table = frame.assign(ter=(frame["fed"] > frame["length"]) * 1.0, mean_fed=frame["fed"], mean_length=frame["length"])
    verify = strata.frame[(strata.frame["a"] == "verify") & (strata.frame["role"] == "group")]
    for metric in ("ter", "mean_fed", "mean_length"):
        wide = table.pivot_table(index=["stratum", "task_id"], columns="method", values=metric)
        apart = wide["verify"] - wide["base"]
        rows = verify[verify["metric"] == metric].set_index("group")
        for name, values in apart.groupby("stratum"):
            lower, upper = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
            assert rows.loc[name, ["difference", "standard_error", "lower", "upper"]].tolist() == pytest.approx(
                [values.mean(), stats.sem(values), lower, upper], abs=1e-12
            )
    assert (verify["n_pairs"] == 30).all()
    assert verify["p_value"].isna().all()


def test_a_groups_recovery_rate_has_the_error_of_leaving_one_task_out_at_a_time(paired, strata):
    frame = paired.frame[paired.frame["stratum"] == "web"]
    frame = frame[frame["fed"] <= frame["length"]]

    def gap(part):
        rate = part.groupby("method")["success"].mean()
        return rate["plan"] - rate["base"]

    tasks = paired.frame.loc[paired.frame["stratum"] == "web", "task_id"].unique()
    without = np.array([gap(frame[frame["task_id"] != task]) for task in tasks], dtype=float)
    error = np.sqrt(29 / 30 * ((without - without.mean()) ** 2).sum())
    row = strata.frame.query("metric == 'rr' and a == 'plan' and group == 'web'").iloc[0]
    assert (row["difference"], row["standard_error"]) == pytest.approx((gap(frame), error), abs=1e-12)


def test_groups_are_what_compare_says_of_each_alone(paired, strata):
    for name in ("code", "tool"):
        alone = compare(paired.select(stratum=name), baseline="base", interval="jackknife_t", resamples=100).frame
        rows = strata.frame[strata.frame["group"] == name]
        for column in ("metric", "a", "b"):
            assert rows[column].tolist() == alone[column].tolist()
        for column in ("difference", "lower", "upper"):
            assert rows[column].to_numpy() == pytest.approx(alone[column].to_numpy(), abs=1e-12)


def test_several_trials_of_a_task_count_once(clustered):
    frame = clustered.frame.assign(stratum=np.where(clustered.frame["task_id"].str[-1].isin(list("02468")), "e", "o"))
    rows = of(heterogeneity(Rollouts(frame), metrics=["ter"]), "ter")
    frame["clean"] = (frame["fed"] > frame["length"]) * 1.0
    wide = frame.pivot_table(index=["stratum", "task_id"], columns="method", values="clean")
    apart = wide[rows["a"].iloc[0]] - wide[rows["b"].iloc[0]]
    for name, values in apart.groupby("stratum"):
        assert rows.loc[name, ["standard_error", "n_pairs"]].tolist() == pytest.approx([stats.sem(values), len(values)])


# Pooling


def by_hand(y, v, level=0.95):
    """Fixed effect, DerSimonian-Laird and Hartung-Knapp as their papers write them."""
    k, w = len(y), 1 / v
    fixed = (w * y).sum() / w.sum()
    q = (w * (y - fixed) ** 2).sum()
    tau2 = max(0, (q - (k - 1)) / (w.sum() - (w**2).sum() / w.sum()))
    u = 1 / (v + tau2)
    center = (u * y).sum() / u.sum()
    knapp = np.sqrt((u * (y - center) ** 2).sum() / ((k - 1) * u.sum()))
    z, t = stats.norm.ppf((1 + level) / 2), stats.t.ppf((1 + level) / 2, k - 1)
    rows = [(fixed, w.sum() ** -0.5, z), (center, u.sum() ** -0.5, z), (center, knapp, t)]
    return q, tau2, max(0, (q - (k - 1)) / q), [(m, e, m - c * e, m + c * e) for m, e, c in rows]


def test_pooled_rows_and_tests_are_those_of_the_closed_forms(strata):
    for (metric, a), rows in strata.frame.groupby(["metric", "a"]):
        found = rows[(rows["role"] == "group") & rows["weight_fixed"].notna()]
        q, tau2, i2, expected = by_hand(found["difference"].to_numpy(), found["standard_error"].to_numpy() ** 2)
        pooled = rows[rows["role"] == "pooled"]
        assert pooled["group"].tolist() == list(POOLED)
        numbers = pooled[["difference", "standard_error", "lower", "upper"]].to_numpy()
        assert numbers == pytest.approx(np.array(expected), rel=1e-9, abs=1e-12)
        test = strata.tests[(strata.tests["metric"] == metric) & (strata.tests["a"] == a)].iloc[0]
        assert test[["q", "tau2", "i2"]].tolist() == pytest.approx([q, tau2, i2], rel=1e-9, abs=1e-12)
        assert test["p_value"] == pytest.approx(stats.chi2.sf(q, len(found) - 1))
        assert (test["df"], test["groups"]) == (len(found) - 1, len(found))


def test_p_of_pooled_rows_is_where_their_interval_just_reaches_zero(paired, strata):
    for place in (0, 1, 2):
        row = of(strata, "success", POOLED[place]).query("a == 'plan'").iloc[0]
        wide = heterogeneity(paired, baseline="base", metrics=["success"], level=1 - row["p_value"])
        bounds = of(wide, "success", POOLED[place]).query("a == 'plan'").iloc[0]
        assert min(abs(bounds["lower"]), abs(bounds["upper"])) == pytest.approx(0, abs=1e-9)


def test_the_bcg_trials_give_the_published_numbers():
    a, b, c, d = BCG.T
    found = pool(np.log(a / (a + b) / (c / (c + d))), np.diag(1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)))
    assert found.estimate.round(4).tolist() == [-0.4303, -0.7141, -0.7141]
    assert found.standard_error[:2].round(4).tolist() == [0.0405, 0.1787]
    assert (round(found.q, 4), round(found.tau2, 4), round(100 * found.i2, 2)) == (152.2330, 0.3088, 92.12)


@pytest.mark.parametrize("seed", range(5))
def test_statsmodels_agrees_where_the_groups_differ_more_than_by_chance(seed):
    from statsmodels.stats.meta_analysis import combine_effects

    rng = np.random.default_rng(seed)
    effect, variance = rng.normal(0, 1, 6), rng.uniform(0.01, 0.1, 6)
    theirs, ours = combine_effects(effect, variance, method_re="dl"), pool(effect, np.diag(variance))
    assert (ours.q, ours.tau2, ours.i2) == pytest.approx((theirs.q, theirs.tau2, theirs.i2))
    assert ours.estimate[:2] == pytest.approx([theirs.mean_effect_fe, theirs.mean_effect_re])
    assert ours.standard_error == pytest.approx([theirs.sd_eff_w_fe, theirs.sd_eff_w_re, theirs.sd_eff_w_re_hksj])
    knapp = ours.estimate[2] + np.array([-1, 1]) * ours.halves(0.9)[2]
    assert knapp == pytest.approx(theirs.conf_int(alpha=0.1, use_t=True)[3])


def test_groups_that_differ_less_than_by_chance_have_no_variance_between_them():
    found = pool(np.array([0.1, 0.12, 0.11]), np.diag([0.01, 0.02, 0.015]))
    assert (found.tau2, found.i2) == (0, 0)
    assert found.weight_random == pytest.approx(found.weight_fixed)
    assert found.weight_fixed == pytest.approx(np.array([6, 3, 4]) / 13)
    assert found.standard_error[2] < found.standard_error[1]


effects = st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 1)), min_size=2, max_size=6).map(np.array)


@given(effects)
def test_a_pooled_difference_lies_among_the_groups_and_weights_add_to_one(given_):
    effect, error = given_.T
    found = pool(effect, np.diag(error**2))
    assert (found.estimate >= effect.min() - 1e-9).all()
    assert (found.estimate <= effect.max() + 1e-9).all()
    assert found.weight_fixed.sum() == pytest.approx(1)
    assert found.weight_random.sum() == pytest.approx(1)
    assert found.standard_error[0] <= min(error.min(), found.standard_error[1]) + 1e-12
    assert 0 <= found.i2 < 1
    assert 0 <= found.p_value <= 1
    # random weights are never more unequal than fixed ones
    assert np.ptp(found.weight_random) <= np.ptp(found.weight_fixed) + 1e-9


@given(effects, st.floats(-1, 1))
def test_equal_groups_have_no_q_and_no_interval_of_hartung_and_knapp(given_, effect):
    found = pool(np.full(len(given_), effect), np.diag(given_[:, 1] ** 2))
    assert found.q == pytest.approx(0, abs=1e-9)
    assert (found.tau2, found.p_value) == (0, pytest.approx(1, abs=1e-3))
    assert np.isnan(found.standard_error[2])


@given(effects, st.randoms(use_true_random=False))
def test_the_order_of_groups_does_not_matter_and_signs_flip_together(given_, random):
    order = list(range(len(given_)))
    random.shuffle(order)
    effect, variance = given_[:, 0], given_[:, 1] ** 2
    first, second = pool(effect, np.diag(variance)), pool(-effect[order], np.diag(variance[order]))
    assert second.estimate == pytest.approx(-first.estimate, abs=1e-12)
    assert second.standard_error == pytest.approx(first.standard_error, nan_ok=True, abs=1e-6)
    assert (second.q, second.tau2) == pytest.approx((first.q, first.tau2), abs=1e-6)
    assert second.weight_random == pytest.approx(first.weight_random[order])


# Groups that share tasks


def test_two_models_on_the_same_tasks_are_tested_by_the_differences_of_their_differences():
    first, second = [1, 1, 1, 0, 0, 1, -1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 0, -1, -1, 0, 1, 0, -1, 0]
    result = heterogeneity(groups("model", small=first, large=second), over="model", metrics=["ter"])
    assert result.by == ("benchmark",)
    test = result.tests.iloc[0]
    assert test["q"] == pytest.approx(stats.ttest_rel(first, second).statistic ** 2)
    assert (test["df"], test["groups"]) == (1, 2)
    assert of(result, "ter", "fixed effect")["n_pairs"].item() == 12
    assert any("share tasks; their covariance is in the weights and in Q" in note for note in result.notes)


def test_pooling_models_is_generalised_least_squares():
    y, v = np.array([0.3, 0.1]), np.array([[0.04, 0.01], [0.01, 0.02]])
    found = pool(y, v)
    # minimum variance: (v22 - v12, v11 - v12) over their sum
    assert found.weight_fixed == pytest.approx([0.25, 0.75])
    assert found.standard_error[0] ** 2 == pytest.approx((0.04 * 0.02 - 0.01**2) / 0.04)
    assert found.q == pytest.approx((0.3 - 0.1) ** 2 / (0.04 + 0.02 - 2 * 0.01))
    inflated = pool(np.array([0.9, 0.1]), v)
    # the variance between groups is what their difference shows beyond chance, 2 tau2 = d^2 - var(d)
    assert inflated.tau2 == pytest.approx((0.8**2 - 0.04) / 2)


def test_models_share_only_the_tasks_that_both_have():
    shared = groups("model", small=[1, 0, -1, 1, 1, 0], large=[0, 0, 1, 1, 0, 1, 1, -1, 0, 1])
    result = heterogeneity(shared, over="model", metrics=["ter"])
    first, second = np.array([1, 0, -1, 1, 1, 0.0]), np.array([0, 0, 1, 1, 0, 1, 1, -1, 0, 1.0])
    covariance = ((first - first.mean()) * (second[:6] - second.mean())).sum() / np.sqrt(6 * 5 * 10 * 9)
    spread = stats.sem(first) ** 2 + stats.sem(second) ** 2 - 2 * covariance
    assert result.tests["q"].item() == pytest.approx((first.mean() - second.mean()) ** 2 / spread)
    assert of(result, "ter")["n_pairs"].tolist() == [6, 10, 10, 10, 10]


def test_a_model_twice_cannot_be_weighed_against_itself():
    result = heterogeneity(groups("model", one=[1, 0, 1, -1], same=[1, 0, 1, -1]), over="model", metrics=["ter"])
    assert of(result, "ter", *POOLED)["difference"].isna().all()
    assert result.tests["p_value"].isna().all()
    assert any("move together" in note for note in result.notes)


def test_benchmarks_with_the_same_names_of_tasks_share_none():
    result = heterogeneity(groups("benchmark", shop=[1, 0, 1, -1], air=[1, 1, 0, -1]), over="benchmark")
    assert result.by == ("model",)
    assert of(result, "ter", "fixed effect")["n_pairs"].item() == 8
    assert not any("share tasks" in note for note in result.notes)


# What is left out, and what is told


def test_groups_of_one_task_or_without_spread_are_shown_and_left_out_of_the_pooling():
    data = groups(wide=[1, 0, -1, 1, 1], other=[0, 1, 1, 0], alone=[1], same=[1, 1, 1])
    result = heterogeneity(data, metrics=["ter"])
    rows = of(result, "ter")
    assert rows.loc[["alone", "same"], "difference"].tolist() == [1, 1]
    out = rows.loc[["alone", "same"], ["standard_error", "lower", "upper", "weight_fixed", "weight_random"]]
    assert out.isna().all(axis=None)
    pooled = rows.loc["fixed effect"]
    assert (pooled["n_pairs"], result.tests["groups"].item()) == (9, 2)
    kept = heterogeneity(data.select(stratum=["wide", "other"]), metrics=["ter"])
    assert of(kept, "ter", *POOLED)["difference"].tolist() == rows.loc[list(POOLED), "difference"].tolist()
    assert "x - y, alone: TER: one task, which has no spread; left out of the pooling" in result.notes
    assert "x - y, same: TER: the difference is the same on every task; left out of the pooling" in result.notes


def test_a_share_undefined_in_a_group_is_left_out_with_the_reason():
    data = groups(clean=[0, 0, 0], mixed=[1, -1, -1, 1, 1], more=[-1, 1, 1, -1, 0])
    data.frame["success"] = (np.arange(len(data)) % 3 == 0).astype(float)
    result = heterogeneity(Rollouts(data.frame), metrics=["rr", "ter"])
    assert np.isnan(of(result, "rr", "clean")["difference"].item())
    assert result.tests.set_index("metric")["groups"].to_dict() == {"rr": 2, "ter": 2}
    assert "x - y, clean: RR: undefined in x: no rollout erred (0/0); left out of the pooling" in result.notes


def test_a_share_that_rests_on_one_task_has_no_error():
    data = groups(few=[-1, 1, 1, 0], more=[1, -1, -1, 1, 0])
    data.frame["success"] = (np.arange(len(data)) % 3 == 0).astype(float)
    result = heterogeneity(Rollouts(data.frame), metrics=["rr"])
    row = of(result, "rr", "few").iloc[0]
    assert not np.isnan(row["difference"])
    assert np.isnan(row["standard_error"])
    assert any("x - y, few: RR: a side rests on one task alone" in note for note in result.notes)


@pytest.mark.parametrize(("groups_", "word"), [({"only": [1, 0, -1]}, "one"), ({"a": [1], "b": [0]}, "no")])
def test_fewer_than_two_groups_pool_nothing_and_say_so(groups_, word):
    result = heterogeneity(groups(**groups_), metrics=["ter"])
    pooled = of(result, "ter", *POOLED)
    assert pooled[["difference", "standard_error", "lower", "upper", "p_value"]].isna().all(axis=None)
    assert result.tests[["q", "df", "p_value", "p_adjusted", "i2", "tau2"]].isna().all(axis=None)
    assert f"x - y: TER: {word} group can be weighed; pooling and the interaction test need two" in result.notes
    assert not any("Holm" in note for note in result.notes)


def test_tasks_without_a_stratum_are_left_out_and_counted():
    known = groups(p=[1, 0, -1, 1], q=[0, 0, 1])
    stranger = two([1, 1]).assign(task_id=lambda frame: "z" + frame["task_id"])
    result = heterogeneity(Rollouts(pd.concat([known.frame, stranger])), metrics=["ter"])
    pd.testing.assert_frame_equal(result.frame, heterogeneity(known, metrics=["ter"]).frame)
    assert "x - y: 2 of 9 tasks have no stratum and are left out" in result.notes


def test_tasks_of_one_side_are_left_out_and_listed():
    data = groups(p=[1, 0, -1, 1], q=[0, 0, 1, 1])
    result = heterogeneity(Rollouts(data.frame[1:]), metrics=["ter"])
    assert of(result, "ter")["n_pairs"].tolist() == [3, 4, 7, 7, 7]
    assert any("left out: p000" in note for note in result.notes)


def test_small_counts_are_told():
    result = heterogeneity(groups(p=[1] * 12 + [-1] * 20, q=[0] * 40 + [1, -1, 1]), metrics=["ter"])
    rough = [note for note in result.notes if "rough" in note]
    assert len(rough) == 1
    assert "only 3 of 43 tasks in q on which a and b differ" in rough[0]
    small = heterogeneity(groups(p=[1, -1] * 6, q=[1, -1, 1] * 20), metrics=["ter"])
    assert sum("only 12 tasks in p" in note for note in small.notes) == 1


def test_the_interval_of_hartung_and_knapp_is_marked_where_it_is_the_narrower(strata):
    narrow = set()
    for (metric, a), rows in strata.frame[strata.frame["role"] == "pooled"].groupby(["metric", "a"]):
        width = (rows["upper"] - rows["lower"]).to_numpy()
        narrow |= {(METRICS[metric].label, a)} if width[2] < width[1] else set()
    told = [note.split(": ") for note in strata.notes if "rely on the wider" in note]
    assert {(label, pair.split(" - ")[0]) for pair, labels, _ in told for label in labels.split(", ")} == narrow
    assert narrow


def test_groups_that_agree_exactly_have_no_interval_of_hartung_and_knapp():
    result = heterogeneity(groups(p=[1, 0, -1, 1], q=[0, 1, 1, -1]), metrics=["ter"])
    pooled = of(result, "ter", *POOLED)
    assert pooled["difference"].tolist() == pytest.approx([0.25] * 3)
    assert pooled["lower"].isna().tolist() == [False, False, True]
    assert result.tests["q"].item() == pytest.approx(0, abs=1e-12)
    assert any("Hartung-Knapp gives no interval" in note for note in result.notes)


def test_p_is_adjusted_over_all_interaction_tests_of_the_call(strata):
    p = strata.tests["p_value"].to_numpy()
    order = np.argsort(p)
    expected = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    assert strata.tests["p_adjusted"].to_numpy()[order] == pytest.approx(expected)
    assert any(f"Holm over a family of {len(p)}: TER, Mean FED" in note for note in strata.notes)


def test_a_pair_stands_the_same_way_round_in_every_group():
    first = groups("benchmark", shop=[1, 1, 0, -1]).frame
    second = groups("benchmark", air=[1, 0, 0, 0]).frame
    turned = second.sort_values("method", ascending=False)
    for data in (pd.concat([first, turned]), pd.concat([first, second])):
        rows = of(heterogeneity(Rollouts(data), over="benchmark", metrics=["ter"]), "ter", "shop", "air")
        assert rows[["a", "b", "difference"]].values.tolist() == [["x", "y", 0.25], ["x", "y", 0.25]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"over": "success"}, r"over = 'success'; it must be one of stratum, benchmark, model, method"),
        ({"over": "method"}, "cannot also be in between"),
        ({"over": "model", "within": ["model"]}, "cannot also be in within"),
        ({"metrics": ["tre"]}, "metric 'tre'"),
        ({"baseline": "nobody"}, "baseline 'nobody'"),
        ({"level": 2}, "level"),
    ],
)
def test_wrong_arguments_are_refused_with_what_would_be_right(paired, wrong, message):
    with pytest.raises(InputError, match=message):
        heterogeneity(paired, **wrong)


def test_without_any_stratum_there_is_nothing_to_group_by():
    with pytest.raises(InputError, match="no task has a stratum"):
        heterogeneity(Rollouts(two([1, 0, 1])))


def test_no_common_task_is_refused():
    apart = Rollouts(pd.DataFrame({"task_id": ["a", "b"], "method": ["x", "y"], "length": 1, "fed": 2, "stratum": "s"}))
    with pytest.raises(PairingError):
        heterogeneity(apart)


# Whatever the data


@given(some_rollouts())
@settings(max_examples=10)
def test_relabelling_groups_and_turning_the_pair_change_names_and_signs_only(data):
    try:
        first = heterogeneity(data, baseline="m1", metrics=["ter", "rr", "auc_pec"])
    except InputError:
        return
    frame = data.frame.assign(stratum=data.frame["stratum"].map({"even": "zzz", "odd": "aaa"}))
    second = heterogeneity(Rollouts(frame), baseline="m0", metrics=["ter", "rr", "auc_pec"])
    names = ["metric", "group"]
    ours = first.frame.replace({"even": "zzz", "odd": "aaa"}).set_index(names).sort_index()
    theirs = second.frame.set_index(names).sort_index()
    assert ours["difference"].to_numpy() == pytest.approx(-theirs["difference"].to_numpy(), abs=1e-9, nan_ok=True)
    assert ours["lower"].to_numpy() == pytest.approx(-theirs["upper"].to_numpy(), abs=1e-6, nan_ok=True)
    assert ours["n_pairs"].tolist() == theirs["n_pairs"].tolist()
    numbers = ["q", "p_value", "i2", "tau2", "groups"]
    assert first.tests[numbers].to_numpy() == pytest.approx(second.tests[numbers].to_numpy(), abs=1e-6, nan_ok=True)


@given(some_rollouts())
@settings(max_examples=10)
def test_what_is_pooled_has_weights_that_add_to_one_and_what_is_not_has_a_note(data):
    try:
        result = heterogeneity(data)
    except InputError:
        return
    for metric, rows in result.frame.groupby("metric"):
        pooled = result.tests.set_index("metric").loc[metric, "groups"]
        assert rows["weight_fixed"].notna().sum() == (pooled if pooled > 1 else 0)
        if pooled > 1:
            assert rows[["weight_fixed", "weight_random"]].sum().tolist() == pytest.approx([1, 1])
        else:
            assert any("need two" in note and METRICS[metric].label in note for note in result.notes)
        out = rows[(rows["role"] == "group") & rows["standard_error"].isna()]
        for group in out["group"]:
            assert any(f", {group}: " in n and METRICS[metric].label in n and "left out" in n for n in result.notes)


def test_degenerate_rollouts_give_notes_not_failures(degenerate):
    result = heterogeneity(degenerate)
    assert len(result.frame) == 6 * len(METRICS) * (2 + 3)
    assert any("undefined in m0: no rollout erred" in note for note in result.notes)
    idle = degenerate.frame.assign(length=0, fed=1, error_class=None)
    tests = heterogeneity(Rollouts(idle), metrics=["ter", "mean_fed", "auc_pec", "rr", "mean_length"]).tests
    assert (tests["groups"] == 0).all()
    assert tests["p_value"].isna().all()


# Real rollouts


def test_a_model_against_its_fine_tune_over_two_domains(shared):
    files = sorted(str(path) for path in (shared / "data/tau2").glob("gpt-4.1*_[ar]*.json") if "mini" not in path.name)
    rollouts = sx.read(files)
    result = heterogeneity(rollouts, between="model", over="benchmark")
    assert result.by == ("method",)
    assert of(result, "ter", "tau2-airline", "tau2-retail")["n_pairs"].tolist() == [20, 40]
    # in the airline domain the one error is on the same task of both, so that only retail has a spread
    assert of(result, "ter")["difference"].tolist()[:2] == pytest.approx([0, -9 / 40])
    frame = rollouts.frame
    side = frame["model"].str.startswith("ft:").map({True: "a", False: "b"})
    wide = frame.assign(side=side).pivot_table(index=["benchmark", "task_id"], columns="side", values="fed")
    apart = (wide["a"] - wide["b"]).groupby("benchmark").agg(["mean", "sem"])
    q, tau2, _, expected = by_hand(apart["mean"].to_numpy(), apart["sem"].to_numpy() ** 2)
    numbers = of(result, "mean_fed", *POOLED)[["difference", "standard_error", "lower", "upper"]].to_numpy()
    assert numbers == pytest.approx(np.array(expected))
    test = result.tests.set_index("metric").loc["mean_fed"]
    assert (test["q"], test["tau2"]) == pytest.approx((q, tau2))
