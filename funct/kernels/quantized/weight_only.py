"""Numbers times weights of 8 or 4 bits with a scale for each group of inputs.

    y[..., o] = Σ_g scale[o, g] Σ_(i in g) x[..., i] code[o, i]

Codes are int8 (O, I), or uint8 (O, I / 2): two signed 4-bit codes to a byte, the first one low
(ONNX's packing).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels import table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes

__all__ = ["fits", "pack", "plain_weight_only_linear", "steps", "weight_only_linear"]


def fits(x: Sizes, codes: Sizes, dtype: np.dtype[Any], scale: Sizes) -> bool:
    """Whether shapes are those of one layer."""
    if not (len(codes) == len(scale) == 2 and x and scale[0] == codes[0] and scale[1]):
        return False
    inputs = codes[1] * (2 if dtype == np.uint8 else 1)
    return bool(x[-1] == inputs and inputs % scale[1] == 0 and codes[1] % scale[1] == 0)


def pack(steps: NDArray[Any]) -> NDArray[np.uint8]:
    """Signed 4-bit codes (O, I), as whole numbers, two to a byte."""
    nibbles = steps.astype(np.int8).view(np.uint8) & 15
    return nibbles[:, ::2] | np.left_shift(nibbles[:, 1::2], 4, dtype=np.uint8)


def steps(codes: NDArray[Any]) -> NDArray[np.int8]:
    """The codes (O, I), one by one."""
    if codes.dtype == np.int8:
        return codes
    halves = codes.view(np.int8)
    return np.stack([halves << 4 >> 4, halves >> 4], axis=-1).reshape(len(codes), -1)


def weight_only_linear(x: NDArray[Any], codes: NDArray[Any], scale: NDArray[Any]) -> NDArray[Any]:
    """x @ w.T of float numbers and codes.

    Args:    x: (..., I). codes: (O, I) or packed. scale: (O, groups), of the dtype of x.
    Returns: (..., O), of the dtype of x.
    Raises:  ValueError: for shapes or dtypes that do not fit.
    """
    if not (
        x.dtype == scale.dtype
        and codes.dtype in (np.uint8, np.int8)
        and fits(x.shape, codes.shape, codes.dtype, scale.shape)
    ):
        raise ValueError(
            f"weight_only_linear: x {x.shape} {x.dtype}, codes {codes.shape} {codes.dtype} and "
            f"scale {scale.shape} {scale.dtype} do not fit"
        )
    work = 2 * x.size * len(codes)
    y: NDArray[Any] = table.call("weight_only_linear", x.dtype, work, x, codes, scale)
    return y


def plain_weight_only_linear(
    x: NDArray[Any], codes: NDArray[Any], scale: NDArray[Any]
) -> NDArray[Any]:
    """`weight_only_linear` with the weights in the dtype of x."""
    outputs, groups = scale.shape
    inputs = x.shape[-1]
    weights = steps(codes).reshape(outputs, groups, inputs // groups) * scale[:, :, None]
    y: NDArray[Any] = x @ weights.reshape(outputs, inputs).T
    return y
