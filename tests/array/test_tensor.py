"""Operators, conversions and immutability of Tensors, concrete and traced."""

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import array, ops
from funct.core import catalogue
from funct.errors import (
    DTypeError,
    ExchangeError,
    ImmutableError,
    ShapeError,
    UnsupportedOperandError,
)
from funct.interop import rebind
from tests import laws
from tests.strategies import arrays, broadcastable, filled

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
WHOLE = [operator.floordiv, operator.mod]
BITS = [operator.and_, operator.or_, operator.xor]
ORDER = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
by_name = pytest.mark.parametrize("op", [*ARITHMETIC, *WHOLE, *ORDER], ids=lambda f: f.__name__)


@by_name
@given(
    shapes=broadcastable(), kinds=st.tuples(*[st.sampled_from(["int32", "float32", "float64"])] * 2)
)
def test_binary_operators(op: Any, shapes: Any, kinds: Any) -> None:
    """Operators broadcast and promote as NumPy's."""
    x, y = (filled(s, k, n) for n, (s, k) in enumerate(zip(shapes, kinds, strict=True)))
    y = np.where(y == 0, 1, y).astype(y.dtype)
    laws.same(op(xp.asarray(x), xp.asarray(y)), np.asarray(op(x, y)))
    laws.same(ft.jit(op)(xp.asarray(x), xp.asarray(y)), np.asarray(op(x, y)))


@by_name
@pytest.mark.parametrize("number", [2, 2.5, True], ids=repr)
@pytest.mark.parametrize("kind", ["int8", "float16", "float32", "float64", "complex64"])
def test_numbers_adopt_the_dtype(op: Any, number: Any, kind: str) -> None:
    """A Python number on either side behaves as in NumPy: the array's dtype stays."""
    if kind.startswith("complex") and op in [*WHOLE, *ORDER[:4]]:
        return
    x = np.asarray([1, 2, 3]).astype(kind)
    laws.same(op(xp.asarray(x), number), op(x, number))
    laws.same(op(number, xp.asarray(x)), op(number, x))


@by_name
@pytest.mark.parametrize("other", [np.float64(2.0), np.int8(2), np.asarray([1.0, 2.0])], ids=repr)
def test_numpy_operands(op: Any, other: Any) -> None:
    """NumPy scalars and arrays are operands on either side; the result is a Tensor."""
    x = np.asarray([1.0, 3.0], "float32")
    for out, expected in (
        (op(xp.asarray(x), other), op(x, other)),
        (op(other, xp.asarray(x)), op(other, x)),
    ):
        assert isinstance(out, xp.Tensor)
        laws.same(out, expected)


@pytest.mark.parametrize("kind", ["int32", "uint8", "float32", "float64"])
def test_quotient_and_rest(kind: str) -> None:
    """divmod is // and %, with numbers and NumPy's arrays on either side, by NumPy's name too."""
    raw = np.asarray([7, 5, 9], kind)
    for make in (xp.asarray, rebind.asarray):
        x = make(raw)
        for other in (2, np.asarray([4, 2, 3], kind), np.float64(2.5), x):
            theirs = raw if other is x else other
            for p, q, a, b in ((x, other, raw, theirs), (other, x, theirs, raw)):
                for f in (divmod, np.divmod):
                    quotient, rest = f(p, q)
                    assert type(quotient) is type(rest) is type(x)
                    laws.same(np.asarray(quotient), a // b)
                    laws.same(np.asarray(rest), a % b)
    both = lambda v: divmod(v, 2)[0] * divmod(9, v)[1]  # noqa: E731
    laws.same(ft.jit(both)(xp.asarray(raw)), both(raw))
    with pytest.raises(UnsupportedOperandError):
        divmod("a", xp.asarray(raw))


@pytest.mark.parametrize("kind", ["int8", "uint16", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("decimals", [0, 1, 3, -1, -2, 40, -40])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_round_to_decimals(kind: str, decimals: int) -> None:
    """The method, Python's round and NumPy's agree; ties go to the even one; no overflow."""
    info = np.iinfo if np.dtype(kind).kind in "iu" else np.finfo
    raw = np.asarray([15, 25, 35, 49, 101, 0, 1.2355, 64.5], kind)
    x = xp.asarray(raw)
    expected = raw if decimals == 40 else raw * 0 if decimals == -40 else np.round(raw, decimals)
    expected = np.where(np.isfinite(expected), expected, raw)  # NumPy overflows in float16
    for found in (x.round(decimals), np.round(x, decimals), round(x, decimals)):
        assert isinstance(found, xp.Tensor)
        laws.same(found, expected)
    laws.same(ft.jit(lambda v: v.round(decimals))(x), expected)
    laws.same(np.asarray(round(rebind.asarray(raw), decimals)), expected)
    top = xp.asarray(np.asarray([info(kind).max], kind))
    laws.same(top.round(max(decimals, 0)), top)
    laws.same(round(x), np.round(raw))
    with pytest.raises(UnsupportedOperandError, match="decimals must be an int"):
        x.round(1.5)


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda f: f.__name__)
def test_numpy_operands_under_transforms(op: Any) -> None:
    """NumPy scalars and arrays meet tracers of every transform, on either side."""
    x, y = xp.asarray([1.0, 3.0]), np.asarray([2.0, 4.0])
    for other in (y, np.float64(2.0)):
        for fun in (lambda v, o=other: op(v, o), lambda v, o=other: op(o, v)):
            expected = fun(x)
            laws.same(ft.vmap(fun)(xp.stack([x, x]))[0], expected)
            laws.same(ft.jit(fun)(x), expected)
            laws.same(ft.vjp(fun, x)[0], expected)
            laws.same(ft.jvp(fun, (x,), (x,))[0], expected)


@pytest.mark.parametrize("op", BITS, ids=lambda f: f.__name__)
def test_bitwise_operators(op: Any) -> None:
    """Bitwise operators work on integers and booleans, with numbers on either side."""
    x, y = np.asarray([1, 6, 3]), np.asarray([5, 3, 3])
    laws.same(op(xp.asarray(x), xp.asarray(y)), op(x, y))
    laws.same(op(xp.asarray(x), 3), op(x, 3))
    laws.same(op(3, xp.asarray(x)), op(3, x))
    laws.same(op(xp.asarray(x > 2), xp.asarray(y > 2)), op(x > 2, y > 2))
    laws.same(op(xp.asarray(x > 2), True), op(x > 2, True))
    laws.same(~xp.asarray(x), ~x)
    laws.same(xp.asarray(x) << 2, x << 2)
    laws.same(1 << xp.asarray(x), 1 << x)
    laws.same(xp.asarray(x) >> 1, x >> 1)
    laws.same(64 >> xp.asarray(x), 64 >> x)


@given(arrays(["int64", "float64", "complex128"]))
def test_unary_operators(x: Any) -> None:
    """Negation, plus and absolute value are NumPy's."""
    t = xp.asarray(x)
    laws.same(-t, -x)
    laws.same(+t, x)
    laws.close(abs(t), np.abs(x))
    positive = np.abs(x) + 1
    laws.close(xp.asarray(positive) ** 2, positive**2)
    laws.close(2 ** xp.asarray(positive), 2**positive)


@pytest.mark.parametrize(
    "bad", [[1], (1.0,), "a", None, {"a": 1}, object()], ids=lambda b: type(b).__name__
)
@pytest.mark.parametrize("side", ["left", "right"])
def test_other_operands_are_refused(bad: Any, side: str) -> None:
    """Lists and objects raise an error that names op, operand, the user's line, and a fix."""
    x = xp.ones(2)
    for call in (lambda: x + bad, lambda: bad + x, lambda: ft.grad(lambda v: xp.sum(v * bad))(x)):
        with pytest.raises(UnsupportedOperandError) as caught:
            call()
        text = str(caught.value)
        assert f"must be a Tensor or a Python number, got {type(bad).__name__}" in text
        assert "in test_tensor.py:" in text
        assert ("fix: funct.array.asarray(" in text) == isinstance(bad, list | tuple)


def test_order_of_operands_in_errors() -> None:
    """The message names the operand that is wrong."""
    with pytest.raises(UnsupportedOperandError) as caught:
        xp.ones(2) + [1]  # type: ignore[operator]
    assert caught.value.what == "add: x2 must be a Tensor or a Python number, got list"
    assert caught.value.fix == "funct.array.asarray(x2)"
    assert "xp.ones(2) + [1]" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: xp.ones(2) & xp.ones(2), "bitwise_and: not defined for float64, float64"),
        (lambda: xp.sin(xp.ones(2)) << 1, "bitwise_left_shift: not defined for float64, int"),
        (
            lambda: xp.astype(xp.ones(2) * 1j, "float32"),
            "astype: a complex array has no float32 value",
        ),
        (lambda: xp.floor(xp.ones(2) * 1j), "floor: not defined for complex128"),
        (
            lambda: xp.sin(xp.ones(2, dtype="bool")) if False else xp.astype(xp.ones(1), "nope"),
            "astype: 'nope' is no dtype",
        ),
        (lambda: xp.zeros(2, dtype="nope"), "zeros: 'nope' is no dtype"),
    ],
)
def test_dtype_errors(call: Any, text: str) -> None:
    """A dtype that an op is not defined for is named."""
    with pytest.raises(DTypeError) as caught:
        call()
    assert caught.value.what == text
    assert "in test_tensor.py:" in str(caught.value)


# immutability -------------------------------------------------------------------------------------


def test_assignment_raises() -> None:
    """x[0] = 1 names x.at, as do deletion's and augmented forms; += rebinds."""
    x = xp.ones(3)
    with pytest.raises(ImmutableError) as caught:
        x[0] = 1
    assert isinstance(caught.value, TypeError)
    assert "x = x.at[...].set(v)" in str(caught.value)
    assert "x[0] = 1" in str(caught.value)
    y = x
    y += 1
    assert x.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ImmutableError):
        ft.grad(lambda v: v.__setitem__(0, 1.0))(x)
    with pytest.raises(ImmutableError, match="del x"):
        del x[0]
    with pytest.raises(UnsupportedOperandError, match=r"funct\.array\.asarray"):
        xp.Array([1.0])


def test_buffers_are_read_only() -> None:
    """No view that leaves a Tensor can be written to, nor made writable."""
    x = xp.asarray(np.arange(3.0))
    raw = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        raw[0] = 5.0
    for out in (np.asarray(x[1:]), np.asarray(xp.reshape(x, (3, 1))), np.asarray(xp.ones((2, 2)))):
        assert not out.flags.writeable
    copied = np.array(x)
    copied[0] = 5.0
    assert x.tolist() == [0.0, 1.0, 2.0]
    assert np.asarray(x, dtype="float32").dtype == np.float32
    assert np.asarray(x, copy=True).flags.writeable
    other = np.from_dlpack(x)
    assert not np.shares_memory(other, raw)


def test_equal_arrays_do_not_hash() -> None:
    """== is elementwise, so Tensors do not hash."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(xp.ones(2))
    assert bool(xp.all(xp.ones(2) == xp.ones(2)))
    assert bool(xp.asarray(1.0) == 1.0)


# conversions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [True, 3, 2.5, 1 + 2j, np.int8(4), np.float32(0.5)], ids=repr)
def test_numbers(value: Any) -> None:
    """0-d arrays convert to Python numbers."""
    x = xp.asarray(value)
    assert x.item() == value
    assert type(x.item()) is type(np.asarray(value).item())
    assert x.tolist() == np.asarray(value).tolist()
    assert bool(x) == bool(value)
    assert complex(x) == complex(value)
    if x.dtype.kind != "c":
        assert float(x) == float(value)
        assert int(x) == int(value)
    if x.dtype.kind in "iu":
        assert operator.index(x) == value
        assert list(range(9))[x] == value
    else:
        with pytest.raises(TypeError):
            operator.index(x)


def test_item_and_len() -> None:
    """item takes any array of one element; len and iteration go over the first axis."""
    assert xp.asarray([[3]]).item() == 3
    x = xp.asarray(np.arange(6.0).reshape(3, 2))
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert x.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    _, _, last = x
    assert last.tolist() == [4.0, 5.0]
    for call, text in (
        (x.item, "item: the array must have one element, got shape (3, 2)"),
        (lambda: bool(x), "bool: the array must have one element, got shape (3, 2)"),
        (lambda: float(x), "float: the array must have one element, got shape (3, 2)"),
        (lambda: int(x), "int: the array must have one element, got shape (3, 2)"),
    ):
        with pytest.raises(ShapeError) as caught:
            call()
        assert caught.value.what == text


def test_a_zero_d_array_is_no_iterable() -> None:
    """As for Python's own numbers, len and iter raise TypeError, and at once."""
    for call in (len, iter, list):
        with pytest.raises(TypeError, match="len: a 0-d array has no length"):
            call(xp.asarray(1))
    assert not np.iterable(xp.asarray(1))


@pytest.mark.parametrize("transform", [ft.grad, ft.vmap], ids=["grad", "vmap"])
@pytest.mark.parametrize("leave", [np.asarray, np.from_dlpack, np.median])
@pytest.mark.parametrize("also", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_tracers_do_not_leave(transform: Any, leave: Any, also: Any) -> None:
    """No tracer becomes an ndarray in silence: a derivative would be lost."""
    with pytest.raises(TypeError):
        transform(also(lambda x: xp.asarray(leave(x)) * 1.0))(xp.asarray([1.0, 2.0]))


@pytest.mark.parametrize("leave", [np.asarray, np.from_dlpack, np.median])
def test_what_leaves_under_jit_is_not_baked_in(leave: Any) -> None:
    """The path that was compiled holds for its elements alone."""

    def fun(x: Any) -> Any:
        return xp.asarray(leave(x)) * 1.0

    compiled = ft.jit(fun)
    for first in (1.0, 3.0, 1.0):
        x = xp.asarray([first, 2.0])
        np.testing.assert_array_equal(compiled(x), fun(x))


def test_conversions_under_transforms() -> None:
    """A tracer converts through the value it stands for."""

    def fun(x: Any) -> Any:
        assert isinstance(float(x), float)
        return x * (2.0 if x > 0 else 3.0) * len([x])

    assert ft.grad(fun)(xp.asarray(1.0)).item() == 2.0
    assert ft.grad(fun)(xp.asarray(-1.0)).item() == 3.0
    assert ft.jit(fun)(xp.asarray(-1.0)).item() == -3.0


def test_attributes() -> None:
    """shape, ndim, size, dtype, device, T and mT."""
    x = xp.zeros((2, 3), dtype="float32")
    assert (x.shape, x.ndim, x.size, x.dtype, x.device) == ((2, 3), 2, 6, xp.float32, "cpu")
    assert x.T.shape == x.mT.shape == (3, 2)
    assert type(x.size) is int
    seen: list[Any] = []
    ft.jit(lambda v: seen.append((v.shape, v.ndim, v.size, v.dtype, v.device)))(x)
    assert seen == [((2, 3), 2, 6, xp.float32, "cpu")]


def test_namespace() -> None:
    """Every Tensor, traced ones too, names funct.array as its namespace."""
    assert xp.ones(1).__array_namespace__() is array
    assert xp.ones(1).__array_namespace__(api_version="2025.12") is array
    seen: list[Any] = []
    ft.grad(lambda x: seen.append(x.__array_namespace__()) or xp.sum(x))(xp.ones(1))
    assert seen == [array]


def test_packages_list_what_they_give() -> None:
    """Every name in the lists exists, and every op is listed."""
    for module in (array, ops):
        assert len(set(module.__all__)) == len(module.__all__)
        for name in module.__all__:
            assert hasattr(module, name), name
    assert {p.name for p in catalogue()} <= {*ops.__all__, *ops.special.__all__}


def test_repr_evaluates() -> None:
    """The printed form shows elements and dtype."""
    assert repr(xp.asarray([1.0, 2.5])) == "Array([1. , 2.5], dtype=float64)"
    assert repr(xp.asarray([[1], [2]], dtype="int8")) == "Array([[1],\n       [2]], dtype=int8)"


def test_buffer_is_read_only() -> None:
    """memoryview(x) shows the elements and takes none; a dtype without a format is refused."""
    view = xp.asarray([1.0, 2.0]).__buffer__(0)
    assert (view.readonly, view.format, view.tolist()) == (True, "d", [1.0, 2.0])
    with pytest.raises(ExchangeError, match="__buffer__: "):
        xp.asarray([1.0], dtype=xp.bfloat16).__buffer__(0)


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_view_of_complex_numbers_as_pairs(kind: str) -> None:
    """There and back it is NumPy's, also traced and where a part is infinite; else refused."""
    z = np.asarray([[1 + 2j, complex(3, np.inf)], [complex(np.nan, 0), 5]], kind)
    x, to = xp.asarray(z), z.real.dtype
    pairs, back = (lambda v: v.view(to)), (lambda v: v.view(to).view(kind))
    for fun in (pairs, back):
        laws.same(fun(x), fun(z))
        laws.same(ft.jit(fun)(x), fun(z))
    assert x.view() is x
    rng = np.random.default_rng(0)
    laws.check_derivatives(lambda v: xp.abs(v.view("complex128")), [xp.asarray([1.0, 2.0])], rng)
    laws.check_batch(lambda v: v.view("complex128"), [xp.asarray([1.0, 2.0])], rng)
    for refused in (
        lambda: x.view("int64"),
        lambda: x[0, 0].view(to),
        lambda: x.real.view("int8"),
        lambda: x.real[:, 0:1].view(kind),
    ):
        with pytest.raises(DTypeError, match=r"view: .* cannot be seen as"):
            refused()


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "uint64"])
def test_conj_of_real_numbers_is_a_view(kind: str) -> None:
    x = xp.arange(6, dtype=kind)
    assert np.shares_memory(np.asarray(xp.conj(x)), np.asarray(x))
    donated = ft.jit(lambda a: (xp.conj(a), a + 1), donate_argnums=0)
    kept, more = donated(xp.arange(6, dtype=kind))
    assert kept.tolist() == x.tolist()
    assert more.tolist() == (x + 1).tolist()
