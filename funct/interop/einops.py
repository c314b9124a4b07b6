"""einops on Tensors: after `import funct.interop.einops`, `einops.rearrange` and its kin take them.

einops asks every subclass of its `AbstractBackend` whether a tensor is its own, so the import is
the registration. (`einops.array_api` needs none of this.)

Example:
    >>> import einops, funct.array as xp, funct.interop.einops
    >>> einops.rearrange(xp.ones((2, 3, 4)), "b h w -> (h b) w").shape
    (6, 4)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from einops._backends import AbstractBackend

from funct.array import Tensor
from funct.core import FLOATING
from funct.interop import rebind

__all__ = ["FunctBackend"]


class FunctBackend(AbstractBackend):
    """Tensors, traced or not, and the handles of `rebind`; every op is the array's namespace's."""

    framework_name = "funct"

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Whether the tensor is one of ours."""
        return isinstance(tensor, Tensor | rebind.Array)

    def from_numpy(self, x: Any) -> Any:
        """A Tensor of an ndarray."""
        return rebind.wrap(x).unwrap()

    def to_numpy(self, x: Any) -> Any:
        """A read-only ndarray of a Tensor."""
        return x.__array__()

    def arange(self, start: int, stop: int) -> Any:
        """start, start + 1, … before stop."""
        return rebind.arange(start, stop).unwrap()

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """The elements in another shape."""
        return x.__array_namespace__().reshape(x, tuple(shape))

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        """The axes in another order."""
        return x.__array_namespace__().permute_dims(x, tuple(axes))

    def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
        """max, min, sum, mean, prod, any or all over axes."""
        return getattr(x.__array_namespace__(), operation)(x, axis=tuple(axes))

    def stack_on_zeroth_dimension(self, tensors: Sequence[Any]) -> Any:
        """Tensors of one shape along a new first axis."""
        return tensors[0].__array_namespace__().stack(tensors)

    def tile(self, x: Any, repeats: Sequence[int]) -> Any:
        """x repeated along each axis."""
        return x.__array_namespace__().tile(x, tuple(repeats))

    def concat(self, tensors: Sequence[Any], axis: int) -> Any:
        """Tensors one after the other."""
        return tensors[0].__array_namespace__().concat(tensors, axis=axis)

    def is_float_type(self, x: Any) -> bool:
        """Whether a mean of x makes sense."""
        return x.dtype in FLOATING

    def add_axis(self, x: Any, new_position: int) -> Any:
        """x with an axis of length 1."""
        return x.__array_namespace__().expand_dims(x, new_position)

    def einsum(self, pattern: str, *x: Any) -> Any:
        """Sums of products in einsum's notation."""
        return x[0].__array_namespace__().einsum(pattern, *x)
