"""Arrays on devices: on a stand-in everywhere, and on a GPU where there is one."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import funct as ft
import funct.array as xp
from funct.core import Primitive
from funct.device import cuda
from funct.device.places import find_place
from funct.errors import (
    ArgumentError,
    ExchangeError,
    ImmutableError,
    MissingExtraError,
    ShapeError,
    UnsupportedOperandError,
)
from tests.array import far
from tests.array.far import Far
from tests.ops.test_catalogue import PRIMITIVES, call

far.register()

X = np.array([[0.3, -1.2, 2.0], [0.7, 0.1, -0.4]])

HAS_GPU = find_spec("cupy") is not None and "cuda:0" in map(
    str, xp.__array_namespace_info__().devices()
)


@pytest.fixture(
    params=[
        "far:0",
        pytest.param(
            "cuda:0", marks=pytest.mark.skipif(not HAS_GPU, reason="no CuPy, or no CUDA device")
        ),
    ]
)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """A device that is not the host."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ft.FallbackWarning)
        yield request.param


def near(x: Any) -> Any:
    """The elements as an ndarray."""
    return np.asarray(x.to_device("cpu"))


# What no device needs the host for: a GPU is of use only if these stay there.
STAYS = frozenset({
    "abs", "add", "all", "any", "argmax", "argmin", "astype", "broadcast_to", "cholesky", "concat",
    "cos", "cumulative_sum", "det", "divide", "eig", "eigh", "eigvals", "eigvalsh", "embed",
    "equal", "exp", "flip", "greater", "inv", "log", "matmul",
    "maximum", "minimum", "multiply", "negative", "permute_dims", "pow", "put", "qr", "reduce_max",
    "reduce_min", "reduce_prod", "reduce_sum", "relu", "reshape", "scatter_add", "sigmoid", "sign",
    "sin",
    "slice_", "slogdet", "solve", "sort", "sqrt", "square", "squeeze", "subtract", "svd", "svdvals",
    "take", "take_along_axis",
    "tanh", "where",
})  # fmt: skip


# Linear algebra by np.linalg, not by its loops: last bits depend on where in memory operands lie.
DENSE = {f"funct.ops.{name}" for name in ("decompositions", "least_squares", "solving", "spectra")}


@pytest.mark.parametrize("prim", PRIMITIVES, ids=lambda p: p.name)
def test_primitives_give_what_they_give_on_the_host(prim: Primitive, device: str) -> None:
    """Every primitive on its own samples: the same values, and they lie on the device."""
    for sample in prim.samples(np.random.default_rng(7)):
        fun, args = call(prim, sample)
        if prim.name == "to_device":
            fun = lambda x: prim.fn(x, device, device)  # noqa: E731
        want, got = fun(*args) if prim.name != "to_device" else args[0], None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got = fun(*[a.to_device(device) for a in args])
        told = [str(w.message) for w in caught if w.category is ft.FallbackWarning]
        assert not told or prim.name not in STAYS or device != "far:0", told
        assert not told or told[0].startswith(f"{prim.name}: computed on the host"), told
        ours = got if isinstance(got, tuple) else (got,)
        theirs = want if isinstance(want, tuple) else (want,)
        for g, w in zip(ours, theirs, strict=True):
            assert g.device == device
            assert (g.shape, g.dtype) == (w.shape, w.dtype)
            if device == "far:0" and prim.fn.__module__ not in DENSE:
                np.testing.assert_array_equal(near(g), np.asarray(w))
            elif w.dtype.kind in "biufc":
                np.testing.assert_allclose(near(g), np.asarray(w), rtol=1e-4, atol=1e-5)


def f(x: Any) -> Any:
    """A function of two axes with a sum, a product, an index and a selection."""
    y = xp.tanh(x) @ xp.matrix_transpose(x)
    return xp.sum(xp.where(y > 0.5, y * y, xp.exp(y))) + xp.sum(x[0, 1:] ** 3) + xp.max(x)


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "plain": f,
    "grad": ft.grad(f),
    "jvp": lambda x: ft.jvp(f, (x,), (x,))[1],
    "hessian": ft.hessian(f),
    "jacfwd": ft.jacfwd(lambda x: xp.sin(x) * xp.sum(x)),
    "vmap": ft.vmap(lambda v: v * xp.sum(v)),
    "per example": ft.vmap(ft.grad(lambda v: xp.sum(xp.sin(v) * v))),
    "jit": ft.jit(f),
    "jit grad": ft.jit(ft.grad(f)),
    "grad jit": ft.grad(ft.jit(f)),
    "vmap jit": ft.vmap(ft.jit(xp.cumulative_sum)),
    "checkpoint": ft.grad(ft.checkpoint(f)),
    "scan": lambda x: ft.scan(lambda c, v: (c + v, c * v), x[0] * 0, x)[1],
    "while": lambda x: ft.while_loop(lambda s: xp.sum(s) < 50, lambda s: s * 2 + 1, x),
    "cond": ft.grad(lambda x: ft.cond(xp.sum(x) > 0, lambda v: xp.sum(v * v), xp.sum, x)),
    "sort": ft.grad(lambda x: xp.sum(xp.sort(x, axis=1)[:, :2] ** 2)),
    "statistics": lambda x: xp.var(x, axis=0) + xp.mean(x),
    "norm": ft.grad(xp.linalg.vector_norm),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_compute_where_the_data_is(name: str, device: str) -> None:
    """Derivatives, batches, loops and compiled functions take and give arrays of the device."""
    transformed = TRANSFORMS[name]
    got = transformed(xp.asarray(X, device=device))
    assert got.device == device
    np.testing.assert_allclose(
        near(got), np.asarray(transformed(xp.asarray(X))), rtol=1e-9, atol=1e-12
    )


def test_the_way_there_and_back_has_a_derivative(device: str) -> None:
    """to_device is linear, and its cotangent goes the way back."""

    def there(x: Any) -> Any:
        return xp.sum(x.to_device(device) ** 2).to_device("cpu")

    got = ft.grad(there)(xp.asarray(X))
    assert got.device == "cpu"
    np.testing.assert_array_equal(np.asarray(got), 2 * X)


def test_functions_make_arrays_on_a_device(device: str) -> None:
    """device= of every creation function; `*_like` follow their operand."""
    x = xp.asarray(X, device=device)
    made = {
        "zeros": xp.zeros((2, 3), device=device),
        "ones": xp.ones((2, 3), device=device),
        "empty": xp.empty((2, 3), device=device),
        "full": xp.full((2, 3), 7.0, device=device),
        "arange": xp.arange(5, device=device),
        "linspace": xp.linspace(0, 1, 4, device=device),
        "eye": xp.eye(3, device=device),
        "fftfreq": xp.fft.fftfreq(4, device=device),
        "zeros_like": xp.zeros_like(x),
        "ones_like": xp.ones_like(x),
        "full_like": xp.full_like(x, 2.0),
        "asarray": xp.asarray(x),
    }
    for name, y in made.items():
        assert y.device == device, name
    assert xp.zeros_like(x, device="cpu").device == "cpu"
    assert xp.ones_like(xp.asarray(X), device=device).device == device
    assert device in xp.__array_namespace_info__().devices()
    assert xp.asarray(x, dtype="float32").dtype == xp.float32


def test_a_remote_array_is_an_array(device: str) -> None:
    """Shape, numbers, iteration, copies, pickles and text, as on the host."""
    x = xp.asarray(X, device=device)
    assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((2, 3), 2, 6, xp.float64, 2)
    assert x.tolist() == X.tolist()
    assert float(x[0, 0]) == 0.3
    assert int(x[0, 2]) == 2
    assert bool(x[0, 2] > 1)
    assert complex(x[0, 2]) == 2
    assert [10, 20, 30][xp.asarray(1, device=device)] == 20
    assert [row.tolist() for row in x] == X.tolist()
    np.testing.assert_array_equal(near(x[x > 0]), X[X > 0])
    np.testing.assert_array_equal(near(x.T), X.T)
    assert copy(x) is x is deepcopy(x)
    again = pickle.loads(pickle.dumps(x))
    assert again.device == device
    np.testing.assert_array_equal(near(again), X)
    assert f"device={device}" in repr(x)
    assert x.to_device(device) is x
    with pytest.raises(ShapeError, match="float: the array must have one element"):
        float(x)
    with pytest.raises(ImmutableError):
        x[0] = 1
    with pytest.raises(UnsupportedOperandError, match="the class cannot be called"):
        type(x)(X)


def test_nothing_changes_place_in_silence(device: str) -> None:
    """Operands on two devices, and ndarrays asked for, are errors with the way out."""
    x, y = xp.asarray(X, device=device), xp.asarray(X)
    with pytest.raises(ArgumentError, match=f"x2 is on cpu, another operand on {device}"):
        _ = x + y
    with pytest.raises(ArgumentError, match="x1 is on cpu"):
        _ = y * x
    with pytest.raises(UnsupportedOperandError, match="not copied in silence"):
        np.asarray(x)
    with pytest.raises(ShapeError, match="cannot be broadcast"):
        _ = x + xp.zeros((4, 5), device=device)
    np.testing.assert_array_equal(near(x + xp.asarray(1.0)), X + 1)  # one number has no place
    np.testing.assert_array_equal(near(x[xp.asarray([1, 0])]), X[[1, 0]])  # nor have indices
    with pytest.raises(UnsupportedOperandError, match="not copied in silence"):
        ft.jit(lambda x: xp.asarray(np.asarray(x)) + 1.0)(x)


def test_two_devices_do_not_mix() -> None:
    """Arrays of two devices of one kind are told apart by number."""
    a, b = xp.asarray(X, device="far:0"), xp.asarray(X, device="far:1")
    assert a.device != b.device == "far:1"
    with pytest.raises(ArgumentError, match=r"is on far:., another operand on far:."):
        _ = a + b
    np.testing.assert_array_equal(near(a.to_device("far:1") + b), 2 * X)


def test_exchange(device: str) -> None:
    """A buffer comes in through DLPack and goes out as a copy."""
    x = xp.asarray(X, device=device)
    assert xp.from_dlpack(x) is x
    taken = xp.asarray(x.data)
    assert taken.device == device
    assert taken.data is not x.data
    np.testing.assert_array_equal(near(taken), X)
    assert xp.from_dlpack(x.data, device="cpu").device == "cpu"
    assert x.__dlpack_device__() == x.data.__dlpack_device__()
    np.testing.assert_array_equal(np.from_dlpack(x.to_device("cpu")), X)
    with pytest.raises(ExchangeError, match="as a copy only"):
        x.__dlpack__(copy=False)
    with pytest.raises(ExchangeError, match="not on"):
        x.__dlpack__(dl_device=(2, 77))
    with pytest.raises(ExchangeError, match="copy=False, but x is on"):
        xp.from_dlpack(x.data, device="cpu", copy=False)


def test_what_a_library_refuses_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dtype that the device's library does not take, for one."""

    def refuse(x: Any) -> Any:
        raise RuntimeError("unsupported dtype")

    x = Far(np.ones(2))
    assert np.array_equal(near(xp.from_dlpack(x)), np.ones(2))
    place = replace(find_place("far:0"), take=refuse)
    monkeypatch.setattr("funct.array.conversion.place_at", lambda code, number: place)
    for take in (xp.from_dlpack, xp.asarray):
        with pytest.raises(ExchangeError, match="from_dlpack: unsupported dtype"):
            take(x)


def test_a_registered_op_has_a_kernel_for_a_device() -> None:
    """A kernel of a backend is called with that backend's buffers."""
    op = ft.primitive("tests::twice_far", lambda x: x * 2, elementwise=True)
    seen: list[type] = []

    def kernel(x: Any) -> Any:
        seen.append(type(x))
        return x + x

    op.def_kernel(kernel, backend="far")
    np.testing.assert_array_equal(near(op(xp.asarray(X, device="far:0"))), 2 * X)
    np.testing.assert_array_equal(np.asarray(op(xp.asarray(X))), 2 * X)
    assert seen == [far.Far]


def test_what_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CuPy the error names the extra; without a GPU it says so."""
    cpu = xp.ones(2).device
    assert cpu == "cpu" == str(cpu)
    assert cpu != "cuda"
    assert hash(cpu) == hash("cpu")
    assert xp.zeros(1, device="cpu").device == xp.zeros(1, device=cpu).device == cpu
    with pytest.raises(ArgumentError, match="zeros: there is no device 'gpu'; the devices"):
        xp.zeros(1, device="gpu")
    with pytest.raises(UnsupportedOperandError, match="asarray: device must be a Device, its name"):
        xp.asarray(1, device=3)
    monkeypatch.setattr(cuda, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'funct[cuda13]'")):
        xp.ones(1).to_device("cuda:77")


@pytest.mark.skipif(find_spec("cupy") is None, reason="CuPy is not installed")
def test_a_number_that_no_gpu_has() -> None:
    """With CuPy, a device that the machine does not have."""
    with pytest.raises(ArgumentError, match="none has number 99"):
        xp.ones(1).to_device("cuda:99")
