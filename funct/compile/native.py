"""A graph as one Python function that calls native programs.

Steps that follow one another and are loops become one program (`program.py`), called once; what is
no loops is called as before, between them. Arrays that only one program sees live in its workspace.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from msgspec import Struct

from funct.compile.apart import loops_apart
from funct.compile.control import constants_of, is_lowered, lower_step
from funct.compile.entry import Whole, note_whole
from funct.compile.foreseen import needs
from funct.compile.forms import Refused
from funct.compile.fusion.calls import Address, Call, every_call, size_bytes
from funct.compile.fusion.fuse import Fused, fuse
from funct.compile.fusion.groups import Group, reads
from funct.compile.loops.describe import describe
from funct.compile.loops.kernel import Kernel
from funct.compile.loops.views import VIEWS
from funct.compile.memory.carried import chained
from funct.compile.memory.order import ordered
from funct.compile.memory.reuse import reusable
from funct.compile.memory.within import within
from funct.compile.memory.workspace import place_buffers
from funct.compile.program import Program, kernels_of, link
from funct.compile.rehearsal import rehearse
from funct.compile.rewriting.attention import with_attention
from funct.compile.rewriting.composed import on_codes
from funct.compile.rewriting.factored import factored_once
from funct.compile.rewriting.numpys import with_drawn_bits
from funct.compile.rewriting.pairs import complexes, floats, in_pairs
from funct.compile.rewriting.row_elements import Check
from funct.compile.rewriting.simplify import simplify
from funct.compile.rewriting.triangles import triangles_called
from funct.compile.steps.placed import placed
from funct.compile.text import call_text, guard_text, scope
from funct.compile.told import call_line, fusion_lines
from funct.device.memory import LARGE, serve
from funct.events import tell
from funct.graph import Graph, Guard, Node, Var, acts, lay_out
from funct.ops.indexing import check_bounds
from funct.settings import config
from funct.source import SITES

__all__ = ["Native", "Type", "base_names", "native", "refused"]

Type = tuple[tuple[int, ...], np.dtype[Any]]  # of an array: shape and dtype

_MANY = 16  # results that a function makes room for one by one


class Native(Struct, frozen=True, eq=False):
    """What was made of a graph: the function, and what people may want to see of it."""

    run: Any
    text: str
    fused: Fused
    calls: tuple[Call, ...]
    programs: tuple[Program, ...]
    whole: Whole | None
    results: tuple[Type, ...]  # that the function makes room for

    def show(self) -> str:
        """The Python function, then the loops of each kernel in order."""
        parts = [self.text]
        for c in self.calls:
            loops = isinstance(c.kernel, Kernel)
            text = f"\n{describe(c.kernel, c.names)}" if loops else ""
            parts.append(f"# {call_line(c)}{text}")
        return "\n\n".join(parts)


def refused(*_: Any) -> NoReturn:
    """What is asked where there are no other means. Raises: Refused."""
    raise Refused


def native(
    graph: Graph, slowly: Callable[..., Any] = refused, *, alone: bool = False
) -> Native:
    """Make code for a graph without calls, whose sizes are numbers.

    slowly: the same function by other means, which is asked where a program finds that an op must
    raise, or may have to. alone: whether no call of NumPy should be left beside the programs, and
    arrays that are not dense are left to it, which reads them in another order.
    """
    laid = lay_out(graph)
    lowered = _lowered_in(graph)
    fused, checks = _fused(laid, lowered, alone)
    rehearse(fused.steps)
    tell("fusion", lambda: fusion_lines(fused))
    made = _Writer(fused, checks, laid, lowered, slowly, alone).write()
    serve(sum([n for v in fused.kept if (n := size_bytes(v)) >= LARGE]))
    tell("loops", lambda: "\n".join(map(call_line, made.calls)))
    return made


def fused(graph: Graph) -> Fused:
    """Which ops of such a graph share loops, and why others do not, without code for them."""
    return _fused(lay_out(graph), _lowered_in(graph))[0]


def _lowered_in(graph: Graph) -> Callable[[Any], bool]:
    """Which steps of a graph can be part of a program. What acts is not done a second time."""
    return partial(is_lowered, doubtful=not acts(graph))


def _fused(
    laid: Graph, lowered: Callable[[Any], bool], alone: bool = False
) -> tuple[Fused, Sequence[Check]]:
    laid = on_codes(with_attention(laid))
    pairs = with_drawn_bits(in_pairs(laid, islands=lowered) or laid)
    simple, checks = simplify(loops_apart(pairs, lowered), body=alone)
    if not alone and not acts(laid):  # alone it has NumPy's bits, and what acts is not done again
        simple = triangles_called(factored_once(simple))

    def arranged(graph: Graph) -> Fused:
        return ordered(fuse(graph), lowered)

    return placed(within(config.memory_budget, arranged(simple), arranged), lowered), checks


class _Writer:
    """One function as it is printed."""

    def __init__(
        self, fused: Fused, checks: Sequence[Check], outside: Graph,
        lowered: Callable[[Any], bool], slowly: Callable[..., Any], alone: bool,
    ) -> None:  # fmt: skip
        self.lowered = lowered
        self.alone = alone
        self.fused = fused
        self.graph = fused.graph
        self.names: dict[str, Any] = base_names() | scope(self.graph) | {"slowly": slowly}
        self.lines = [f"def run({', '.join(v.name for v in self.graph.inputs)}):"]
        self.sites: dict[int, Any] = {}
        given = zip(self.graph.inputs, outside.inputs, strict=True)
        returned = zip(self.graph.outputs, outside.outputs, strict=True)
        self.turned = {v for v, face in returned if face.dtype.kind == "c" != v.dtype.kind}
        turned = [v for v, face in given if face.dtype.kind == "c" != v.dtype.kind]
        self.given = [f"{v.name}_given" if v in turned else v.name for v in self.graph.inputs]
        self.lines += [f"    {v.name} = floats({v.name}_given := {v.name})" for v in turned]
        self.pairs = bool(turned) or bool(self.turned)
        for c in checks:
            self.lines += [call_text(e, None, self.names) for e in c.views]
            self.sites[len(self.lines) + 1] = c.site
            self.lines.append(f"    check_bounds({c.op!r}, {c.index.name}, {c.length})")
        self.constants = {v: np.ascontiguousarray(x.data) for v, x in self.graph.constants}
        self.names["constants"] = self.constants  # programs hold their addresses
        self.made_by = {v: e for e in self.graph.nodes if isinstance(e, Node) for v in e.results}
        self.printed = {*self.graph.inputs, *self.constants}
        self.outputs = set(self.graph.outputs)
        self.last = self._last_reads()
        self.waiting: list[tuple[int, str, Var]] = []  # made here: last read, name, itself
        self.own: set[Var] = set()  # arrays that programs made: nobody else has their memory
        self.arrays = {v for v in self.graph.inputs if v.shape}  # surely ndarrays, not scalars
        self.calls: list[Call] = []
        self.programs: list[Program] = []
        self.results: list[Type] = []
        self.linked: list[Var] = []  # arguments of the last program
        self.checked = bool(checks)

    def write(self) -> Native:
        """Print all steps in order."""
        steps = self.fused.steps
        parts = self._parts()
        needs(self._workspace(part, end) for end, part in parts.values())
        made = kernels_of([c for _, part in parts.values() for c in part])
        k = 0
        while k < len(steps):
            step = steps[k]
            if k in parts:
                end, part = parts[k]
                self._program(part, end)
                k = end
                continue
            assert not isinstance(step, Group)
            for v in reads(step):
                self._view(v)
                self.own.discard(self.fused.views[v].root)  # its result may be a look at it
            self.sites[len(self.lines) + 1] = step.site
            if isinstance(step, Guard):
                self.lines.append(guard_text(step, self.names))
            else:
                self.lines.append(call_text(step, None, self.names))
                for v in step.results:
                    self._made(v)
            k += 1
            self._forget(k)
        for v in self.graph.outputs:
            self._view(v)
        names = [f"complexes({v.name})" if v in self.turned else v.name for v in self.graph.outputs]
        results = "".join([name + ", " for name in names])
        self.lines.append(f"    return ({results})")
        self.names[SITES] = self.sites
        text = "\n".join(self.lines)
        exec(compile(text, "<funct graph>", "exec"), self.names)
        run, whole = self.names["run"], self._whole()
        if whole is not None:
            note_whole(run, whole)
        del made  # the programs hold it
        calls = tuple(every_call(self.calls))
        programs, new = tuple(self.programs), tuple(self.results)
        return Native(run, text, self.fused, calls, programs, whole, new)

    def _whole(self) -> Whole | None:
        """The function as one program, if it is nothing else."""
        graph, views = self.graph, self.fused.views
        if self.pairs:
            return None
        if len(self.programs) != 1 or not all(map(self.lowered, self.fused.steps)) or self.checked:
            return None
        seen = [views[v] for v in graph.outputs]
        entire = all(s.is_dense and s.size == math.prod(s.root.shape) for s in seen)
        made = {v for v in self.linked if v not in graph.inputs}
        position = {v: k for k, v in enumerate(graph.inputs)}
        shared = []
        ends = (*graph.inputs, *graph.outputs)
        for r, (v, s) in enumerate(zip(graph.outputs, seen, strict=True)):
            if s.root not in position:
                position[s.root] = len(graph.inputs) + r
            elif _type(v) == _type(ends[position[s.root]]):
                shared.append((r, position[s.root]))
            else:
                return None
        new = [v for v in position if v not in graph.inputs]
        if not entire or set(new) != made:
            return None
        at = [position[v] - len(graph.inputs) for v in new]
        kept = {k for _, k in shared}
        right = reusable(self.calls, graph.inputs, new, [graph.outputs[r] for r in at])
        right = right.among(at, len(graph.outputs), kept)
        arguments = tuple([position[v] for v in self.linked])
        outputs = tuple(graph.outputs)
        p = self.programs[0]
        owner = p.code, self.constants
        return Whole(
            tuple(graph.inputs), outputs, arguments, p.table, p.workspace, owner, right,
            tuple(shared),
        )  # fmt: skip

    def _last_reads(self) -> dict[Var, int]:
        """For each dense buffer that is read, the last step that does; the caller comes last."""
        views = self.fused.views
        found: dict[Var, int] = {}
        for k, step in enumerate(self.fused.steps):
            found |= {views[v].root: k for v in reads(step)}
        return found | {views[v].root: len(self.fused.steps) for v in self.graph.outputs}

    def _made(self, v: Var) -> None:
        """An array has a name now, until nobody reads it any more."""
        self.printed.add(v)
        if v not in self.outputs:
            last = self.last.get(self.fused.views[v].root, -1)
            heapq.heappush(self.waiting, (last, v.name, v))

    def _forget(self, place: int) -> None:
        """Let go of arrays made here that no step from this place on reads."""
        gone = []
        while self.waiting and self.waiting[0][0] < place:
            gone.append(heapq.heappop(self.waiting)[2])
        if gone:
            self.lines.append(f"    del {', '.join(sorted([v.name for v in gone]))}")
            self.printed.difference_update(gone)

    def _view(self, v: Any) -> None:
        """Print the views that lead to v from arrays that are there."""
        if not isinstance(v, Var) or v in self.printed:
            return
        e = self.made_by[v]
        assert e.name in VIEWS, "arrays are there before they are read"
        self._view(e.operands[0])
        self.lines.append(call_text(e, None, self.names))
        self._made(v)

    def _parts(self) -> dict[int, tuple[int, list[Call]]]:
        """By the first step of each program: the step behind its last one, and its calls."""
        found: dict[int, tuple[int, list[Call]]] = {}
        steps = self.fused.steps
        for lowered, run in itertools.groupby(range(len(steps)), lambda k: self.lowered(steps[k])):
            if not lowered:
                continue
            at = list(run)
            end = at[-1] + 1
            calls = [c for k in at for c in lower_step(steps[k], self.fused)]
            for k in at:
                self.constants |= constants_of(steps[k])
            for c in calls:
                self.constants |= c.held
            found[at[0]] = end, chained(calls, {v for v, k in self.last.items() if k >= end})
        return found

    def _ends(
        self, calls: Sequence[Call], end: int
    ) -> tuple[list[Var], list[Var], dict[Var, int]]:
        """What a program is given, what it makes for steps from `end` on, and what is there."""
        every = list(every_call(calls))
        read = dict.fromkeys([w.of for c in every for w in c.words if isinstance(w, Address)])
        made = dict.fromkeys([v for c in every for v in c.writes])
        held = {v: x.ctypes.data for v, x in self.constants.items() if v in read}
        given = [v for v in read if isinstance(v, Var) and v not in made and v not in held]
        results = [v for v in made if isinstance(v, Var) and self.last.get(v, -1) >= end]
        return given, results, held

    def _workspace(self, calls: Sequence[Call], end: int) -> int:
        """Bytes that a program will take, nearly."""
        given, results, held = self._ends(calls, end)
        return place_buffers(calls, {*given, *results, *held})[1]

    def _program(self, calls: Sequence[Call], end: int) -> None:
        self.calls += calls
        given, results, held = self._ends(calls, end)
        dying = [v for v in given if v in self.own and self.last[v] < end]
        taken = reusable(calls, dying, results).taken(dying, results)
        new = [(v.shape, v.dtype) for k, v in enumerate(results) if k not in taken]
        self.results += new
        program = link(calls, [*given, *results], held)
        self.linked = [*given, *results]
        name = f"program{len(self.programs)}"
        self.programs.append(program)
        self.names[name] = program.run
        for v in given:
            self._view(v)
            if v not in self.arrays:
                self.lines.append(
                    f"    if {v.name}.__class__ is not ndarray: {v.name} = array({v.name})"
                )
                self.arrays.add(v)
        many = len(new) > _MANY
        if many:  # a line for each takes long to read
            rooms = f"rooms{name}"
            self.names[rooms] = tuple(new)
            mine = "".join([f"{v.name}, " for k, v in enumerate(results) if k not in taken])
            self.lines.append(f"    {mine}= [empty(shape, dtype) for shape, dtype in {rooms}]")
        for k, v in enumerate(results):
            if k in taken:
                self.lines.append(f"    {v.name} = {dying[taken[k]].name}")
            elif not many:
                self.names[f"d_{v.dtype.name}"] = v.dtype
                shape = f"({''.join(f'{n}, ' for n in v.shape)})"
                self.lines.append(f"    {v.name} = empty({shape}, d_{v.dtype.name})")
            self._made(v)
            self.own.add(v)
            self.arrays.add(v)
        out = "".join([f"{v.name}, " for v in results])
        into = "".join([f"{v.name}, " for v in given])
        work = f"empty({program.workspace}, u1)"
        given_, out_ = into, out
        if many:
            self.lines.append(f"    given_, out_ = ({into}), ({out})")
            given_, out_ = "*given_, ", "*out_, "
        again = f"{name}(*dense({given_}), {out_}{work})"
        otherwise = f"return slowly({', '.join(self.given)})"
        if self.alone:
            self.lines.append(f"    if not {name}({given_}{out_}{work}): {otherwise}")
        elif any(c.checks for c in every_call(calls)):
            self.lines.append(f"    done = {name}({given_}{out_}{work})")
            self.lines.append(f"    if done is False: done = {again}")
            self.lines.append(f"    if done is None: {otherwise}")
        else:
            self.lines.append(f"    if not {name}({given_}{out_}{work}):")
            self.lines.append(f"        {again}")
        if many:
            self.lines.append("    del given_, out_")
        self._forget(end)


def base_names() -> dict[str, Any]:
    """What the names mean that every such function may use."""
    return scope(Graph((), (), (), ())) | {
        "empty": np.empty, "array": np.asarray, "ndarray": np.ndarray, "dense": _dense,
        "u1": np.dtype(np.uint8), "check_bounds": check_bounds, "floats": floats,
        "complexes": complexes,
    }  # fmt: skip


def _type(v: Var) -> Any:
    return v.shape, v.dtype


def _dense(*given: Any) -> list[Any]:
    """The arrays, or copies whose elements lie one after the other.

    Programs write into none of them, so copies of one number lie in the same memory: a first step
    may well be given as many zeros as a model has parameters.
    """
    loose = [x for x in given if not (x.flags.c_contiguous and x.flags.aligned)]
    if len(loose) > 1:
        loose.sort(key=_size, reverse=True)  # what the largest array of a number has is enough
    flat: dict[Any, Any] = {}
    made: dict[int, Any] = {}
    for x in loose:
        key = id(x) if any(x.strides) else (x.dtype, x[(slice(1),) * x.ndim].tobytes())
        found = flat.get(key)
        if found is None:
            flat[key] = made[id(x)] = x.copy()
        else:
            made[id(x)] = found.reshape(-1)[: x.size].reshape(x.shape)
    return [made.get(id(x), x) for x in given]


def _size(x: Any) -> int:
    return int(x.size)
