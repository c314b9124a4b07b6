"""The logistic function of draws, by operations that round as those of NumPy's arrays.

Step by step what `kernels/random/elementary.py` and `shares.py` beside it do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.random.elementary import LEAST, reduced

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["share"]


def share(e: Emitter, x: Value) -> Value:
    """1 / (1 + exp(-x)) of float64, within 2 ulp; of float32 that, rounded once more."""
    if x.type.element != "f64":
        return e.convert(share(e, e.convert(x, "f64")), x.type.element)
    power = _exp(e, e.max(-e.abs(x), LEAST))
    y = e.select(x < 0, power, 1.0) / (power + 1.0)
    return e.select(e.isnan(x), x, y)


def _exp(e: Emitter, x: Value) -> Value:
    y, n = reduced(x)
    twos = e.convert(n, "i64")
    half = twos >> 1  # in two steps: the result may be subnormal
    y = y * e.bitcast((half + 1023) << 52, x.type)
    return y * e.bitcast((twos - half + 1023) << 52, x.type)
