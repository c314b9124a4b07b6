"""Where the windows of a pooling lie, with torch's rule for ceil_mode."""

from __future__ import annotations

from typing import Any

from funct.errors import ArgumentError
from funct.nn.functional.arguments import Ints, Sizes, batched, per_axis

__all__ = ["pooled_windows"]


def pooled_windows(
    name: str, x: Any, rank: int, kernel_size: Ints, stride: Ints | None, padding: Ints,
    dilation: Ints, ceil_mode: bool,
) -> tuple[Any, bool, Sizes, Sizes, Sizes, Sizes, Sizes]:  # fmt: skip
    """Batched x, whether it was unbatched, window, stride, padding, dilation, ceil-mode extra."""
    x, added = batched(name, x, rank)
    window = per_axis(name, "kernel_size", kernel_size, rank)
    empty = stride is None or stride == () or stride == []
    strides = window if empty else per_axis(name, "stride", stride, rank)  # type: ignore[arg-type]
    pads = per_axis(name, "padding", padding, rank, 0)
    dilations = per_axis(name, "dilation", dilation, rank)
    if any(p > (d * (k - 1) + 1) // 2 for p, d, k in zip(pads, dilations, window, strict=True)):
        raise ArgumentError(
            f"{name}: padding must be at most half the kernel {window}, got {padding!r}"
        )
    each = zip(x.shape[2:], window, strides, pads, dilations, strict=True)
    extra = tuple([_ceil_extra(*a) for a in each]) if ceil_mode else (0,) * rank
    return x, added, window, strides, pads, dilations, extra


def _ceil_extra(n: int, k: int, s: int, p: int, d: int) -> int:
    """High padding beyond p that lets one more window in, where torch lets it in."""
    span = d * (k - 1) + 1
    count = -(-(n + 2 * p - span) // s) + 1
    if (count - 1) * s >= n + p:  # the last window would begin in the right padding
        count -= 1
    return max((count - 1) * s + span - (n + 2 * p), 0)
