"""The exponential of small matrices in bodies of loops: scaling and squaring around one quotient.

The halvings and the squarings are loops, which end when no matrix of the stack needs another one. A
matrix is computed in double precision. Source: Higham, "The scaling and squaring method for the
matrix exponential revisited" (2005), whose approximant of order 13 serves all matrices here; SciPy,
which eager execution asks, has several, and errs by far more units in the last place where norms
are large.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from funct import ops
from funct.compile.forms import Inner, Repeat
from funct.compile.rewriting.new_nodes import Known
from funct.core import Absent, ShapeDtype, Value, join, lookup, top_level
from funct.graph import Control, Node, Var, capture

__all__ = ["exponential"]

_MOST = 32  # rows; the rest is for BLAS, and SciPy takes fewer products of a small norm
_NEAR = 5.371920351148152  # the largest norm of which the quotient is exact
_TERMS = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0,
    960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_WIDE = {"f": np.dtype(np.float64), "F": np.dtype(np.complex128)}


def exponential(e: Node, known: Known) -> Callable[..., Any] | None:
    """The function of one operand that gives the results of a node; None where it stays."""
    x, n = e.operands[0], e.results[0].shape[-1]
    if not isinstance(x, Var) or n > _MOST or x.dtype.char not in "fdFD":
        return None
    return _expm


def _expm(x: Value) -> tuple[Any]:
    narrow = x.dtype
    x = ops.astype(x, _WIDE[narrow.char]) if narrow.char in _WIDE else x
    lead, n = x.shape[:-2], x.shape[-1]
    norm = ops.reduce_max(ops.reduce_sum(ops.abs(x), (len(lead),), False), (len(lead),), False)
    count = ops.multiply(norm, 0.0)
    x, _, count = _repeated(_halved, _is_far, (x, norm, count))
    y, _ = _repeated(_squared, _is_left, (_quotient(x, np.eye(n, dtype=x.dtype)), count))
    return (ops.astype(y, narrow) if y.dtype != narrow else y,)


def _of_each(v: Any) -> Any:
    """A number of each matrix, for all of its elements."""
    return ops.reshape(v, (*v.shape, 1, 1))


def _halved(x: Any, norm: Any, count: Any) -> tuple[Any, Any, Any]:
    far = ops.greater(norm, _NEAR)
    factor = ops.where(far, 0.5, 1.0)
    more = ops.add(count, ops.where(far, 1.0, 0.0))
    return ops.multiply(x, _of_each(factor)), ops.multiply(norm, factor), more


def _is_far(x: Any, norm: Any, count: Any) -> tuple[Any]:
    return (_any(ops.logical_and(ops.greater(norm, _NEAR), ops.less(norm, np.inf))),)


def _squared(y: Any, count: Any) -> tuple[Any, Any]:
    again = ops.greater(count, 0.0)
    return ops.where(_of_each(again), ops.matmul(y, y), y), ops.subtract(count, 1.0)


def _is_left(y: Any, count: Any) -> tuple[Any]:
    return (_any(ops.greater(count, 0.0)),)


def _any(mask: Any) -> Any:
    if not mask.shape:
        return mask
    numbers = ops.where(mask, 1.0, 0.0)
    return ops.greater(ops.reduce_max(numbers, tuple(range(len(mask.shape))), False), 0.0)


def _quotient(x: Any, one: Any) -> Any:
    """The approximant: q(-x)⁻¹ q(x)."""
    square = ops.matmul(x, x)
    fourth = ops.matmul(square, square)
    sixth = ops.matmul(square, fourth)
    powers = (square, fourth, sixth)

    def sums(first: int) -> Any:
        """Terms of every second power, in Horner's form of the sixth."""
        low, high = _TERMS[first : first + 8 : 2], _TERMS[first + 8 :: 2]
        inner = functools.reduce(ops.add, map(ops.multiply, powers, high))
        outer = functools.reduce(ops.add, map(ops.multiply, powers, low[1:]))
        return ops.add(ops.add(ops.matmul(sixth, inner), outer), low[0] * one)

    odd, even = ops.matmul(x, sums(1)), sums(0)
    return ops.solve(ops.subtract(even, odd), ops.add(even, odd))


def _repeated(
    step: Callable[..., Any], test: Callable[..., Any], carry: Sequence[Any]
) -> tuple[Any, ...]:
    """The carry after as many steps as the test asks for, as one node."""
    avals = tuple([ShapeDtype(v.shape, v.dtype) for v in carry])
    (body, _), (asked, _) = (capture(f, avals) for f in (step, test))
    plain = lookup("stop_gradient")
    assert plain is not None
    fields = {a.name: getattr(plain, a.name) for a in attrs.fields(type(plain)) if a.init}
    none = Absent("it is part of a program")
    fields |= {
        "name": "while", "operands": tuple([f"x{k}" for k in range(len(carry))]),
        "rules": (none,) * len(carry), "results": len(carry), "aval": lambda args, params: avals,
    }  # fmt: skip
    kind = Inner(Repeat(body, 0, len(carry), None, asked))
    loop = Control(**fields, bodies=(("body", body), ("test", asked)), kind=kind)
    join(loop, plain.fn)  # which nobody calls
    found: tuple[Any, ...] = top_level(carry).run(loop, tuple(carry), ())
    return found
