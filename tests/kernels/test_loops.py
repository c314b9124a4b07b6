"""Kernels written as Python: what is compiled does what Python does, index by index."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.device.machine_code import assembly
from funct.kernels import cpu
from funct.kernels.cpu import loops
from funct.kernels.cpu.loops import (
    Kernel,
    available,
    kernel,
    lean,
    making,
    parallel,
    pays,
    ready,
)
from funct.kernels.cpu.outside import declared
from funct.kernels.cpu.shared import shared
from funct.kernels.cpu.vectors import (
    detached,
    gathered,
    in_step,
    lanes,
    loaded,
    picked,
    room,
    spread,
    stored,
)
from funct.kernels.table import restricted
from tests.kernels.arrays import agree, misaligned
from tests.together import together

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")

_WEIGHTS = ((1, 2), (3, 5))
_PLACES = (3, 4, 0, 7)


def _scaled(v: Any, how: str) -> Any:
    if how == "twice":
        return v + v
    return v * 3


@shared(arrays=("x", "y"), writes=("y",))
def _shifted(x: Any, y: Any, at: Any, n: Any) -> Any:
    """y[i] = x[at + i], n elements; how many of them are above 0."""
    above: Any = np.int64(0)
    for i in range(n):
        y[i] = x[at + i]
        above = np.where(x[at + i] > 0.0, above + 1, above)
    return above


@lean(parallel)
def _rotated(x: Any, y: Any, above: Any, n: int, task: int) -> None:
    above[task] = x.dtype.type(_shifted(x, y, 1, n - 1))
    y[n - 1] = x[0]


@kernel
def _collatz(x: Any, y: Any, n: int) -> int:
    most = 0
    for i in range(n):
        v = x[i]
        steps = 0
        while v != 1 and steps < 1000:
            if (v & 1) == 0:
                v = v >> 1
            elif v > 1000000:
                break
            else:
                v = 3 * v + 1
            steps += 1
        y[i] = steps
        most = max(most, steps)
    return most


@kernel
def _unrolled(x: Any, y: Any, n: int, how: str) -> None:
    for i in range(n - 1, -1, -1):
        total = x.dtype.type(0)
        for a, b in _WEIGHTS:
            total = total + x[i] * a
            total = total - _scaled(x[i], how) * b
        y[i] = total if how == "twice" else -total


@kernel
def _vectors(x: Any, y: Any, n: int) -> int:
    found = 0
    for i in range(0, n - 7, 8):
        v = loaded(x, i, 8)
        place = lanes(8, np.int64) + i
        same = gathered(x, place)
        if (v == same).all() and not (v != v).any():
            found += 8
        stored(y, i, np.where(v > 0.5, np.sqrt(v), spread(x[0], 8) + v.astype(x.dtype)))
    return found


@kernel
def _picked(x: Any, y: Any, n: int) -> None:
    for i in range(0, n, 4):
        held = room(x.dtype, 8)
        stored(held, 4, loaded(x, i, 4))
        stored(held, 0, picked(loaded(held, 4, 4), loaded(x, i, 4) + loaded(x, i, 4), _PLACES))
        stored(y, i, loaded(held, 0, 4))


@kernel
def _in_step(x: Any, y: Any, last: int, lanes: str) -> None:
    for i in range(last):
        stored(y, i, in_step(in_step(loaded(x, i, int(lanes))) * x[i]))


def _lesser_first(pair: Any) -> Any:
    a, b = pair
    turned = b < a
    return np.where(turned, b, a), np.where(turned, a, b)


@kernel
def _exchanged(x: Any, n: int, lanes: str) -> None:
    low, high = _lesser_first((detached(loaded(x, 0, int(lanes))), loaded(x, n, int(lanes))))
    stored(x, 0, low)
    stored(x, n, high)


@kernel
def _searched(x: Any, n: int, wanted: int) -> int:
    i = 0
    while i < n and x[i] != wanted:
        i += 1
    if i == n or x[i] != wanted:
        return -1
    return i


@kernel
def _words(x: Any, y: Any, n: int) -> None:
    for i in range(n):
        v = x[i].view(np.uint64)
        v = (v ^ (v >> np.uint64(13))) * 0x9E3779B97F4A7C15
        y[i] = ((~v) % np.uint64(1000)).astype(np.int32) - np.int32(i)


def test_branches_loops_and_breaks() -> None:
    """Nested control flow with several ways out."""
    x = np.arange(1, 60)
    agree(_collatz, x, np.zeros_like(x), len(x))
    assert _collatz(x, np.zeros_like(x), 59) == 112


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("how", ["twice", "thrice"])
def test_static_loops_and_calls(dtype: Any, how: str) -> None:
    """Loops over tuples are unrolled and functions inlined, as strings decide."""
    x = (np.arange(9) / 2).astype(dtype)
    agree(_unrolled, x, np.zeros_like(x), 9, how)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors(dtype: Any) -> None:
    """Vectors are loaded, gathered, chosen from and stored."""
    x = np.random.default_rng(0).random(24).astype(dtype)
    agree(_vectors, x, np.zeros_like(x), 24)
    x[3] = np.nan
    agree(_vectors, x, np.zeros_like(x), 24)
    assert _vectors(x, np.zeros_like(x), 24) == 16


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_room_is_made_once_and_elements_are_picked(dtype: str) -> None:
    """Room in a loop that turns a million times is the same room; picked are those of both."""
    x = np.arange(48).astype(dtype)
    agree(_picked, x, np.zeros_like(x), 48)
    x = np.ones(1 << 20, dtype)
    y = np.zeros_like(x)
    _picked(x, y, len(x))
    np.testing.assert_array_equal(y.reshape(-1, 4), np.broadcast_to([1, 2, 1, 2], (1 << 18, 4)))


@pytest.mark.parametrize("count", [2, 8, 16, 64, 128])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint32, np.int64, np.uint8])
def test_vectors_in_step_are_what_they_are(dtype: Any, count: int) -> None:
    """However many registers a vector has, one, a part of one or more than there are."""
    x = np.random.default_rng(count).integers(0, 99, 2 * count + 3).astype(dtype)
    agree(_in_step, x, np.zeros_like(x), count, str(count))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint32, np.int64])
def test_what_is_exchanged_where_it_stands_is_not_written_under_a_mask(dtype: Any) -> None:
    """Nor is a pair of vectors lost on the way into a function."""
    x = np.random.default_rng(0).permutation(32).astype(dtype)
    agree(_exchanged, x, 16, "16")
    text = assembly(declared(_exchanged.text(x, 16, "16")))
    assert "maskmov" not in text


def test_conditions_ask_no_more_than_they_need() -> None:
    """What stands behind `and` is not evaluated where the first part decides."""
    x = np.asarray([3, 1, 2], np.int32)
    assert [_searched(x.astype(np.int64), 3, v) for v in (3, 2, 7)] == [0, 2, -1]
    with pytest.raises(IndexError):
        _searched.checked(x, 4, 7)


def test_words_wrap() -> None:
    """Unsigned words multiply modulo their size; bits are reinterpreted."""
    x = np.random.default_rng(0).normal(size=20)
    agree(_words, x, np.zeros(20, np.int32), 20)


def test_two_dtypes_do_not_mix() -> None:
    """Nothing is promoted in silence."""
    with pytest.raises(TypeError, match="mixes"):
        _unmixed(np.zeros(3), np.zeros(3, np.float32))


@kernel
def _unmixed(x: Any, y: Any) -> None:
    y[0] = x[0] + y[0]


def _first(x: Any, n: int) -> int:
    for i in range(n):
        if x[i] > 0:
            return i
    return -1


@kernel
def _twice_the_first(x: Any, n: int) -> int:
    return _first(x, n) * 2


def test_an_inlined_function_does_not_return_out_of_a_loop() -> None:
    """It would be the whole kernel that returns."""
    with pytest.raises(AssertionError, match="cannot return out of a loop"):
        _twice_the_first(np.ones(4), 4)


def test_plain_code_runs_where_machine_code_is_not_wanted() -> None:
    """`restricted` is heard by all kernels; few elements, and dtypes unknown here, are left too."""
    x = np.zeros(1 << 16)
    assert pays(x)
    assert ready(1 << 16)
    with restricted():
        assert not pays(x)
        assert not ready(1 << 16)
    assert not pays(x[:10])
    assert not pays(x.astype(np.float16))


def test_arrays_come_as_they_are() -> None:
    """Strided, misaligned and boolean arrays and other names of a dtype are read as well; copies of
    what is not dense are made by the builtin, and nothing of them stays.
    """
    x = np.arange(12.0).reshape(3, 4)
    _copied(x, np.zeros(12), 12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "_native", None)
        before = sys.getrefcount(x)
        for _ in range(50):
            _copied(x.T, np.zeros(12), 12)
        assert sys.getrefcount(x) == before
    raw = misaligned(x)
    assert not raw.flags.aligned
    for given_ in (x, x.T, x[:, ::-1], x[::2, 1:], raw, x > 3, x.astype("q"), x.astype(np.int32)):
        y = np.zeros(given_.size, given_.dtype)
        _copied(given_, y, y.size)
        np.testing.assert_array_equal(y, given_.reshape(-1))


@pytest.mark.parametrize("kind", ["?", "b", "H", "i", "q", "Q", "f", "d", "F", "D"])
def test_numbers_of_numpy_are_arrays_without_axes(kind: str) -> None:
    """They are read as such, one code for all of them, where kernels ask for an array."""
    copied = Kernel(_copied.fn)
    for number in np.asarray([3, 1, 0]).astype(kind):
        y = np.zeros(1, kind)
        copied(number, y, 1)
        assert y[0] == number
    assert len(copied._known) == 1


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("name", ["rows", "row", "column", "gamma", "poisson"])
def test_compiled_functions_pass_numbers_on(name: str, dtype: str) -> None:
    """NumPy makes numbers of arrays without axes on the way from one kernel to the next."""
    x = xp.asarray(np.random.default_rng(0).normal(size=(7, 300)).astype(dtype))
    one = xp.asarray(3)
    key = ft.random.key(0)
    fun: Any = {
        "rows": lambda x, i: x.at[(i + 1) % 5].add(x[0]),
        "row": lambda x, i: ft.vjp(lambda x: x[(i + 1) % 5], x)[1](x[0])[0],
        "column": lambda x, i: ft.vjp(lambda x: x[:, (i + 1) % 5], x)[1](x[:, 0])[0],
        "gamma": lambda x, i: ft.random.gamma(key, i * 2.0 + 1, shape=(300,)),
        "poisson": lambda x, i: ft.random.poisson(key, i * 2.0 + 1, shape=(300,)),
    }[name]
    if name in ("row", "column") and x.dtype.kind == "i":
        fun = lambda x, i: x[:, (i + 1) % 5]  # noqa: E731  integers have no derivative
    np.testing.assert_array_equal(np.asarray(ft.jit(fun)(x, one)), np.asarray(fun(x, one)))


def test_what_a_kernel_writes_into_lies_as_it_says() -> None:
    """A copy of the result would be lost, so it is refused."""
    x = np.arange(6.0)
    with pytest.raises(ValueError, match="y must be contiguous"):
        _copied(x, np.zeros(12)[::2], 6)


@making("x")
def _negative(x: Any, wrong: Any, y: Any, n: int) -> int:
    for i in range(n):
        y[i] = -x[i]
    return wrong[0].astype(np.int64)


@making("n", "x")
def _turned(x: Any, n: int, y: Any, size: int) -> None:
    for i in range(n):
        y[i] = x[size - i - 1]


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int64", "float32", "float64"])
def test_new_arrays_are_made_in_the_call(dtype: str) -> None:
    """Of the shape and dtype of an argument, or as long as one says; None for any answer but 0."""
    none, x = np.zeros(1, np.int64), np.arange(24.0).reshape(2, 3, 4).astype(dtype)
    for given_ in (x, x.T, x[:, ::2], misaligned(x), x[:, :, :0], x[0, 0, 1:2].reshape(())):
        if dtype not in ("bool", "float16"):
            y = _negative(given_, none)
            np.testing.assert_array_equal(y, -given_, strict=True)
            assert y.flags.c_contiguous
            assert y.flags.owndata
        assert _negative(given_, none + 1) is None
    if dtype in ("int64", "float64"):
        np.testing.assert_array_equal(_turned(x, 5), x.reshape(-1)[4::-1], strict=True)
        assert _turned(x, 0).shape == (0,)
        with pytest.raises(ValueError, match="negative"):
            _turned(x, -1)
        with pytest.raises(MemoryError):
            _turned(x, 1 << 55)


@making("x", otherwise=lambda *args: args)
def _plus(x: Any, v: Any, y: Any, n: int) -> None:
    for i in range(n):
        y[i] = x[i] + v[i]


@making("n", "x", otherwise=lambda *args: args)
def _plus_one(x: Any, v: Any, n: int, y: Any, size: int) -> None:
    for i in range(size):
        y[i] = x[i] + v[0]


def test_what_lies_otherwise_goes_elsewhere() -> None:
    """Arrays that are not dense, and several shapes where all are arrays; before there is code, and
    after it.
    """
    x = np.arange(12.0).reshape(3, 4)
    for _ in range(2):
        for args in ((x, x[:, ::2]), (x.T, x.T), (x, misaligned(x)), (x, x[0]), (x, x[None])):
            assert _plus(*args) == args
        for args in ((x[:, ::2], x, 3), (x, x.T, 3)):
            assert _plus_one(*args) == args
        np.testing.assert_array_equal(_plus(x, 2 * x), 3 * x, strict=True)
        np.testing.assert_array_equal(_plus(x[0], x[1]), x[0] + x[1], strict=True)
        np.testing.assert_array_equal(_plus_one(x, x[1], 3), x[0, :3] + 4, strict=True)


def test_new_arrays_belong_to_who_called() -> None:
    """Nothing is kept of them, and nothing of their dtypes is lost."""
    x, none = np.ones(40), np.zeros(1, np.int64)
    _negative(x, none)
    before = sys.getrefcount(x.dtype)
    found = [_negative(x, none + k % 2) for k in range(1000)]
    assert [y is None for y in found] == [k % 2 == 1 for k in range(1000)]
    assert {sys.getrefcount(y) for y in found[::2]} == {4}
    assert abs(sys.getrefcount(x.dtype) - before - 500) < 50
    del found
    assert abs(sys.getrefcount(x.dtype) - before) < 50


@kernel
def _copied(x: Any, y: Any, n: int) -> None:
    for i in range(n):
        y[i] = x[i]


@kernel
def _told(x: Any, n: int, v: float, how: Any) -> int:
    x[0] = v if how == "given" else x[0]
    return n if how == "given" else -n


def test_arguments_are_told_apart() -> None:
    """By type, and static ones by what they equal; numbers keep all their bits."""
    x = np.zeros(1)
    with pytest.raises(TypeError, match="_told takes"):
        _told(x)
    for v in (0.1, -0.0, np.inf):
        assert _told(x, 7, v, "given") == 7
        assert x.tobytes() == np.float64(v).tobytes()
    assert _told(x, 7, 1.0, "".join(["giv", "en"])) == 7
    assert _told(x, 7, 1.0, True) == -7
    for n in (-1, 0, 1, -(2**63), 2**63 - 1):
        assert _told(x, n, 1.0, "given") == n
    with pytest.raises(OverflowError):
        _told(x, 2**63, 1.0, "given")
    with pytest.raises(TypeError, match="_told takes"):
        _told(x, 1, 1.0)
    assert len(_told._known) == 2


def test_every_kernel_is_run_with_its_indices_checked() -> None:
    """Each one that is written in Python has a call of `agree` or `checked` in these tests."""
    paths = Path(__file__).parent.rglob("test_*.py")
    texts = "".join([path.read_text(encoding="utf-8") for path in paths])
    found = set()
    for place in pkgutil.walk_packages(cpu.__path__, f"{cpu.__name__}."):
        for name, v in vars(importlib.import_module(place.name)).items():
            if isinstance(v, Kernel):
                found.add(v.fn.__name__)
                assert re.search(rf"cpu\w*\.{name}\b", texts), (place.name, name)
    assert len(found) > 20


def test_threads_may_call_at_once() -> None:
    """Short calls keep the interpreter's lock, long ones let go of it, and new dtypes may come."""

    def run(k: int) -> Any:
        x = np.arange(100_000).astype(("f4", "f8", "i2", "u8", "i4", "u4", "f4", "f8")[k])
        y = np.zeros_like(x)
        for n in (10, len(x)) * 20:
            _copied(x[:n], y[:n], n)
        return np.array_equal(x, y)

    assert all(together(8, run))


def _definite(x: Any) -> Any:
    n = x.shape[-1]
    return x + xp.conj(xp.matrix_transpose(x)) + 4 * n * xp.eye(n, dtype=x.dtype)


_ROUNDED: dict[str, Any] = {
    "cholesky": lambda x: xp.linalg.cholesky(_definite(x)),
    "det": xp.linalg.det,
    "eig": xp.linalg.eig,
    "eigh": lambda x: xp.linalg.eigh(x + xp.conj(xp.matrix_transpose(x))),
    "inv": xp.linalg.inv,
    "lu": xp.linalg.lu,
    "prod": lambda x: (xp.prod(x, axis=-1), xp.prod(xp.reshape(x, (-1,)))),
    "qr": xp.linalg.qr,
    "solve": lambda x: xp.linalg.solve(x, x[..., :1]),
    "svd": xp.linalg.svd,
}


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (12, 4, 4), (40, 3, 3), (40, 40)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", _ROUNDED)
def test_bits_are_the_same_before_llvm_is_loaded(
    name: str, dtype: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a call gives does not depend on the calls before it."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0.9, 1.1, shape)
    x = x + 1j * rng.uniform(-0.1, 0.1, shape) if dtype[0] == "c" else x
    given, function = xp.asarray(x.astype(dtype)), _ROUNDED[name]
    expected = ft.tree.leaves(function(given))
    monkeypatch.setattr(loops, "_loads", lambda n, cost: False)
    monkeypatch.setattr(loops, "_loaded", False)
    monkeypatch.setattr(loops, "_compiles", False)
    for a, e in zip(ft.tree.leaves(function(given)), expected, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(e).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_kernels_call_code_that_they_share(dtype: str, n: int) -> None:
    """It gives a number; only what it writes into must lie one after the other."""
    x = np.random.default_rng(n).standard_normal(2 * n).astype(dtype)[::2]
    y, above = np.empty(n, dtype), np.zeros(1, dtype)
    agree(_rotated, x, y, above, n, 1)
    _rotated(x, y, above, n, 1)
    assert np.array_equal(y, np.roll(x, -1))
    assert above[0] == np.count_nonzero(x[1:] > 0)
    with pytest.raises(ValueError, match="contiguous"):
        _rotated(x, np.empty(2 * n + 2, dtype)[::2], above, n, 1)
