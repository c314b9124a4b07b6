"""Views among handles: random programs of views and writes do what they do on NumPy's arrays."""

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.interop import rebind
from tests import laws
from tests.strategies import filled, indices

Arrays = list[Any]
ROWS = 2  # of the arrays that programs begin with; the other sides are 3 and 2


@attrs.frozen
class Step:
    """`make` gives arrays of one, which join the others; or it writes into that one."""

    of: int
    make: Callable[[Any, Any], Any]  # of a namespace and an array


def key_step(of: int, key: Any) -> Step:
    """x[key]."""
    return Step(of, lambda np_, x: x[key])


def write_step(of: int, key: Any, factor: float) -> Step:
    """x[key] = …, by what x holds, so that derivatives pass through."""

    def write(np_: Any, x: Any) -> None:
        x[key] = x[key] * factor + 1.0

    return Step(of, write)


def in_place_step(of: int) -> Step:
    """x *= …, on the whole of a view."""

    def change(np_: Any, x: Any) -> None:
        x *= 0.5

    return Step(of, change)


@st.composite
def moves(draw: Any, rank: int, size: int) -> Callable[[Any, Any], Any]:
    """A function that moves elements of an array of that rank, by a function or a method."""
    axis = draw(st.integers(-rank, rank - 1)) if rank else 0
    order = tuple(draw(st.permutations(range(rank))))
    other = draw(st.sampled_from([(size,), (1, size), (size, 1, 1), (-1,)]))
    forms = [
        lambda n, x: n.reshape(x, other),
        lambda n, x: x.reshape(other),
        lambda n, x: x.ravel(),
        lambda n, x: n.permute_dims(x, order),
        lambda n, x: x.transpose(order),
        lambda n, x: x.transpose(),
        lambda n, x: x.swapaxes(axis, -1) if rank else x,
        lambda n, x: n.expand_dims(x, axis=axis),
        lambda n, x: n.squeeze(n.expand_dims(x, axis=axis), axis=axis),
        lambda n, x: x.squeeze(),
        lambda n, x: n.flip(x),
        lambda n, x: n.asarray(x),
        lambda n, x: n.astype(x, x.dtype, copy=False),
        lambda n, x: x.astype(x.dtype, copy=False),
        lambda n, x: n.astype(x, x.dtype),
        lambda n, x: x.copy(),
        lambda n, x: x.flatten(),
        lambda n, x: n.from_dlpack(x),
        lambda n, x: n.real(x),
        lambda n, x: x.real,
        lambda n, x: x + 0.0,
    ]
    if rank:
        forms += [
            lambda n, x: n.flip(x, axis=axis),
            lambda n, x: n.moveaxis(x, axis, 0),
            lambda n, x: next(iter(x)) if len(x) else x,
            lambda n, x: n.unstack(x, axis=axis)[-1] if x.shape[axis] else x,
        ]
    if rank > 1:
        forms += [lambda n, x: x.mT, lambda n, x: n.matrix_transpose(x)]
    if rank == 2:
        forms.append(lambda n, x: x.T)
    return draw(st.sampled_from(forms))


def alone(x: Any, among: Arrays) -> Any:
    """x, if it is a view of an array among them; else its elements in C order."""
    x = np.asarray(x)
    own = x.base is None or not any(np.shares_memory(x, a) for a in among)
    return np.array(x, order="C") if own and not any(x is a for a in among) else x


def run(steps: list[Step], namespace: Any, arrays: Arrays, settled: Any) -> Arrays:
    """All arrays of a program at its end."""
    for step in steps:
        made = step.make(namespace, arrays[step.of])
        if made is not None:
            arrays = [*arrays, settled(made, arrays)]
    return arrays


@st.composite
def programs(draw: Any) -> tuple[Any, list[Step]]:
    """A first array, and steps on it and on what earlier steps gave."""
    x = filled((ROWS, 3, 2), "float64", draw(st.integers(0, 2**32 - 1)))
    steps: list[Step] = []
    arrays: Arrays = [x.copy()]
    for _ in range(draw(st.integers(1, 7))):
        of = draw(st.integers(0, len(arrays) - 1))
        shape = arrays[of].shape
        kind = draw(st.sampled_from(["key", "key", "move", "move", "write", "write", "change"]))
        if kind == "key":
            step = key_step(of, draw(indices(shape)))
        elif kind == "write":
            step = write_step(of, draw(indices(shape)), draw(st.sampled_from([-1.0, 0.0, 2.0])))
        elif kind == "change":
            step = in_place_step(of)
        else:
            step = Step(of, draw(moves(len(shape), arrays[of].size)))
        arrays = run([step], np, arrays, alone)
        steps.append(step)
    return x, steps


def kept(x: Any, arrays: Arrays) -> Any:
    """On handles nothing is to be settled."""
    return x


@given(programs())
def test_views_are_those_of_numpy(case: Any) -> None:
    """Every array, view or not, holds in the end what NumPy's holds; the Tensor is as it was."""
    x, steps = case
    tensor = xp.asarray(x)
    expected = run(steps, np, [x.copy()], alone)
    actual = run(steps, rebind, [rebind.wrap(tensor)], kept)
    for a, e in zip(actual, expected, strict=True):
        laws.same(a.unwrap(), e)
    laws.same(tensor, x)


def summary(steps: list[Step]) -> Callable[[Any], Any]:
    """A function of a Tensor: its program, and a number for each array in the end."""

    def fun(a: Any) -> Any:
        arrays = run(steps, rebind, [rebind.wrap(xp.sin(a))], kept)
        return xp.stack([xp.sum(xp.cos(x.unwrap())) for x in arrays])

    return fun


@given(programs())
def test_views_under_transforms(case: Any) -> None:
    """Derivatives are central differences, vmap is a loop, and jit is the plain call."""
    x, steps = case
    fun, a, rng = summary(steps), xp.asarray(x), np.random.default_rng(0)
    laws.check_derivatives(fun, [a], rng, order=1)
    laws.check_batch(fun, [a], rng)
    laws.close(ft.jit(fun)(a), fun(a))
    laws.close(ft.jit(ft.grad(lambda a: xp.sum(fun(a))))(a), ft.grad(lambda a: xp.sum(fun(a)))(a))


@given(programs(), st.integers(0, 7))
def test_numpy_writes_through_views(case: Any, which: int) -> None:
    """What is written into np.asarray of a view, its base and all other views of that hold."""
    x, steps = case
    expected = run(steps, np, [x.copy()], alone)
    actual = run(steps, rebind, [rebind.wrap(x)], kept)
    which %= len(actual)
    seen = np.asarray(actual[which])
    seen[...] = expected[which][...] = 7.0
    for a, e in zip(actual, expected, strict=True):
        laws.same(a.unwrap(), e)


def test_a_view_given_to_a_transform_is_an_array_of_its_own() -> None:
    """What a transformed function writes into its arguments, their owners do not see."""
    x = rebind.wrap(np.arange(4.0))
    view = x[1:3]

    def f(part: Any) -> Any:
        part[0] = 5.0 * part[1]
        return rebind.sum(part * part)

    gradient = ft.grad(f)(view)
    assert gradient.tolist() == [0.0, 104.0]
    assert ft.jit(f)(view).item() == 104.0
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_flat_sees_every_element() -> None:
    """Of an array and of a view with gaps; clients write diagonals by it."""
    for path in (lambda x: x, lambda x: x.T, lambda x: x[:, ::2], lambda x: x[::-1, 1:]):
        x = np.arange(12.0).reshape(4, 3)
        y = rebind.asarray(x, copy=True)
        for a in (path(x), path(y)):
            a.flat[:: a.shape[1] + 1] += 10.0
            a.flat[1] = -1.0
        laws.same(y.value, x)
        laws.same(path(y).flat.value, path(x).ravel())


def test_a_view_keeps_its_base_and_sees_what_it_becomes() -> None:
    """After the base's name is gone, and through a chain of views."""
    x = rebind.zeros((2, 3))
    row = x[1]
    element = row[2:, None]
    del x
    element += 1.0
    assert row.tolist() == [0.0, 0.0, 1.0]
    row[...] = 4.0
    assert element.tolist() == [[4.0]]


@pytest.mark.parametrize("name", ["real", "imag"])
def test_halves_and_readings_of_complex_numbers(name: str) -> None:
    """What is written into the parts, or into the numbers read as pairs, with infinities beside."""
    x = np.asarray([[1 + 2j, complex(3, np.inf)], [complex(-np.inf, 0), complex(np.nan, 5)]])
    z, y = x.copy(), rebind.wrap(x)
    for array in (z, y):
        getattr(array, name)[:, 1] = 7.0
        array.view("float64")[1, :3] *= 2.0
        array.view("float64").reshape(-1)[1] = 3.0
        getattr(array, name).reshape(4)[2] = 8.0
        array.view("float64")[0].view("complex128")[0] = 4j
    laws.same(y.unwrap(), z)
    np.asarray(getattr(y, name))[0, 0] = getattr(z, name)[0, 0] = -1.0
    laws.same(y.unwrap(), z)


def test_what_is_no_view() -> None:
    """Elements by themselves, index arrays, copies, broadcasts, results of arithmetic."""
    x = rebind.asarray([[1.0, 2.0], [3.0, 4.0]])
    before = x.tolist()
    made = [
        x[0, 1], x[[0, 1]], x[x > 0], x[rebind.asarray(0)], rebind.broadcast_to(x, (1, 2, 2)),
        rebind.asarray(x, copy=True), rebind.reshape(x, (4,), copy=True), rebind.wrap(x),
        x.T.reshape(4), rebind.concat([x]), rebind.unstack(x[0])[0], next(iter(x[0])), +x,
    ]  # fmt: skip
    for y in made:
        y[...] = 9.0
    assert x.tolist() == before


def test_reshape_without_a_copy() -> None:
    """copy=False gives a view or an error, by NumPy's strides."""
    x = rebind.zeros((2, 3))
    rebind.reshape(x, (3, 2), copy=False)[0, 1] = 1.0
    assert x[0, 1] == 1.0
    rebind.reshape(x[:, :2], (2, 2, 1), copy=False)[1, 0] = 2.0
    assert x[1, 0] == 2.0
    with pytest.raises(ValueError, match=r"reshape: copy=False, but \(6,\) is no view"):
        rebind.reshape(x.T, (6,), copy=False)
