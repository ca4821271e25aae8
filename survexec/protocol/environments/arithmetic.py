"""Arithmetic in a call, judged before something evaluates it: a few characters can ask for years of work."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

_LONGEST: Final = 2_000  # characters
_LARGEST: Final = 10_000  # bits of a whole number; a float ends at 1,024
_OPERATORS: Final[dict[type, Callable[..., Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


class _TooLargeError(Exception):
    pass


def is_quick(expression: str) -> bool:
    """Whether an arithmetic expression is worked out, or found wrong, at once.

    Parameters
    ----------
    expression : str
        Numbers, parentheses and the operators ``+ - * / // **``; what is in it besides is found wrong at once.

    Returns
    -------
    bool
        False for a text of more than 2,000 characters, and where a whole number on the way may have more than 10,000
        bits: only powers can get there.

    Examples
    --------
    >>> is_quick("(1859 - 140) * 2 + 1.05 ** 12"), is_quick("1 +"), is_quick("9 ** 9 ** 9")
    (True, True, False)
    """
    if len(expression) > _LONGEST:
        return False
    if "**" not in expression:
        return True
    try:
        _value(ast.parse(expression.strip(), mode="eval").body)
    except _TooLargeError:
        return False
    except (ArithmeticError, LookupError, TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
        return True
    return True


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(operand=operand, op=sign):
            return _OPERATORS[type(sign)](_value(operand))
        case ast.BinOp(left=left, op=operation, right=right):
            return _applied(operation, _value(left), _value(right))
    raise TypeError("no arithmetic")


def _applied(operation: ast.operator, left: Any, right: Any) -> Any:
    whole = isinstance(left, int) and isinstance(right, int)
    if whole and isinstance(operation, ast.Pow) and left.bit_length() * right > _LARGEST and abs(left) > 1:
        raise _TooLargeError
    result = _OPERATORS[type(operation)](left, right)
    if isinstance(result, int) and result.bit_length() > _LARGEST:
        raise _TooLargeError
    return result
