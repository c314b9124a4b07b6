"""Arrays one behind the other along an axis: `concat` of any number of them, in compiled code.

The catalogue's `concat` takes two, so that its rules are two. Whoever copies, or stores what loops
compute, wants to see all parts at once.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from funct.core import Primitive, ShapeDtype, lookup, variant
from funct.graph import Node
from funct.ops import concat

__all__ = ["concat_of", "is_concat"]


def concat_of(count: int) -> Primitive:
    """`concat` of so many operands."""
    two = lookup("concat")
    assert two is not None
    if count == 2:
        return two
    operands = tuple([f"x{k}" for k in range(count)])
    changes: Any = {"operands": operands, "raw": _joined, "aval": _aval}
    return variant(two, f"concat_{count}", _folded, **changes)


def is_concat(e: Node) -> bool:
    """Whether a node is `concat`, of whatever number of arrays."""
    return e.primitive.raw is _joined or e.name == "concat"


def _folded(*given: Any) -> Any:
    *parts, axis = given
    return functools.reduce(lambda x, y: concat(x, y, axis), parts)


def _joined(*given: Any) -> Any:
    return np.concatenate(given[:-1], given[-1])


def _aval(args: Any, params: Any) -> ShapeDtype:
    (axis,), first = params, args[0].shape
    length = sum([a.shape[axis] for a in args])
    return ShapeDtype((*first[:axis], length, *first[axis + 1 :]), args[0].dtype)
