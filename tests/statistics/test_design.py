"""Formulas become columns without being evaluated; coefficients that the data do not bound are found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from survexec.errors import InputError
from survexec.statistics.design import Factor, build, finite_part, parse

NAMES = ("method", "model", "depth")


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("method", [(), ("method",)]),
        ("depth+method", [(), ("depth",), ("method",)]),
        ("method*depth", [(), ("method",), ("depth",), ("method", "depth")]),
        ("method:depth + method", [(), ("method",), ("method", "depth")]),
        ("method*depth - depth", [(), ("method",), ("method", "depth")]),
        ("method - 1", [("method",)]),
        ("0 + method", [("method",)]),
        ("method + method:method", [(), ("method",)]),
        ("depth:method + method:depth", [(), ("depth", "method")]),
        ("1", [()]),
    ],
)
def test_a_formula_means_what_it_means_in_r(formula, terms):
    assert list(parse(formula, NAMES)) == terms


@given(st.text(max_size=20))
def test_any_text_is_terms_of_known_names_or_refused(text):
    try:
        terms = parse(text, NAMES)
    except InputError:
        return
    assert {name for term in terms for name in term} <= set(NAMES)


def crossed() -> dict[str, Factor]:
    return {
        "method": Factor("method", ("a", "b", "c"), np.repeat(np.eye(3), 2, axis=0)),
        "depth": Factor("depth", ("1", "2"), np.tile(np.eye(2), (3, 1))),
    }


@pytest.mark.parametrize(
    ("formula", "columns"),
    [
        ("method + depth", 4),
        ("method*depth", 6),
        ("method:depth - 1", 6),
        ("method + method:depth", 6),
        ("depth - 1", 2),
    ],
)
def test_the_columns_span_what_the_formula_says(formula, columns):
    design = build(parse(formula, NAMES), crossed(), 6)
    assert design.matrix.shape == (6, columns)
    assert np.linalg.matrix_rank(design.matrix) == columns


def test_terms_and_labels_name_level_and_reference():
    design = build(parse("method*depth", NAMES), crossed(), 6)
    assert design.terms == (
        "intercept", "method[b]", "method[c]", "depth[2]", "method[b]:depth[2]", "method[c]:depth[2]",
    )  # fmt: skip
    assert design.labels[1:5] == ("b vs a", "c vs a", "depth 2 vs 1", "b : depth 2")
    assert design.nuisance == (True, False, False, True, False, False)


def test_evidence_on_both_sides_bounds_a_coefficient():
    part = finite_part(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
    assert part.finite.all()
    assert not part.decided.any()
    assert np.array_equal(part.basis, np.eye(2))


def test_evidence_on_one_side_sends_a_coefficient_to_infinity():
    part = finite_part(np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, -1.0]]))
    assert part.finite.tolist() == [True, False]
    assert part.direction[1] < 0
    assert part.decided.tolist() == [False, False, True]


def test_a_difference_of_infinite_coefficients_can_be_bounded():
    """Neither coefficient is finite, their difference is: the basis keeps it."""
    part = finite_part(np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]))
    assert part.finite.tolist() == [False, False]
    assert part.basis.shape == (2, 1)
    assert part.basis[:, 0] @ [1, 1] == pytest.approx(0, abs=1e-12)


def test_a_column_made_up_of_earlier_ones_is_aliased():
    part = finite_part(np.array([[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]))
    assert part.aliased.tolist() == [False, True, False]
    assert part.finite.tolist() == [True, False, True]
