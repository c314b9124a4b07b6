"""Code that jit cannot look into, NumPy's and torch's, gets the elements; the path holds for them.

Results are eager's for every input: slower, never an error and never a constant of another call.
Where a derivative or a batch would be lost, it is refused like in eager code, by old paths too.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ConcretizationError
from funct.transforms.compiled import calls, segments
from funct.transforms.compiled.arguments import split
from tests import laws

Fun = Callable[[Any], Any]

FUNS: dict[str, Fun] = {
    "asarray": lambda x: x * xp.asarray(np.asarray(x * 2.0).sum()),
    "an ndarray as an operand": lambda x: x * np.sort(np.asarray(x + 1.0)),
    "a copy": lambda x: x + np.array(x, dtype=np.float32, copy=True).tolist()[0],
    "stack": lambda x: np.stack([x, 2.0 * x]) * x,
    "elements": lambda x: np.array([x[0], x[1], 1.0]) * x,
    "a ufunc of NumPy's alone": lambda x: x + np.spacing(x),
    "a method": lambda x: x * float(np.add.reduce(x * 2.0)),
    "dlpack": lambda x: x * np.from_dlpack(x + 1.0).max(),
    "tolist": lambda x: x * sum((x * 2.0).tolist()),
    "item": lambda x: x * xp.sum(x).item(),
    "a decision in NumPy": lambda x: x * 2.0 if (np.asarray(x) > 1.5).all() else -x,
    "twice": lambda x: x * np.asarray(x)[0] + np.asarray(x * x)[1],
}
PASSED = {"tolist", "item"}  # Python's numbers leave a transform in eager code as well


def data(k: int, n: Any = 3) -> Any:
    return xp.asarray(np.random.default_rng(k).normal(size=n) + 1.0)


@pytest.mark.parametrize("n", [3, 1 << 16])
@pytest.mark.parametrize("name", FUNS)
def test_jit_is_eager(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For new elements, and again for the old ones; beyond the paths kept, in segments."""
    monkeypatch.setattr(segments, "_WORK", 1 << 10)
    f = FUNS[name] if n == 3 else lambda x: xp.sum(FUNS[name](x[:3])) * x
    g = ft.jit(f)
    for k in (0, 1, 0, *range(12), 5):
        laws.close(g(data(k, n)), f(data(k, n)), 1e-12, 1e-12)
    laws.close(ft.jit(ft.jit(f))(data(3, n)), f(data(3, n)), 1e-12, 1e-12)


@pytest.mark.parametrize("name", [n for n in FUNS if n not in PASSED])
def test_no_transform_is_lost(name: str) -> None:
    """Under grad, jvp and vmap: refused by eager code, and by jit, whether it ran before or not."""
    f, x = FUNS[name], data(0)
    transforms: list[Fun] = [
        lambda f: ft.grad(lambda x: xp.sum(f(x)))(x),
        lambda f: ft.jvp(f, (x,), (x,)),
        lambda f: ft.vmap(f)(xp.stack([x, 2.0 * x])),
        lambda f: ft.vjp(f, x),
    ]
    for transform in transforms:
        ran = ft.jit(f)
        ran(x)
        for g in (f, ran, ft.jit(f)):
            with pytest.raises(ConcretizationError, match="cannot become"):
                transform(g)
        with pytest.raises(ConcretizationError, match="cannot become"):
            ft.jit(lambda x: transform(f))(x)  # noqa: B023


def test_what_varies_with_nothing_is_a_constant() -> None:
    """An ndarray of what the derivative does not reach is no loss."""
    f = ft.jit(lambda x: x * np.asarray(xp.arange(3.0) * 2.0))
    laws.close(ft.grad(lambda x: xp.sum(f(x)))(data(0)), xp.asarray([0.0, 2.0, 4.0]))


def test_where_only_shapes_are_known() -> None:
    """There is nothing to give: the error says what is asked for."""
    f = FUNS["asarray"]
    for g in (f, lambda x: ft.scan(lambda c, _: (f(c), None), x, None, 2)):
        with pytest.raises(ft.errors.TransformError, match="only shapes are known"):
            ft.eval_shape(g, data(0))


def test_the_reason_is_told() -> None:
    """explain() names the line that asked for the elements, and a graph shows what it holds for."""
    f = ft.jit(FUNS["asarray"])
    f(data(0))
    f(data(1))
    assert "ndarray() == ... at test_graph_breaks.py" in f.explain()
    graph = f.graph(data(0))
    assert "assert ndarray(" in str(graph)
    again = ft.graph.Graph.from_json(graph.to_json())
    laws.close(again(data(0)), graph(data(0)))
    with pytest.raises(ft.errors.GuardError):
        again(data(1))


CHOSEN: dict[str, Fun] = {
    "elements": lambda x: x[x > 0.5] * 2.0,
    "of what was computed": lambda x: xp.exp(x)[xp.tanh(x) > 0.1] + 1.0,
    "rows": lambda x: x[x[:, 0] > 0.5] * x[0],
    "a mask that is known": lambda x: x[xp.arange(len(x)) % 3 == 0] + float(xp.max(x)),
    "chosen of the chosen": lambda x: (y := x[x > 0.0])[y < 0.7],
    "none of them": lambda x: xp.sum(x[x > 1e9]) + float(x[0, 0]),
    "beside slices": lambda x: x[1:, :1][x[1:, :1] > 0.5],
    "with a gradient": ft.grad(lambda y: xp.sum(y[y > 0.5] ** 3)),
    "in lanes": lambda x: ft.vmap(lambda r: r * 2.0)(x)[x > 0.5],
}  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_chosen_is_others_at_each_call(name: str) -> None:
    """Segments between decisions: the elements are those of eager code, whichever they are."""
    f = ft.jit(CHOSEN[name])
    for k in range(6):
        x = data(k, (1 << 15, 2))
        laws.close(f(x), CHOSEN[name](x), 1e-12, 1e-12)


def test_few_ops_between_decisions_are_called_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where eager ops take less time than what is between them: then nobody takes calls apart."""

    def chosen(x: Any, y: Any) -> Any:
        return xp.sum(x[xp.tanh(x) > y[0]])

    f, rng, taken = ft.jit(chosen), np.random.default_rng(0), []
    monkeypatch.setattr(calls, "split", lambda *given: taken.append(0) or split(*given))
    for size in (1 << 16, 5):
        for k in range(90):
            x, y = xp.asarray(rng.normal(size=size)), xp.asarray([0.1 * (k % 3)])
            if k == 20:
                taken.clear()
            laws.close(f(x, y), chosen(x, y), 1e-12, 1e-12)
        assert len(taken) <= 2
    assert "the function is called" in f.explain()
    assert f.cache_info().misses <= 8
