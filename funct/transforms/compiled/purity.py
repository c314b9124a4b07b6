"""check_pure: does a function do anything besides computing its result from its arguments?"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np

from funct import tree
from funct.array import Tensor, asarray
from funct.core import INEXACT
from funct.errors import FunctError, PurityError
from funct.graph import Graph
from funct.transforms.abstract import make_graph
from funct.transforms.compiled.rounding import carried
from funct.transforms.compiled.surroundings import surroundings
from funct.transforms.given import expect_functions

__all__ = ["check_pure"]


def check_pure(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Raise unless fun(*args, **kwargs) is a function of its arguments, as every transform assumes.

    fun is run three times and captured twice. Found are: results that differ between equal calls
    (randomness, counters, files), graphs that differ, a compiled result that is not the computed
    one, arguments that were written into, closure cells, globals, defaults and attributes – its
    own, and those of functions that it names – that changed or keep a traced value, NumPy's and
    Python's global random state, the environment, settings of funct, text on standard output.
    Not found is what leaves no trace in the process, such as a file that is written.
    Raises: PurityError: with everything that was found.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.check_pure(lambda x: x * 2.0, xp.ones(2))
        >>> seen = []
        >>> try:
        ...     ft.check_pure(lambda x: (seen.append(x), x)[1], xp.ones(2))
        ... except ft.errors.PurityError as error:
        ...     print(error.what)
        check_pure: <lambda> is not pure: it changes the closure or global `seen`
    """
    expect_functions("check_pure", fun=fun)
    found: list[str] = []
    name = getattr(fun, "__name__", "fun")
    before = surroundings(fun, args, kwargs)
    leaves, spec = tree.flatten((args, kwargs))
    given = [x for x in leaves if _is_number(x)]

    def numbers(*xs: Any) -> list[Any]:
        moving = iter(xs)
        a, k = spec.unflatten([next(moving) if _is_number(x) else x for x in leaves])
        return [x for x in tree.leaves(fun(*a, **k)) if _is_number(x)]

    text = io.StringIO()
    with redirect_stdout(text):
        outs = [_raw(fun(*args, **kwargs)) for _ in range(3)]
        found += _changes(before, surroundings(fun, args, kwargs))
        graphs: list[Graph] = []
        try:
            graphs = [make_graph(numbers)(*given) for _ in range(2)]
        except FunctError as error:
            found.append(f"it cannot be captured: {error.what}")
        found += [c for c in _changes(before, surroundings(fun, args, kwargs)) if c not in found]
    if text.getvalue():
        found.append("it prints")
    if not all(_same(outs[0], o) for o in outs[1:]):
        found.append("equal calls give different results")
    elif len(graphs) == 2:
        if str(graphs[0]) != str(graphs[1]) or not _same(*[_constants(g) for g in graphs]):
            found.append("two captures give different graphs")
        elif not _close(graphs[0], list(map(asarray, given)), list(filter(_is_number, outs[0]))):
            found.append("its graph gives another result than calling it")
    if found:
        raise PurityError(f"check_pure: {name} is not pure: {'; '.join(found)}")


def _is_number(x: Any) -> bool:
    """Whether a leaf can stand in a graph; text, for one, can not, and need only stay the same."""
    return isinstance(x, Tensor | np.ndarray | np.generic | bool | int | float | complex)


def _constants(graph: Graph) -> list[Any]:
    return [np.asarray(x) for _, x in graph.constants]


def _raw(out: Any) -> list[Any]:
    return [np.asarray(x) if isinstance(x, Tensor) else x for x in tree.leaves(out)]


def _same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(map(_equal, a, b))


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype in INEXACT)
    return bool(a == b) or a is b


def _close(graph: Graph, args: list[Any], results: list[Any]) -> bool:
    """Whether the graph gives these results, but for what rounding alone does to them."""
    ours, theirs = _raw(list(graph(*args))), [np.asarray(x) for x in results]
    if len(ours) != len(theirs):
        return False

    def near(more: list[float]) -> bool:
        return all(
            np.allclose(x, y, rtol=1e-6, atol=1e-9 + 8.0 * m, equal_nan=True)
            for x, y, m in zip(ours, theirs, more, strict=True)
        )

    return near([0.0] * len(ours)) or near(carried(graph, args, theirs))


def _changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    changed = [k for k in after if k not in before or before[k] != after[k]]
    return [f"it changes the {k}" for k in changed]
