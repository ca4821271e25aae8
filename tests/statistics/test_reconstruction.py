"""Cohorts from published aggregates: every printed number met, bounds equal to enumeration, nothing paired."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special

import survexec as sx
from survexec.errors import InputError, PairingError
from survexec.statistics.estimands import CURVES
from survexec.statistics.pairing_bounds import Side, unpaired
from survexec.statistics.reconstruction import BOUNDS, COLUMNS, reconstruct
from survexec.statistics.tally import count

PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper"
N, H = 5, 3
KINDS = [(t, f) for t in range(H + 1) for f in range(1, t + 2)]
TABLE = """method,n,ter,mean_fed,auc_pec,rr_eligible,rr,success,pec_1,pec_2
react,200,0.69,5.61,0.83,61,0.00,0.61,0.95,0.90
plan,200,0.05,1.96,0.15,190,0.73,0.74,,
dual,200,0.94,6.41,0.96,12,0.00,0.94,0.98,
"""


def share(part, whole):
    return Fraction(part) / whole if whole else None


def numbers(rollouts, recovered, clean_success):
    """Every quantity of a cohort given as (T, FED) pairs and counts of successes."""
    n, clean = len(rollouts), sum(f > t for t, f in rollouts)
    found = {
        "clean": clean, "rr_eligible": n - clean, "recovered": recovered, "clean_success": clean_success,
        "successes": recovered + clean_success, "ter": share(clean, n), "rr": share(recovered, n - clean),
        "s": share(clean_success, clean), "success": share(recovered + clean_success, n),
        "success_after_error": share(recovered, recovered + clean_success),
        "mean_fed": share(sum(f for _, f in rollouts), n), "mean_length": share(sum(t for t, _ in rollouts), n),
        "auc_pec": share(sum(Fraction(f - 1, t) if t else Fraction(1) for t, f in rollouts), n),
    }  # fmt: skip
    km = Fraction(1)
    for k in range(1, H + 1):
        reached, risk = sum(t >= k for t, _ in rollouts), sum(t >= k and f >= k for t, f in rollouts)
        error = sum(f == k <= t for t, f in rollouts)
        alive = sum(f > k for _, f in rollouts)
        km *= 1 - (share(error, risk) or 0)
        found |= {("pec", k): share(alive, n), ("pec_elig", k): share(alive, reached)}
        found |= {("hazard", k): share(error, risk), ("km", k): km}
    return found


@pytest.fixture(scope="module")
def everything():
    """Every cohort of five rollouts of up to three calls, with every count of successes."""
    out = []
    for rollouts in combinations_with_replacement(KINDS, N):
        clean = sum(f > t for t, f in rollouts)
        depths = numbers(rollouts, 0, 0)
        for r, q in product(range(N - clean + 1), range(clean + 1)):
            y = {
                "recovered": r, "clean_success": q, "successes": r + q, "rr": share(r, N - clean), "s": share(q, clean),
                "success": share(r + q, N), "success_after_error": share(r, r + q),
            }  # fmt: skip
            out.append(depths | y)
    return out


def text(value, places=1):
    """As printed, halves up."""
    return f"{int(value * 10**places + Fraction(1, 2)) / 10**places:.{places}f}"


CASES = {
    "ter and FED": (("ter", "mean_fed"), ([(2, 3), (3, 4), (3, 1), (1, 2), (2, 2)], 1, 2)),
    "all of the main table": (
        ("ter", "mean_fed", "auc_pec", "rr", "success"),
        ([(3, 4), (3, 3), (2, 1), (3, 2), (1, 2)], 2, 1),
    ),
    "success alone": (("success",), ([(3, 4), (3, 3), (2, 1), (3, 2), (1, 2)], 2, 1)),
    "PEC and AUC-PEC": (("auc_pec", ("pec", 1), ("pec", 3)), ([(3, 4), (3, 4), (3, 3), (1, 1), (2, 3)], 0, 3)),
    "no error": (("ter", "mean_fed"), ([(1, 2), (3, 4), (2, 3), (2, 3), (3, 4)], 0, 4)),
    "no call": (("mean_fed", "success_after_error"), ([(0, 1), (0, 1), (1, 1), (0, 1), (2, 2)], 1, 2)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_bounds_are_those_of_every_cohort_that_prints_so(case, everything):
    names, truth = case
    truth = numbers(*truth)
    half = Fraction(1, 20)
    row = {name if isinstance(name, str) else f"pec_{name[1]}": text(truth[name]) for name in names}
    shown = {name: Fraction(row[name if isinstance(name, str) else f"pec_{name[1]}"]) for name in names}
    fits = [
        one for one in everything
        if all(one[name] is not None and abs(one[name] - value) <= half for name, value in shown.items())
    ]  # fmt: skip
    made = reconstruct(pd.DataFrame([{"n": N, **row}]), horizon=H, decimals=1)
    assert made.frame["met"].all()
    for name in truth:
        quantity, k = name if isinstance(name, tuple) else (name, None)
        at = made.bounds(quantity, k).frame.iloc[0]
        values = [float(one[name]) for one in fits if one[name] is not None]
        if not values:
            assert np.isnan(at["lower"]), name
            continue
        if at["sharp"]:
            assert [at["lower"], at["upper"]] == pytest.approx([min(values), max(values)]), name
        else:
            assert quantity == "km"
            assert at["lower"] <= min(values) + 1e-9
            assert at["upper"] >= max(values) - 1e-9


def test_bounds_of_eight_rollouts_are_those_of_every_cohort():
    kinds = [(t, f) for t in (1, 2) for f in range(1, t + 2)]
    truth = numbers([(1, 2), (2, 3), (2, 3), (2, 1), (2, 2), (1, 1), (2, 3), (1, 2)], 2, 4)
    row = {"n": 8, "auc_pec": f"{float(truth['auc_pec']):.2f}", "mean_fed": f"{float(truth['mean_fed']):.2f}"}
    fits = [
        one
        for one in (numbers(rollouts, 0, 0) for rollouts in combinations_with_replacement(kinds, 8))
        if all(abs(one[name] - Fraction(row[name])) <= Fraction(1, 200) for name in ("auc_pec", "mean_fed"))
    ]
    made = reconstruct(pd.DataFrame([row]), horizon=(1, 2))
    assert made.frame["met"].all()
    for name in ("ter", "mean_length", "auc_pec", ("pec", 1), ("pec_elig", 2), ("hazard", 2), ("km", 1)):
        at = made.bounds(*(name if isinstance(name, tuple) else (name,))).frame.iloc[0]
        values = [float(one[name]) for one in fits if one[name] is not None]
        assert [at["lower"], at["upper"]] == pytest.approx([min(values), max(values)]), name


@pytest.fixture(scope="module")
def made():
    return reconstruct(TABLE, horizon=10)


def prints(frame, row):
    """Whether the rollouts of a cell print a row of text, told anew from their definitions."""
    rollouts = list(zip(frame["length"], frame["fed"], strict=True))
    clean = frame["fed"] > frame["length"]
    found = numbers(rollouts, int(frame.loc[~clean, "success"].sum()), int(frame.loc[clean, "success"].sum()))
    for name, value in row.items():
        if value == "" or name in ("method", "n"):
            continue
        true = Fraction(int((frame["fed"] > int(name[4:])).sum()), len(frame)) if name[:4] == "pec_" else found[name]
        half = 0 if name == "rr_eligible" else Fraction(1, 200)
        if abs(true - Fraction(value)) > half:
            return False
    return len(frame) == int(row["n"])


def rows_of(table):
    head, *lines = (line.split(",") for line in table.split())
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_the_representative_meets_every_printed_number_exactly(made):
    assert made.frame["met"].all()
    assert tuple(made.frame.columns) == COLUMNS
    for row in rows_of(TABLE):
        assert prints(made.rollouts.select(method=row["method"]).frame, row)


@pytest.mark.slow
@pytest.mark.skipif(not PAPER.exists(), reason="the published tables are not here")
def test_every_row_of_the_paper_has_a_cohort():
    key = ["benchmark", "model", "method"]
    main, depths = (pd.read_csv(PAPER / f"{name}.csv", dtype=str) for name in ("table_main", "table_pec_at_k"))
    table = main.merge(depths, how="left", on=key).fillna("")
    found = reconstruct(table)
    assert found.frame["met"].all()
    for row in table.to_dict("records"):
        cell = {name: row.pop(name) for name in key}
        assert prints(found.rollouts.select(**cell).frame, row)


def test_draws_meet_every_printed_number_and_depend_on_the_seed_alone():
    first, again, other = (reconstruct(TABLE, horizon=10, rng=seed, draw=True) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first.rollouts.frame, again.rollouts.frame)
    assert not first.rollouts.frame.equals(other.rollouts.frame)
    for found in (first, other):
        for row in rows_of(TABLE):
            assert prints(found.rollouts.select(method=row["method"]).frame, row)


def test_a_draw_of_a_row_does_not_depend_on_the_rows_after_it():
    head, first, *_ = TABLE.splitlines()
    alone = reconstruct(f"{head}\n{first}\n", rng=1, draw=True, horizon=9).rollouts.frame
    among = reconstruct(TABLE, rng=1, draw=True, horizon=9).rollouts.select(method="react").frame
    pd.testing.assert_frame_equal(alone, among)


def test_greatest_entropy_is_flat_where_nothing_but_ter_is_printed():
    frame = reconstruct("n,rr_eligible\n600,300\n", horizon=(1, 2)).rollouts.frame
    many = frame.groupby(["length", "fed"]).size()
    # two clean kinds and three with an error: (1,1), (2,1), (2,2)
    assert many.to_dict() == {(1, 1): 100, (1, 2): 150, (2, 1): 100, (2, 2): 100, (2, 3): 150}


def test_success_nobody_printed_is_missing():
    found = reconstruct("n,ter,mean_fed\n50,0.60,2.00\n")
    assert found.rollouts.frame["success"].isna().all()
    assert np.isnan(found.frame["recovered"].iloc[0])
    assert found.bounds("success").frame[["lower", "upper"]].iloc[0].tolist() == [0, 1]


def test_everything_made_of_it_says_that_it_is_reconstructed(made):
    assert set(made.rollouts.frame["source"]) == {"reconstructed"}
    results = [sx.summarize(made.rollouts, resamples=100), sx.curves(made.rollouts, resamples=100), made]
    for result in (*results, made.bounds("s"), made.difference_bounds("ter", "dual", "plan")):
        assert any("reconstructed" in note for note in result.notes), result.kind


def test_rollouts_of_two_methods_cannot_be_paired(made):
    assert len(made.rollouts.tasks[1]) == len(made.rollouts)
    with pytest.raises(PairingError):
        sx.compare(made.rollouts, between="method", within=("benchmark", "model"), resamples=100)


def test_the_bounds_hold_the_cohort_itself_and_the_printed_numbers(made):
    total = count(made.rollouts, depth=5).total
    km, pec = (CURVES[name](total) for name in ("km", "pec"))
    for k in (1, 3):
        for curve, name in ((km, "km"), (pec, "pec")):
            frame = made.bounds(name, k).frame
            assert tuple(frame.columns) == BOUNDS
            assert (frame["lower"] <= curve[:, k] + 1e-9).all()
            assert (frame["upper"] >= curve[:, k] - 1e-9).all()
    recovered = made.bounds("recovered").frame.set_index("method")
    assert recovered.loc["plan", ["lower", "upper"]].tolist() == [138, 139]


def test_mean_length_moves_with_the_horizon():
    row = "n,ter,mean_fed\n50,0.50,2.00\n"
    near, far = (reconstruct(row, horizon=h).bounds("mean_length").frame.iloc[0] for h in (6, 12))
    assert far["upper"] == pytest.approx(near["upper"] + 3)  # half of the rollouts err, and may go on
    assert far["lower"] == near["lower"]


def test_a_row_without_a_cohort_is_named_with_its_reason():
    found = reconstruct("n,ter,rr_eligible,mean_fed\n50,0.50,25,2.00\n50,0.50,10,2.00\n50,0.50,25,90.0\n", horizon=8)
    assert found.frame["met"].tolist() == [True, False, False]
    assert len(found.rollouts) == 50
    assert any(note.startswith("row 2: no cohort: TER = 0.50, RR-eligible = 10") for note in found.notes)
    assert any(note.startswith("row 3: no cohort: no rollouts of 0 to 8 calls") for note in found.notes)
    assert found.bounds("ter").frame["lower"].isna().tolist() == [False, True, True]


def test_a_table_without_any_cohort_gives_no_rollouts():
    found = reconstruct("n,ter,rr_eligible\n50,0.50,10\n")
    assert len(found.rollouts) == 0
    assert not found.frame["met"].any()


def test_errors_over_pairings_are_those_of_every_table_of_pairs():
    n, x, y = 6, 4, 3
    seen = []
    for both in range(max(0, x + y - n), min(x, y) + 1):
        pairs = np.array([0] * both + [1] * (x - both) + [-1] * (y - both) + [0] * (n - x - y + both))
        seen.append(pairs.std(ddof=1) / np.sqrt(n))
    found = unpaired(Side(n, (x, x), (x, x), True), Side(n, (y, y), (y, y), True), 0.95)
    assert [found["se_lower"], found["se_upper"]] == pytest.approx([min(seen), max(seen)])
    t = special.stdtrit(n - 1, 0.975)
    assert found["upper"] == pytest.approx(min((x - y) / n + t * max(seen), 1))
    independent = np.sqrt((x / n * (1 - x / n) + y / n * (1 - y / n)) / (n - 1))
    assert found["se_independent"] == pytest.approx(independent)


def test_the_error_of_means_is_within_its_bounds_for_every_pairing():
    rng = np.random.default_rng(5)
    a, b = rng.integers(1, 7, 30).astype(float), rng.integers(1, 9, 30).astype(float)
    sides = [Side(30, (v.sum(), v.sum()), ((v**2).sum(), (v**2).sum()), False) for v in (a, b)]
    found = unpaired(*sides, 0.95)
    for second in (np.sort(b), np.sort(b)[::-1], *(rng.permutation(b) for _ in range(20))):
        error = (np.sort(a) - second).std(ddof=1) / np.sqrt(30)
        assert found["se_lower"] - 1e-12 <= error <= found["se_upper"] + 1e-12
    assert found["se_independent"] == pytest.approx(np.hypot(a.std(ddof=1), b.std(ddof=1)) / np.sqrt(30))


def test_differences_of_the_worked_case(made):
    found = made.difference_bounds("ter", "dual", "plan").frame.iloc[0]
    assert found["difference_lower"] == found["difference_upper"] == pytest.approx((188 - 10) / 200)
    assert 0 < found["se_lower"] < found["se_independent"] < found["se_upper"]
    assert found["lower"] > 0.8
    found = made.difference_bounds("mean_fed", "dual", "plan").frame.iloc[0]
    assert found["difference_lower"] == pytest.approx(4.44)
    assert found["difference_upper"] == pytest.approx(4.46)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda made: made.bounds("tre"), "must be one of"),
        (lambda made: made.bounds("pec"), "at least 1"),
        (lambda made: made.bounds("ter", 2), "of no depth"),
        (lambda made: made.difference_bounds("rr", "dual", "plan"), "a difference over pairings"),
        (lambda made: made.difference_bounds("ter", "dual", "dual"), "no two rows"),
        (lambda made: made.difference_bounds("ter", "dual", "plam"), "methods are: react, plan, dual"),
        (lambda made: made.difference_bounds("ter", "dual", "plan", within="method"), "benchmark and model"),
        (lambda made: reconstruct(TABLE, horizon=0), "horizon = 0"),
        (lambda made: reconstruct(TABLE, horizon=(5, 2)), "horizon"),
    ],
)
def test_a_wrong_argument_says_what_would_be_right(made, call, message):
    with pytest.raises(InputError, match=message):
        call(made)
