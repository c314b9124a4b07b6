"""Layers and losses on few elements: machine code gives the bits that NumPy's calls give."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.graph import Interpreter
from funct.kernels import neural
from funct.kernels.cpu import neural as cpu
from funct.kernels.cpu.loops import available
from funct.kernels.elementwise import functions as elementwise
from funct.kernels.elementwise.thresholds import MANY
from funct.kernels.table import restricted
from funct.nn import functional
from tests.kernels.arrays import agree

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")

_EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 100.0, -100.0, 1e-40]


def _images(x: Any) -> Any:
    return np.stack((x[:, :36], -x[:, :36]))  # two, and no more than few elements


Call = Callable[[Any], Any]
CALLS: dict[str, Call] = {
    "softmax": lambda x: neural.softmax(x, -1),
    "log_softmax": lambda x: neural.log_softmax(x, -1),
    "softmax of columns": lambda x: neural.softmax(x, 0),
    "log_softmax of columns": lambda x: neural.log_softmax(x, 0),
    "softmax of columns of images": lambda x: neural.softmax(_images(x), 1),
    "log_softmax of columns of images": lambda x: neural.log_softmax(_images(x), -2),
    "sigmoid": elementwise.sigmoid,
    "silu": neural.silu,
    "gelu": lambda x: neural.gelu(x, "tanh"),
    "layer_norm": lambda x: neural.layer_norm(x, x.shape[-1:], x[0], x[-1]),
    "layer_norm without weights": lambda x: neural.layer_norm(x, x.shape[-1:]),
    "cross_entropy": lambda x: neural.cross_entropy(x, np.arange(len(x)) % x.shape[1]),
    "nll_loss": lambda x: neural.nll_loss(x, np.arange(len(x)) % x.shape[1], reduction="none"),
    "avg_pool1d": lambda x: neural.avg_pool_of(1)(x, 2, 1),
    "max_pool1d": lambda x: neural.max_pool_of(1)(x, 3),
    "avg_pool2d": lambda x: neural.avg_pool_of(2)(x[None], 3, 2),
    "max_pool2d": lambda x: neural.max_pool_of(2)(x[None], 2),
}


def _arrays(dtype: Any) -> list[Any]:
    rng = np.random.default_rng(3)
    found = [rng.normal(size=s) * 4 for s in ((1, 1), (3, 4), (4, 9), (2, 131), (7, 73), (30, 8))]
    found += [rng.choice(_EDGES, (12, 10)), rng.normal(size=(9, 5)).T, rng.normal(size=(8, 6))[::2]]
    return [x.astype(dtype) for x in found]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CALLS)
def test_code_has_the_bits_of_numpy(name: str, dtype: Any) -> None:
    """Short and long rows, special values, other layouts."""
    for x in _arrays(dtype):
        with np.errstate(all="ignore"):
            found = CALLS[name](x)
            with restricted():
                expected = CALLS[name](x)
        assert (found is None) is (expected is None)
        if found is not None:
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(found, expected)
            number = found == found
            assert (np.signbit(found) == np.signbit(expected))[number].all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "sigmoid", "silu", "gelu", "softplus"])
def test_more_have_the_bits_of_the_ops_they_are_made_of(name: str, dtype: Any) -> None:
    """From MANY elements on functions are code of our own, in the layer as in its ops."""
    every = {"softmax": ((-1,), (0,)), "log_softmax": ((-1,), (0,)), "gelu": (("tanh",),)}
    for shape, given in product(((1, MANY), (7, 300), (300, 7)), every.get(name, ((),))):

        def layer(x: Any, given: Any = given) -> Any:
            return getattr(functional, name)(x, *given)

        x = xp.asarray(np.random.default_rng(3).normal(size=shape).astype(dtype) * 4)
        (expected,) = Interpreter(ft.make_graph(layer)(x)).run(x)
        np.testing.assert_array_equal(np.asarray(layer(x)), np.asarray(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_index_leaves_its_array(dtype: Any) -> None:
    """The kernels as Python, with every index checked, give what they give compiled."""
    x, rows, n = np.random.default_rng(0).normal(size=60).astype(dtype), 6, 10
    y, e = np.zeros_like(x), np.zeros_like(x)
    labels = np.arange(rows, dtype=np.int32)
    agree(cpu.softmax, x, y, rows, n)
    agree(cpu.log_softmax, x, y, e, rows, n)
    agree(cpu.softmax_of_columns, x, y, 3, 4, 5)
    agree(cpu.log_softmax_of_columns, x, y, np.zeros_like(x), 3, 4, 5)
    agree(cpu.layer_norm, x, x[:n], x[n : 2 * n], y, e[:n], rows, n, 1e-5, True, True)
    agree(cpu.sigmoid, x, y, 60, False)
    agree(cpu.softplus, x, y, 60, 2.0, 1.0)
    agree(cpu.gelu, x, y, 60)
    for total in ("none", "mean", "sum"):
        room = np.zeros(rows if total == "none" else 1, dtype)
        agree(cpu.class_loss, x, labels, room, np.zeros(120, dtype), rows, n, True, total)
        agree(cpu.class_loss, x, labels, room, np.zeros(rows, dtype), rows, n, False, total)


def test_classes_that_are_not_there_are_left_to_the_composition() -> None:
    """It says which index is wrong."""
    x = np.zeros((2, 3))
    for labels in ([0, 3], [-1, 0], [-100, 0]):
        assert neural.nll_loss(x, np.asarray(labels)) is None
