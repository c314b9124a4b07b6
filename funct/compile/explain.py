"""Looking at what was made of a graph: its loops, the text that LLVM gets, and the assembly.

All take a graph whose sizes are numbers, and make its code anew: nothing is kept for their sake.
"""

from __future__ import annotations

from funct.compile.native import Native, native
from funct.compile.program import kernels_text
from funct.compile.told import reason_lines
from funct.device.machine_code import assembly
from funct.graph import Graph, eliminate_dead, inline_calls, share_common

__all__ = ["show_assembly", "show_llvm", "show_loops", "why_not_fused"]


def _made(graph: Graph) -> Native:
    return native(eliminate_dead(share_common(inline_calls(graph)), guards=True))


def show_loops(graph: Graph) -> str:
    """The Python function that a call runs, and the loops of its kernels as readable Python."""
    return _made(graph).show()


def show_llvm(graph: Graph) -> str:
    """The kernels as LLVM text."""
    return kernels_text([c.kernel for c in _made(graph).calls])


def show_assembly(graph: Graph) -> str:
    """The kernels in the processor's assembly."""
    return assembly(show_llvm(graph))


def why_not_fused(graph: Graph) -> list[str]:
    """For each op that is a step of its own, why it shares no loops; one line each."""
    return list(reason_lines(_made(graph).fused).values())[::-1]
