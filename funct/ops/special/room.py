"""The decorator of this folder: an elementwise room whose values are SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from funct.core import Absent, Lowering, Value
from funct.kernels.special.functions import by_name
from funct.ops.families import RuleLike, Samples, elementwise

__all__ = ["room", "wide"]

P = ParamSpec("P")

_NO_ONNX = Absent("ONNX has no operator for this function; Erf is its only special function")
_NO_CODE = Absent("the loop compiler has no such function")


def wide(x: Value) -> bool:
    """Whether x has the digits of float64: series of fewer terms are exact in the others."""
    return x.dtype in (np.float64, np.complex128)


def room(
    raw: str | Callable[..., Any],
    *rules: RuleLike,
    samples: Samples,
    onnx: str | Lowering | Absent = _NO_ONNX,
    code: str | Absent = _NO_CODE,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """`elementwise` for a kernel, or for SciPy's function of a name, one rule per operand."""
    kernel = by_name(raw, len(rules)) if isinstance(raw, str) else raw
    typed = len(rules) > 1
    return elementwise(kernel, *rules, onnx=onnx, samples=samples, code=code, typed=typed)
