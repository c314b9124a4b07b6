"""A graph on few elements: NumPy's calls, and machine code with their bits once it pays.

The arrays are buffers, so whoever calls it has unwrapped them (`entry.py` is for whole functions).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from funct.compile.executable import call_by_call
from funct.compile.native import native
from funct.compile.rewriting.numpys import as_numpy_computes
from funct.compile.steps.walker import begin_walker
from funct.graph import Graph, Node, eliminate_dead, inline_calls, optimize
from funct.kernels.cpu.often import Often

__all__ = ["Few"]

_NODES = 128
_MOST = 1 << 12  # elements; compositions of more are compiled at once (`nn/functional/compiled.py`)
_ENOUGH = 500  # calls whose gain, 10 to 80 µs each, pays for 5 to 50 ms of printing and compiling

Run = Callable[..., tuple[Any, ...]]


class Few:
    """`Few(graph).run(*buffers)`: NumPy's calls, and machine code once they have been many.

    The graph has no symbolic sizes, guards or outer tracers. The code warns of nothing. Arrays that
    are not dense are left to the calls, and so is what raises.
    """

    __slots__ = ("_calls", "_graph", "run")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._calls = call_by_call(graph)
        self.run: Run = Often(self._load, _ENOUGH).counted(self._calls)

    def _load(self) -> None:
        self.run = self._calls
        simple = eliminate_dead(inline_calls(optimize(self._graph, guards=False)), guards=False)
        if len(simple.nodes) > _NODES or not all(map(_is_small, simple.nodes)):
            return
        exact = as_numpy_computes(simple)
        if exact is not None:
            begin_walker()
            self.run = native(exact, self._calls, alone=True).run


def _is_small(e: Any) -> bool:
    return isinstance(e, Node) and all(math.prod(v.shape) <= _MOST for v in e.results)
