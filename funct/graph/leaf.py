"""Functions that stay functions in a graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funct import pytree, tree
from funct.array import Tensor, asarray
from funct.array.trees import flat_arrays
from funct.core import Region, bind_region

__all__ = ["leaf"]


def leaf(fun: Callable[..., Any]) -> Callable[..., Any]:
    """fun, whose calls are one node each in a captured graph, with the body for those who inline.

    Derivatives, batching and compilation go through the body.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> block = leaf(lambda x: xp.tanh(x * 2.0))
        >>> graph = ft.make_graph(lambda x: block(x) + block(x + 1.0))(xp.ones(2))
        >>> [e.name for e in graph.nodes]
        ['<lambda>', 'add', '<lambda>', 'add']
        >>> [e.name for e in ft.graph.inline_calls(graph).nodes]
        ['multiply', 'tanh', 'add', 'multiply', 'tanh', 'add']
    """

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree.flatten((args, kwargs))
        at = [k for k, x in enumerate(leaves) if isinstance(x, Tensor | np.ndarray | np.generic)]
        structure: list[Any] = []

        def flat(*xs: Any) -> tuple[Any, ...]:
            full = list(leaves)
            for k, x in zip(at, xs, strict=True):
                full[k] = x
            a, named = pytree.unflatten(spec, full)
            outs, shape = flat_arrays(fun(*a, **named))
            structure[:] = [shape]
            return tuple(outs)

        region = Region(getattr(fun, "__name__", "fun"), flat)
        outs = bind_region(region, [asarray(leaves[k]) for k in at])
        return pytree.unflatten(structure[0], outs)

    return run
