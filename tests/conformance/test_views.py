"""Functions that move no element give views of the same immutable buffer, in constant time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct.array as xp

VIEWS: dict[str, Callable[[Any], Any]] = {
    "permute_dims": lambda x: xp.permute_dims(x, (2, 0, 1)),
    "matrix_transpose": xp.matrix_transpose,
    "mT": lambda x: x.mT,
    "slice": lambda x: x[:, 1::2],
    "negative step": lambda x: x[::-1],
    "integer": lambda x: x[1],
    "integers and slices": lambda x: x[1, :, 0],
    "newaxis": lambda x: x[:, None],
    "expand_dims": lambda x: xp.expand_dims(x, axis=1),
    "squeeze": lambda x: xp.squeeze(x[:1], axis=0),
    "broadcast_to": lambda x: xp.broadcast_to(x, (5, 2, 3, 4)),
    "broadcast_arrays": lambda x: xp.broadcast_arrays(x, xp.zeros((5, 1, 1, 1)))[0],
    "flip": lambda x: xp.flip(x, axis=1),
    "moveaxis": lambda x: xp.moveaxis(x, 0, -1),
    "unstack": lambda x: xp.unstack(x, axis=1)[0],
    "reshape": lambda x: xp.reshape(x, (6, 4)),
    "asarray": xp.asarray,
    "astype": lambda x: xp.astype(x, x.dtype, copy=False),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str) -> None:
    """The result lies in the operand's buffer."""
    x = xp.reshape(xp.arange(24), (2, 3, 4))
    assert np.shares_memory(np.asarray(VIEWS[name](x)), np.asarray(x))


def test_layout_is_kept() -> None:
    """Strides are NumPy's, and asarray, copies and DLPack keep them."""
    a = np.asfortranarray(np.ones((2, 3)))
    x = xp.asarray(a)
    assert x.strides == a.strides
    assert not x.is_contiguous()
    assert x.T.is_contiguous()
    assert np.asarray(x).strides == a.strides
    assert np.from_dlpack(x).strides == a.strides
    assert np.array(x).strides == a.strides
    assert xp.broadcast_to(x, (4, 2, 3)).strides == (0, *a.strides)


def test_constants_take_no_memory() -> None:
    """zeros, ones and full of any size are one element."""
    for x in (xp.zeros((10**6, 10**6)), xp.ones((10**12,)), xp.full((10**5, 10**9), 2)):
        assert set(x.strides) == {0}
