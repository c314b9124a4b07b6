"""jit: equal to eager, one path per decision, honest about what it compiled and why."""

import copy
import functools
import itertools
import math
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import IndexOutOfBoundsError, TransformError
from tests import laws
from tests.together import together
from tests.transforms.test_grad import arr


def collatz(x: Any) -> Any:
    """Number of steps to 1, in plain Python."""
    n = 0
    while x > 1.0:
        x = x / 2.0 if int(x) % 2 == 0 else 3.0 * x + 1.0
        n += 1
    return x * n


def relu_by_if(x: Any) -> Any:
    """Two branches with two derivatives."""
    return x * x if x > 0.0 else -x


def test_python_control_flow_is_guarded() -> None:
    """while, if and int() on values give eager's results, whatever came before."""
    f = ft.jit(collatz)
    for x in (6.0, 7.0, 6.0, 1.0, 27.0):
        laws.same(f(arr(x)), collatz(arr(x)))


def test_one_compilation_per_path() -> None:
    """Each path compiles once, and explain says which guard was missed."""
    f = ft.jit(relu_by_if)
    for x in (2.0, -3.0, 4.0, -1.0, 0.5):
        laws.same(f(arr(x)), relu_by_if(arr(x)))
    assert f.cache_info() == (3, 2, 2)
    text = f.explain()
    assert "jit(relu_by_if): 2 compilations" in text
    assert "bool() == True at test_jit.py:" in text
    f.clear_cache()
    assert f.cache_info() == (0, 0, 0)


def test_derivatives_follow_the_path() -> None:
    """grad of jit, jit of grad and second order see the branch that was taken."""
    f = ft.jit(relu_by_if)
    for x in (2.0, -3.0, 4.0):
        first, second = (2 * x, 2.0) if x > 0 else (-1.0, 0.0)
        assert float(ft.grad(f)(arr(x))) == first
        assert float(ft.jit(ft.grad(f))(arr(x))) == first
        assert float(ft.grad(ft.grad(f))(arr(x))) == second
        assert float(ft.jvp(f, (arr(x),), (arr(1.0),))[1]) == first


def test_many_paths_fall_back_to_the_function() -> None:
    """Past the limit the function itself is called: slower, never wrong, never an error."""
    f = ft.jit(lambda x: x * int(x))
    for k in range(20):
        assert float(f(arr(float(k)))) == float(k * k)
    assert f.cache_info().misses == 8


def test_decisions_that_hang_on_the_last_bits() -> None:
    """Machine code may round otherwise than what was captured; the call's result is eager's."""
    x = xp.asarray(np.random.default_rng(0).normal(size=(40, 100)))
    seen = xp.vecdot(x, x + 1.0)

    def fun(x: Any) -> Any:
        return 2.0 * x[xp.vecdot(x, x + 1.0) == seen]

    f = ft.jit(fun, mode="reduce-overhead")
    bits = ft.jit(lambda x: xp.vecdot(x, x + 1.0), mode="reduce-overhead")(x)
    assert not xp.all(bits == seen), "here machine code rounds as NumPy does: nothing is tested"
    for _ in range(2):
        laws.same(f(x), fun(x))
    laws.same(ft.grad(lambda x: xp.sum(f(x)))(x), xp.full_like(x, 2.0))
    told: list[float] = []

    def tells(x: Any) -> Any:
        ft.io_callback(lambda v: told.append(float(v)), None, x[0, 0])
        return fun(x)

    f = ft.jit(tells, mode="reduce-overhead")
    for calls in (1, 2):
        laws.same(f(x), fun(x))
        assert told == [float(x[0, 0])] * calls


def test_masks_and_data_dependent_shapes() -> None:
    """Boolean masks and nonzero work; their values are part of the path."""

    def f(x: Any) -> Any:
        return xp.sum(x[x > 0.0]) + float(xp.nonzero(x)[0].shape[0])

    g = ft.jit(f)
    for v in ([1.0, -2.0, 3.0], [-1.0, 2.0, 0.0], [1.0, -2.0, 3.0]):
        laws.same(g(arr(v)), f(arr(v)))


def test_trees_keywords_and_static_arguments() -> None:
    """Dicts, keywords, strings, numbers and None pass; what is no array is part of the
    signature.
    """

    def f(p: Any, x: Any, *, mode: str = "add", n: int = 1, extra: Any = None) -> Any:
        y = p["w"] * x if mode == "mul" else p["w"] + x
        return {"y": y * n, "mode": mode, "none": extra, "n": n}

    g = ft.jit(f)
    p, x = {"w": arr([1.0, 2.0])}, arr([3.0, 4.0])
    for kwargs in ({}, {"mode": "mul"}, {"mode": "mul", "n": 3}):
        out = g(p, x, **kwargs)
        laws.same(out["y"], f(p, x, **kwargs)["y"])
        assert (out["mode"], out["none"], out["n"]) == (
            kwargs.get("mode", "add"),
            None,
            kwargs.get("n", 1),
        )
    assert g.cache_info().misses == 3
    h = ft.jit(lambda x, f: f(x), static_argnums=1)
    laws.close(h(x, xp.sin), xp.sin(x))
    laws.close(h(x, xp.cos), xp.cos(x))
    named = ft.jit(lambda x, how=None: how(x), static_argnames="how")
    laws.close(named(x, how=xp.exp), xp.exp(x))
    with pytest.raises(TransformError, match="arguments that are no arrays must be hashable"):
        ft.jit(lambda x, s: x)(x, {1, 2})


def test_static_values_that_compare_equal_are_told_apart() -> None:
    """1, 1.0 and True, 0.0 and -0.0 are different arguments; NaN is one argument."""
    x = xp.asarray([1, 2])
    for f in (ft.jit(lambda x, k: x * k), ft.jit(lambda x, k: x * k, static_argnums=1)):
        for k in (1, 1.0, True, 1, 0.0, -0.0):
            laws.same(f(x, k), x * k)
            assert bool(xp.all(xp.signbit(f(x * 1.0, k)) == xp.signbit(x * 1.0 * k)))
    g = ft.jit(lambda x, k: x + k)
    for _ in range(3):
        g(x, float("nan"))
    assert g.cache_info().misses == 1


def test_static_tuples_are_told_apart_as_their_members_are() -> None:
    """Tuples of equal numbers are equal, and the numbers compute differently."""
    x = xp.asarray([1, 2])
    f = ft.jit(lambda x, k: x * k[0][0], static_argnums=1)
    for k in (1, 1.0, True, 1, 0.0, -0.0):
        laws.same(f(x, ((k,),)), x * k)
        assert bool(xp.all(xp.signbit(f(x * 1.0, ((k,),))) == xp.signbit(x * 1.0 * k)))


@pytest.mark.parametrize("way", ["positions", "keywords", "a dict", "a list"])
def test_where_the_arrays_stand_is_part_of_the_signature(way: str) -> None:
    """Every choice of which arguments are arrays, in every order: the same types and the same
    numbers in other places are another call.
    """
    x = xp.asarray([1.0, 2.0])

    def fun(a: Any, b: Any, c: Any) -> Any:
        return a - b * 10.0 + c * 100.0

    calls = {
        "positions": lambda f: f,
        "keywords": lambda f: lambda a, b, c: f(a=a, b=b, c=c),
        "a dict": lambda f: lambda a, b, c: f({"a": a, "b": b, "c": c}),
        "a list": lambda f: lambda *abc: f(list(abc)),
    }
    of_one = {"a dict": lambda t: fun(**t), "a list": lambda t: fun(*t)}
    call = calls[way](ft.jit(of_one.get(way, fun)))
    choices = list(itertools.product((x, xp.asarray(3.0), 3.0, 2.0), repeat=3))
    for k in np.random.default_rng(0).permutation(len(choices)):
        laws.close(call(*choices[k]), fun(*choices[k]), 1e-12, 1e-12)


def test_paths_are_counted_once() -> None:
    """A length compiled alone and then served by the path for any length keeps each path once."""
    f = ft.jit(lambda x: x * 2.0 if xp.sum(x) > 0 else -x)
    for n, sign in ((4, 1.0), (5, 1.0), (5, -1.0), (4, -1.0), (4, 1.0), (4, -1.0)):
        x = xp.ones(n) * sign
        laws.same(f(x), x * 2.0 if sign > 0 else -x)
    assert f.cache_info() == (3, 3, 3)


def test_methods_partials_and_nested_jit() -> None:
    """Decorated methods, partials and functions that call compiled functions work."""

    class Scaler:
        def __init__(self, k: float) -> None:
            self.k = k

        @ft.jit
        def scale(self, x: Any) -> Any:
            return x * self.k

        def __hash__(self) -> int:
            return hash(self.k)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Scaler) and other.k == self.k

    assert float(Scaler(2.0).scale(arr(3.0))) == 6.0
    assert float(Scaler(5.0).scale(arr(3.0))) == 15.0
    assert float(ft.jit(functools.partial(lambda a, b: a - b, arr(10.0)))(arr(3.0))) == 7.0
    inner = ft.jit(lambda x: x * x)
    assert float(ft.jit(lambda x: inner(x) + inner(x))(arr(3.0))) == 18.0


SCALE = 2.0


def test_names_the_function_reads_are_watched() -> None:
    """Rebinding a closure cell or a global that the function names compiles again."""
    k = arr(2.0)

    def f(x: Any) -> Any:
        return x * k * SCALE

    g = ft.jit(f)
    assert float(g(arr(1.0))) == 4.0
    k = arr(3.0)
    assert float(g(arr(1.0))) == 6.0
    global SCALE
    SCALE = 10.0
    try:
        assert float(g(arr(1.0))) == 30.0
    finally:
        SCALE = 2.0


def test_errors_in_compiled_code_are_the_eager_ones() -> None:
    """An index out of bounds raises eager's exception, with the user's line, at any call."""
    f = ft.jit(lambda x, i: xp.take(x, i, axis=0) * 2.0)
    x = arr([1.0, 2.0, 3.0])
    laws.close(f(x, xp.asarray([0, 2])), arr([2.0, 6.0]))
    with pytest.raises(IndexOutOfBoundsError) as caught:
        f(x, xp.asarray([0, 7]))
    assert "index 7 is out of bounds for an axis of length 3" in str(caught.value)
    assert "xp.take(x, i, axis=0)" in str(caught.value)
    laws.close(f(x, xp.asarray([1, 1])), arr([4.0, 4.0]))


def test_graph_and_show() -> None:
    """The graph that serves a call can be looked at and called."""
    f = ft.jit(lambda x: xp.sin(x) * xp.sin(x))
    graph = f.graph(arr([1.0]))
    assert [n.name for n in graph.nodes] == ["sin", "multiply"]
    laws.close(graph(arr([2.0]))[0], xp.sin(arr([2.0])) ** 2)
    assert "multiply(v1, v1)" in f.show(arr([1.0]), form="graph")
    assert "test_jit.py" in f.show(arr([1.0]), form="graph")


def module_level(x: Any) -> Any:
    """A function that pickle can find."""
    return x * 2.0


@ft.jit
def decorated(x: Any) -> Any:
    """Pickle finds what jit made, and not this, under the name."""
    return x * 2.0


class Model:
    """A class with a compiled method."""

    @ft.jit
    def step(self: Any, x: Any) -> Any:
        """Compiled."""
        return x * 3.0


def test_decorated_functions_pickle_by_their_names() -> None:
    """As functions do: the same object here, and found in another process."""
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated
    assert pickle.loads(pickle.dumps(Model.step)) is Model.step
    other = ft.jit(decorated.__wrapped__)
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(other)


def total(x: Any, y: Any = 1.0) -> Any:
    """A number, of a function that pickle can find."""
    return xp.sum(xp.sin(x) * x * y)


def both(x: Any) -> Any:
    """A number and something else."""
    return total(x), x


TRANSFORMED = {
    "grad": lambda: ft.grad(total),
    "grad of the second": lambda: ft.grad(total, argnums=(1, 0)),
    "has_aux": lambda: ft.grad(both, has_aux=True),
    "value_and_grad": lambda: ft.value_and_grad(total),
    "jacrev": lambda: ft.jacrev(ft.grad(total)),
    "jacfwd": lambda: ft.jacfwd(ft.grad(total)),
    "hessian": lambda: ft.hessian(total),
    "vmap": lambda: ft.vmap(ft.grad(total), in_axes=0, out_axes=-1, chunk_size=1),
    "checkpoint": lambda: ft.grad(
        ft.checkpoint(total, policy=ft.checkpoint_policies.dots_saveable)
    ),
    "jit in it": lambda: ft.vmap(ft.grad(ft.jit(total, mode="reduce-overhead"))),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_compiled_transforms_pickle(name: str) -> None:
    """As the calls that made them, options included."""
    f = ft.jit(TRANSFORMED[name]())
    args = (arr([[0.5, 1.5], [2.0, 3.0]]), arr([1.0, 2.0]))[: 2 if "second" in name else 1]
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(f))))
    assert again.__name__ == f.__name__
    laws.close(again(*args), f(*args))


def test_a_wrapper_of_what_a_transform_gave_is_not_taken_for_it() -> None:
    """`functools.wraps` copies a function's attributes."""
    slope = ft.grad(total)

    @functools.wraps(slope)
    def twice(x: Any) -> Any:
        return 2.0 * slope(x)

    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(ft.jit(twice))


def test_compiled_functions_pickle() -> None:
    """A compiled function pickles as its function and options."""
    f = pickle.loads(pickle.dumps(ft.jit(module_level)))
    assert float(f(arr(2.0))) == 4.0


def test_shapes_dtypes_and_views() -> None:
    """Each signature compiles once, lengths of 0 after others not at all; outputs that are inputs
    or views of them are right.
    """
    f = ft.jit(lambda x: (x, x[::-1], xp.reshape(x, (-1,)) + 1))
    for x in (
        xp.ones(3),
        xp.ones((2, 2)),
        xp.ones(3, dtype=xp.float32),
        xp.zeros((0, 2)),
        xp.ones(3),
    ):
        laws.same(f(x), (x, x[::-1], xp.reshape(x, (-1,)) + 1))
    assert f.cache_info().misses == 3


def test_large_arrays_reuse_buffers_and_stay_right() -> None:
    """A chain on a large array computes in place where nobody looks, and nowhere else."""
    x = xp.asarray(np.linspace(0.1, 1.0, 200_000))
    before = np.asarray(x).copy()

    def f(x: Any) -> Any:
        y = x * 2.0
        z = y + 1.0
        kept = y[::2]
        w = xp.exp(z) * z
        return w, kept, y

    g = ft.jit(f)
    for _ in range(2):
        (w, *exact), (expected, *others) = g(x), f(x)
        laws.same(exact, others)
        laws.close(w, expected, 1e-15, 0.0)  # exp: 4 units in the last place
    np.testing.assert_array_equal(np.asarray(x), before)


def test_threads_may_share_a_compiled_function() -> None:
    """Sixteen threads call, compile and differentiate one function at once."""
    f = ft.jit(relu_by_if)

    def work(k: int) -> tuple[float, float]:
        x = arr(float(k - 8) + 0.5)
        return float(f(x)), float(ft.grad(f)(x))

    for k, (value, slope) in enumerate(together(16, work)):
        x = k - 8 + 0.5
        assert value == (x * x if x > 0 else -x)
        assert slope == (2 * x if x > 0 else -1.0)


@pytest.mark.parametrize("options", [{}, {"fullgraph": True}, {"dynamic": False}])
def test_threads_that_come_at_once_compile_once(options: Any) -> None:
    """A path for each decision, and for each length or all: not one for each thread, which would
    be more than are kept.
    """
    inner = ft.jit(lambda x: xp.cumulative_sum(xp.sin(x) * 2.5 + xp.exp(-x), axis=1))

    def fun(x: Any) -> Any:
        y = x
        for _ in range(20):  # long enough for all to come
            y = inner(y) * 0.5 + xp.tanh(y)
        return y * 2.0 if xp.sum(x) > 0.0 else -y

    f = ft.jit(fun, **options)
    both = [xp.asarray(np.full((3, 5), v)) for v in (1.0, -1.0)]
    expected = [fun(x) for x in both]
    for k, y in enumerate(together(16, lambda k: f(both[k % 2]))):
        laws.close(y, expected[k % 2], 1e-12, 1e-12)
    assert f.cache_info()[1:] == (2, 2)
    assert inner.cache_info().misses <= 2

    if options.get("dynamic", True):
        many = ft.jit(lambda x, rate: fun(x) * rate, **options)
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda k: many(both[0], 0.5 + k), range(64)))
        assert many.cache_info().paths == 2, "for the first number, and for any"


ERRORS: dict[str, Any] = {
    "remainder": (lambda x: 7 // x, xp.asarray([2, 0])),
    "bounds": (lambda x: xp.take(xp.asarray([1.0, 2.0]), x), xp.asarray([0, 5])),
    "singular": (xp.linalg.inv, xp.zeros((2, 2))),
    "callback": (
        lambda x: ft.pure_callback(_fails, ft.ShapeDtype((2,), xp.float64), x * 1.0),
        xp.zeros(2),
    ),
}


def _fails(x: Any) -> Any:
    raise ZeroDivisionError("the callback's own")


@pytest.mark.parametrize("name", ERRORS)
def test_compiled_code_fails_as_eager_code_does(name: str) -> None:
    """The same exception, or the same warning and numbers, at the first call and at later ones."""
    fun, x = ERRORS[name]

    def outcome(f: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return [v.tolist() for v in ft.tree.leaves(f(x))]
            except Exception as error:
                return type(error), str(getattr(error, "what", error))

    f = ft.jit(fun)
    expected = outcome(fun)
    for _ in range(3):
        assert outcome(f) == expected
    assert outcome(lambda x: ft.vmap(f)(xp.stack([x, x]))) == outcome(
        lambda x: ft.vmap(fun)(xp.stack([x, x]))
    )


@pytest.mark.parametrize("ask", [lambda x: x.tolist()[0], lambda x: float(x[0]), xp.Tensor.item])
def test_decisions_know_nan_and_the_sign_of_zero(ask: Any) -> None:
    """What Python was told is seen again only where it would be told the same."""
    fun = ft.jit(lambda x: x * 0.0 + math.copysign(1.0, ask(x)))
    for v in (0.0, -0.0, math.nan, 0.0, -0.0):
        assert float(fun(xp.asarray([v]))[0]) == math.copysign(1.0, v) or v != v
    assert fun.cache_info().misses == 3


def test_decisions_on_one_element_of_any_rank() -> None:
    """As eagerly, an array of one element is a number."""
    assert float(ft.jit(lambda x: x if float(x) > 0.0 else -x)(xp.asarray([[-2.0]]))[0, 0]) == 2.0


def test_dtypes_without_a_common_one_are_compared() -> None:
    """As eagerly."""
    x, y = xp.asarray([1.0], dtype=xp.bfloat16), xp.asarray([0, 1])
    assert ft.jit(xp.equal)(x, y).tolist() == xp.equal(x, y).tolist() == [False, True]


def test_other_structures_cost_no_printing(monkeypatch):
    """optree prints the arrays of a tree that is not what it follows; that happens once at most."""
    printed = []
    monkeypatch.setattr(xp.asarray(0.0).__class__, "__repr__", lambda x: printed.append(x) or "")
    f = ft.jit(lambda tree: sum(tree.values()))
    x = xp.ones(3)
    for _ in range(20):
        assert f({"a": x}).tolist() == [1.0] * 3
        assert f({"a": x, "b": x}).tolist() == [2.0] * 3
    assert len(printed) <= 2


def test_numpys_arrays_find_their_path_as_arrays_do(monkeypatch):
    """Among arguments, in containers, by keyword, as scalars, beside tapes and lanes; what they
    hold later changes nothing.
    """
    n = np.arange(6, dtype=np.float32).reshape(2, 3)
    f = ft.jit(lambda p, q, *, r=1.0: (p["a"] * q + r, q))
    calls = [
        (({"a": x}, q), {"r": r})
        for x in (xp.asarray(n), n, n.T.copy().T, n[::-1])
        for q in (xp.asarray(n), n, np.float32(2.5), np.float64(2.5))
        for r in (2.0, n, np.int8(3), xp.asarray(n))
    ]
    own = lambda v: xp.asarray(v) if isinstance(v, np.ndarray | np.generic) else v  # noqa: E731
    expected = [f.fun(*ft.tree.map(own, a), **ft.tree.map(own, k)) for a, k in calls]
    for _ in range(2):
        for (a, k), right in zip(calls, expected, strict=True):
            laws.same(f(*a, **k), right)
    monkeypatch.setattr(type(f), "_split", None)  # which the long way begins with
    for (a, k), right in zip(calls, expected, strict=True):
        laws.same(f(*a, **k), right)
    monkeypatch.undo()
    held = n.copy()
    _, out = f({"a": n}, held, r=2.0)
    held[:] = 7
    laws.same(out, xp.asarray(n))
    laws.same(ft.grad(lambda x: xp.sum(f({"a": x}, n, r=2.0)[0]))(xp.asarray(n)), xp.asarray(n))
    laws.same(ft.vmap(lambda x: f({"a": n[0]}, x, r=2.0)[1])(xp.asarray(n)), xp.asarray(n))


def test_a_tape_finds_its_path_as_arrays_do(monkeypatch):
    """By shapes and dtypes, also beside constants: the call is taken apart the first time only."""
    f = ft.jit(lambda x, n, y: xp.sum(x**n * y))
    x, y = xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0])
    first = ft.grad(f, argnums=(0, 2))(x, 2, y)
    monkeypatch.setattr(type(f), "_split", None)
    for given in (x, x + 1.0):
        again = ft.grad(f, argnums=(0, 2))(given, 2, y)
        assert again[0].tolist() == (2 * given * y).tolist()
        assert again[1].tolist() == (given**2).tolist()
    assert first[0].tolist() == (2 * x * y).tolist()
    assert f.cache_info().misses == 1


def test_a_tape_follows_the_decisions_of_its_values():
    """A path whose guards do not hold for a tape's values is not taken."""
    f = ft.jit(lambda x: x * x if x > 0 else -3.0 * x)
    for value, slope in ((2.0, 4.0), (-2.0, -3.0), (3.0, 6.0), (-1.0, -3.0)):
        assert float(ft.grad(f)(xp.asarray(value))) == slope
    assert f.cache_info().misses == 2


@pytest.mark.parametrize("many", [False, True])
def test_arrays_alone_are_one_path_on_tapes_and_off(monkeypatch, many):
    """Whichever comes first, the other finds it by shapes and dtypes, and so do tapes of tapes."""

    def fun(x, y):
        return (xp.sum(x**3 * y), x - y) if many else xp.sum(x**3 * y)

    f = ft.jit(fun)
    x, y = xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0])
    wide = xp.asarray([1.0, 2.0, 3.0])

    def slope(*given):
        return ft.grad(lambda *xs: f(*xs)[0] if many else f(*xs), argnums=(0, 1))(*given)

    slope(x, y)  # on a tape first
    f(wide, wide)  # off it
    misses = f.cache_info().misses
    monkeypatch.setattr(type(f), "_split", None)
    for a, b in ((x, y), (y, x), (wide, wide)):
        got = slope(a, b)
        assert got[0].tolist() == (3 * a**2 * b).tolist()
        assert got[1].tolist() == (a**3).tolist()
        value = f(a, b)
        assert (value[0] if many else value).tolist() == (a**3 * b).sum().tolist()
        if many:
            assert ft.vjp(f, a, b)[0][1].tolist() == (a - b).tolist()
    monkeypatch.undo()
    bent = ft.grad(lambda v: xp.sum(slope(v, y)[0]))(x)
    assert bent.tolist() == (6 * x * y).tolist()
    assert f.cache_info().misses == misses
