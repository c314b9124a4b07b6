"""Arrays cross into other libraries and back, and no write there changes a Tensor here."""

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from scipy import special

import funct as ft
import funct.array as xp
from funct.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    ExchangeError,
    ImmutableError,
    RangeError,
    ShapeError,
    UnsupportedOperandError,
)
from tests import laws

KINDS = list(xp.__array_namespace_info__().dtypes())
VERSIONS = [None, (0, 0), (0, 5), (1, 0), (1, 1), (2, 0)]


class Producer:
    """An array that hands out funct's capsule with options of the test's choosing."""

    def __init__(self, x: Any, **options: Any) -> None:
        self.x, self.options = x, options

    def __dlpack__(self, **asked: Any) -> Any:
        return self.x.__dlpack__(**self.options)

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_takes_and_gives(kind: str) -> None:
    """Every dtype of the standard goes through DLPack both ways, with shape, values and layout."""
    a = np.asfortranarray(np.arange(6).reshape(2, 3).astype(kind))
    x = xp.from_dlpack(a)
    assert (x.dtype, x.shape, x.strides) == (a.dtype, a.shape, a.strides)
    b = np.from_dlpack(x)
    np.testing.assert_array_equal(a, b)
    assert b.strides == a.strides
    a[0, 0] = b[0, 0] = 1
    assert x[0, 0] == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("copied", [None, True, False])
def test_no_capsule_lets_a_consumer_write(version: Any, copied: Any) -> None:
    """A shared buffer is marked read-only; who cannot see the mark gets a copy."""
    x = xp.arange(4)
    a = np.from_dlpack(Producer(x, max_version=version, copy=copied))
    shares = np.shares_memory(a, np.asarray(x))
    assert shares == (copied is False and version is not None and version >= (1, 0))
    if version is not None and version >= (1, 0):  # NumPy takes older capsules for read-only
        assert a.flags.writeable != shares
    assert a.tolist() == [0, 1, 2, 3]


def test_dlpack_options() -> None:
    """The device is the CPU and has no streams; what DLPack lacks is an error."""
    x = xp.ones(2)
    assert x.__dlpack_device__() == (1, 0)
    assert xp.from_dlpack(x) is x
    with pytest.raises(ExchangeError, match="dl_device must be"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ArgumentError, match="stream must be None"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="__dlpack__: "):
        xp.asarray([1], dtype=xp.int4).__dlpack__()
    with pytest.raises(UnsupportedOperandError, match="x must have __dlpack__, got list"):
        xp.from_dlpack([1])  # type: ignore[arg-type]


def test_from_dlpack_copies_unless_told_not_to() -> None:
    """A producer that writes on changes the result only with copy=False."""
    a = np.zeros(2)
    kept, copied, shared = (xp.from_dlpack(a, copy=c) for c in (None, True, False))
    a[:] = 7
    assert [float(v[0]) for v in (kept, copied, shared)] == [0.0, 0.0, 7.0]


@pytest.mark.filterwarnings("ignore")
def test_torch() -> None:
    """torch ignores the read-only mark, so it gets a copy; its arrays come in, strided ones too."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = xp.reshape(xp.arange(6.0), (2, 3))
    t = torch.from_dlpack(x)
    t[0, 0] = 9
    assert x[0, 0] == 0
    back = xp.from_dlpack(torch.arange(6).reshape(2, 3).T)
    assert (back.shape, back.dtype) == ((3, 2), xp.int64)
    assert xp.asarray(torch.ones(2, dtype=torch.float32)).dtype == xp.float32
    assert xp.asarray(torch.ones(2), dtype=xp.float64).dtype == xp.float64


@pytest.mark.filterwarnings("ignore")
def test_jax() -> None:
    """JAX takes arrays and gives them."""
    jnp = pytest.importorskip("jax.numpy", reason="jax is not installed")
    x = xp.asarray([1.0, 2.0], dtype=xp.float32)
    assert jnp.from_dlpack(x).tolist() == [1.0, 2.0]
    assert xp.from_dlpack(jnp.arange(3)).tolist() == [0, 1, 2]
    assert xp.asarray(jnp.ones(2)).dtype == xp.float32


def test_numpy_view_is_read_only() -> None:
    """np.asarray shares the buffer and cannot be written into, np.array can."""
    x = xp.arange(3)
    view = np.asarray(x)
    assert np.shares_memory(view, np.asarray(x))
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 9
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.flags.writeable = True
    for own in (np.array(x), np.asarray(x, copy=True), np.asarray(x, dtype="float32")):
        own[0] = 9
    assert x.tolist() == [0, 1, 2]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python classes export buffers from 3.12 on")
def test_memoryview_is_read_only() -> None:
    """The buffer protocol gives a read-only view."""
    view = memoryview(xp.arange(3))  # type: ignore[arg-type]
    assert view.readonly
    assert view.tolist() == [0, 1, 2]


def test_buffers_come_in() -> None:
    """bytearray, memoryview and array.array are arrays of their items; copy=False shares them."""
    source = bytearray([1, 2, 3])
    x, shared = xp.asarray(memoryview(source)), xp.asarray(source, copy=False)
    assert x.dtype == shared.dtype == xp.uint8
    source[0] = 9
    assert x.tolist() == [1, 2, 3]
    assert shared.tolist() == [9, 2, 3]
    for obj in ([1, 2], 3, (1.0,)):
        with pytest.raises(ArgumentError, match="no buffer to share"):
            xp.asarray(obj, copy=False)
    with pytest.raises(ArgumentError, match="must be cast"):
        xp.asarray(np.ones(2), dtype="float32", copy=False)


def test_python_copies() -> None:
    """pickle gives an equal array, copy and deepcopy the array itself."""
    x = xp.asarray([[1.0, 2.0]])
    y = pickle.loads(pickle.dumps(x))
    assert (y.tolist(), y.dtype) == (x.tolist(), x.dtype)
    assert copy.copy(x) is x
    assert copy.deepcopy([x])[0] is x
    narrow = xp.asarray([1, -2], dtype=xp.int4)
    assert pickle.loads(pickle.dumps(narrow)).dtype == xp.int4


@pytest.mark.parametrize("kind", [*KINDS, "bfloat16", "float8_e5m2", "int4"])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_gives_no_way_in(kind: str, protocol: int) -> None:
    """Every layout comes back; the buffers that pickle hands on are read-only."""
    x = xp.astype(xp.reshape(xp.arange(6), (2, 3)), getattr(xp, kind))
    for y in (x, x.T, x[:, ::-1], x[0, 0], x[:0], xp.broadcast_to(x[0], (4, 3))):
        handed: list[pickle.PickleBuffer] = []
        callback = handed.append if protocol == 5 else None
        text = pickle.dumps(y, protocol=protocol, buffer_callback=callback)
        assert all(memoryview(b).readonly for b in handed)
        z = pickle.loads(text, buffers=handed)
        assert (z.dtype, z.shape) == (y.dtype, y.shape)
        assert z.tolist() == y.tolist()
        assert (z + z).tolist() == (y + y).tolist()


@pytest.mark.parametrize("transform", [ft.grad, ft.jit, ft.vmap])
def test_a_tracer_has_no_pickle(transform: Any) -> None:
    """It is refused by name, whatever the tracer holds; a copy is the tracer itself."""

    def f(x: Any) -> Any:
        with pytest.raises(ConcretizationError, match="pickle: a traced array cannot become"):
            pickle.dumps(x)
        assert copy.copy(x) is x
        assert copy.deepcopy([x])[0] is x
        return xp.sum(x)

    transform(f)(xp.ones((3, 2)) if transform is ft.vmap else xp.ones(2))


def test_numpy_asks_for_no_copy() -> None:
    """copy=False shares, or is refused where a cast needs a copy, as for NumPy's own arrays."""
    x = xp.arange(3.0)
    assert np.shares_memory(np.asarray(x, copy=False), np.asarray(x))
    with pytest.raises(ValueError, match=r"is cast to|avoid copy"):  # the latter from NumPy 2.5 on
        np.asarray(x, dtype=np.float32, copy=False)


def test_bytes() -> None:
    """The elements' bytes in C order, whatever Python's version and the layout."""
    for x in (xp.arange(3), xp.arange(6.0)[::-2], xp.reshape(xp.arange(6), (2, 3)).T):
        assert bytes(x) == np.asarray(x).tobytes()


class Elsewhere:
    """An array of another library: where its elements lie, and what it gives when it is asked."""

    def __init__(self, device: int, *, on_host: bool = True) -> None:
        self.device, self.on_host = device, on_host

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, *, dl_device: Any = None, **options: Any) -> Any:
        if self.on_host or dl_device == (1, 0):
            return np.arange(3.0).__dlpack__(**options)
        raise BufferError("not on the host")


def test_memory_that_the_host_reads() -> None:
    """Pinned and managed memory are the host's; what lies elsewhere comes where it is asked to."""
    for device in (1, 3, 11, 13):  # CPU, CUDAHost, ROCMHost, CUDAManaged
        for take in (xp.asarray, xp.from_dlpack):
            assert take(Elsewhere(device)).tolist() == [0, 1, 2]
    far = Elsewhere(10, on_host=False)  # ROCm: a device that has no name here
    assert xp.from_dlpack(far, device="cpu").tolist() == [0, 1, 2]
    for copied in (None, False):
        with pytest.raises(ExchangeError, match=r"DLPack's device \(10, 0\)"):
            xp.from_dlpack(far, copy=copied)
    with pytest.raises(ExchangeError, match=r"DLPack's device \(10, 0\)"):
        xp.from_dlpack(far, device="cpu", copy=False)


class Nowhere(Elsewhere):
    """An array whose library does not know where it lies."""

    def __dlpack_device__(self) -> tuple[int, int]:
        raise ValueError("unknown device")


def test_what_gives_no_array() -> None:
    """Other libraries' refusals are typed errors with their words."""
    refused = Elsewhere(1, on_host=False)
    for take in (xp.asarray, xp.from_dlpack):
        with pytest.raises(ExchangeError, match="not on the host"):
            take(refused)
        with pytest.raises(ExchangeError, match="unknown device"):
            take(Nowhere(1))
    assert xp.asarray(Elsewhere(1), copy=False).tolist() == [0, 1, 2]
    with pytest.raises(ArgumentError, match="no buffer to share"):
        xp.asarray(refused, copy=False)


@pytest.mark.parametrize(
    ("data", "dtype", "kind"),
    [
        (np.asarray([1, 2.5], dtype=object), None, DTypeError),
        (["a", "b"], "float32", DTypeError),
        ([1.0, np.nan], "int64", ArgumentError),
        ([[1], [1, 2]], None, ShapeError),
        ([2**80], None, RangeError),
    ],
)
def test_data_that_is_no_array(data: Any, dtype: Any, kind: type[Exception]) -> None:
    """The kind of error says what is wrong: elements, a value, the nesting, the range."""
    with pytest.raises(kind, match="asarray: "):
        xp.asarray(data, dtype=dtype)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_floats_of_torch(name: str) -> None:
    """torch gives them through DLPack alone, and asarray asks for it."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    t = torch.asarray([1.0, 2.0]).to(getattr(torch, name))
    assert (xp.asarray(t).dtype, xp.asarray(t).tolist()) == (getattr(xp, name), [1.0, 2.0])
    assert xp.asarray(t, dtype=xp.float32).dtype == xp.float32
    shared = xp.asarray(t, copy=False)
    t[0] = 2.0
    assert shared.tolist() == [2.0, 2.0]


def test_numpy_functions() -> None:
    """Ufuncs and reductions give Tensors, other functions and calls take the elements."""
    x = xp.asarray([1.0, 4.0])
    for out in (np.sqrt(x), np.ones(2) * x, np.float64(2) * x, x - np.ones(2), np.sum(x), -x):  # type: ignore[call-overload]
        assert isinstance(out, xp.Array)
    assert np.arcsin(x / 4).tolist() == np.arcsin([0.25, 1.0]).tolist()  # type: ignore[call-overload]
    assert isinstance(np.concatenate([x, x]), np.ndarray)  # type: ignore[arg-type]
    assert np.mean(x, dtype=np.float32).dtype == np.std(x, dtype=np.float32).dtype == np.float32  # type: ignore[call-overload]
    assert np.var(x, ddof=1) == xp.asarray(4.5)  # type: ignore[call-overload]
    out = np.zeros(2)
    assert np.add(x, 1.0, out=out) is out  # type: ignore[call-overload]
    np.add.at(out, [0, 0], x)
    assert out.tolist() == [7.0, 5.0]
    for taken in (np.add.reduce(x), np.spacing(x), np.multiply.outer(x, x)):  # type: ignore[call-overload]
        assert isinstance(taken, np.ndarray | np.generic)
    with pytest.raises(ImmutableError, match="add: out must be an ndarray"):
        np.add(out, 1.0, out=x)  # type: ignore[call-overload]
    with pytest.raises(ConcretizationError):
        ft.vmap(np.spacing)(x)


def test_functions_of_scipy_special() -> None:
    """SciPy's own ufuncs are those of `special`, so they have derivatives."""
    x = xp.asarray([0.5, 2.0])
    for name in ("erf", "gammaln", "i0e"):
        laws.same(getattr(special, name)(x), getattr(special, name)(np.asarray(x)))
    laws.close(ft.grad(lambda x: xp.sum(special.gammaln(x)))(x), special.psi(np.asarray(x)))


@pytest.mark.parametrize("kind", [*KINDS, "float16", "bfloat16", "int4", "float8_e5m2"])
def test_numpy_view_keeps_dtype_and_layout(kind: str) -> None:
    """Of every dtype and layout: negative, zero and gapped strides, no axes, no elements."""
    x = xp.astype(xp.reshape(xp.arange(6), (2, 3)), getattr(xp, kind))
    for y in (x, x.T, x[:, ::-1], x[:, ::2], x[0, 0], x[:0], xp.broadcast_to(x, (4, 2, 3))):
        view = np.asarray(y)
        assert (view.dtype, view.shape, view.strides) == (y.dtype, y.shape, y.strides)
        assert not view.flags.writeable
        np.testing.assert_array_equal(view.astype(complex), np.array(y).astype(complex))


@pytest.mark.parametrize("transform", [ft.grad, ft.vmap])
def test_a_tracer_never_becomes_an_object_array(transform: Any) -> None:
    """NumPy's functions are traced or refused: no elements leave the transform unseen."""
    seen: list[Any] = []

    def f(x: Any) -> Any:
        with pytest.raises(ConcretizationError, match="cannot become") as caught:
            np.asarray(x)
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, ValueError)
        seen.append(np.sin(x))
        return np.sum(np.sin(x) * np.ones(2))

    transform(f)(xp.ones((3, 2)) if transform is ft.vmap else xp.ones(2))
    assert isinstance(seen[0], xp.Tensor)
    assert not isinstance(seen[0], xp.Array)


def test_gradients_of_numpy_code() -> None:
    """A function written with NumPy's names for elementwise functions differentiates."""
    g = ft.grad(lambda x: np.sum(np.sin(x) * np.exp(x)))(xp.asarray([0.5]))
    assert np.allclose(g.tolist(), (np.cos(0.5) + np.sin(0.5)) * np.exp(0.5))


def test_hypothesis_strategies() -> None:
    """hypothesis.extra.array_api finds all that it needs."""
    from hypothesis import given
    from hypothesis.extra import array_api

    xps = array_api.make_strategies_namespace(xp, api_version="2024.12")

    @given(xps.arrays(xps.scalar_dtypes(), xps.array_shapes()))
    def check(x: Any) -> None:
        assert isinstance(x, xp.Array)

    check()


def test_texts() -> None:
    """The repr is short for big arrays and says their shape; notebooks get HTML."""
    big = xp.zeros((2000, 3))
    assert len(repr(big)) < 300
    assert "shape=(2000, 3)" in repr(big)
    assert repr(xp.zeros((0, 3))) == "Array([], shape=(0, 3), dtype=float64)"
    assert "&lt;" not in big._repr_html_()
    assert "<strong>Array</strong> (2000, 3) float64" in big._repr_html_()
    texts: list[str] = []
    ft.jit(lambda x: (texts.append(repr(x)), x)[1])(big)
    ft.grad(lambda x: (texts.append(repr(x)), xp.sum(x))[1])(big)
    assert all(len(t) < 350 for t in texts)
