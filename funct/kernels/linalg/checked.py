"""What LAPACK is not given, and what it reports: ranks and dtypes that do not fit raise plain
ValueError and TypeError, what only the numbers show raises LinAlgError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np

from funct.errors import LinAlgError
from funct.kernels.cpu.broadcast import distinct
from funct.kernels.linalg.dots import vdot

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["fails_with", "is_complex", "need_finite", "need_matrix", "need_square"]

P = ParamSpec("P")
R = TypeVar("R")


def fails_with(text: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """What LAPACK reports about the numbers, as one typed error with this text."""

    def declare(kernel: Callable[P, R]) -> Callable[P, R]:
        call: Any = kernel

        @functools.wraps(kernel)
        def run(x: Any, /, *rest: Any) -> Any:
            try:
                return call(x, *rest) if rest else call(x)
            except np.linalg.LinAlgError:
                pass  # the typed error has no cause that says more
            raise LinAlgError(f"{kernel.__name__}: {text}")

        return cast("Callable[P, R]", run)

    return declare


def need_matrix(x: NDArray[Any]) -> None:
    """Raise unless it is a stack of matrices, of numbers that LAPACK knows."""
    if x.ndim < 2:
        raise ValueError("rank")
    if x.dtype.char not in "fdFD":
        raise TypeError("dtype")


def is_complex(x: NDArray[Any]) -> bool:
    """Of such numbers: whether they are complex."""
    return x.dtype.char in "FD"


def need_square(x: NDArray[Any]) -> None:
    """Raise unless it is a stack of square ones."""
    shape = x.shape
    if len(shape) < 2:
        raise ValueError("rank")
    if x.dtype.char not in "fdFD":
        raise TypeError("dtype")
    if shape[-1] != shape[-2]:
        raise ValueError("square")


def need_finite(x: NDArray[Any]) -> None:
    """Raise where LAPACK would not come to an end."""
    if 0 in x.strides:
        x = distinct(x)
    size = vdot(x, x)  # cheaper than looking at each, but large elements overflow
    if not abs(size) < np.inf and not np.isfinite(x).all():
        raise np.linalg.LinAlgError
