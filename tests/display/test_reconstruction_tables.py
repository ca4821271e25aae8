"""Tables of audits and reconstructions: what they say, that they say what they are, in every markup."""

import re
from dataclasses import replace

import numpy as np
import pytest

from survexec.display.markup import html_table, latex, markdown
from survexec.display.reconstruction_tables import GRIDS, span
from survexec.display.wording import number
from survexec.statistics.audit import audit
from survexec.statistics.reconstruction import reconstruct

NASTY = "a|b_c$%&#{}~^\\<script>alert(1)</script>"
TABLE = """benchmark,method,n,ter,rr_eligible,rr,success
shop,plan,200,0.05,190,0.73,0.74
shop,dual,200,0.94,12,0.00,0.94
shop,wrong,200,0.50,190,0.73,0.74
shop,clean,50,1.00,0,,0.90
"""


def text_of(table):
    """Cells of a grid as text."""
    return [[f"{cell.text} {cell.small}".strip() for cell in row.cells] for row in table.rows]


@pytest.fixture(scope="module")
def results():
    return everything(TABLE, "plan", "dual")


def everything(table, a, b):
    made = reconstruct(table, horizon=6)
    return {
        "audit": audit(table),
        "reconstruction": made,
        "reconstruction_bounds": made.bounds("s"),
        "difference_bounds": made.difference_bounds("success", a, b),
    }


def test_an_audit_names_the_counts_and_the_culprit(results):
    grid = GRIDS["audit"](results["audit"])
    rows = text_of(grid)
    assert grid.header[:3] == ("Row", "Method", "Consistent")
    assert rows[0] == ["1", "plan", "yes", "10", "138 to 139", "147 to 149", "0.800 to 1.000", "0.932 to 0.946"]
    assert rows[2][2].startswith("no: TER (by 0.4")
    assert "shop" in grid.caption


def test_an_undefined_share_is_a_dash_that_the_foot_explains():
    grid = GRIDS["audit"](audit("n,rr_eligible,success\n20,20,0.00\n"))
    assert text_of(grid)[0][-2:] == ["–", "–"]
    assert "undefined (0/0)" in grid.foot


def test_a_cohort_is_shown_in_counts_and_a_missing_one_as_dashes(results):
    rows = text_of(GRIDS["reconstruction"](results["reconstruction"]))
    assert rows[1][:5] == ["2", "dual", "200", "188", "12"]
    assert rows[2][3:] == ["–"] * 7 + ["no"]


def test_every_table_of_a_reconstruction_says_so(results):
    for kind, result in results.items():
        if kind != "audit":
            assert "reconstructed" in GRIDS[kind](result).caption


def test_bounds_round_outwards(results):
    rows = text_of(GRIDS["reconstruction_bounds"](results["reconstruction_bounds"]))
    assert rows[1] == ["2", "dual", "0.994 to 1.000", "–", "sharp"]  # 187/188 = 0.99468
    assert span(0.12345, 0.12355, 3) == "0.123 to 0.124"
    assert span(np.nan, np.nan, 3) == "–"


def test_a_difference_has_the_interval_of_any_pairing_and_the_independent_one(results):
    grid = GRIDS["difference_bounds"](results["difference_bounds"])
    (row,) = text_of(grid)
    frame = results["difference_bounds"].frame.iloc[0]
    assert f"[{number(frame['lower'], 3)}, {number(frame['upper'], 3)}]" in row
    assert grid.header[-2:] == ("Any pairing", "Independent")
    assert "dual" in grid.caption


def test_hostile_names_stay_text_in_every_markup():
    table = TABLE.replace("shop,plan", f"{NASTY},plan").replace("shop,dual", f"{NASTY},{NASTY}")
    for kind, result in everything(table, "plan", NASTY).items():
        grid = replace(GRIDS[kind](result), notes=tuple(result.notes))
        assert "<script>" not in html_table(grid)
        assert "\\toprule" in latex(grid)
        body = [line for line in markdown(grid).splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in body}) == 1, kind
