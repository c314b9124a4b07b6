"""Manipulation functions against NumPy, and the laws they obey."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ShapeError, UnsupportedOperandError
from tests import laws
from tests.strategies import arrays, broadcastable, filled, with_axes, with_axis

SEEDS = st.integers(0, 2**32 - 1)


def check(fun: Any, *xs: Any) -> None:
    """Derivatives, vmap and jit of a function of floating arrays."""
    rng = np.random.default_rng(0)
    args = [xp.asarray(filled(x.shape, "float64", 1)) for x in xs]
    if all(a.size for a in args):
        laws.check_derivatives(fun, args, rng, order=1)
    laws.check_batch(fun, args, rng)
    laws.check_jit(fun, args)


@given(arrays(), st.data())
def test_reshape(x: Any, data: Any) -> None:
    """reshape keeps the elements in C order; one entry may be -1; lists and ints are shapes."""
    shape = data.draw(st.permutations(x.shape)) + data.draw(st.sampled_from([[], [1]]))
    t = xp.asarray(x)
    laws.same(xp.reshape(t, tuple(shape)), x.reshape(shape))
    laws.same(xp.reshape(t, shape), x.reshape(shape))
    if x.size and shape:
        k = data.draw(st.integers(0, len(shape) - 1))
        free = [-1 if i == k else n for i, n in enumerate(shape)]
        laws.same(xp.reshape(t, free), x.reshape(free))
        laws.same(xp.reshape(t, -1), x.reshape(-1))
    check(lambda v: xp.reshape(v, tuple(shape)), x)


@given(with_axis(), st.data())
def test_concat_and_stack(case: Any, data: Any) -> None:
    """concat and stack are NumPy's for any number of arrays, promotion included."""
    x, axis = case
    k = axis % x.ndim
    others = [
        data.draw(arrays(min_rank=x.ndim, max_rank=x.ndim).map(lambda v: v))
        for _ in range(data.draw(st.integers(0, 3)))
    ]
    fitting = [x] + [
        np.resize(o, [n if i != k else o.shape[k] for i, n in enumerate(x.shape)]) for o in others
    ]
    ts = [xp.asarray(v) for v in fitting]
    laws.same(xp.concat(ts, axis=axis), np.concatenate(fitting, axis))
    laws.same(xp.concat(ts, axis=None), np.concatenate(fitting, None))
    same_shape = [np.resize(o, x.shape) for o in fitting]
    ts = [xp.asarray(v) for v in same_shape]
    laws.same(xp.stack(ts, axis=axis), np.stack(same_shape, axis))
    if len(fitting) == 2:
        check(lambda a, b: xp.concat([a, b], axis=axis), *fitting)


@given(with_axis())
def test_unstack(case: Any) -> None:
    """unstack gives the slices along an axis; stack puts them back."""
    x, axis = case
    parts = xp.unstack(xp.asarray(x), axis=axis)
    laws.same(list(parts), list(np.moveaxis(x, axis, 0)))
    if len(parts):
        laws.same(xp.stack(parts, axis=axis), x)


@given(broadcastable(3), SEEDS)
def test_broadcasting(given_shapes: Any, seed: int) -> None:
    """broadcast_arrays, broadcast_shapes and broadcast_to are NumPy's."""
    xs = [filled(s, "float64", seed) for s in given_shapes]
    laws.same(list(xp.broadcast_arrays(*map(xp.asarray, xs))), list(np.broadcast_arrays(*xs)))
    common = np.broadcast_shapes(*given_shapes)
    assert xp.broadcast_shapes(*given_shapes) == common
    laws.same(xp.broadcast_to(xp.asarray(xs[0]), common), np.broadcast_to(xs[0], common))
    check(lambda v: xp.broadcast_to(v, common), xs[0])


@given(arrays(), st.data())
def test_permutations(x: Any, data: Any) -> None:
    """permute_dims and moveaxis are NumPy's."""
    axes = data.draw(st.permutations(range(x.ndim)))
    signed = tuple([a - x.ndim if data.draw(st.booleans()) else a for a in axes])
    laws.same(xp.permute_dims(xp.asarray(x), signed), np.transpose(x, signed))
    check(lambda v: xp.permute_dims(v, signed), x)
    n = data.draw(st.integers(0, x.ndim))
    source, to = signed[:n], tuple(data.draw(st.permutations(range(x.ndim))))[:n]
    laws.same(xp.moveaxis(xp.asarray(x), source, to), np.moveaxis(x, source, to))
    if n:
        laws.same(xp.moveaxis(xp.asarray(x), source[0], to[0]), np.moveaxis(x, source[0], to[0]))
    if x.ndim >= 2:
        laws.same(xp.matrix_transpose(xp.asarray(x)), np.swapaxes(x, -1, -2))
        laws.same(xp.asarray(x).mT, np.swapaxes(x, -1, -2))


@given(arrays(), st.data())
def test_axes_of_length_one(x: Any, data: Any) -> None:
    """expand_dims puts axes in, squeeze takes them out."""
    rank = x.ndim + data.draw(st.integers(1, 2))
    axes = tuple(data.draw(st.permutations(range(rank))))[: rank - x.ndim]
    wide = np.expand_dims(x, axes)
    laws.same(xp.expand_dims(xp.asarray(x), axis=axes), wide)
    laws.same(xp.expand_dims(xp.asarray(x), axis=-1), np.expand_dims(x, -1))
    laws.same(xp.squeeze(xp.asarray(wide), axis=axes), np.squeeze(wide, axes))
    check(lambda v: xp.expand_dims(v, axis=axes), x)


@given(with_axes(), st.data())
def test_roll_by_what_only_the_program_knows(case: Any, data: Any) -> None:
    """The same elements under jit, vmap and scan, and derivatives too."""
    x, axis = case
    given, kind = xp.asarray(x), data.draw(st.sampled_from([np.int64, np.int8]))
    shift = st.integers(-9, 9) | st.sampled_from([np.iinfo(kind).min, np.iinfo(kind).max])
    shifts = data.draw(st.lists(shift, min_size=2, max_size=2))
    asked = np.asarray(shifts, kind)
    expected = np.stack([np.roll(x, int(s), axis) for s in shifts])

    def rolled(s: Any) -> Any:
        return xp.roll(given, s, axis=axis)

    laws.same(ft.vmap(rolled)(xp.asarray(asked)), expected)
    laws.same(ft.scan(lambda c, s: (c, rolled(s)), 0, xp.asarray(asked))[1], expected)
    for s, e in zip(asked, expected, strict=True):
        laws.same(ft.jit(rolled)(xp.asarray(s)), e)
    check(lambda v: ft.vmap(lambda s: xp.roll(v, s, axis=axis))(xp.asarray(asked)), x)


def test_roll_by_many_shifts_compiles_once() -> None:
    rolled = ft.jit(lambda x, s, t: xp.roll(x, (s, t), axis=(0, 1)))
    x = np.arange(35.0).reshape(5, 7)
    for s, t in np.random.default_rng(0).integers(-20, 20, (30, 2)):
        laws.same(rolled(xp.asarray(x), xp.asarray(s), xp.asarray(t)), np.roll(x, (s, t), (0, 1)))
    assert rolled.cache_info().misses == 1


def test_roll_by_what_is_no_integer() -> None:
    with pytest.raises(UnsupportedOperandError, match="shift must be an int or a tuple of ints"):
        ft.jit(xp.roll)(xp.arange(4.0), xp.asarray(1.5))
    with pytest.raises(UnsupportedOperandError, match="shift must be an int or a tuple of ints"):
        ft.vmap(lambda s: xp.roll(xp.arange(4.0), s))(xp.ones((2, 3), dtype=xp.int64))


@given(with_axes())
def test_flip(case: Any) -> None:
    """flip is NumPy's for None, ints and tuples."""
    x, axis = case
    laws.same(xp.flip(xp.asarray(x), axis=axis), np.flip(x, axis))
    check(lambda v: xp.flip(v, axis=axis), x)


@given(with_axes(), st.data())
def test_roll(case: Any, data: Any) -> None:
    """roll is NumPy's for one shift, one per axis, and the flat array."""
    x, axis = case
    shift = data.draw(st.integers(-5, 5))
    laws.same(xp.roll(xp.asarray(x), shift, axis=axis), np.roll(x, shift, axis))
    if isinstance(axis, tuple):
        shifts = tuple([data.draw(st.integers(-5, 5)) for _ in axis])
        laws.same(xp.roll(xp.asarray(x), shifts, axis=axis), np.roll(x, shifts, axis))
    check(lambda v: xp.roll(v, shift, axis=axis), x)


@given(with_axis(), st.data())
def test_repeat(case: Any, data: Any) -> None:
    """repeat is NumPy's for one count, one per element, and the flat array."""
    x, axis = case
    n = data.draw(st.integers(0, 3))
    laws.same(xp.repeat(xp.asarray(x), n, axis=axis), np.repeat(x, n, axis))
    laws.same(xp.repeat(xp.asarray(x), n), np.repeat(x, n))
    counts = np.arange(x.shape[axis]) % 3
    laws.same(xp.repeat(xp.asarray(x), xp.asarray(counts), axis=axis), np.repeat(x, counts, axis))
    check(lambda v: xp.repeat(v, n, axis=axis), x)


@given(arrays(), st.lists(st.integers(0, 3), max_size=4).map(tuple))
def test_tile(x: Any, repetitions: Any) -> None:
    """tile is NumPy's, with more and with fewer repetitions than axes."""
    laws.same(xp.tile(xp.asarray(x), repetitions), np.tile(x, repetitions))
    check(lambda v: xp.tile(v, repetitions), x)


@pytest.mark.parametrize(
    ("shape", "repetitions"),
    [((100, 30), (1, 4)), ((100, 30), (4, 1)), ((100, 30), (3, 2)), ((50, 3, 70), (2, 1, 3)),
     ((10000, 1), (1, 5)), ((5000,), (2, 3)), ((7, 900), (2, 2, 2)), ((900, 9), (2,)),
     ((1, 9000), (3, 1)), ((9000,), 7), ((0, 9000), (2, 9000)), ((9000, 2), (0, 2))],
)  # fmt: skip
def test_large_tiles(shape: Any, repetitions: Any) -> None:
    """Short rows and long ones, axes that are new, and views."""
    x = np.random.default_rng(0).standard_normal(shape)
    for v in (x, x.T, x[..., ::-1]):
        laws.same(xp.tile(xp.asarray(v), repetitions), np.tile(v, repetitions))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@given(x=arrays(), data=st.data())
def test_pad(mode: Any, x: Any, data: Any) -> None:
    """pad is NumPy's in every mode, and keeps the dtype."""
    assume(mode == "constant" or x.size)
    pairs = [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in x.shape]
    laws.same(xp.pad(xp.asarray(x), pairs, mode), np.pad(x, pairs, mode) if x.ndim else x)
    check(lambda v: xp.pad(v, pairs, mode), x)


@given(arrays(min_rank=1), st.integers(0, 2), st.integers(0, 2))
def test_pad_widths_and_constants(x: Any, low: int, high: int) -> None:
    """One number or pair serves all axes; the constant may be an array and has a derivative."""
    t = xp.asarray(x)
    laws.same(xp.pad(t, low), np.pad(x, low))
    laws.same(xp.pad(t, (low, high), constant_values=1), np.pad(x, (low, high), constant_values=1))
    fun = lambda v, c: xp.pad(v, (low, high), constant_values=c)  # noqa: E731
    args = [xp.ones(x.shape), xp.asarray(2.0)]
    laws.check_derivatives(fun, args, np.random.default_rng(0), order=1)
    laws.check_batch(fun, args, np.random.default_rng(0))
    laws.check_jit(fun, args)


@given(arrays(["int64", "float64"], max_rank=2), arrays(["int64", "float64"], max_rank=2))
def test_kron(x: Any, y: Any) -> None:
    """kron is NumPy's for operands of any ranks."""
    laws.close(xp.kron(xp.asarray(x), xp.asarray(y)), np.asarray(np.kron(x, y)))
    check(lambda v: xp.kron(v, xp.asarray(y)), x)


@given(arrays())
def test_ravel(x: Any) -> None:
    """ravel gives the elements in C order."""
    laws.same(xp.ravel(xp.asarray(x)), np.ravel(x))


@given(st.integers(1, 30))
def test_many_arrays_concat(n: int) -> None:
    """Any number of arrays can be joined."""
    xs = [np.full((k % 3,), float(k)) for k in range(n)]
    laws.same(xp.concat([xp.asarray(x) for x in xs]), np.concatenate(xs))


X = xp.zeros((2, 3))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: xp.reshape(X, (4, 2)),
            "reshape: 6 elements of shape (2, 3) do not fill shape (4, 2)",
        ),
        (
            lambda: xp.reshape(X, (-1, 4)),
            "reshape: 6 elements of shape (2, 3) do not fill shape (-1, 4)",
        ),
        (lambda: xp.reshape(X, (-1, -1)), "reshape: at most one entry may be -1, got (-1, -1)"),
        (lambda: xp.reshape(X, (-2, 3)), "reshape: shape must not be negative, got (-2, 3)"),
        (lambda: xp.reshape(X, (2.5,)), "reshape: shape must hold ints, got 2.5 in (2.5,)"),
        (lambda: xp.reshape(X, "ab"), "reshape: shape must hold ints, got 'ab' in 'ab'"),
        (lambda: xp.zeros(-1), "zeros: shape must not be negative, got -1"),
        (lambda: xp.concat([]), "concat: at least one array is needed, got none"),
        (
            lambda: xp.concat([X, xp.zeros((2, 3, 1))]),
            "concat: ranks must agree, got (2, 3) and (2, 3, 1)",
        ),
        (
            lambda: xp.concat([X, xp.zeros((2, 4))]),
            "concat: shapes must agree except on axis 0, got (2, 3) and (2, 4)",
        ),
        (
            lambda: xp.concat([X, X], axis=2),
            "concat: axis 2 is out of range for an array of rank 2",
        ),
        (lambda: xp.stack([X, xp.zeros(3)]), "stack: shapes must agree, got (2, 3) and (3,)"),
        (lambda: xp.stack([]), "stack: at least one array is needed, got none"),
        (lambda: xp.squeeze(X, axis=0), "squeeze: axis 0 has length 2, expected 1"),
        (
            lambda: xp.expand_dims(X, axis=4),
            "expand_dims: axis 4 is out of range for an array of rank 3",
        ),
        (
            lambda: xp.permute_dims(X, (0, 0)),
            "permute_dims: axes must be a permutation of 2 axes, got (0, 0)",
        ),
        (
            lambda: xp.permute_dims(X, (0,)),
            "permute_dims: axes must be a permutation of 2 axes, got (0,)",
        ),
        (lambda: xp.flip(X, axis=(0, -2)), "flip: an axis occurs twice in (0, -2)"),
        (lambda: xp.flip(X, axis=1.5), "flip: axis must be an int, got 1.5"),
        (lambda: xp.sum(X, axis=-3), "sum: axis -3 is out of range for an array of rank 2"),
        (
            lambda: xp.moveaxis(X, (0, 1), (0,)),
            "moveaxis: source and destination must be as many, got (0, 1) and (0,)",
        ),
        (lambda: xp.moveaxis(X, (0, 0), (0, 1)), "moveaxis: an axis occurs twice in (0, 0)"),
        (
            lambda: xp.roll(X, (1, 2), axis=0),
            "roll: shift and axis must be as many, got (1, 2) and 0",
        ),
        (lambda: xp.repeat(X, -1), "repeat: repeats must not be negative, got -1"),
        (
            lambda: xp.repeat(X, xp.asarray([1, 2]), axis=1),
            "repeat: repeats of shape (2,) must broadcast to axis 1 of length 3",
        ),
        (lambda: xp.tile(X, (-1,)), "tile: repetitions must not be negative, got (-1,)"),
        (
            lambda: xp.pad(X, (1, 1, 1)),
            "pad: pad_width needs one (low, high) pair per axis of (2, 3), got (1, 1, 1)",
        ),
        (
            lambda: xp.pad(X, ((1, 1), (-1, 0))),
            "pad: pad_width must not be negative, got ((1, 1), (-1, 0))",
        ),
        (
            lambda: xp.broadcast_to(X, (3, 3)),
            "broadcast_to: shape (2, 3) does not broadcast to (3, 3)",
        ),
        (
            lambda: xp.broadcast_arrays(X, xp.zeros(2)),
            "broadcast_arrays: shapes ((2, 3), (2,)) cannot be broadcast: 3 != 2",
        ),
        (lambda: xp.meshgrid(X), "meshgrid: arrays must be 1-D, got shape (2, 3)"),
        (lambda: xp.tril(xp.zeros(3)), "tril: x must have at least 2 axes, got shape (3,)"),
        (
            lambda: xp.asarray([X, xp.zeros(3)]),
            "asarray: parts must have one shape, got [(2, 3), (3,)]",
        ),
        (lambda: X + xp.zeros((2, 2)), "add: shapes (2, 3) and (2, 2) cannot be broadcast: 3 != 2"),
        (lambda: xp.zeros(3).T, "T: x must be 2-D, got shape (3,)"),
        (
            lambda: xp.matrix_transpose(xp.zeros(3)),
            "matrix_transpose: x must have at least 2 axes, got shape (3,)",
        ),
    ],
)
def test_bad_shapes_and_axes(call: Any, text: str) -> None:
    """The error names function, expectation and value, and quotes this file's line."""
    with pytest.raises(ShapeError) as caught:
        call()
    assert caught.value.what == text
    assert "in test_manipulation.py:" in str(caught.value)
    assert (
        "lambda" in str(caught.value) or "call()" in str(caught.value) or "X" in str(caught.value)
    )


def test_transpose_reverses() -> None:
    """Without axes their order is reversed; a range is a sequence of axes."""
    x = xp.ones((2, 3, 4))
    assert xp.transpose(x).shape == x.transpose().shape == (4, 3, 2)
    assert xp.permute_dims(x, range(3)).shape == (2, 3, 4)


@pytest.mark.parametrize("shape", [(500, 16), (70, 9, 13), (9000, 1), (40, 200)])
def test_roll_of_many_lines(shape: tuple[int, ...]) -> None:
    """Short lines and long ones, by any distance, along each axis and over all."""
    x = np.arange(np.prod(shape)).reshape(shape)
    for y in (x, x.astype(np.int16), x[::-1]):
        for axis in (None, *range(-1, len(shape))):
            for shift in (0, 3, -1, 1000):
                laws.same(xp.roll(xp.asarray(y), shift, axis=axis), np.roll(y, shift, axis))
