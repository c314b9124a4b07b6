"""Padding layers: constants, zeros, mirror images, repeated borders, tilings."""

from __future__ import annotations

from typing import Any, ClassVar

from funct.errors import ArgumentError
from funct.nn import functional
from funct.nn.functional.arguments import Ints
from funct.nn.module import Module, static

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


def _both_sides(name: str, padding: Ints, rank: int) -> tuple[int, ...]:
    given = tuple(padding) if isinstance(padding, tuple | list) else (padding,) * (2 * rank)
    if len(given) != 2 * rank or any(n.__class__ is not int for n in given):
        raise ArgumentError(f"{name}: padding must be an int or {2 * rank} ints, got {padding!r}")
    return given


class _Pad(Module):
    """Padding of the last `rank` axes: an int for all sides, or (low, high) from the last axis."""

    rank: ClassVar[int]
    mode: ClassVar[str]

    padding: tuple[int, ...] = static()

    def __init__(self, padding: Ints) -> None:
        self.__attrs_init__(_both_sides(type(self).__name__, padding, self.rank))

    def __call__(self, x: Any) -> Any:
        """x with longer or shorter last axes. Raises: as `functional.pad`."""
        return functional.pad(x, self.padding, self.mode)


class _ConstantPad(Module):
    """Padding by a value."""

    rank: ClassVar[int]

    padding: tuple[int, ...] = static()
    value: float = static()

    def __init__(self, padding: Ints, value: float) -> None:
        self.__attrs_init__(_both_sides(type(self).__name__, padding, self.rank), value)

    def __call__(self, x: Any) -> Any:
        """x with longer or shorter last axes. Raises: as `functional.pad`."""
        return functional.pad(x, self.padding, "constant", self.value)


class ConstantPad1d(_ConstantPad):
    """Put value around the last axis.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ConstantPad1d((2, 1), 7.0)(xp.asarray([[1.0, 2.0]])).tolist()
        [[7.0, 7.0, 1.0, 2.0, 7.0]]
    """

    rank = 1


class ConstantPad2d(_ConstantPad):
    """Put value around the last two axes.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ConstantPad2d(1, 7.0)(xp.ones((1, 1, 1))).tolist()
        [[[7.0, 7.0, 7.0], [7.0, 1.0, 7.0], [7.0, 7.0, 7.0]]]
    """

    rank = 2


class ConstantPad3d(_ConstantPad):
    """Put value around the last three axes.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x = xp.ones((1, 2, 3, 4))
        >>> nn.ConstantPad3d((1, 1, 0, 0, 2, 0), 7.0)(x).shape  # from the last axis on
        (1, 4, 3, 6)
    """

    rank = 3


class ZeroPad1d(_Pad):
    """Put zeros around the last axis.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ZeroPad1d((2, 1))(xp.asarray([[1.0, 2.0]])).tolist()
        [[0.0, 0.0, 1.0, 2.0, 0.0]]
    """

    rank, mode = 1, "constant"


class ZeroPad2d(_Pad):
    """Put zeros around the last two axes.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ZeroPad2d((1, 0, 2, 0))(xp.ones((1, 1, 3, 3))).shape
        (1, 1, 5, 4)
    """

    rank, mode = 2, "constant"


class ZeroPad3d(_Pad):
    """Put zeros around the last three axes.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ZeroPad3d(1)(xp.ones((1, 2, 3, 4))).shape
        (1, 4, 5, 6)
    """

    rank, mode = 3, "constant"


class ReflectionPad1d(_Pad):
    """Mirror the last axis at its ends, without repeating them.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ReflectionPad1d(2)(xp.asarray([[1, 2, 3]])).tolist()
        [[3, 2, 1, 2, 3, 2, 1]]
    """

    rank, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Mirror the last two axes at their ends, without repeating them.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ReflectionPad2d((1, 0, 1, 0))(xp.asarray([[[1, 2], [3, 4]]])).tolist()
        [[[4, 3, 4], [2, 1, 2], [4, 3, 4]]]
    """

    rank, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Mirror the last three axes at their ends, without repeating them.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ReflectionPad3d(1)(xp.ones((1, 2, 3, 4))).shape
        (1, 4, 5, 6)
    """

    rank, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Repeat the ends of the last axis.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ReplicationPad1d(2)(xp.asarray([[1, 2, 3]])).tolist()
        [[1, 1, 1, 2, 3, 3, 3]]
    """

    rank, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Repeat the borders of the last two axes.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ReplicationPad2d((1, 0, 1, 0))(xp.asarray([[[1, 2], [3, 4]]])).tolist()
        [[[1, 1, 2], [1, 1, 2], [3, 3, 4]]]
    """

    rank, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Repeat the borders of the last three axes.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ReplicationPad3d(1)(xp.ones((1, 2, 3, 4))).shape
        (1, 4, 5, 6)
    """

    rank, mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Let the last axis go on at its other end.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.CircularPad1d(2)(xp.asarray([[1, 2, 3]])).tolist()
        [[2, 3, 1, 2, 3, 1, 2]]
    """

    rank, mode = 1, "circular"


class CircularPad2d(_Pad):
    """Let the last two axes go on at their other ends.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.CircularPad2d((1, 0, 1, 0))(xp.asarray([[[1, 2], [3, 4]]])).tolist()
        [[[4, 3, 4], [2, 1, 2], [4, 3, 4]]]
    """

    rank, mode = 2, "circular"


class CircularPad3d(_Pad):
    """Let the last three axes go on at their other ends.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.CircularPad3d(1)(xp.ones((1, 2, 3, 4))).shape
        (1, 4, 5, 6)
    """

    rank, mode = 3, "circular"
