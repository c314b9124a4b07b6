"""What opt_einsum asks the package of an array's class for: `funct` has these three names for it.

So `opt_einsum.contract` takes Tensors and handles, traced or not, without a registration; xarray's
`dot` and `weighted` go through it where it is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["einsum", "tensordot", "transpose"]


def einsum(subscripts: str, /, *operands: Any) -> Any:
    """`einsum` of the first operand's namespace."""
    return operands[0].__array_namespace__().einsum(subscripts, *operands)


def tensordot(x: Any, y: Any, /, axes: Any = 2) -> Any:
    """`tensordot` of x's namespace."""
    return x.__array_namespace__().tensordot(x, y, axes=axes)


def transpose(x: Any, /, axes: Sequence[int]) -> Any:
    """`permute_dims` of x's namespace."""
    return x.__array_namespace__().permute_dims(x, tuple(axes))
