"""What the compiler decided, a line for each decision: for `FUNCT_LOG=fusion,loops`, and for people
who ask why an op is by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from funct.compile.control import why_apart
from funct.compile.fusion.calls import Call, every_call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import Group
from funct.compile.loops.kernel import Kernel, Load
from funct.compile.steps.fourier import is_of_many_lines
from funct.compile.steps.products import is_product
from funct.graph import Control, Node

__all__ = ["call_line", "fusion_lines", "reason_lines"]


def fusion_lines(fused: Fused) -> str:
    """The steps in order: which ops share loops over which domain, and why others do not."""
    reasons = reason_lines(fused)
    lines = []
    for s in fused.steps:
        if isinstance(s, Group):
            domain = f"{s.size}" if s.columns is None else f"{s.size // s.columns} x {s.columns}"
            lines.append(f"{domain}: {', '.join([e.name for e in s.nodes])}")
        elif isinstance(s, Node):
            lines.append(reasons.get(s, f"{s.name}: by itself"))
        else:
            lines.append(f"guard: {s.kind}")
    return "\n".join(lines)


def reason_lines(fused: Fused) -> dict[Node, str]:
    """For each op that is a step of its own, why it shares no loops."""
    lines = {}
    for node, reason in fused.reasons.items():
        if is_product(node):
            who = (
                "loops of its own compute"
                if 1 in node.results[0].shape[-2:]
                else "tiles or BLAS compute"
            )
            reason = f"{who} it, within the same program"
        elif is_of_many_lines(node):
            reason = "lines in lanes of vectors compute it, within the same program"
        elif isinstance(node.primitive, Control):
            reason = why_apart(node) or "its steps are machine code, within the same program"
        where = f"  {node.site.text}" if node.site is not None and node.site.text else ""
        lines[node] = f"{node.name}: {reason}{where}"
    return lines


def call_line(call: Call) -> str:
    """One nest of loops, or one product: what it walks, and in how many tasks."""
    kernel = call.kernel
    if isinstance(kernel, Kernel):
        rows, columns, block = call.words[:3]
        reads = len({v.access for v in kernel.values if isinstance(v, Load)})
        writes = len(kernel.stores) + len(kernel.barriers)
        size = f"{rows} rows, {columns} columns, {call.tasks} tasks of {block}"
        return f"{size}; {reads} read, {len(kernel.values)} values, {writes} written"
    match kernel:
        case "product", *_:
            m, n, k = call.words[3:6]
            return f"product ({m}, {k}) @ ({k}, {n}) of BLAS, {call.tasks} tasks"
        case "gemm", *_:
            m, n, k = call.words[4:7]
            tiles = f"tiles of {kernel[3]} rows, {call.tasks} tasks"
            return f"product ({m}, {k}) @ ({k}, {n}) in {tiles}"
        case "few rows", *_:
            m, n, k = call.words[3:6]
            return f"product ({m}, {k}) @ ({k}, {n}) of a few rows, {call.tasks} tasks"
        case "few", *_:
            m, k = call.words[3:5]
            return f"products ({m}, {k}) @ ({k}, {kernel[3]}), {call.tasks} tasks"
        case "gram", *_:
            n, _, k = call.words[2:5]
            return f"half of a product ({n}, {k}) @ ({k}, {n}) of BLAS, {call.tasks} tasks"
        case "few sums", *_:
            return f"matrices ({call.words[3]}, {kernel[3]}) times vectors, {call.tasks} tasks"
        case ("rows" | "columns") as how, *_:
            n, k = call.words[3:5]
            return f"matrix ({n}, {k}) times a vector, by {how}, {call.tasks} tasks"
        case "told", *_:
            return "images convolved, or weights laid out for that"
        case "transposed", *_:
            m, _, n = call.words[2:5]
            return f"a copy, ({m}, {n}) turned around, {call.tasks} tasks"
        case "combine", how, *_:
            return f"partial results, combined by {how}"
        case "repeat", *_:
            return f"a loop over the next {_count(call.blocks)} kernels"
        case "registers", code:
            size = f"{len(code.carries)} carried, {len(code.bodies[0][2].lines)} lines"
            how = f"{code.columns} columns, {call.tasks} tasks" if code.columns else "no columns"
            return f"a loop in registers: {size}, {how}"
        case "choose", *_:
            sizes = " or ".join([str(_count([b])) for b in call.blocks])
            return f"a branch: of the next kernels {sizes}"
    return f"{kernel[0]}, {call.tasks} tasks"


def _count(blocks: Sequence[Sequence[Call]]) -> int:
    return sum([len(list(every_call(b))) for b in blocks])
