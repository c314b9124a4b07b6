"""Handles: what they hold after writes, and what the rest of Python sees of them.

Views among them have a file of their own.
"""

import copy
import inspect
import operator
import pickle
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import tree
from funct.errors import DTypeError, ImmutableError, IndexOutOfBoundsError, ShapeError
from funct.interop import rebind
from tests import laws
from tests.strategies import filled, indices, shapes
from tests.together import together

FUNCTIONS = [name for name in xp.__all__ if isinstance(getattr(xp, name), FunctionType)]
IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
    operator.imod, operator.ipow,
]  # fmt: skip


@st.composite
def writes(draw: Any) -> tuple[Any, Any, Any]:
    """An array, a key for it, and a value of another dtype that fits what the key selects."""
    shape = draw(shapes(min_side=1))
    seed = draw(st.integers(0, 2**32 - 1))
    x = filled(shape, draw(st.sampled_from(["int64", "float64", "bool"])), seed)
    key = draw(indices(shape))
    selected = x[key].shape
    cut = draw(st.integers(0, len(selected)))
    return x, key, filled(selected[cut:], "int64", seed + 1)


def handled(key: Any) -> Any:
    """The key with its arrays as handles."""
    if isinstance(key, tuple):
        return tuple([handled(k) for k in key])
    return rebind.wrap(key) if isinstance(key, np.ndarray) else key


@given(writes())
def test_write_equals_numpy_and_changes_one_handle(case: Any) -> None:
    """x[key] = v gives what NumPy gives, in x's dtype; copies, other handles, the Tensor stay."""
    x, key, v = case
    tensor = xp.asarray(x)
    handle, other = rebind.wrap(tensor), rebind.wrap(tensor)
    copied = handle.copy()
    expected = x.copy()
    selected, expected_selected = handle[handled(key)], expected[key]
    expected[key] = v
    handle[handled(key)] = rebind.wrap(v)
    laws.same(handle.unwrap(), expected)
    for untouched in (tensor, other.unwrap(), copied.unwrap()):
        laws.same(untouched, x)
    laws.same(selected.unwrap(), expected_selected)


@given(writes())
def test_write_is_the_update_of_the_tensor_under_transforms(case: Any) -> None:
    """A write has the derivative of `at[key].set`, and is the same under jit."""
    x, key, v = case

    def written(a: Any, b: Any) -> Any:
        handle = rebind.wrap(a)
        handle[key] = b
        return handle.unwrap()

    a, b = xp.asarray(x.astype(float)), xp.asarray(v.astype(float))
    ct = xp.asarray(filled(x.shape, "float64", 7))
    value, pull = ft.vjp(written, a, b)
    expected, expected_pull = ft.vjp(lambda a, b: a.at[key].set(b), a, b)
    laws.same(value, np.asarray(expected))
    for got, want in zip(pull(ct), expected_pull(ct), strict=True):
        laws.same(got, np.asarray(want))
    laws.same(ft.jit(written)(a, b), np.asarray(expected))


@pytest.mark.parametrize("op", IN_PLACE, ids=lambda op: op.__name__)
def test_in_place_operators_rebind(op: Callable[[Any, Any], Any]) -> None:
    """x += v keeps the handle and gives it the new value; another keeps the old one."""
    tensor = xp.asarray([1.0, 2.0, 4.0])
    handle = same = rebind.wrap(tensor)
    other = rebind.wrap(handle)
    handle = op(handle, 3.0)
    assert handle is same
    laws.same(handle.unwrap(), op(np.asarray([1.0, 2.0, 4.0]), 3.0))
    laws.same(other.unwrap(), np.asarray(tensor))


def test_in_place_operators_keep_shape_and_dtype() -> None:
    """As in NumPy: float32 += float64 stays float32; what x cannot hold is refused."""
    x = rebind.ones(3, dtype=xp.float32)
    x += rebind.ones(3)
    assert x.dtype == xp.float32
    with pytest.raises(ShapeError, match=r"add: x of shape \(3,\) cannot hold shape \(2, 3\)"):
        x += rebind.ones((2, 3))
    n = rebind.arange(3)
    with pytest.raises(DTypeError, match="cannot hold float64"):
        n += 0.5
    laws.same(n.unwrap(), np.arange(3))


def test_client_code_that_writes_runs_under_every_transform() -> None:
    """grad, vmap and jit of code that writes into its argument, which the caller keeps."""

    def normalized(x: Any) -> Any:
        x[x < 0] = 0.0
        x[0] += x[1] * x[2]
        x /= rebind.sum(x)
        return rebind.sum(x * rebind.arange(3))

    rows = np.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 1.0]])

    def plainly(a: Any, b: Any, c: Any) -> Any:
        return (b + 2 * c) / (a + b * c + b + c)

    given_rows = rebind.wrap(rows)
    gradient = ft.vmap(ft.grad(normalized))(given_rows)
    expected = ft.vmap(ft.grad(plainly, argnums=(0, 1, 2)))(*xp.asarray(rows.T))
    assert isinstance(gradient, rebind.Array)
    laws.close(gradient.unwrap(), np.stack([np.asarray(e) for e in expected], axis=1))
    laws.close(ft.jit(ft.vmap(normalized))(given_rows).unwrap(), plainly(*rows.T))
    laws.same(given_rows.unwrap(), rows)


def test_one_compiled_path_serves_all_handles() -> None:
    """A handle is its Tensor to jit: the same signature whichever handle holds it."""
    f = ft.jit(lambda x: x * 2.0)
    for n in range(4):
        laws.same(f(rebind.wrap(np.full(3, float(n)))).unwrap(), np.full(3, 2.0 * n))
    assert f.cache_info().misses == 1


def test_a_closed_over_handle_is_read_anew() -> None:
    """A compiled function that reads a handle from its closure follows what is written there."""
    w = rebind.ones(2)
    f = ft.jit(lambda x: w * x)
    x = rebind.asarray([3.0, 4.0])
    assert [f(x).tolist(), f(x).tolist()] == [[3.0, 4.0]] * 2
    w[0] = 5.0
    assert f(x).tolist() == [15.0, 4.0]
    assert f.cache_info().misses == 2


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_lifted(name: str) -> None:
    """Every function of funct.array is here with its name, its signature and a text."""
    plain, lifted = getattr(xp, name), getattr(rebind, name)
    assert lifted is not plain
    assert lifted.__name__ == name
    assert list(inspect.signature(lifted).parameters) == list(inspect.signature(plain).parameters)
    assert lifted.__doc__
    assert pickle.loads(pickle.dumps(lifted)) is lifted


def test_constants_and_dtypes_are_the_same() -> None:
    """What is no function is taken over as it is; other names are refused by this name."""
    assert rebind.float32 is xp.float32
    assert rebind.newaxis is None
    assert rebind.pi == xp.pi
    assert rebind.__array_api_version__ == xp.__array_api_version__
    assert set(rebind.__all__) <= set(dir(rebind))
    with pytest.raises(AttributeError, match=r"funct\.interop\.rebind.*frobnicate"):
        _ = rebind.frobnicate


def test_arrays_in_containers_are_unwrapped_and_results_wrapped() -> None:
    """Lists, tuples and nested lists of handles go in; tuples of handles come out."""
    x = rebind.asarray([1.0, 2.0])
    assert isinstance(rebind.stack([x, x * 2]), rebind.Array)
    assert rebind.asarray([[x[0], 3.0], [4.0, x[1]]]).tolist() == [[1.0, 3.0], [4.0, 2.0]]
    assert all(isinstance(a, rebind.Array) for a in rebind.broadcast_arrays(x, rebind.ones((3, 1))))
    assert rebind.full(2, x[1]).tolist() == [2.0, 2.0]
    assert rebind.clip(x, max=x[0]).tolist() == [1.0, 1.0]


def test_conversion_gives_the_handle_itself_where_numpy_gives_the_array() -> None:
    """asarray, and astype with copy=False; else a new one, which is independent."""
    x = rebind.asarray([1.0, 2.0])
    assert rebind.asarray(x) is x
    assert rebind.asarray(x, copy=False) is x
    assert rebind.asarray(x, dtype=xp.float64) is x
    assert rebind.astype(x, xp.float64, copy=False) is x
    assert x.to_device("cpu") is x
    independent = [rebind.asarray(x, copy=True), rebind.astype(x, xp.float64), x.at[0].set(1.0)]
    independent += [copy.copy(x), copy.deepcopy(x), rebind.wrap(x), x.copy()]
    x[0] = 9.0
    assert [y.tolist() for y in independent] == [[1.0, 2.0]] * len(independent)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex64"])
def test_what_numpy_writes_the_handle_holds(dtype: str) -> None:
    """In every layout, for as long as anything sees the memory; Tensors and other handles stay."""
    a = np.arange(6).reshape(2, 3).astype(dtype)
    for tensor in (xp.asarray(a), xp.asarray(a).T, xp.asarray(a)[:, ::-1], xp.asarray(a)[0, 0]):
        x = rebind.wrap(tensor)
        others = copy.copy(x), rebind.wrap(tensor)
        seen = np.asarray(x)
        seen[...] = 1
        laws.same(x.unwrap(), seen)
        view = memoryview(seen[...])
        early = x.unwrap()
        del seen
        again = np.asarray(view)
        again[...] = 0
        laws.same(x.unwrap(), again)
        laws.same(early, np.ones_like(again))
        del view, again
        late = x.unwrap()
        np.asarray(x)[...] = 1
        laws.same(late, np.zeros(x.shape, dtype))
        for other in others:
            laws.same(other.unwrap(), np.asarray(tensor))


def test_who_does_not_share_with_numpy() -> None:
    """copy=True, another dtype, and what was given before the handle was written into."""
    x = rebind.asarray([1.0, 2.0])
    for own in (np.array(x), np.asarray(x, copy=True), np.asarray(x, dtype="float32")):
        own[:] = 0
    before = np.asarray(x)
    x[0] = 5.0
    before[:] = 0
    assert x.tolist() == [5.0, 2.0]
    assert not np.asarray(x, copy=False).flags.writeable
    with pytest.raises(ValueError, match="is cast to"):
        np.asarray(x, dtype="float32", copy=False)


def test_an_output_of_scipy() -> None:
    """A function that fills its argument fills a handle."""
    ndimage = pytest.importorskip("scipy.ndimage", reason="SciPy is not installed")
    out = rebind.zeros(3)
    ndimage.correlate(np.asarray([1.0, 2.0, 3.0]), np.ones(3), output=np.asarray(out))
    assert out.tolist() == [4.0, 6.0, 8.0]


def test_protocols() -> None:
    """Namespace, pickle, NumPy, DLPack, numbers, iteration, hash, repr and tree of a handle."""
    x = rebind.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert x.__array_namespace__(api_version="2025.12") is rebind
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    assert np.from_dlpack(x).tolist() == x.tolist()
    assert rebind.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]
    assert (len(x), [row.tolist() for row in x]) == (2, x.tolist())
    assert (float(x[0, 1]), int(x[1, 0]), bool(x[0, 0]), complex(x[0, 0])) == (2.0, 3, True, 1 + 0j)
    assert operator.index(rebind.asarray(2)) == 2
    assert (x.shape, x.ndim, x.size, x.dtype, x.device) == ((2, 2), 2, 4, xp.float64, "cpu")
    assert (x.T[0, 1].item(), x.mT[1, 0].item(), x.to_device("cpu").tolist()) == (3, 2, x.tolist())
    assert repr(rebind.asarray([1])) == "rebind.wrap(Array([1], dtype=int64))"
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    (leaf,) = tree.leaves({"x": x})
    assert leaf is x.unwrap()


def test_threads_fill_one_array() -> None:
    """Writes from several threads into parts of one array are all there in the end."""
    x = rebind.zeros((8, 50))

    def fill(k: int) -> None:
        for i in range(50):
            x[k, i] = 1.0
            x[k, i] += k

    together(8, fill)
    laws.same(x.unwrap(), np.repeat(np.arange(8.0)[:, None] + 1.0, 50, axis=1))


def test_threads_fill_one_array_through_numpy() -> None:
    """NumPy's code in several threads, each with a view of one array, writes into one memory."""
    for _ in range(20):
        x = rebind.zeros((8, 20_000))

        def fill(k: int, x: Any = x) -> None:
            np.asarray(x[k])[:] = k + 1.0

        together(8, fill)
        laws.same(x[:, 0].unwrap(), np.arange(8.0) + 1.0)


def test_methods_are_lifted() -> None:
    """NumPy's methods and ufuncs take handles and give handles; `copy` gives an independent one."""
    x = rebind.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert x.sum(axis=0).tolist() == [4.0, 6.0]
    assert x.reshape(-1).max().item() == 4.0
    assert x.dot(x).tolist() == (x @ x).tolist()
    assert x.real.tolist() == x.tolist()
    assert isinstance(np.hypot(x, 2.0), rebind.Array)
    assert f"{x[1, 1]:.2f}" == f"{x.unwrap()[1, 1]:.2f}" == "4.00"
    assert f"{x}" == str(x)
    y = x.copy()
    x[0, 0] = 9.0
    assert y[0, 0] == 1.0
    gradient = ft.grad(lambda x: np.sin(x).sum())(rebind.wrap([0.0, 1.0]))
    laws.close(gradient.unwrap(), np.cos([0.0, 1.0]))


def test_what_numpy_is_told_to_write_into() -> None:
    """`out` of methods, functions and ufuncs, and the array of `ufunc.at`, under jit as well."""

    def program(n: Any, x: Any) -> Any:
        y, z = n.zeros(3), n.zeros((2, 3))
        assert np.sum(x, axis=0, out=y) is y
        assert np.clip(x, 1.0, None, out=z) is z
        np.multiply(z, 2.0, out=z)
        return n.concat([y, z.ravel()])

    x = np.arange(6.0).reshape(2, 3)
    laws.same(program(rebind, rebind.asarray(x)).value, program(np, x))
    traced = ft.jit(lambda x: program(rebind, rebind.wrap(x)).value)(xp.asarray(x))
    laws.same(traced, program(np, x))
    whole, part = rebind.zeros(3), rebind.empty(3)
    np.add.at(whole, [0, 0, 2], 1.5)
    assert whole.tolist() == [3.0, 0.0, 1.5]
    quotient, rest = np.divmod(whole, 2.0, out=(None, part))  # type: ignore[call-overload]
    assert rest is part
    assert (quotient.tolist(), rest.tolist()) == ([1.0, 0.0, 0.0], [1.0, 0.0, 1.5])
    with pytest.raises(ShapeError, match=r"add: x of shape \(3,\) cannot hold"):
        np.add(rebind.zeros((2, 3)), 1.0, out=part)  # type: ignore[call-overload]
    with pytest.raises(DTypeError, match="cannot hold float64"):
        np.clip(part, 0.0, 1.0, out=rebind.zeros(3, dtype=rebind.int64))  # type: ignore[call-overload]


def test_numpy_operands() -> None:
    """NumPy arrays and scalars on either side of an operator give handles."""
    x = rebind.asarray([1.0, 2.0])
    for y in (np.ones(2) + x, x + np.ones(2), np.float64(1) + x, 1 + x):
        assert isinstance(y, rebind.Array)
        assert y.tolist() == [2.0, 3.0]


def test_a_handle_stands_for_its_tensor() -> None:
    """funct.array takes a handle where it converts; a tracer inside stays traced."""
    x = rebind.asarray([1.0, 2.0])
    assert xp.asarray(x) is x.unwrap()
    gradient = ft.grad(lambda a: xp.sum(xp.asarray(rebind.wrap(a) ** 2)))(x.unwrap())
    assert gradient.tolist() == [2.0, 4.0]


def test_errors() -> None:
    """What a Tensor refuses, a handle refuses and keeps its value; a Tensor names the way out."""
    x = rebind.asarray([1.0, 2.0])
    with pytest.raises(IndexOutOfBoundsError):
        x[5] = 0.0
    with pytest.raises(ShapeError):
        x[:] = rebind.ones(3)
    assert x.tolist() == [1.0, 2.0]
    with pytest.raises(ImmutableError, match=r"x\.at"):
        x.unwrap()[0] = 0.0
