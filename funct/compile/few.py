"""A graph on few elements: NumPy's calls, and machine code with their bits once it pays; or loops.

The arrays are buffers, so whoever calls it has unwrapped them (`entry.py` is for whole functions).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from funct.compile.entry import serving
from funct.compile.entry_table import DENSE_ONES, ONE_ORDER
from funct.compile.executable import build, call_by_call, is_numpy_calls
from funct.compile.layouts import turned
from funct.compile.native import native
from funct.compile.rewriting.cells import is_elementwise
from funct.compile.rewriting.numpys import as_numpy_computes
from funct.compile.steps.walker import begin_walker
from funct.graph import Graph, Node, eliminate_dead, inline_calls, optimize
from funct.kernels.channels import channels_last
from funct.kernels.cpu.often import Often

__all__ = ["Few"]

_NODES = 128
_IMAGES = 4  # axes
_MOST = 1 << 12  # elements; compositions of more are compiled at once (`nn/functional/compiled.py`)
_ENOUGH = 500  # calls whose gain, 10 to 80 µs each, pays for 5 to 50 ms of printing and compiling

Run = Callable[..., tuple[Any, ...]]


class Few:
    """`Few(graph).run(*buffers)`: NumPy's calls, and machine code once they have been many.

    The graph has no symbolic sizes, guards or outer tracers. The code warns of nothing. Arrays that
    are not dense are left to the calls, and so is what raises; but images whose channels are last
    in memory, all of them, have code of their own. loops: not NumPy's calls but what `jit` makes of
    the graph, from the first call on, of arrays in any order.

    `serve(*arrays)` is the same of Arrays, where all of it is code: one call without a frame of
    Python, which gives a single result as it is, and None where arrays do not lie as it has them.
    What computes each element alone reads arrays in any order that is one for all.
    """

    __slots__ = ("_calls", "_graph", "_loops", "run", "serve")

    def __init__(self, graph: Graph, loops: bool = False) -> None:
        self._graph, self._loops = graph, loops
        self._calls = build(graph) if loops else call_by_call(graph)
        self.run: Run
        self.serve: Callable[..., Any] | None = None
        if loops and not is_numpy_calls(self._calls):
            self.run = self._of_images()
        else:
            self.run = Often(self._load, _ENOUGH).counted(self._calls)

    def _load(self) -> None:
        self.run = self._calls
        simple = eliminate_dead(inline_calls(optimize(self._graph, guards=False)), guards=False)
        if len(simple.nodes) > _NODES or not all(map(_is_small, simple.nodes)):
            return
        exact = as_numpy_computes(simple)
        if exact is not None:
            begin_walker()
            made = native(exact, self._of_images(), alone=True)
            self.run = made.run
            if made.whole is not None:
                orders = ONE_ORDER if _is_flat(simple) else DENSE_ONES
                single = len(made.whole.results) == 1
                self.serve = serving(made.whole, single, orders=orders)

    def _of_images(self) -> Run:
        """The calls, but of images that lie with their channels last a graph of what lies there."""
        calls, graph = self._calls, self._graph
        images = [k for k, v in enumerate(graph.inputs) if len(v.shape) >= _IMAGES]
        if not images:
            return calls

        @functools.cache
        def as_they_lie() -> Few:
            ranks = {k: len(graph.inputs[k].shape) for k in images}
            layout = tuple([(k, (0, *range(2, r), 1)) for k, r in ranks.items()])
            return Few(turned(graph, layout), self._loops)

        def run(*buffers: Any) -> tuple[Any, ...]:
            given = list(buffers)
            for k in images:
                x = buffers[k]
                given[k] = channels_last(x)
                if x.flags.c_contiguous or not given[k].flags.c_contiguous:
                    return calls(*buffers)
            return as_they_lie().run(*given)

        return run


def _is_small(e: Any) -> bool:
    return isinstance(e, Node) and all(math.prod(v.shape) <= _MOST for v in e.results)


def _is_flat(graph: Graph) -> bool:
    """Whether each element of a result comes from those of the arguments at its place, and all are
    of one dtype.
    """
    here = set[Any](graph.inputs)
    if len({(v.shape, v.dtype) for v in (*graph.inputs, *graph.outputs)}) != 1:
        return False
    for e in graph.nodes:
        if not isinstance(e, Node) or not e.reads or e.results[0].shape != graph.inputs[0].shape:
            return False
        numbers = [v for v in e.reads if v not in here]
        if not is_elementwise(e) or any(math.prod(v.shape) != 1 for v in numbers):
            return False
        here.update(e.results)
    return not {*graph.outputs} & {*graph.inputs} and here.issuperset(graph.outputs)
