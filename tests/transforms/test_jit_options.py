"""jit's options: donation, modes, backends, lowering, segments; and what each refuses."""

import pickle
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given

import funct as ft
import funct.array as xp
from funct import errors
from funct import graph as g
from funct.transforms.compiled import segments
from funct.transforms.compiled.backends import register_backend
from tests import laws
from tests.strategies import inputs, programs
from tests.transforms.test_grad import arr

# donation ---------------------------------------------------------------------------------------


def update(params: Any, grads: Any) -> Any:
    """A training step's last line."""
    return ft.tree.map(lambda p, d: p - 0.5 * d, params, grads)


USES: dict[str, Any] = {
    "ufunc": lambda x: x + 1.0,
    "sin": xp.sin,
    "sum": xp.sum,
    "matmul": lambda x: x @ x,
    "index": lambda x: x[0],
    "slice": lambda x: x[1:],
    "shape": lambda x: x.shape,
    "float": lambda x: float(x[0]),
    "iterate": list,
    "numpy": np.asarray,
    "pickle": pickle.dumps,
    "grad": ft.grad(lambda x: xp.sum(x * x)),
    "vmap": ft.vmap(lambda v: v * 2.0),
    "jit": ft.jit(lambda x: x * 2.0),
    "donate again": ft.jit(lambda x: x * 2.0, donate_argnums=0),
    "compare": lambda x: x == x,
    "where": lambda x: xp.where(x > 0, x, 0.0),
    "concat": lambda x: xp.concat([x, x]),
    "dlpack": np.from_dlpack,
}


@pytest.mark.parametrize("name", USES)
def test_a_donated_array_is_gone(name: str) -> None:
    """Whatever is done with a donated array raises one error that names the function."""
    step = ft.jit(update, donate_argnums=0)
    params, grads = {"w": arr([1.0, 2.0])}, {"w": arr([2.0, 2.0])}
    new = step(params, grads)
    laws.same(new["w"], arr([0.0, 1.0]))
    laws.same(grads["w"], arr([2.0, 2.0]))
    with pytest.raises(errors.DonatedError, match=r"donated to jit\(update\) was used again"):
        USES[name](params["w"])
    laws.same(step(new, grads)["w"], arr([-1.0, 0.0]))


@pytest.mark.parametrize("shown", [repr, str, "{}".format, lambda x: x._repr_html_()])
def test_a_donated_array_can_be_shown(shown: Any) -> None:
    """It says where it went, to whoever prints what is around an error."""
    params, grads = {"w": arr([1.0, 2.0])}, {"w": arr([2.0, 2.0])}
    ft.jit(update, donate_argnums=0)(params, grads)
    assert "Array(donated to jit(update))" in shown(params["w"])


def test_donation_leaves_views_tracers_and_results_alone() -> None:
    """A view of donated memory keeps its values; a result that is the argument is no ghost."""
    f = ft.jit(lambda x, y: (x * 2.0 + y, x), donate_argnums=(0,))
    x = arr([1.0, 2.0, 3.0])
    view = x[1:]
    out, same = f(x, x + 0.0)
    laws.same(view, arr([2.0, 3.0]))
    laws.same((out, same), (arr([3.0, 6.0, 9.0]), arr([1.0, 2.0, 3.0])))
    h = ft.jit(lambda x: xp.sum(x * x), donate_argnums=0)
    y = arr([1.0, 2.0])
    laws.same(ft.grad(h)(y), arr([2.0, 4.0]))
    laws.same(y, arr([1.0, 2.0]))


def test_donation_refuses_what_cannot_be() -> None:
    """One array twice in a call, and an argument that is static as well."""
    f = ft.jit(lambda x, y: x + y, donate_argnums=0)
    x = arr([1.0])
    with pytest.raises(errors.ArgumentError, match="passed twice"):
        f(x, x)
    laws.same(x, arr([1.0]))
    with pytest.raises(errors.ArgumentError, match="1 cannot be static and donated"):
        ft.jit(lambda x, y: x, static_argnums=1, donate_argnums=1)


# mode="check" -----------------------------------------------------------------------------------


def wrong_sine(graph: g.Graph) -> Any:
    """A backend that takes cosines for sines, everywhere."""

    class Wrong(g.Interpreter):
        def node(self, node: g.Node, operands: list[Any]) -> tuple[Any, ...]:
            return (xp.cos(operands[0]),) if node.name == "sin" else super().node(node, operands)

    return Wrong(graph).run


def test_check_mode_names_the_first_node_that_differs() -> None:
    """The error names the node, its line and both numbers; a right backend passes."""

    def f(x: Any) -> Any:
        y = x * 3.0
        return xp.sum(xp.exp(xp.sin(y)))  # guilty

    with pytest.raises(errors.MismatchError) as caught:
        ft.jit(f, mode="check", backend=wrong_sine)(arr([0.0, 1.0]))
    text = str(caught.value)
    assert "jit(f): compiled code differs from eager execution at sin (" in text
    assert "# guilty" in text
    assert "1.0 is not 0.0" in text
    for x in (arr([0.0, 1.0]), arr([2.0, 3.0]), xp.ones((3, 2), dtype=xp.float32)):
        laws.close(ft.jit(f, mode="check")(x), f(x), 1e-6, 1e-6)


def test_check_mode_finds_side_effects() -> None:
    """What a function does besides computing is found by comparing two traces."""
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append(1)
        return x * len(seen)

    with pytest.raises(errors.PurityError, match="changes the closure or global `seen`"):
        ft.jit(f, mode="check")(arr([1.0]))


@given(program=programs())
def test_check_mode_accepts_random_programs(program: Any) -> None:
    """Compiled programs pass the comparison, with their decisions and trees."""
    xs = [xp.asarray(x) for x in inputs(2)]
    laws.close(ft.jit(program, mode="check")(*xs), program(*xs), 1e-12, 1e-12)


# backends ---------------------------------------------------------------------------------------


def test_backends() -> None:
    """A backend is given a graph and gives a function or a graph; derivatives pass it too."""
    seen: list[list[str]] = []

    def spy(graph: g.Graph) -> Any:
        seen.append([e.name for e in graph.nodes if isinstance(e, g.Node)])
        return graph

    def interpret(graph: g.Graph) -> Any:
        return graph.__call__

    f = lambda x: xp.sum(xp.sin(x) * 2.0)  # noqa: E731
    x = arr([0.5, 1.0])
    for backend in (spy, interpret, "interpret"):
        h = ft.jit(f, backend=backend)
        laws.close(h(x), f(x), 1e-15, 1e-15)
        laws.close(ft.grad(h)(x), ft.grad(f)(x), 1e-15, 1e-15)
    assert seen[0] == ["sin", "multiply", "reduce_sum"]
    assert len(seen) == 3, "the function, and both halves of its derivative"


def test_a_derivative_compiles_its_halves_alone() -> None:
    """The function itself is compiled when it is called with arrays, and by `lower().compile()`."""
    seen: list[g.Graph] = []

    def spy(graph: g.Graph) -> Any:
        seen.append(graph)
        return graph

    f = ft.jit(lambda x: xp.sum(xp.sin(x) * x), backend=spy)
    x = arr([0.5, 1.5])
    ft.grad(f)(x)
    assert len(seen) == 2
    f(x)
    assert len(seen) == 3
    f.lower(x).compile()
    assert len(seen) == 4


def test_backends_see_no_decisions_and_may_be_wrong() -> None:
    """Guards are checked beforehand; a backend that gives nonsense is named."""
    kinds: set[type] = set()

    def spy(graph: g.Graph) -> Any:
        kinds.update(type(e) for e in graph.nodes)
        return graph

    f = ft.jit(lambda x: x * 2.0 if xp.sum(x) > 0 else -x, backend=spy)
    for v in (1.0, -1.0, 3.0, -2.0):
        laws.same(f(arr([v])), arr([2.0 * v if v > 0 else -v]))
    assert f.cache_info().misses == 2
    assert kinds == {g.Node}
    with pytest.raises(errors.TransformError, match="must return a function of arrays or a graph"):
        ft.jit(xp.sin, backend=lambda graph: 3)(arr(1.0))
    with pytest.raises(errors.TransformError, match=r"must be float64\[2\], got float64\[3\]"):
        ft.jit(xp.sin, backend=lambda graph: lambda x: (xp.zeros(3),))(arr([1.0, 2.0]))
    with pytest.raises(errors.TransformError, match=r"result 0 .* must be an array, got float"):
        ft.jit(xp.sin, backend=lambda graph: lambda x: (1.0,))(arr(1.0))
    numpys = ft.jit(xp.sin, backend=lambda graph: lambda x: [np.sin(np.asarray(x))])
    laws.same(numpys(arr([1.0, 2.0])) * 1.0, xp.sin(arr([1.0, 2.0])))
    with pytest.raises(errors.TransformError, match="must return 1 arrays in a tuple"):
        ft.jit(xp.sin, backend=lambda graph: lambda x: ())(arr(1.0))
    with pytest.raises(errors.GraphError, match="must have the same outputs"):
        ft.jit(xp.sin, backend=lambda graph: attrs.evolve(graph, outputs=()))(arr(1.0))
    with pytest.raises(errors.ArgumentError, match="no backend 'nowhere'"):
        ft.jit(xp.sin, backend="nowhere")
    with pytest.raises(errors.ArgumentError, match="there is a backend 'interpret' already"):
        register_backend("interpret", spy)


# lower, explain ---------------------------------------------------------------------------------


def test_lower() -> None:
    """A lowered function has its graph and text, and compiles for exactly its arguments."""

    def f(p: Any, x: Any, how: str = "mul") -> Any:
        return {"y": p["w"] * x if how == "mul" else p["w"] + x, "how": how}

    h = ft.jit(f)
    lowered = h.lower({"w": arr([2.0])}, arr([3.0]))
    assert [n.name for n in lowered.graph.nodes] == ["multiply"]
    assert "multiply(x0, x1)" in lowered.as_text()
    ready = lowered.compile()
    out = ready({"w": arr([5.0])}, arr([3.0]))
    assert (out["y"].tolist(), out["how"]) == ([15.0], "mul")
    assert h.cache_info().misses == 0
    with pytest.raises(errors.TreeError, match="compiled for arguments"):
        ready([arr([5.0])], arr([3.0]))
    with pytest.raises(errors.ArgumentError, match=r"p.w: float64\[2\], was float64\[1\]"):
        ready({"w": arr([5.0, 1.0])}, arr([3.0]))
    with pytest.raises(errors.ArgumentError, match="'add', was 'mul'"):
        h.lower({"w": arr([2.0])}, arr([3.0]), how="mul").compile()(
            {"w": arr([2.0])}, arr([3.0]), how="add"
        )
    decided = ft.jit(lambda x: x if x > 0 else -x).lower(arr(1.0)).compile()
    with pytest.raises(errors.GuardError, match="values that decide otherwise"):
        decided(arr(-1.0))


def test_explain_says_why_ops_share_no_loops() -> None:
    """For all lengths too; what shares them is not told, nor what another backend made."""
    fun = lambda x: xp.sort(xp.sin(x), axis=0) @ xp.ones((3, 2)) + 1  # noqa: E731
    f, other = ft.jit(fun), ft.jit(fun, backend=lambda graph: graph)
    for n in (5, 7):
        f(xp.ones((n, 3)))
        other(xp.ones((n, 3)))
    told = [line for line in f.explain().splitlines() if line.startswith("not fused: ")]
    assert [line.split(":")[1].strip() for line in told] == ["sort", "matmul"]
    assert "xp.sort(xp.sin(x), axis=0)" in told[0]
    assert "not fused" not in other.explain()


def test_explain_says_what_was_new() -> None:
    """Shapes, dtypes, trees, static values, rebound names and decisions are told apart."""
    k = 2.0

    def f(x: Any, n: int = 1) -> Any:
        return x * n * k if xp.all(x > 0) else -x

    h = ft.jit(f, static_argnames="n", dynamic=False)
    h(arr([1.0]))
    h(arr([1.0, 2.0]))
    h(xp.ones(1, dtype=xp.float32))
    h(arr([1.0]), n=3)
    h(arr([-1.0]))
    k = 3.0
    h(arr([1.0]))
    lines = h.explain().splitlines()
    assert lines[1:4] == [
        "1. first call",
        "2. new signature: x: float64[2], was float64[1]",
        "3. new signature: x: float32[1], was float64[1]",
    ]
    assert lines[4] == "4. new signature: static argument 'n' is 3, was not given"
    assert "bool() == True at test_jit_options.py:" in lines[5]
    assert "if xp.all(x > 0) else -x, was False this time" in lines[5]
    assert lines[6] == "6. k is another object now"


def reshaped(x: Any, shape: Any) -> Any:
    """A function with a static argument."""
    return xp.reshape(x, shape)


def test_bad_options_and_arguments() -> None:
    """Each option that cannot be is refused by name."""
    for options, text in (
        ({"mode": "fast"}, "mode must be one of default"),
        ({"dynamic": "yes"}, "dynamic must be 'auto', True or False"),
        ({"static_argnums": "x"}, "static_argnums must be ints"),
        ({"static_argnames": 1}, "static_argnames must be strs"),
        ({"backend": 3}, "backend must be a function"),
    ):
        with pytest.raises(errors.ArgumentError, match=text):
            ft.jit(xp.sin, **options)  # type: ignore[arg-type]
    with pytest.raises(errors.TransformError, match="jit: fun must be a function, got int"):
        ft.jit(3)  # type: ignore[arg-type]
    f = ft.jit(reshaped, static_argnums=1)
    laws.same(f(xp.ones(4), (2, 2)), xp.ones((2, 2)))
    with pytest.raises(errors.TransformError, match=r"static argument 'shape' must be hashable"):
        f(xp.ones(4), [2, 2])


def double(x: Any) -> Any:
    """A function that pickle can find."""
    return x * 2.0


def test_options_pickle() -> None:
    """A compiled function keeps its options across pickle."""
    f = ft.jit(double, donate_argnums=0, mode="max-autotune", dynamic=False, backend="interpret")
    h = pickle.loads(pickle.dumps(f))
    assert (h.donate_argnums, h.mode, h.dynamic, h.backend) == (
        (0,), "max-autotune", False, "interpret",
    )  # fmt: skip
    laws.same(h(arr([1.0])), arr([2.0]))


def test_every_axis_may_be_symbolic_from_the_start() -> None:
    """dynamic=True: one compilation serves all lengths but 0 and 1."""
    f = ft.jit(lambda x: xp.sum(x * 2.0, axis=0), dynamic=True)
    for n in (3, 5, 8, 2):
        laws.same(f(xp.ones((n, n + 1))), xp.full(n + 1, 2.0 * n))
    assert f.cache_info().misses == 1


# recursion, segments ----------------------------------------------------------------------------


@ft.jit
def factorial(n: Any) -> Any:
    """A jitted function that calls itself."""
    return n * factorial(n - 1.0) if n > 1.0 else n


@ft.jit
def endless(n: Any) -> Any:
    """One that never ends."""
    return endless(n + 1.0)


def test_recursion() -> None:
    """A recursion that ends works as eagerly; one that does not is a clear error, as eagerly."""
    for n in (1.0, 5.0, 3.0, 60.0):
        laws.close(factorial(arr(n)), factorial.fun(arr(n)), 1e-15, 1e-15)
    laws.close(ft.grad(factorial)(arr(3.0)), arr(11.0), 1e-15, 1e-15)
    with pytest.raises(errors.RecursionLimitError, match="endless calls itself"):
        endless(arr(1.0))
    with pytest.raises(RecursionError):
        endless(arr(1.0))
    laws.same(factorial(arr(4.0)), arr(24.0))


def newton(x: Any) -> Any:
    """Cube roots by Newton's iteration, until they stand still."""
    y = xp.ones_like(x)
    while True:
        new = y - (y * y * y - x) / (3.0 * y * y)
        if xp.max(xp.abs(new - y) / new) < 1e-9:
            return {"root": new, "sum": (xp.sum(new), "cube")}
        y = new


@pytest.mark.parametrize("option", ["fullgraph", "fast"])
def test_switches_are_true_or_false(option: str) -> None:
    options: Any = {option: "yes"}
    with pytest.raises(errors.ArgumentError, match=f"{option} must be True or False, got 'yes'"):
        ft.jit(lambda x: x, **options)


def test_wide_functions_run_in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit of paths, what lies between two decisions is compiled once and for all."""
    monkeypatch.setattr(segments, "_WORK", 1)
    f = ft.jit(newton)
    n = 1 << 16
    for k in range(1, 15):
        x = xp.asarray(np.linspace(1.0, 4.0**k, n))
        ours, eager = f(x), newton(x)
        assert ours["sum"][1] == "cube"
        laws.close((ours["root"], ours["sum"][0]), (eager["root"], eager["sum"][0]), 1e-12, 1e-9)
    assert f.cache_info().misses <= 8
    assert 1 <= len(f._table.segments) <= 3
    assert "segments between decisions are compiled" in f.explain()


ENDLESS: dict[str, Any] = {
    "float": lambda x: x * 2.0 if float(xp.sum(x)) > 1.0 else -x,
    "item": lambda x: x * xp.sum(x).item(),
    "complex": lambda x: x * abs(complex(xp.sum(x))),
    "mask": lambda x: xp.sum(x[x > 0.5]) * x,
    "nonzero": lambda x: x[xp.nonzero(x > 0.0)[0]] * 2.0,
    "unique": lambda x: xp.unique_values(xp.round(x)),
    "NumPy": lambda x: x * np.sum(np.asarray(x)),
    "after a branch": lambda x: x[x > 0.0] if xp.sum(x) > 0.0 else x + float(x[0]),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_values_that_are_others_at_each_call_compile_once_for_each_length(name: str) -> None:
    """A path for each would serve one call: two tell that, for fifty lengths as for one."""
    f, g = ENDLESS[name], ft.jit(ENDLESS[name])
    rng = np.random.default_rng(0)
    for n in (9, *range(1, 51), 9, 9, 9):
        x = xp.asarray(rng.normal(size=n) + 0.2)
        laws.same(g(x), f(x))
    most = 4 if name == "after a branch" else 2
    assert g.cache_info().misses <= most, g.explain()
    assert "another value at " in g.explain()
    assert "from then on the function is called" in g.explain()
    full = ft.jit(f, fullgraph=True)
    with pytest.raises(errors.TransformError, match="took 8 paths for one signature"):
        [full(xp.asarray(rng.normal(size=9))) for _ in range(20)]


def test_values_of_sizes_alone_are_no_reason_to_stop() -> None:
    """What is asked of arrays that do not come with the call is known by the lengths."""
    f = ft.jit(lambda x: x[xp.nonzero(xp.arange(x.shape[0]) % 3 == 0)[0]] * 2.0)
    for n in (4, 7, 12, 30, 31, 7, 12):
        laws.same(f(xp.arange(float(n))), xp.arange(float(n))[::3] * 2.0)
    assert "another value" not in f.explain()


def test_two_values_in_turn_are_two_paths() -> None:
    f = ft.jit(lambda x, k: x * float(k))
    for k in [1.0, 2.0] * 20:
        laws.same(f(arr([1.0, 3.0]), arr(k)), arr([k, 3.0 * k]))
    assert f.cache_info()[:2] == (38, 2)


def test_paths_that_serve_nobody_are_asked_now_and_then() -> None:
    """Each would compute what leads to its decision, for nothing; and is found when it serves."""
    f = ft.jit(lambda x: x * int(x[0]))
    for k in range(60):
        laws.same(f(arr([float(k), 2.0])), arr([float(k * k), 2.0 * k]))
    (groups,) = f._table.exact.values()
    assert not any(groups)
    assert f.cache_info().misses == 8
    before = f.cache_info().hits
    for _ in range(200):
        laws.same(f(arr([3.0, 2.0])), arr([9.0, 6.0]))
    assert f.cache_info().hits - before >= 100


def test_segments_that_never_come_again_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many elements are chosen is another number each time, and so is what follows."""
    monkeypatch.setattr(segments, "_WORK", 1)
    compiled = []

    def backend(graph: Any) -> Any:
        compiled.append(graph)
        return graph

    f = ft.jit(lambda x: xp.sum(xp.exp(x[xp.tanh(x) > 0.0])), backend=backend)
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = xp.asarray(rng.normal(size=1 << 16))
        laws.close(f(x), xp.sum(xp.exp(x[x > 0.0])), 1e-12, 1e-12)
    assert len(compiled) == 3  # two paths, and what leads to the mask
    f = ft.jit(lambda x: [xp.sum(x) * int(x[k]) for k in range(400)], backend=backend)
    for k in range(20):
        x = xp.asarray(np.arange(1 << 16) + 0.1 * k)
        f(x + float(k))
    assert len(f._table.segments) <= 256


def test_segments_do_what_eager_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branches, loops, masks, own rules, several results and unused ones, in one wide function."""
    monkeypatch.setattr(segments, "_WORK", 1)

    @ft.custom_jvp
    def twice(x: Any) -> Any:
        return x * 2.0

    twice.defjvp(lambda p, t: (p[0] * 2.0, t[0] * 2.0))

    def f(x: Any, k: Any) -> Any:
        _unused = xp.sin(x)
        n = int(k)
        y, at = xp.top_k(x, 3)
        y = twice(y) + xp.asarray([1.0, 2.0, 3.0])
        if float(xp.sum(y)) > n:
            y = -y
        total, steps = ft.scan(lambda c, v: (c + v, c), xp.sum(y) * 0.0, y)
        return y * n, at, x[x > 3.0], total, steps, x

    h = ft.jit(f)
    rng = np.random.default_rng(0)
    for k in range(14):
        x = xp.asarray(rng.normal(size=1 << 16))
        laws.close(h(x, arr(float(k))), f(x, arr(float(k))), 1e-14, 1e-14)
    assert h._table.segments
    full = ft.jit(f, fullgraph=True)
    with pytest.raises(errors.TransformError, match="took 8 paths for one signature"):
        [full(x, arr(float(k))) for k in range(10)]


def test_show_begins_with_what_serves_first() -> None:
    """NumPy's calls on few elements, unless machine code is asked for; then the loops."""
    f = lambda x: xp.sin(x) * 2 + 1  # noqa: E731
    first, later = ft.jit(f).show(xp.ones(3)).split("\n\n", 1)
    assert first.startswith("# On so few elements the first calls are NumPy's.\ndef run(x0):")
    assert "= sin_(x0)" in first
    assert later.startswith("# Where calls are many, or arrays large, machine code runs.\n")
    assert later.split("\n", 1)[1] == ft.jit(f, mode="reduce-overhead").show(xp.ones(3))


def test_show_has_every_form() -> None:
    """The graph, its loops, LLVM's text and assembly."""
    f = ft.jit(lambda x: xp.sum(xp.exp(x) * 2.0, axis=1))
    x = xp.ones((256, 256), dtype=xp.float32)
    assert f.show(x, form="graph").startswith("def graph(x0: float32[256, 256]):")
    assert "for j in columns:" in f.show(x) == f.show(x, form="loops")
    assert "define void @kernel0(" in f.show(x, form="llvm")
    assert "kernel0:" in f.show(x, form="assembly")
    assert "NumPy" not in f.show(x)
    with pytest.raises(errors.ArgumentError, match="form must be one of graph, loops"):
        f.show(x, form="pictures")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"static_argnames": "mod"}, "static_argnames"),
        ({"static_argnames": ("mode", "x2")}, "x2"),
        ({"static_argnums": 2}, "static_argnums"),
        ({"static_argnums": -3}, "static_argnums"),
        ({"donate_argnums": (0, 5)}, "donate_argnums"),
    ],
)
def test_arguments_that_the_function_lacks_are_refused(options, says):
    """A name that is misspelt would be ignored, and each value compile nothing of its own."""

    def fun(x, mode="a"):
        return x

    with pytest.raises(errors.ArgumentError, match=says) as caught:
        ft.jit(fun, **options)
    assert "fun" in str(caught.value)


def test_arguments_that_a_function_may_take_are_allowed():
    x = xp.ones(2)
    assert ft.jit(lambda *args: args[0], static_argnums=3)(x, x, x, 4).shape == (2,)
    assert ft.jit(lambda x, **options: x, static_argnames="q")(x, q=1).shape == (2,)
    assert ft.jit(max, static_argnums=1) is not None  # has no signature
    assert ft.jit(lambda x, *, n: x * n, static_argnames="n")(x, n=2).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnums": -1},
                                     {"static_argnames": "n"}])  # fmt: skip
def test_an_argument_is_static_however_it_is_passed(options):
    seen = []

    def fun(x, n):
        seen.append(type(n))
        return x[:n]

    f, x, n = ft.jit(fun, **options), xp.ones(3), np.int64(2)
    assert f(x, n).shape == f(x, n=n).shape == f(n=n, x=x).shape == (2,)
    assert set(seen) == {np.int64}
    for call in (lambda: f(x, [1]), lambda: f(x, n=[1])):
        with pytest.raises(errors.TransformError, match="'n' must be hashable"):
            call()


def test_one_argument_is_not_both_static_and_donated() -> None:
    """However it is counted."""
    for static, donated in ((1, 1), (-1, -1), (1, -1), (-1, 1)):
        with pytest.raises(ft.errors.ArgumentError, match="1 cannot be static and donated"):
            ft.jit(lambda x, y: x + y, static_argnums=static, donate_argnums=donated)
