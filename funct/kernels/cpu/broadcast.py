"""Arrays that hold an element many times, with a stride of 0."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

__all__ = ["distinct"]


def distinct(x: NDArray[Any]) -> NDArray[Any]:
    """The array with one element of each that lies there once: what holds of all holds of these.

    Who looks through an operand before it asks for memory looks through this, or what is refused in
    the end is looked through for hours.
    """
    once = [slice(1) if step == 0 else slice(None) for step in x.strides]
    return x[tuple(once)]
