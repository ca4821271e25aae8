"""Audit of published tables: what rounding means, which rows are possible, what they leave open, who is to blame."""

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import survexec as sx
from survexec.errors import InputError
from survexec.statistics.audit import COLUMNS, audit
from survexec.statistics.published import read_published

PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper"
SHARES = ("ter", "rr", "s", "success", "success_after_error")
HEAD = "n,ter,rr_eligible,rr,success\n"


def measured(length, fed, success, depths=4):
    """Every number of a cohort that a paper prints, as fractions; None for 0/0."""
    n, clean = len(fed), fed > length
    c, q, r = int(clean.sum()), int((success & clean).sum()), int((success & ~clean).sum())
    area = sum(Fraction(int(f - 1), int(t)) if t else Fraction(1) for t, f in zip(length, fed, strict=True))

    def share(part, whole):
        return Fraction(part, whole) if whole else None

    return {
        "ter": share(c, n), "mean_fed": share(int(fed.sum()), n), "auc_pec": area / n, "rr": share(r, n - c),
        "s": share(q, c), "success": share(q + r, n), "success_after_error": share(r, q + r),
        **{f"pec_{k}": share(int((fed > k).sum()), n) for k in range(1, depths + 1)},
    }, {"clean": c, "rr_eligible": n - c, "recovered": r, "clean_success": q, "successes": q + r}  # fmt: skip


def cohort(rng, n=None):
    """A random cohort, some rollouts of which call nothing."""
    n = n or int(rng.integers(20, 60))
    length = rng.integers(0, 10, n)
    fed = np.minimum(rng.geometric(rng.uniform(0.05, 0.4), n), length + 1)
    return length, fed, rng.random(n) < np.where(fed > length, rng.uniform(0.3, 1), rng.uniform(0, 0.9))


def half_up(value, places=2):
    """A fraction as printed when halves go up."""
    return "" if value is None else f"{(int(value * 10**places + Fraction(1, 2))) / 10**places:.{places}f}"


def half_even(value, places=2):
    """A fraction as printed when halves go to the even digit."""
    return "" if value is None else f"{round(value * 10**places) / 10**places:.{places}f}"


def printed(cohort_, rounding=half_up):
    """The row that a paper would print, as text."""
    numbers, counts = measured(*cohort_)
    row = {name: rounding(value) for name, value in numbers.items()}
    return {"n": str(len(cohort_[0])), "rr_eligible": str(counts["rr_eligible"]), **row}


def test_the_worked_case_of_the_paper_leaves_138_or_139_recovered():
    frame = audit(HEAD + "200,0.05,190,0.73,0.74\n").frame.set_index("quantity")
    assert frame.loc["recovered", ["lower", "upper"]].tolist() == [138, 139]
    assert frame.loc["clean", ["lower", "upper"]].tolist() == [10, 10]
    # 138 recovered and 10 clean successes, as the paper states: 93.2%; 139 of 147 at the other end
    assert frame.loc["success_after_error", ["lower", "upper"]].tolist() == pytest.approx([138 / 148, 139 / 147])
    assert frame.loc["s", ["lower", "upper"]].tolist() == [0.8, 1.0]
    assert tuple(audit(HEAD + "200,0.05,190,0.73,0.74\n").frame.columns) == COLUMNS


@pytest.mark.skipif(not PAPER.exists(), reason="the published tables are not here")
@pytest.mark.parametrize(("name", "rows"), [("table_main", 24), ("table_tau3", 6), ("table_pec_at_k", 10)])
def test_every_row_of_the_paper_is_possible(name, rows):
    columns = {"n": "200"} if name == "table_pec_at_k" else None
    verdicts = audit(PAPER / f"{name}.csv", columns=columns).verdicts
    assert len(verdicts) == rows
    assert verdicts["consistent"].all()


@pytest.mark.parametrize("rounding", [half_up, half_even])
def test_a_true_cohort_is_consistent_and_within_the_ranges(rounding):
    rng = np.random.default_rng(1)
    cohorts = [cohort(rng) for _ in range(200)]
    found = audit(pd.DataFrame([printed(c, rounding) for c in cohorts]))
    assert found.verdicts["consistent"].all()
    ends = {(row.row, row.quantity): (row.lower, row.upper) for row in found.frame.itertuples()}
    for at, one in enumerate(cohorts, 1):
        numbers, counts = measured(*one)
        for name, value in {**numbers, **counts}.items():
            if value is not None:
                low, high = ends[at, name]
                assert low - 1e-9 <= value <= high + 1e-9, (at, name)


def test_one_cell_moved_by_three_hundredths_is_caught_and_named():
    rng = np.random.default_rng(2)
    rows, moved = [], []
    while len(rows) < 200:
        row = printed(cohort(rng))
        names = [name for name in (*SHARES, "pec_1", "pec_2") if row[name] and 0.03 <= float(row[name]) <= 0.97]
        if not names:
            continue
        name = str(rng.choice(names))
        row[name] = f"{float(row[name]) + rng.choice([-0.03, 0.03]):.2f}"
        rows.append(row)
        moved.append(name)
    verdicts = audit(pd.DataFrame(rows)).verdicts
    caught = ~verdicts["consistent"]
    assert caught.mean() >= 0.9
    suspected = [
        m in v.suspects.split(", ") for m, v in zip(moved, verdicts.itertuples(), strict=True) if not v.consistent
    ]
    assert np.mean(suspected) == 1.0


def test_in_large_cohorts_the_moved_cell_is_named_first_where_three_others_vouch():
    rng = np.random.default_rng(3)
    for _ in range(20):
        row = printed(cohort(rng, 400))
        row["success"] = f"{float(row['success']) - 0.03:.2f}"
        verdict = audit(pd.DataFrame([row])).verdicts.iloc[0]
        assert not verdict["consistent"]
        assert verdict["culprit"] == "success"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 7), st.booleans()), min_size=1, max_size=30), st.data())
def test_no_subset_of_a_true_cohort_is_ever_flagged(rollouts, data):
    length, fed, success = (np.array(column) for column in zip(*rollouts, strict=True))
    row = printed((length, np.minimum(fed, length + 1), success), data.draw(st.sampled_from([half_up, half_even])))
    kept = data.draw(st.sets(st.sampled_from([name for name in row if name != "n" and row[name]]), min_size=1))
    assert audit(pd.DataFrame([{"n": row["n"], **{name: row[name] for name in kept}}])).verdicts["consistent"].all()


@pytest.mark.parametrize("kept", [("ter", "rr", "success"), ("success", "success_after_error"), ("s", "rr", "success")])
def test_ranges_of_a_small_cohort_are_those_of_every_cohort_that_prints_so(kept):
    n = 7
    counts = [
        (c, r, q) for c in range(n + 1) for r in range(n - c + 1) for q in range(c + 1)
    ]  # clean, recovered, clean successes: all cohorts as far as success goes

    def numbers(c, r, q):
        parts = {"ter": (c, n), "rr": (r, n - c), "s": (q, c), "success": (r + q, n), "success_after_error": (r, r + q)}
        return {name: Fraction(*part) if part[1] else None for name, part in parts.items()}

    for c, r, q in [(3, 2, 2), (5, 0, 4), (1, 4, 1), (6, 1, 3)]:
        target = {name: half_up(numbers(c, r, q)[name], 1) for name in kept}
        fits = []
        for one in counts:
            values = numbers(*one)
            if all(values[k] is not None and abs(values[k] - Fraction(target[k])) <= Fraction(1, 20) for k in kept):
                fits.append((one, values))
        frame = audit(pd.DataFrame([{"n": n, **target}]), decimals=1).frame.set_index("quantity")
        for at, name in enumerate(["clean", "recovered", "clean_success"]):
            expected = [min(one[at] for one, _ in fits), max(one[at] for one, _ in fits)]
            assert frame.loc[name, ["lower", "upper"]].tolist() == expected, name
        for name in SHARES:
            values = [float(v[name]) for _, v in fits if v[name] is not None]
            assert frame.loc[name, ["lower", "upper"]].tolist() == pytest.approx([min(values), max(values)]), name


def test_the_area_bound_is_the_best_of_every_cohort():
    n, lengths = 3, range(5)
    kinds = [(t, f) for t in lengths for f in range(1, t + 2)]
    best = {}
    for rollouts in product(kinds, repeat=n):
        clean = sum(f > t for t, f in rollouts)
        area = sum(Fraction(f - 1, t) if t else Fraction(1) for t, f in rollouts)
        key = (clean, sum(f for _, f in rollouts))
        best[key] = max(best.get(key, Fraction(0)), area)
    for (clean, total), area in best.items():
        if total > 6:
            continue  # longer rollouts than those enumerated could do better
        row = {"n": n, "rr_eligible": n - clean, "mean_fed": f"{total / n:.8f}"}
        frame = audit(pd.DataFrame([row])).frame.set_index("quantity")
        assert frame.loc["auc_pec", "upper"] == pytest.approx(float(area / n)), (clean, total)


def test_a_rounded_edge_belongs_to_both_of_its_neighbours():
    # 139 of 200 = 0.695 prints as 0.69 (half to even, or binary) or as 0.70
    table = HEAD + "200,0.69,61,,\n200,0.70,61,,\n200,0.68,61,,\n"
    assert audit(table).verdicts["consistent"].tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("row", "culprit", "gap"),
    [
        ("200,0.72,61,0.00,0.61", "ter", 0.02),
        ("200,0.70,60,0.50,0.99", "success", 0.99 - 0.005 - (140 + 30) / 200),
    ],
)
def test_made_up_rows_are_caught_with_how_far_they_are(row, culprit, gap):
    verdict = audit(HEAD + row + "\n").verdicts.iloc[0]
    assert not verdict["consistent"]
    assert verdict["culprit"] == culprit
    assert verdict["gap"] == pytest.approx(gap, abs=1e-4)
    assert verdict["explanation"]
    assert verdict["contradiction"]


def test_the_distance_is_that_of_the_nearest_possible_value():
    # 14 or 15 of 20: 0.70 and 0.75, so 0.73 is 0.015 from 0.745, the least that prints as what 15 of 20 gives
    verdict = audit("n,ter\n20,0.73\n").verdicts.iloc[0]
    assert verdict["gap"] == pytest.approx(0.015)
    assert "at least 0.75" in verdict["explanation"]


def test_a_share_of_nothing_cannot_have_been_printed():
    verdict = audit("n,ter,rr_eligible,rr\n20,1.00,0,0.00\n").verdicts.iloc[0]
    assert not verdict["consistent"]
    assert verdict["culprit"] == "rr"
    assert np.isnan(verdict["gap"])
    assert "RR is 0/0" in verdict["explanation"]


def test_depths_that_rise_and_areas_below_ter_are_caught():
    found = audit("n,ter,auc_pec,pec_1,pec_2\n100,0.50,0.40,,\n100,,,0.50,0.60\n100,0.50,0.60,0.60,0.50\n")
    assert found.verdicts["consistent"].tolist() == [False, False, True]
    assert found.verdicts["contradiction"].tolist() == ["ter, auc_pec", "pec_1, pec_2", ""]


def test_a_culprit_at_the_deepest_depth_may_be_anything_up_to_the_depth_before():
    found = audit("n,pec_1,pec_2\n40,0.60,0.51\n")
    assert found.verdicts["culprit"].tolist() == ["pec_2"]  # 0.51 is no count of 40
    assert found.frame.set_index("quantity").loc["pec_2", ["lower", "upper"]].tolist() == [0, 0.6]


def test_a_depth_moved_to_what_another_cohort_would_print_is_no_contradiction():
    # PEC(1) of 200 rollouts may as well have been 0.93: the audit finds contradictions, not errors
    table = "n,ter,mean_fed,auc_pec,pec_1\n200,0.69,5.61,0.83,0.95\n200,0.69,5.61,0.83,0.92\n"
    assert audit(table).verdicts["consistent"].all()


def test_two_faults_of_one_row_are_both_named():
    row = "n,ter,rr_eligible,pec_1,pec_2\n100,0.90,50,0.50,0.60\n"
    verdict = audit(row).verdicts.iloc[0]
    assert len(verdict["culprit"].split(", ")) == 2
    assert np.isnan(verdict["gap"])


LATEX = r"""
\begin{table}[t]
\caption{Results}
\begin{tabular}{ll@{\hspace{3pt}}rrr}
\toprule
Model & Method & $N$ & TER $\uparrow$ & \textbf{RR-eligible} & RR (\%) & Success \\
\midrule
\multirow{2}{*}{gpt\_a} & plan & 200 & \textbf{0.05} & 190 & 73\% & 0.74 \\
 & react & 200 & 0.37 & 126 & 1 & 0.27 \\ % a comment & 3
\cmidrule(lr){1-2}
\multicolumn{7}{l}{\emph{weaker}} \\
gpt\_b & plan & 200 & 0.09 & 182 & 57 & {0.56} \\
\bottomrule
\end{tabular}
\end{table}
"""


def test_a_latex_table_is_read_as_its_csv_would_be():
    rows = read_published(LATEX).rows
    assert [row.cell[1:] for row in rows] == [("gpt_a", "plan"), ("gpt_a", "react"), ("gpt_b", "plan")]
    assert [row.n for row in rows] == [200, 200, 200]
    assert [row.printed["ter"].value for row in rows] == [0.05, 0.37, 0.09]
    assert [row.printed["rr"].value for row in rows] == pytest.approx([0.73, 0.01, 0.57])
    assert audit(LATEX).verdicts["consistent"].all()


def test_a_markdown_table_that_survexec_prints_is_read_back_and_consistent():
    summary = sx.summarize(sx.datasets.load_tau_retail_methods(), by="method", resamples=100)
    found = audit(summary.to_markdown())
    truth = summary.frame.set_index(["method", "metric"])["estimate"]
    assert found.verdicts["method"].tolist() == list(dict.fromkeys(summary.frame["method"]))
    assert found.verdicts["consistent"].all()
    eligible = found.frame[found.frame["quantity"] == "rr_eligible"]
    assert eligible["lower"].tolist() == [truth[m, "rr_eligible"] for m in eligible["method"]]


def test_a_latex_table_with_its_intervals_below_is_read_back_too():
    methods = ["tool_calling", "tool_calling_preconditions"]
    runs = sx.datasets.load_tau_retail_methods().select(method=methods)
    found = audit(sx.summarize(runs, by="method", resamples=100).to_latex(), columns={"n": "100"})
    assert found.verdicts["method"].tolist() == methods
    assert found.verdicts["consistent"].all()
    clean = found.frame[found.frame["quantity"] == "clean"]
    assert clean["lower"].tolist() == [77, 80]


def test_a_frame_whose_zeros_were_dropped_keeps_the_decimals_of_its_column():
    cell = read_published(pd.DataFrame({"n": [200, 200], "ter": [0.9, 0.95]})).rows[0].printed["ter"]
    assert (cell.lower / cell.unit, cell.upper / cell.unit) == (0.895, 0.905)
    cell = read_published("n,ter\n200,0.90\n").rows[0].printed["ter"]
    assert (cell.lower / cell.unit, cell.upper / cell.unit) == (0.895, 0.905)


def test_percentages_are_shares_with_two_more_decimals():
    cell = read_published("n,TER (%)\n200,94.5\n").rows[0].printed["ter"]
    assert (cell.lower / cell.unit, cell.upper / cell.unit) == (0.9445, 0.9455)


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        ("n,valid\n200,0.5\n", None, "no column of published numbers"),
        ("ter\tx\n0.5\t1\n", None, "no column with the number of rollouts"),
        ("n,ter\n200,high\n", None, "row 1: ter = 'high'"),
        ("n,ter\n0,0.5\n", None, "n = '0'"),
        ("n,ter\n200,-0.5\n", None, "between 0 and 1"),
        ("n,ter\n200,0.5\n200,1.5\n200,0.1\n", None, "row 2: ter = '1.5'"),
        ("n,valid\n200,0.5\n", {"ter": "vald"}, "did you mean 'valid'"),
        ("n,valid\n200,0.5\n", {"tre": "valid"}, "'tre' is no quantity"),
        ("n,ter,ter\n200,0.5,0.5\n", None, "stands twice"),
        ("n,rr_eligible\n200,3.5\n", None, "it must be a count"),
        ("no_such_file.csv", None, "there is no such file"),
        ("\n\n", None, "no table"),
        (7, None, "table is a int"),
    ],
)
def test_a_table_that_cannot_be_read_says_what_would_be_right(table, columns, message):
    with pytest.raises(InputError, match=message):
        audit(table, columns=columns)


def test_what_nothing_bounds_has_no_upper_end():
    frame = audit("n,ter\n20,0.50\n").frame.set_index("quantity")
    assert frame.loc["mean_fed", "lower"] == 1
    assert np.isnan(frame.loc["mean_fed", "upper"])
    assert frame.loc["rr", ["lower", "upper"]].tolist() == [0, 1]


def test_columns_can_be_named_and_n_given():
    found = audit("who,valid\nx,0.05\n", columns={"ter": "valid", "method": "who", "n": "200"})
    assert found.verdicts["method"].tolist() == ["x"]
    assert found.frame.set_index("quantity").loc["clean", ["lower", "upper"]].tolist() == [9, 11]
