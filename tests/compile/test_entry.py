"""One call from Python for a whole compiled function: only the right arrays get in, and results
take memory that nobody holds.
"""

import gc
import itertools
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.array import Array
from funct.compile import Reuse, build, serving, unwrapping, whole_of
from funct.compile.entry_table import DENSE_ONES, ONE_ORDER
from funct.errors import DonatedError
from funct.graph import Graph
from funct.ops.fast import wrap
from funct.transforms.compiled import paths
from tests import laws
from tests.together import together


def f32(*shape: int, seed: int = 0) -> Any:
    """Random numbers in a buffer of their own."""
    return xp.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32)) + 0


def whole(fun: Any, *args: Any) -> tuple[Graph, Any]:
    """The graph of a function and how it is one program."""
    graph = ft.make_graph(fun)(*args)
    run = build(graph, mode="reduce-overhead")
    found = whole_of(run)
    assert found is not None
    return graph, found


def step(x: Any, y: Any) -> Any:
    """Loops, a row reduction, a product and two results."""
    h = xp.tanh(x @ y) - xp.max(x, axis=1, keepdims=True)
    return h * 2.0, xp.sum(h, axis=0)


def test_an_entry_gives_what_the_function_gives() -> None:
    """As a list of Arrays, with memory of their own at every call."""
    x, y = f32(40, 30), f32(30, 50)
    _, w = whole(step, x, y)
    serve = serving(w, False)
    assert serve is not None
    first, second = serve(x, y), serve(x, y)
    for out in first, second:
        laws.close(tuple(out), step(x, y), 1e-5, 1e-5)
    assert first[0].data is not second[0].data
    assert all(type(r) is Array and r.data.flags.owndata for r in first)


def test_arrays_in_one_order_are_read_as_they_lie() -> None:
    """And so is the result, but not with gaps, one number again and again, backward, overlapping,
    misaligned, or each in an order of its own.
    """
    x, y = f32(3, 4, 5, 2), f32(3, 4, 5, 2, seed=1)
    _, w = whole(lambda x, y: x * y + 1.0, x, y)
    serve, strict = serving(w, True, orders=ONE_ORDER), serving(w, True, orders=DENSE_ONES)
    assert serve is not None
    assert strict is not None

    def lying(a: Any, order: Any) -> Any:
        return wrap(a.data.transpose(order).copy().transpose(np.argsort(order)))

    for order in itertools.permutations(range(4)):
        a, b = lying(x, order), lying(y, order)
        found = serve(a, b)
        assert np.array_equal(found.data, x.data * y.data + 1)
        assert found.data.strides == a.data.strides
        dense = a.data.flags.c_contiguous
        assert (strict(a, b) is None) is not dense
        assert (serve(a, y) is None and serve(x, b) is None) is not dense
    wide = np.zeros((6, 4, 5, 2), np.float32)
    bytes_ = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
    windows = np.lib.stride_tricks.as_strided(wide, x.shape, (4, 4, 4, 4))
    for odd in (wide[::2], wide[2::-1], np.broadcast_to(np.float32(1), x.shape), bytes_, windows):
        assert serve(wrap(odd), wrap(odd)) is None
        assert serve(x, wrap(odd)) is None


def test_other_arrays_do_not_get_in() -> None:
    """Other types, shapes, ranks, numbers of arguments, and what is no Array."""
    x, y = f32(4, 6), f32(4, 6, seed=1)
    graph, w = whole(lambda x, y: x * y + 1.0, x, y)
    entries = [serving(w, True), unwrapping(graph.inputs)]
    strange: list[tuple[Any, ...]] = [
        (), (x,), (x, y, y), (x, 1.0), (None, y), (x, y.data), (x, f32(6, 4)), (x, f32(4, 6, 1)),
        (x, f32(24)), (x, xp.astype(y, xp.float64)), (x, xp.astype(y, xp.int32)), (x, "y"),
        (ft, [y]), (f32(6, 4).mT, 1.0),
    ]  # fmt: skip
    for entry in entries:
        assert entry is not None
        assert all(entry(*args) is None for args in strange)
        assert entry(x, y) is not None
    raws = entries[1](x, y)  # type: ignore[misc]
    assert raws[0] is x.data
    assert raws[1] is y.data


_SEEN: list[Any] = [
    lambda v: v, lambda v: v[None], lambda v: v[..., None], lambda v: xp.reshape(v, (-1,)),
    lambda v: xp.reshape(v, v.shape), lambda v: xp.flip(v, axis=()),
]  # fmt: skip


@pytest.mark.parametrize("shape", [(), (1,), (6,), (1, 1), (3, 4)])
@pytest.mark.parametrize("of", [lambda x: x + x, lambda x: x], ids=["made", "given"])
@pytest.mark.parametrize(
    ("mode", "dtype"),
    [("reduce-overhead", "float32"), ("reduce-overhead", "uint8"), ("default", "uint8")],
)
def test_one_buffer_seen_in_two_ways_is_two_results(
    mode: Any, dtype: str, of: Any, shape: tuple[int, ...]
) -> None:
    """Each result has its own shape, in either order, at every call."""
    x = xp.astype(f32(*shape) * 9, getattr(xp, dtype))
    for a, b in itertools.product(_SEEN, _SEEN):
        fun = lambda x: (a(of(x)), b(of(x)))  # noqa: B023, E731
        run, expected = ft.jit(fun, mode=mode), fun(x)
        for _ in range(4):
            for found, e in zip(run(x), expected, strict=True):
                np.testing.assert_array_equal(np.asarray(found), np.asarray(e), strict=True)


@given(
    calls=st.lists(
        st.tuples(
            st.sampled_from([(2, 3), (3, 2), (6,), (2, 4), ()]), st.booleans(), st.booleans()
        ),
        min_size=3,
        max_size=10,
    ),
    mode=st.sampled_from(["default", "max-autotune", "reduce-overhead"]),
)  # fmt: skip
def test_a_function_is_right_whatever_it_was_called_with_before(calls: Any, mode: str) -> None:
    """Shapes, dtypes, layouts, trees and keywords in any order, thrice each."""

    def fun(x: Any, scale: Any = None) -> Any:
        y = x["a"] if isinstance(x, dict) else x
        return y * 3.0 - xp.exp(y) if scale is None else (y * scale, y)

    f = ft.jit(fun, mode=mode)  # type: ignore[arg-type]
    for k, (shape, wide, in_tree) in enumerate(calls):
        dtype = xp.float64 if wide else xp.float32
        x = xp.asarray(np.random.default_rng(k).normal(size=shape), dtype=dtype)
        given_x = {"a": x} if in_tree else x
        for _ in range(3):
            laws.close(f(given_x), fun(given_x), 1e-6, 1e-6)
            laws.close(f(x, scale=x), fun(x, scale=x), 1e-6, 1e-6)
    assert f.cache_info().hits + f.cache_info().misses == 6 * len(calls)


def test_results_may_be_what_is_there_already() -> None:
    """An argument that comes back, a result that is there twice: Arrays of their own, one buffer.
    Where a program would have to look at one as another shape, it is none for an entry.
    """

    def fun(x: Any, y: Any) -> Any:
        h = x * 2.0 + y
        return x, h, y, xp.sum(h), h, x

    x, y = f32(40, 30), f32(40, 30, seed=1)
    _, w = whole(fun, x, y)
    for reuse in (Reuse(), Reuse(spare=True), Reuse(frozenset([0, 1]))):
        serve = serving(w, False, reuse)
        assert serve is not None
        out = serve(x, y)
        laws.close(tuple(out), fun(x, y), 1e-5, 1e-5)
        assert [r.data is d for r, d in zip(out, (x.data, out[4].data, y.data))] == [True] * 3
        assert out[5].data is x.data
        assert len({*map(id, out), id(x), id(y)}) == 8
    graph = ft.make_graph(lambda x: (x * 2.0, xp.reshape(x * 2.0, (-1,)), x[None]))(x)
    assert whole_of(build(graph, mode="reduce-overhead")) is None


def test_memory_is_neither_leaked_nor_freed_twice() -> None:
    """Counts of references are as before after many calls, of all kinds."""
    x, y = f32(8, 8), f32(8, 8, seed=1)
    graph, w = whole(step, x, y)
    _, back = whole(lambda x, y: (x, z := x + y, z), x, y)
    entries = [serving(w, False), serving(w, False, Reuse(spare=True)), unwrapping(graph.inputs)]
    entries += [serving(back, False), serving(back, False, Reuse(spare=True))]
    held = [x.data, y.data, x.data.dtype, Array, np.ndarray, None]
    for entry in entries:
        assert entry is not None
        entry(x, y), entry(x, 3)
        gc.collect()
        before = [sys.getrefcount(o) for o in held]
        for _ in range(5000):
            entry(x, y)
            entry(x, 3)
        gc.collect()
        change = [sys.getrefcount(o) - before[k] for k, o in enumerate(held)]
        assert max(map(abs, change)) < 2500, "others hold these too; a leak is one per call"


def test_spare_buffers_are_those_that_nobody_holds() -> None:
    """A view, an export or the Array itself keeps a result's memory from being used again."""
    x = f32(64)
    _, w = whole(lambda x: x * 2.0 + 1.0, x)
    serve = serving(w, True, Reuse(spare=True))
    assert serve is not None
    expected = np.asarray(x) * 2.0 + 1.0
    places = {serve(x).data.ctypes.data for _ in range(5)}
    assert len(places) == 1, "nobody held the first one"
    zero = xp.zeros_like(x)
    for hold in (
        lambda r: r, lambda r: r.data[3:], lambda r: memoryview(r.data),
        lambda r: np.from_dlpack(r.data),
        lambda r: np.asarray(r.data).reshape(8, 8),
    ):  # fmt: skip
        kept = [hold(serve(x)) for _ in range(5)]
        for _ in range(5):
            serve(zero)
        for k in kept:
            seen = np.asarray(k).reshape(-1)
            np.testing.assert_array_equal(seen, expected[-seen.size :])
        del kept, k, seen


def test_spare_memory_serves_threads_at_once() -> None:
    """A workspace that is in use is not used again."""
    x, y = f32(300, 300), f32(300, 300, seed=1)
    f = ft.jit(step, mode="reduce-overhead")
    expected = [f(x * k, y) for k in range(4)]

    def work(k: int) -> None:
        mine = x * k
        for _ in range(60):
            out = f(mine, y)
            assert all(np.array_equal(a, b) for a, b in zip(out, expected[k], strict=True))

    together(4, work)


def test_modes_do_what_they_say() -> None:
    """reduce-overhead uses buffers again, the default does not."""
    x = f32(1 << 15)

    def fun(x: Any) -> Any:
        return xp.sin(x) * 2.0

    def buffers(f: Any) -> int:
        f(x), f(x)
        kept: list[int] = []
        for _ in range(8):
            out = f(x)
            kept.append(out.data.ctypes.data)
            filler = xp.ones(1 << 15, dtype=xp.float32)  # takes what is free
            del out, filler
        return len(set(kept))

    assert buffers(ft.jit(fun, mode="reduce-overhead")) == 1
    ours = ft.jit(fun, mode="reduce-overhead")
    laws.close(ours(x), fun(x), 1e-6, 1e-6)


def adam(p: Any, m: Any, g: Any) -> Any:
    """An update: each result can be written where an argument was read."""
    m = 0.9 * m + 0.1 * g
    return p - m / (1.0 + xp.abs(m)), m


def donating(fun: Any, *args: Any, donate: Any) -> tuple[Any, Any]:
    """A call that donates, after two that made it fast; and where the donated buffers were."""
    f = ft.jit(fun, donate_argnums=donate)
    for _ in range(3):
        f(*[a + 0 for a in args])
    fresh = [a + 0 for a in args]
    places = [a.data.ctypes.data for a in fresh]
    out = f(*fresh)
    for k, a in enumerate(fresh):
        if k in donate:
            with pytest.raises(DonatedError):
                a + 1
        else:
            laws.same(a, args[k])
    return out, places


def test_results_are_written_into_donated_memory() -> None:
    """Where shape, dtype and the order of reads allow it."""
    args = f32(1 << 15), f32(1 << 15, seed=1), f32(1 << 15, seed=2)
    out, places = donating(adam, *args, donate=(0, 1))
    laws.close(out, adam(*args), 1e-6, 1e-6)
    assert {o.data.ctypes.data for o in out} == set(places[:2])
    out, places = donating(adam, *args, donate=(2,))
    laws.close(out, adam(*args), 1e-6, 1e-6)
    assert [o.data.ctypes.data in places for o in out].count(True) == 1


@pytest.mark.parametrize("donate", [(0,), (1,), (0, 1), (0, 1, 2), (2,)])
def test_each_of_many_arrays_alike_takes_memory_that_was_given(donate: tuple[int, ...]) -> None:
    """As many results as there are arrays given away; its own kernel's first."""
    args = [[f32(3000, seed=3 * n + k) for n in range(40)] for k in range(3)]

    def step(*flat: Any) -> Any:
        ps, ms, gs = flat[:40], flat[40:80], flat[80:]
        pairs = [adam(*pmg) for pmg in zip(ps, ms, gs, strict=True)]
        return [p for p, _ in pairs] + [m for _, m in pairs]

    flat = [x for xs in args for x in xs]
    given = [k for k in range(120) if k // 40 in donate]
    out, places = donating(step, *flat, donate=tuple(given))
    laws.close(out, step(*flat), 1e-6, 1e-6)
    taken = [places.index(a) for o in out if (a := o.data.ctypes.data) in places]
    assert len(taken) == min(len(given), 80) == len(set(taken))
    assert set(taken) <= set(given)


@pytest.mark.parametrize("hold", ["view", "memoryview", "dlpack", "array", "foreign", "readonly"])
def test_memory_that_somebody_else_sees_is_not_written_into(hold: str) -> None:
    """Donated or not: an export goes on seeing what it saw."""
    f = ft.jit(adam, donate_argnums=(0, 1))
    args = [f32(1 << 15, seed=k) for k in range(3)]
    for _ in range(3):
        f(*[a + 0 for a in args])
    p, m, g = [a + 0 for a in args]
    own = np.array(p.data)
    kept: Any = {
        "view": lambda: p.data[:], "memoryview": lambda: memoryview(p.data),
        "dlpack": lambda: np.from_dlpack(p.data), "array": lambda: p.data,
        "foreign": lambda: own, "readonly": lambda: None,
    }[hold]()  # fmt: skip
    if hold == "foreign":
        p = xp.asarray(own, copy=False)
    if hold == "readonly":
        p.data.flags.writeable = False
    place = p.data.ctypes.data
    before = np.array(p.data)
    out = f(p, m, g)
    assert place not in {o.data.ctypes.data for o in out}
    if kept is not None:
        np.testing.assert_array_equal(np.asarray(kept), before)


def test_what_is_read_again_is_not_written_into() -> None:
    """Softmax reads its rows twice, a product reads all of them, a flip elsewhere."""
    x = f32(256, 128)

    def rows(x: Any) -> Any:
        y = x * 2.0
        return y, x - xp.sum(x, axis=1, keepdims=True)

    for fun in (
        rows, lambda x: xp.flip(x, axis=1) * 2.0 + x, lambda x: xp.exp(x) + xp.sum(x, axis=0),
        lambda x: (x[:, :64] @ x[:64, :]) * 1.5 + x, lambda x: (x * 3.0, x + 1.0, xp.sum(x)),
    ):  # fmt: skip
        out, _ = donating(fun, x, donate=(0,))
        laws.close(out, fun(x), 1e-5, 1e-5)


def test_what_a_later_stage_reads_again_is_not_written_into() -> None:
    """A long body goes over a strip part by part, and each part reads its operands."""

    def long(x: Any) -> Any:
        early = x * 2.0
        late = early + 1.0
        for _ in range(6):
            late = xp.tanh(xp.sin(late) * 1.5)
        return early, late + x

    x = f32(1 << 15)
    out, places = donating(long, x, donate=(0,))
    laws.close(out, long(x), 1e-5, 1e-5)
    assert [o.data.ctypes.data in places for o in out] == [False, True]


def test_what_a_loop_reads_at_each_step_is_not_written_into() -> None:
    """Its body runs again after it wrote."""
    x, y = f32(64, 32), f32(64, 32, seed=1)

    def walk(x: Any, y: Any) -> Any:
        total, rows = ft.scan(lambda c, r: (c + xp.sum(x * r, axis=0), c * r), x[0] * 0.0, y)
        return rows, ft.fori_loop(0, 5, lambda k, c: c * 0.5 + y, x), total

    out, _ = donating(walk, x, y, donate=(0, 1))
    laws.close(out, walk(x, y), 1e-4, 1e-4)


def test_donation_of_random_programs() -> None:
    """What is donated never changes what is computed."""
    from tests.strategies import inputs, programs

    @settings(max_examples=2 * settings.default.max_examples)
    @given(program=programs())
    def run(program: Any) -> None:
        xs = [xp.asarray(x) for x in inputs(8)]
        f = ft.jit(program, donate_argnums=tuple(range(len(xs))), mode="reduce-overhead")
        expected = ft.jit(program, mode="reduce-overhead")(*xs)
        for _ in range(4):
            laws.same(f(*[x + 0 for x in xs]), expected)

    run()


def three(x: Any, y: Any) -> Any:
    """Ops that are one number whoever computes them, one of which may warn."""
    return (x + y) / y - xp.sqrt(x)


def told(run: Any, *args: Any) -> tuple[Any, list[str]]:
    """The result's bytes, and what NumPy warned of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        out = run(*args)
    return np.asarray(out).tobytes(), [str(w.message) for w in seen]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few calls are many."""
    monkeypatch.setattr(paths, "_OFTEN", 4)


def test_numpy_calls_become_machine_code_that_gives_and_warns_the_same(soon: None) -> None:
    """At every call, the first and the last: bits, warnings and errors of NumPy."""
    f = ft.jit(three)
    good, zero = f32(16) ** 2 + 1.0, xp.zeros(16, dtype=xp.float32)
    huge = good * 1e37
    for _ in range(12):
        for x, y in ((good, good), (good, zero), (-good, good), (huge, good * 1e-30)):
            bits, warned = told(f, x, y)
            assert (bits, len(warned) > 0) == (told(three, x, y)[0], y is zero or x is not good)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            f(good, zero)
    (path,) = f._table.all_paths()
    assert path.answered() > 0, "machine code answers where nothing is to be said"
    assert f.cache_info().misses == 1


def test_what_is_declined_leaves_nothing_behind() -> None:
    """Where NumPy would warn there is no result, and nothing is leaked; flags that others left do
    not count.
    """
    x, zero = f32(16), xp.zeros(16, dtype=xp.float32)
    _, w = whole(lambda x, y: (x / y, x + y), x, x)
    serve, silent = serving(w, False, warns=True), serving(w, False)
    assert serve is not None
    assert silent is not None
    assert serve(x, zero) is None
    silent(x, zero)
    assert serve(x, x) is not None
    held = [x.data, zero.data, x.data.dtype, Array, np.ndarray]
    before = [sys.getrefcount(o) for o in held]
    for _ in range(5000):
        serve(x, zero)
    change = [sys.getrefcount(o) - before[k] for k, o in enumerate(held)]
    assert max(map(abs, change)) < 2500, "others hold these too; a leak is one per call"


def test_functions_of_their_own_bits_keep_numpys(soon: None) -> None:
    """A result that changes with the number of calls is no result: see `test_numpys.py`."""
    f = ft.jit(lambda x, y: xp.sin(x) * y + xp.sum(x))
    x = f32(50)
    found = {np.asarray(f(x, x)).tobytes() for _ in range(12)}
    assert len(found) == 1
    assert f._table.all_paths()[0].answered()


def test_calls_do_not_wait_for_the_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """While another thread makes its code, they are answered without; then by it."""
    entry = sys.modules["funct.compile.entry"]
    goes_on, code = threading.Event(), entry._code

    def slowly() -> Any:
        goes_on.wait()
        return code()

    monkeypatch.setattr(entry, "_code", slowly)
    monkeypatch.setattr(entry, "_makers", [])
    monkeypatch.setattr(entry, "_kept", lambda: False)
    monkeypatch.setattr(entry, "loaded", lambda: True)
    monkeypatch.setattr(entry, "cores", lambda: 2)
    x, y = f32(256, 256), f32(256, 256, seed=1)
    run = ft.jit(step)
    want = run(x, y)
    for _ in range(5):
        laws.close(run(x, y), want, 0, 0)
    (path,) = run._table.all_paths()
    assert path.answered() == 0
    goes_on.set()
    for thread in entry._makers:
        thread.join()
    for _ in range(5):
        laws.close(run(x, y), want, 0, 0)
    assert path.answered() > 0
    assert run.cache_info().hits == 10


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("n", [4, 64, 80])
def test_few_elements_that_do_not_lie_side_by_side_are_copied(n: int, mode: str) -> None:
    """In any layout, beside dense ones and donated; a copy is let go of, however the call ends."""
    wide = np.random.default_rng(0).normal(size=(2 * n, n)).astype(np.float32)
    one = np.float32(1.5)
    layouts = {
        "turned": wide[:n].T, "stepped": wide[::2], "backwards": wide[n - 1 :: -1],
        "repeated": np.broadcast_to(one, (n, n)), "row by row": np.broadcast_to(wide[0], (n, n)),
        "misaligned": np.frombuffer(b"\0" + wide[:n].tobytes(), np.float32, offset=1).reshape(n, n),
    }  # fmt: skip
    dense = f32(n, n, seed=1)

    def fun(x: Any, y: Any) -> Any:
        return xp.tanh(x) * y + 1, y, xp.sum(x, axis=0)

    expected = {k: fun(xp.asarray(v.copy()), dense) for k, v in layouts.items()}
    compiled = ft.jit(fun, mode=mode)
    compiled(dense, dense)
    for name, v in [*layouts.items()] * 3:
        x = wrap(v)
        laws.close(compiled(x, dense), expected[name], 1e-5, 1e-5)
        first, second, _ = compiled(dense, x)
        laws.close(first, fun(dense, xp.asarray(v.copy()))[0], 1e-5, 1e-5)
        laws.same(second, xp.asarray(v.copy()))
    _, w = whole(fun, dense, dense)
    serve, unwrap = serving(w, False), unwrapping(w.inputs)
    assert serve is not None
    assert unwrap is not None
    few = n * n <= 4096
    for v in layouts.values():
        for args in ((wrap(v), dense), (dense, wrap(v)), (wrap(v), wrap(v))):
            assert (serve(*args) is not None) is few
            assert (unwrap(*args) is not None) is few
            assert serve(*args[:1], 1.0) is None
    v, left = wrap(layouts["turned"]), []
    for _ in range(3):
        for _ in range(99):
            serve(v, v)
            unwrap(v, v)
            serve(v, 1.0)
        left.append(sys.getallocatedblocks())
    assert left[-1] - left[0] < 50
