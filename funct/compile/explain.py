"""Looking at what was made of a graph: its loops, the text that LLVM gets, and the assembly.

All take a graph whose sizes are numbers, and work on it anew: nothing is kept for their sake.
"""

from __future__ import annotations

from funct.compile.executable import first_calls
from funct.compile.native import Native, fused, native
from funct.compile.program import kernels_text
from funct.compile.sizes import at_sizes
from funct.compile.told import reason_lines
from funct.device.machine_code import assembly
from funct.graph import Graph, eliminate_dead, inline_calls, share_common

__all__ = ["show_assembly", "show_llvm", "show_loops", "why_not_fused"]

_FIRST = "# On so few elements the first calls are NumPy's."
_LATER = "# Where calls are many, or arrays large, machine code runs."


def _made(graph: Graph) -> Native:
    return native(_flat(graph))


def _flat(graph: Graph) -> Graph:
    return eliminate_dead(share_common(inline_calls(graph)), guards=True)


def show_loops(graph: Graph, mode: str = "default") -> str:
    """The Python function that a call runs, and the loops of its kernels as readable Python; before
    that the function of NumPy calls, where those serve first.
    """
    first = first_calls(graph, mode)
    loops = _made(graph).show()
    return loops if first is None else f"{_FIRST}\n{first}\n\n{_LATER}\n{loops}"


def show_llvm(graph: Graph) -> str:
    """The kernels as LLVM text."""
    return kernels_text([c.kernel for c in _made(graph).calls])


def show_assembly(graph: Graph) -> str:
    """The kernels in the processor's assembly."""
    return assembly(show_llvm(graph))


def why_not_fused(graph: Graph) -> list[str]:
    """For each op that is a step of its own, why it shares no loops; one line each. Symbolic sizes
    are those of the example.
    """
    flat = _flat(graph)
    if flat.symbols:
        sizes = {s.name: flat.inputs[s.input].shape[s.axis] for s in flat.symbols}
        flat = at_sizes(flat, {name: getattr(n, "hint", n) for name, n in sizes.items()})
    return list(reason_lines(fused(flat)).values())[::-1]
