"""`Executable`: a graph compiled for buffers, and what it is at each level of tracers.

On the tape it is one call: value and pull are captured as one joint graph, which is cut where the
cotangents come in; both halves are executables again, so every order of derivative is compiled. On
a batch, and with tangents, it is a call of one joint graph (`carried.py`), an executable as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Self

import numpy as np

from funct.array import Array, zeros
from funct.compile import MISS
from funct.compile.memory.partition import Halves, partition
from funct.compile.rewriting.attention import with_attention
from funct.core import INEXACT, Level, Met, ShapeDtype, size_values, top_level, usable
from funct.core.collecting import seldom
from funct.core.effects import Carried, once
from funct.errors import GuardError, UnknownValueError
from funct.events import tell
from funct.graph import Graph, acting, acts, dependent, optimize
from funct.graph.capture import Capture, capture
from funct.graph.passes import own_rules
from funct.ops.fast import wrap
from funct.ops.refusals import out_of_memory
from funct.settings import config
from funct.source import raised_by_user, with_line
from funct.transforms.compiled.backends import Compile, compiler
from funct.transforms.compiled.carried import Carrying, carrying
from funct.transforms.control.absent import without
from funct.transforms.control.bodies import or_none
from funct.transforms.reverse import Reverse, ReverseTracer, walked
from funct.transforms.tape.nodes import Composed
from funct.transforms.vjp import vjp
from funct.transforms.watching.watch import Watch

__all__ = ["Executable"]

_ARRAYS = {Array}
_ALONE = (True,)  # the one cotangent came
_FIXED = object()  # a derivative that needs to know its sizes

_default = compiler("default", None)


def telling(run: Callable[..., Any]) -> Callable[..., Any]:
    """run, which calls functions with rules of their own, and says so."""

    def told(*buffers: Any) -> Any:
        Met.latest = object()
        return run(*buffers)

    return told


class Executable:
    """A graph compiled for buffers, and for each level of tracers. captured: before all passes.

    acts: whether a run does something besides its results; `raw` alone may do it twice then.
    """

    __slots__ = (
        "_made", "_raw", "acts", "captured", "carried", "compile", "guards", "half", "halves",
    )  # fmt: skip

    def __init__(self, graph: Graph, *, guards: bool = True, compile: Compile = _default) -> None:
        self.captured = graph
        self.acts = acts(graph)
        self.guards = guards
        self.compile = compile
        self._raw: Callable[..., Any] | None = None
        self._made: Callable[..., Any] | None = None
        self.halves: dict[Any, Any] = {}  # on the tape
        self.carried: dict[Any, Any] = {}  # with a batch, or with tangents
        self.half = False  # of another: its tape puts away what is saved

    @property
    def made(self) -> Callable[..., Any]:
        """What the compiler gave: made when it is asked for, since derivatives only run halves."""
        if self._made is None:
            try:
                self._made = self.compile(self.captured, self.guards)
            except MemoryError as error:  # a constant that is laid out
                raise out_of_memory("jit", error) from None
        return self._made

    @property
    def raw(self) -> Callable[..., Any]:
        """What runs on buffers, and tells where functions with rules of their own are called."""
        if self._raw is None:
            made = self.made
            self._raw = telling(made) if self.own else made
        return self._raw

    @property
    def own(self) -> bool:
        """Whether it calls functions with rules of their own."""
        return bool(own_rules(self.captured))

    def ready(self) -> Self:
        """Itself, with what runs on buffers made."""
        self._raw = self.raw
        return self

    @property
    def graph(self) -> Graph:
        """The graph that is compiled. A call of code that was kept on disk needs it nowhere."""
        return optimize(self.captured, guards=self.guards)

    def __call__(self, *leaves: Any) -> Any:
        """Results on arrays or tracers, or MISS."""
        if not self.acts and {x.__class__ for x in leaves} == _ARRAYS:
            out = self._computed(leaves)
            return out if out is MISS else tuple([wrap(d) for d in out])
        level = usable("jit", top_level(leaves))
        if self.acts:
            level = acting(level)
        if not level.transforms:
            out = self._acting(leaves) if self.acts else self._computed(leaves)
            return out if out is MISS else tuple([wrap(d) for d in out])
        if self.captured.symbols and not self.captured.takes([x.shape for x in leaves]):
            return MISS
        if isinstance(level, Reverse):
            return self._reverse(level, leaves)
        if not self.acts:
            out = self._carried(level, leaves)
            if out is not MISS:
                return out
        try:
            if isinstance(level, Watch) and not self.half:
                return level.replay(self.graph, leaves)
            return self.graph(*leaves)
        except GuardError:
            return MISS

    def _computed(self, leaves: Sequence[Any]) -> Any:
        try:
            return self.raw(*[x.data for x in leaves])
        except Exception as error:
            self.raise_located(error, leaves)

    def _acting(self, leaves: Sequence[Any]) -> Any:
        with once() as again:
            try:
                return self.raw(*[x.data for x in leaves])
            except Exception as error:
                again()
                self.raise_located(error, leaves)

    def raise_located(self, error: Exception, leaves: Sequence[Any]) -> NoReturn:
        """Raise what `located` finds, from what that was raised from."""
        found = self.located(error, leaves)
        raise found from found.__cause__

    def located(self, error: Exception, leaves: Sequence[Any]) -> Exception:
        """The error that eager execution raises, with the user's line: found by interpreting."""
        if isinstance(error, Carried):
            return error.error
        if raised_by_user(error):
            return error
        try:
            self.graph(*leaves)
        except Exception as better:
            return with_line(better)
        return error

    def _carried(self, level: Level, leaves: Sequence[Any]) -> Any:
        """Results on a batch, or with tangents, by one graph for both; MISS where there is none."""
        call = carrying(self.graph, level, leaves)
        if call is None or isinstance(top_level(call.vals), Capture | Watch):
            return MISS  # what is captured or looked at are the ops
        found = self.carried.get(call.key)
        if found is None:  # the first number of lanes, the graph for it, and that for any number
            exe = self._joint(call, any_lanes=False) if call.fits() else _FIXED
            found = self.carried[call.key] = [call.lanes, exe, None, call.varying]
        lanes, exe, others, varying = found
        if lanes != call.lanes and exe is not _FIXED:
            exe = found[2] = others or self._joint(call, any_lanes=True)
        if exe is _FIXED:
            return MISS
        out = exe(*call.vals)
        return out if out is MISS else call.wrap(out, varying)

    def _joint(self, call: Carrying, *, any_lanes: bool) -> Any:
        """The call as an executable; _FIXED where its sizes or decisions cannot stay open."""
        names = call.names(any_lanes=any_lanes)
        try:
            graph, outer = capture(call.joint(), call.vals, label="jit", names=names)
        except Exception:
            return _FIXED
        if outer or graph.fixed_sizes():
            return _FIXED
        exe = Executable(graph, guards=self.guards, compile=self.compile)
        exe.half = self.half
        return exe

    def _reverse(self, level: Reverse, leaves: Sequence[Any]) -> Any:
        """The forward half gives results and residuals; the backward half is the pull."""
        mine = tuple([x.__class__ is ReverseTracer and x.level is level for x in leaves])
        vals = [x.value if m else x for x, m in zip(leaves, mine, strict=True)]
        found = self._halves(mine, vals)
        if found is MISS:
            return MISS
        if found is None:  # a decision on a cotangent: op by op
            try:
                return self.graph(*leaves)
            except GuardError:
                return MISS
        forward, back = found
        both = forward(*vals)
        if both is MISS:
            return MISS
        n = back.results
        outs, kept = both[:n], (*both[n:], *vals)
        nodes = [x.node if m else None for x, m in zip(leaves, mine, strict=True)]
        if back.single:
            return (level.record_whole(outs[0], back, nodes, kept),)
        given, masked = back.given, back.given_masked
        return level.record_call(outs, nodes, given, "jit", kept, masked, some=True)

    def _halves(self, mine: tuple[bool, ...], vals: Sequence[Any]) -> Any:
        """Both halves for any size; for one size, where the derivative needs to know it."""
        budget = config.get("memory_budget")
        key = (mine, budget)
        found = self.halves.get(key)
        if found is None and key not in self.halves:
            found = self.halves[key] = self._split(mine, vals, budget, bool(self.captured.symbols))
        if found is not _FIXED:
            return found
        key += tuple([int(vals[s.input].shape[s.axis]) for s in self.graph.symbols])  # type: ignore[assignment]
        if key not in self.halves:
            self.halves[key] = self._split(mine, vals, budget, False)
        return self.halves[key]

    @seldom
    def _split(
        self, mine: tuple[bool, ...], vals: Sequence[Any], budget: float, symbolic: bool
    ) -> Any:
        """Capture value and pull as one graph, and cut it where the cotangents come in.

        MISS where a decision leads another way, None where one depends on a cotangent, _FIXED where
        sizes cannot stay symbolic.
        """
        graph, n_out = self.graph, len(self.graph.outputs)
        symbols = {s.name for s in graph.symbols} if symbolic else set()
        names: list[dict[int, str] | None] = [
            {axis: str(n) for axis, n in enumerate(v.shape) if str(n) in symbols}
            for v in graph.inputs
        ]

        def joint(*xs: Any) -> tuple[Any, ...]:
            sizes = {s.name: xs[s.input].shape[s.axis] for s in graph.symbols}
            types = [
                ShapeDtype(size_values(v.shape, sizes), v.dtype)
                for v in graph.outputs
                if _varies(v)
            ]
            cts = iter([xs[0].level.further(a) for a in types] if xs else ())

            def free(*fs: Any) -> tuple[Any, ...]:
                given = iter(fs)
                return graph(*[next(given) if m else x for x, m in zip(xs, mine, strict=True)])

            outs, pull = vjp(free, *[x for x, m in zip(xs, mine, strict=True) if m])
            full = tuple([next(cts) if _varies(o) else zeros(o.shape, dtype=o.dtype) for o in outs])
            return (*outs, *pull.adjoint(full))  # the engine's convention, whatever the user's

        try:
            both, outer = capture(joint, vals, label="jit", names=names, least=1)
        except GuardError:
            return MISS
        except UnknownValueError:  # asked for a cotangent, which nobody has yet
            return None
        except Exception:
            if not symbolic:
                raise
            return _FIXED
        assert not outer, "a compiled graph is closed"
        if symbolic and both.fixed_sizes():
            return _FIXED
        cut = partition(with_attention(both), len(vals), n_out, budget=budget)
        if cut.undecided:
            return None
        tell("graph", lambda: _told(cut))
        forward = Executable(cut.forward, compile=self.compile)
        backward = Executable(cut.backward, guards=False, compile=self.compile)
        forward.half = backward.half = True
        return forward, _Back(self, backward, mine)


class _Back(Composed):
    """The way back through a call: by the backward half, or op by op where each op must see the
    zeros. mine: which operands are on the tape; of what a call keeps, they come last.

    single: whether the call can be one node of the tape, of one real result.
    """

    name = "jit"

    def __init__(self, whole: Executable, half: Executable, mine: tuple[bool, ...]) -> None:
        self._whole, self._half, self._mine = whole, half, mine
        outputs = whole.captured.outputs
        self.results = len(outputs)
        self._varying = [_varies(o) for o in outputs]
        self._some: dict[tuple[bool, ...], tuple[Executable, tuple[bool, ...]]] = {}
        self.single = len(outputs) == 1 and outputs[0].dtype.kind in "fV"

    def given(self, kept: Any, cts: Any) -> list[Any]:
        """For each operand its cotangent, None for one that is not on the tape."""
        moving = [c for c, v in zip(cts, self._varying, strict=True) if v]
        held = kept[: len(kept) - len(self._mine)]
        came = tuple([c is not None for c in moving])
        half, gives = self._for(came)
        found = half(*held, *[c for c in moving if c is not None])
        return or_none(or_none(found, gives), self._mine)

    def _for(self, came: tuple[bool, ...]) -> tuple[Executable, tuple[bool, ...]]:
        """The way back for the cotangents that came, and which of those it has it gives."""
        found = self._some.get(came)
        if found is None:
            graph = self._half.captured
            held = (False,) * (len(graph.inputs) - len(came))
            half, moving = self._half, (*held, *came)
            absent = (*held, *[not c for c in came])
            gives = dependent(graph, moving)
            if self._whole.own:  # rules of the user's may make something of nothing
                pairs = zip(gives, dependent(graph, absent), strict=True)
                gives = tuple([m or not gone for m, gone in pairs])
            if not (all(came) and all(gives)):
                less = without(graph, moving, absent, gives)
                half = Executable(less, guards=False, compile=half.compile)
                half.half = True
            found = self._some[came] = half, gives
        return found

    def given_masked(self, kept: Any, cts: Any) -> list[Any]:
        """The same, op by op where a number is not finite."""
        found = self.given(kept, cts)
        if all(_is_finite(g) for g in found if g is not None):
            return found
        at = [k for k, m in enumerate(self._mine) if m]
        operands = kept[len(kept) - len(self._mine) :]
        again = iter(walked("jit", self._whole.graph, operands, at, cts, True))
        return [next(again) if m else None for m in self._mine]

    def pull(self, g: Any, *kept: Any) -> Any:
        """The cotangents of the operands on the tape, or that of the only one."""
        half, gives = self._for(_ALONE)
        found = or_none(half(*kept[: -len(self._mine)], g), gives)
        return found[0] if len(found) == 1 else found

    def masked(self, g: Any, *kept: Any) -> Any:
        """The same below ops that make structural zeros."""
        found = [x for x, m in zip(self.given_masked(kept, [g]), self._mine, strict=True) if m]
        return found[0] if len(found) == 1 else found


def _is_finite(x: Any) -> bool:
    """Whether all numbers are finite that a cotangent stands for; unknown ones are taken for it."""
    while x.__class__ is not Array:
        x = getattr(x, "value", None)
        if x is None:
            return True
    return x.dtype not in INEXACT or bool(np.isfinite(x.data).all())


def _varies(x: Any) -> bool:
    return x.dtype in INEXACT


def _told(cut: Halves) -> str:
    kept = ", ".join(f"{v.name}: {v.dtype}{list(v.shape)}" for v in cut.residuals)
    return f"halves keep {kept or 'nothing'}\n{cut.forward}\n{cut.backward}"
