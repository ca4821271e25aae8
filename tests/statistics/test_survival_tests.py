"""Survival tests: equal to R on every row, honest about pairing, quiet at the edges, and of the right size."""

import warnings

import numpy as np
import pandas as pd
import pytest
from cohorts import REFERENCE, Reference, rollouts
from hypothesis import assume, given
from hypothesis import strategies as st

from survexec.errors import InputError, PairingError, SurvexecWarning
from survexec.rollouts import Rollouts
from survexec.statistics.rank_tests import gray, log_rank, paired_prentice_wilcoxon
from survexec.statistics.survival_tests import TESTS, survival_tests

CLASSES = ["tool", "reason", "plan", "format"]
COLUMNS = [
    "test", "a", "b", "cause", "statistic", "df", "p_value", "p_adjusted", "n_tasks", "n_rollouts", "events", "basis",
]  # fmt: skip
DATA = ["a_paired", "b_clustered", "c_degenerate"]


def reference_data(name, group="all"):
    """Depth, error and cause codes as the R scripts make them."""
    given = pd.read_csv(REFERENCE / f"{name}.csv")
    erred = given["FED"] <= given["T"]
    last = np.where(given["end"] == "clean", 1, 0)
    by_class = given["err_class"].map({c: i for i, c in enumerate(CLASSES, 1)})
    given = given.assign(
        depth=given[["FED", "T"]].min(axis=1), erred=erred, error_vs_clean=np.where(erred, 1, 2 * last),
        by_class=np.where(erred, by_class, 5 * last).astype(int),
    )  # fmt: skip
    return given if group == "all" else given[given["method"].isin(group.split(":"))]


def reference_rows(file, starts):
    """Values of the analyses that start so, by (data set, analysis without its last word, group)."""
    table = Reference(file).table.fillna({"item": ""})
    table = table[table["analysis"].str.startswith(starts)]
    table[["analysis", "what"]] = table["analysis"].str.rsplit("_", n=1, expand=True).to_numpy()
    return table.groupby(["dataset", "analysis", "group"], sort=False)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize(
    ("analysis", "strata", "rho"),
    [
        ("logrank", None, 0), ("peto_rho1", None, 1), ("logrank_strat_task", "task", 0),
        ("logrank_strat_stratum", "stratum", 0),
    ],
)  # fmt: skip
def test_log_rank_equals_r(name, analysis, strata, rho):
    found = 0
    for (dataset, which, group), rows in reference_rows("04_logrank_cox", ("logrank", "peto_rho1")):
        if (dataset, which) != (name, analysis):
            continue
        data = reference_data(name, group)
        got = log_rank(data["depth"], data["erred"], data["method"], None if strata is None else data[strata], rho)
        first = got.groups.index(data["method"].iloc[0])
        for what, item, value in rows[["what", "item", "value"]].itertuples(index=False):
            g = got.groups.index(item) if item else first
            ours = {
                "chisq": got.statistic, "p": got.p_value, "O": got.observed[g], "E": got.expected[g],
                "V11": got.variance[g, g],
            }[what]  # fmt: skip
            assert ours == pytest.approx(value, rel=1e-10, abs=1e-10)
            found += 1
    assert found == {"a_paired": 11 + 6 * 7, "b_clustered": 2 * 7, "c_degenerate": 11 + 6 * 7}[name]


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("split", ["error_vs_clean", "by_class"])
@pytest.mark.parametrize("strata", [None, "stratum"])
def test_gray_equals_r(name, split, strata):
    # where the variance is singular R gives -1 and p = 1; ours is then of a lower rank
    analysis = ("gray_" if strata is None else "gray_strat_by_stratum_") + split
    labels = [*CLASSES, "clean"] if split == "by_class" else ["error", "clean"]
    found = 0
    for (dataset, which, group), rows in reference_rows("03_gray", "gray"):
        if (dataset, which) != (name, analysis):
            continue
        data = reference_data(name, group)
        for item, values in rows.groupby("item"):
            r = values.set_index("what")["value"]
            by = None if strata is None else data[strata]
            got = gray(data["depth"], data[split], data["method"], labels.index(item) + 1, strata=by)
            if r["stat"] == -1:
                assert got.df < data["method"].nunique() - 1
            else:
                assert got.statistic == pytest.approx(r["stat"], rel=1e-10, abs=1e-10)
                assert got.p_value == pytest.approx(r["p"], rel=1e-10, abs=1e-10)
                assert got.df == r.get("df", got.df) == data["method"].nunique() - 1
            found += 1
    # pairs and all; R has no row for a class that a group of methods never shows
    classes = {"a_paired": 7 * 5, "b_clustered": 2 * 5, "c_degenerate": 7 * 2 + 4 * 2}[name]
    both = {"a_paired": 7 * 2, "b_clustered": 2 * 2, "c_degenerate": 7 * 2}[name]
    assert found == (classes if split == "by_class" else both)


def test_paired_prentice_wilcoxon_equals_r():
    found = reference_rows("04_logrank_cox", "paired_prentice")
    assert len(found) == 6
    for (name, _, group), rows in found:
        data, r = reference_data(name, group), rows.set_index("item")["value"]
        second = data["method"] != group.split(":")[0]
        got = paired_prentice_wilcoxon(data["depth"], data["erred"], second, data["task"])
        assert got.statistic == pytest.approx(r["z"], abs=1e-12)
        assert got.p_value == pytest.approx(r["p"], abs=1e-12)


def test_several_trials_enter_as_their_mean_score_and_tasks_of_one_side_not_at_all():
    depth = np.array([1, 1, 2, 2, 2, 3, 1])
    side, task = np.array([0, 0, 1, 0, 1, 0, 0]), np.array([0, 0, 0, 1, 1, 1, 2])
    got = paired_prentice_wilcoxon(depth, np.ones(7, bool), side, task)
    # six rollouts of two tasks: S(1) = 5/7, S(2) = 5/7 x 2/5 = 2/7, S(3) = 2/7 x 1/2 = 1/7; all erred: 1 - 2 S
    scores = {1: -3 / 7, 2: 3 / 7, 3: 5 / 7}
    difference = np.array([scores[1] - scores[2], (scores[2] + scores[3]) / 2 - scores[2]])
    assert got.statistic == pytest.approx(difference.sum() / np.sqrt((difference**2).sum()), rel=1e-12)


def test_trials_in_another_order_leave_no_difference_of_rounding():
    depth, erred = np.array([1, 2, 3, 5, 7, 7]), np.array([True, True, True, True, True, False])
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(6)
        sides = np.concatenate([depth, depth[order]]), np.concatenate([erred, erred[order]])
        got = paired_prentice_wilcoxon(*sides, np.repeat([0, 1], 6), np.zeros(12))
        assert (got.statistic, got.p_value, got.reason) == (0, 1, "no event tells the sides apart")


def test_a_paired_test_refuses_three_groups():
    with pytest.raises(InputError, match="two groups, not of 3: a, b, c"):
        paired_prentice_wilcoxon(np.ones(3), np.ones(3, bool), np.array(["a", "b", "c"]), np.zeros(3))


@st.composite
def samples(draw):
    """Depth, cause, group and stratum of a few rollouts."""
    n = draw(st.integers(2, 24))
    columns = [(0, 5), (0, 2), (0, 2), (0, 1)]
    depth, cause, group, stratum = (np.array(draw(st.lists(st.integers(*c), min_size=n, max_size=n))) for c in columns)
    return depth, np.where((depth == 0) & (cause == 1), 2, cause), group, stratum


def every_test(depth, cause, group, stratum):
    """All array tests on one sample."""
    outcomes = [log_rank(depth, cause == 1, group, s, rho) for s in (None, stratum) for rho in (0, 1)]
    outcomes += [gray(depth, cause, group, c, rho, s) for c in (1, 2) for s in (None, stratum) for rho in (0, 1)]
    pair = group != np.max(group)
    outcomes.append(paired_prentice_wilcoxon(depth[pair], cause[pair] == 1, group[pair], stratum[pair]))
    return outcomes


@given(samples(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(sample, random):
    order = random.sample(range(len(sample[0])), len(sample[0]))
    for one, other in zip(every_test(*sample), every_test(*(x[order] for x in sample)), strict=True):
        assert other.statistic == pytest.approx(one.statistic, rel=1e-9, abs=1e-9, nan_ok=True)
        assert other.df == pytest.approx(one.df, nan_ok=True)


@given(samples())
def test_the_names_of_groups_change_nothing_but_the_sign_of_z(sample):
    depth, cause, group, stratum = sample
    renamed = np.array(["z", "y", "x"])[group]
    for strata in (None, stratum):
        for one, other in (
            (log_rank(depth, cause == 1, group, strata), log_rank(depth, cause == 1, renamed, strata)),
            (gray(depth, cause, group, strata=strata), gray(depth, cause, renamed, strata=strata)),
        ):
            assert other.statistic == pytest.approx(one.statistic, rel=1e-9, abs=1e-9, nan_ok=True)
            assert other.observed[::-1] == pytest.approx(one.observed)
    two = group < 2
    one = paired_prentice_wilcoxon(depth[two], cause[two] == 1, group[two], stratum[two])
    other = paired_prentice_wilcoxon(depth[two], cause[two] == 1, renamed[two], stratum[two])
    assert other.statistic == pytest.approx(-one.statistic, nan_ok=True)


@given(samples())
def test_identical_groups_give_nothing_and_p_1(sample):
    depth, cause, _, _ = sample
    assume((cause == 1).any())
    n = len(depth)
    side, task = np.repeat([0, 1], n), np.tile(np.arange(n), 2)
    depth, cause = np.tile(depth, 2), np.tile(cause, 2)
    for got in (
        log_rank(depth, cause == 1, side), log_rank(depth, cause == 1, side, rho=1),
        log_rank(depth, cause == 1, side, task), gray(depth, cause, side), gray(depth, cause, side, rho=1),
        paired_prentice_wilcoxon(depth, cause == 1, side, task),
    ):  # fmt: skip
        assert got.statistic == pytest.approx(0, abs=1e-12)
        assert got.p_value == pytest.approx(1, abs=1e-5)


@given(samples())
def test_observed_and_expected_add_to_the_same(sample):
    for got in every_test(*sample)[:-1]:
        assert got.observed.sum() == pytest.approx(got.expected.sum(), abs=1e-9)


@given(samples())
def test_gray_without_competing_causes_scores_like_the_log_rank(sample):
    depth, cause, group, stratum = sample
    for strata in (None, stratum):
        ours, theirs = gray(depth, cause == 1, group, strata=strata), log_rank(depth, cause == 1, group, strata)
        assert ours.observed == pytest.approx(theirs.observed)
        assert ours.expected == pytest.approx(theirs.expected)


@given(samples())
def test_gray_is_the_log_rank_exactly_while_the_curves_agree(sample):
    # the variances part only after the groups' curves have: with all errors at one depth they never do
    depth, cause, group, _ = sample
    alone = (cause == 1) & (depth == 3)
    ours, theirs = gray(depth, alone, group), log_rank(depth, alone, group)
    assert ours.variance == pytest.approx(theirs.variance, abs=1e-12)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-9, nan_ok=True)
    twice = [np.tile(x, 2) for x in (depth, cause == 1)]
    side = np.repeat([0, 1], len(depth))
    assert gray(*twice, side).variance == pytest.approx(log_rank(*twice, side).variance, abs=1e-12)


def test_gray_is_undefined_where_groups_follow_one_another_or_the_variance_is_negative():
    depth, group = np.array([9, 9, 5, 6, 7, 3, 7]), np.array([4, 3, 1, 2, 3, 0, 3])
    past = gray(depth, np.ones(7, int), group)
    assert np.isnan(past.p_value)
    assert "passes 1" in past.reason
    depth, causes, group = [3, 1, 3, 1, 2, 3, 2], [1, 0, 1, 2, 2, 1, 0], [0, 1, 0, 1, 1, 1, 1]
    negative = gray(np.array(depth), np.array(causes), np.array(group))
    assert np.isnan(negative.statistic)
    assert "negative" in negative.reason


def test_the_default_is_the_paired_prentice_wilcoxon_of_every_pair(paired):
    result = survival_tests(paired)
    assert result.kind == "survival_tests"
    assert result.frame.columns.tolist() == ["benchmark", "model", *COLUMNS]
    assert result.frame["test"].tolist() == ["prentice_wilcoxon"] * 6
    r = Reference("04_logrank_cox")
    for row in result.frame.itertuples():
        key = ("a_paired", "paired_prentice_wilcoxon", f"{row.a}:{row.b}")
        assert row.statistic == pytest.approx(r(*key, "z"), abs=1e-12)
        assert row.p_value == pytest.approx(r(*key, "p"), abs=1e-12)
        assert row.basis == "rollouts about to make call k (sides pooled), 120 + 120 at depth 1"
    assert (result.frame["p_adjusted"] >= result.frame["p_value"]).all()
    assert any("Holm over a family of 6 tests: paired Prentice-Wilcoxon" in note for note in result.notes)


def test_all_tests_have_a_row_for_each_pair_and_the_k_sample_ones_for_all(paired):
    with pytest.warns(SurvexecWarning, match="size is about 0.4%"):
        result = survival_tests(paired, tests=list(TESTS))
    frame = result.frame
    assert frame["test"].value_counts().to_dict() == {
        "gray": 14, "log_rank": 7, "log_rank_by_task": 7, "prentice_wilcoxon": 6,
    }  # fmt: skip
    data = reference_data("a_paired")
    whole = frame[(frame["a"] == "all") & (frame["b"] == "")].set_index(["test", "cause"])
    strata = log_rank(data["depth"], data["erred"], data["method"], data["task"])
    assert whole.loc[("log_rank_by_task", "error"), "statistic"] == pytest.approx(strata.statistic)
    for code, cause in ((1, "error"), (2, "finish")):
        got = gray(data["depth"], data["error_vs_clean"], data["method"], code)
        assert whole.loc[("gray", cause), "statistic"] == pytest.approx(got.statistic)
        assert whole.loc[("gray", cause), "events"] == (data["error_vs_clean"] == code).sum()
    assert any("log-rank and Gray: the pairing by task is ignored" in note for note in result.notes)
    assert any("family of 34 tests" in note for note in result.notes)


def test_paired_tests_do_not_warn(paired):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = survival_tests(paired, tests=("prentice_wilcoxon", "log_rank_by_task"))
    assert not any("ignored" in note for note in result.notes)


def test_a_baseline_stands_on_the_right_and_z_is_positive_where_a_errs_later(paired):
    frame = survival_tests(paired, baseline="base").frame
    assert frame["b"].unique().tolist() == ["base"]
    assert frame["a"].tolist() == ["react", "plan", "verify"]
    assert (frame["statistic"] > 0).all()  # base errs most


def small(**columns):
    """Two methods, a and b, on three tasks: FED and T of each in order."""
    rows = {"task_id": list("xyz") * 2, "method": ["a"] * 3 + ["b"] * 3, "length": 3, "fed": 4, **columns}
    return Rollouts(pd.DataFrame(rows))


def quiet(runs, **options):
    """All tests without the warning that unpaired ones give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurvexecWarning)
        return survival_tests(runs, **{"tests": list(TESTS), **options})


def test_tasks_of_one_side_are_left_out_and_listed():
    runs = small(fed=[1, 2, 4, 2, 4, 4])
    missing = Rollouts(runs.frame.drop(index=5))
    result = quiet(missing)
    assert result.frame["n_tasks"].tolist() == [2] * 5
    assert result.frame["n_rollouts"].tolist() == [4] * 5
    assert any("a - b: 1 of the tasks are not on all sides and are left out: z" in note for note in result.notes)


def test_without_a_common_task_paired_tests_refuse_and_unpaired_ones_take_all():
    runs = small(task_id=list("uvwxyz"), fed=[1, 2, 4, 2, 4, 4])
    with pytest.raises(PairingError, match=r"a - b have no task in common.*'u'.*'x'"):
        survival_tests(runs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = survival_tests(runs, tests=["prentice_wilcoxon", "log_rank"])
    assert result.frame["test"].tolist() == ["log_rank"]
    assert result.frame["n_rollouts"].tolist() == [6]
    assert any("no task in common" in note for note in result.notes)


def test_a_rollout_without_a_call_is_never_at_risk():
    without = small(length=[3, 3, 0, 3, 3, 3], fed=[1, 4, 1, 4, 2, 4])
    frame = quiet(without).frame
    assert frame["basis"].str.contains("2 + 3 at depth 1; 1 + 0 made no call", regex=False).all()
    got = frame.set_index(["test", "cause"])["statistic"]
    kept = without.frame.drop(index=2)
    depth = kept[["fed", "length"]].min(axis=1)
    alone = log_rank(depth, kept["fed"] <= kept["length"], kept["method"])
    assert got["log_rank", "error"] == pytest.approx(alone.statistic)


def test_gray_by_class_tests_each_class_that_occurs_in_order_of_priority():
    runs = small(fed=[1, 2, 4, 2, 3, 4], error_class=["dependency", "schema", None, None, "schema", None])
    frame = quiet(runs, tests="gray", by_class=True).frame
    assert frame["cause"].tolist() == ["schema", "dependency", "unclassified", "finish"]
    assert frame["events"].tolist() == [2, 1, 1, 2]


def test_truncation_is_censored_but_finishing_competes_in_gray():
    fed, cut = [2, 4, 4, 4, 4, 4], ["completed", "truncated", "truncated", "completed", "truncated", "completed"]
    frame = quiet(small(fed=fed, ending=cut), tests="gray").frame.set_index("cause")
    assert frame["events"].to_dict() == {"error": 1, "finish": 2}


def test_rho_reaches_the_weighted_tests_alone(paired):
    flat, early = quiet(paired).frame, quiet(paired, rho=1).frame
    changed = (flat["statistic"] != early["statistic"]).groupby(flat["test"]).any()
    assert changed.to_dict() == {
        "gray": True, "log_rank": True, "log_rank_by_task": True, "prentice_wilcoxon": False
    }  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "statistic", "p_value", "told"),
    [
        ({}, np.nan, np.nan, "no events"),
        ({"fed": 1}, 0, 1, "no event tells the sides apart"),
        ({"length": 0, "fed": 1}, np.nan, np.nan, "no events"),
        ({"fed": 1, "length": 1}, 0, 1, "no event tells the sides apart"),
    ],
)
def test_without_information_the_outcome_says_so(columns, statistic, p_value, told):
    result = quiet(small(**columns))
    frame = result.frame[result.frame["cause"] == "error"]
    assert len(frame) == 4
    assert frame["statistic"].tolist() == pytest.approx([statistic] * 4, nan_ok=True)
    assert frame["p_value"].tolist() == pytest.approx([p_value] * 4, nan_ok=True)
    assert sum(note.endswith(told) for note in result.notes) >= 4


def test_one_rollout_a_side_is_tested_and_called_rough():
    runs = Rollouts(pd.DataFrame({"task_id": ["x", "x"], "method": ["a", "b"], "length": [2, 3], "fed": [1, 4]}))
    result = quiet(runs)
    assert result.frame["n_rollouts"].tolist() == [2] * 5
    assert any("5 of 5 tests rest on fewer than 5 events" in note for note in result.notes)
    with pytest.raises(InputError, match="nothing to compare"):
        survival_tests(Rollouts(runs.frame.head(1)))


def test_several_trials_are_noted_where_a_test_takes_them_as_independent(clustered):
    assert any("several rollouts of a task are taken as independent" in note for note in quiet(clustered).notes)
    assert not any("independent" in note for note in survival_tests(clustered).notes)


@given(rollouts(methods=3))
def test_any_table_is_tested_or_refused_without_a_warning(runs):
    try:
        result = quiet(runs, by_class=True)
    except InputError as error:
        assert "nothing to compare" in str(error) or "no task in common" in str(error)  # noqa: PT017
        return
    p = result.frame["p_value"]
    assert p.dropna().between(0, 1).all()
    assert (p.isna() == result.frame["statistic"].isna()).all()
    for row in result.frame[p.isna()].itertuples():
        sides = f"{row.a} - {row.b}" if row.b else row.a
        assert any(note.startswith(f"{sides}: {TESTS[row.test]}") for note in result.notes)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"tests": ["cox"]}, "test 'cox' is unknown; there are: prentice_wilcoxon"),
        ({"tests": []}, "tests is empty"),
        ({"rho": -1}, "rho = -1; it must be 0 or more"),
        ({"by_class": True}, "by_class is for the test 'gray'"),
        ({"baseline": "nobody"}, "baseline 'nobody' is no method"),
        ({"between": "agent"}, "'agent' is no column"),
        ({"within": "method"}, "cannot also be in within"),
    ],
)
def test_wrong_options_are_refused_by_name(paired, options, match):
    with pytest.raises(InputError, match=match):
        survival_tests(paired, **options)


def test_each_place_has_its_own_family_of_pairs_with_all_before_them(paired):
    two = pd.concat([paired.frame.assign(benchmark=name) for name in ("one", "two")])
    frame = quiet(Rollouts(two), within="benchmark", tests="log_rank").frame
    assert frame.columns.tolist() == ["benchmark", *COLUMNS]
    assert frame["benchmark"].tolist() == ["one"] * 7 + ["two"] * 7
    assert frame["a"].tolist()[::7] == ["all", "all"]
    assert frame["statistic"].tolist()[:7] == frame["statistic"].tolist()[7:]
    together = quiet(paired, within=(), tests="log_rank").frame
    assert together.columns.tolist() == COLUMNS
    assert together["statistic"].tolist() == frame["statistic"].tolist()[:7]


@pytest.mark.slow
def test_the_paired_test_holds_its_size_and_the_unpaired_log_rank_wastes_it():
    # two equal methods; tasks differ much in how hard they are
    rng = np.random.default_rng(7)
    runs, tasks, length = 1500, 80, 12
    side, task = np.repeat([0, 1], tasks), np.tile(np.arange(tasks), 2)
    hits = {"paired": 0, "unpaired": 0}
    for _ in range(runs):
        hazard = 1 / (1 + np.exp(2.5 - 3 * rng.standard_normal(tasks)))
        fed = np.minimum(rng.geometric(np.tile(hazard, 2)), length + 1)
        depth, erred = np.minimum(fed, length), fed <= length
        hits["paired"] += paired_prentice_wilcoxon(depth, erred, side, task).p_value < 0.05
        hits["unpaired"] += log_rank(depth, erred, side).p_value < 0.05
    assert 0.035 < hits["paired"] / runs < 0.065
    assert hits["unpaired"] / runs < 0.015
