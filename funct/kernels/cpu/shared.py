"""Functions that are code of their own: kernels call them, of which code is made once for a dtype.

What a kernel calls otherwise is printed into it, each time. Where the loops that take the time are
few, and many kernels need them, the rest of these costs a third as much to make if it is `lean`.

    @shared(arrays=("x", "y"), writes=("y",))
    def copied(x, y, at, n):
        for i in range(at, at + n):
            y[i] = x[i]
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.device.machine_code import offer
from funct.device.printed import printed
from funct.kernels.cpu.printer import function
from funct.kernels.cpu.vectors import INT, Pointer, Shared, element

__all__ = ["shared"]

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


def shared(
    arrays: tuple[str, ...], writes: tuple[str, ...],
    text: Callable[[str, str], str] | None = None,
) -> Callable[[Callable[..., Any]], Shared]:  # fmt: skip
    """Make a function one that kernels share: of arrays of one dtype, and ints. It may give one.

    arrays: which parameters are arrays. writes: which of them it writes into. text: what prints the
    code by its name and LLVM's short one of the elements, where that is more than the function
    says.
    """

    def make(fn: Callable[..., Any]) -> Shared:
        made = Shared(fn, arrays, writes)
        for dtype in _DTYPES:  # code kept on disk may want it
            offer(made.name(dtype), functools.partial(_address, made, dtype, text))
        return made

    return make


@functools.cache
def _address(
    shared: Shared, dtype: np.dtype[Any], text: Callable[[str, str], str] | None
) -> int:
    name = shared.name(dtype)
    if text is not None:
        return printed(text, name, f"f{8 * dtype.itemsize}").keep().address(name)
    given = [Pointer("", element(dtype)) if p in shared.arrays else INT for p in shared.parameters]
    return printed(function, name, shared.fn, tuple(given)).keep().address(name)
