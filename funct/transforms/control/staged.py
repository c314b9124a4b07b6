"""Branches and loops as single nodes: `Staged`, and what their rules do to the graphs inside.

Nothing is special about such a node: it is a primitive, made on the spot, whose implementation is
compiled graphs. So the checker, the passes, the compiler and the interpreter know it already. Its
rules make other staged functions from transformed bodies: the derivative of a loop is a loop. What
they make is kept, so that it is captured and compiled once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from funct.array import Tensor, asarray
from funct.compile import Choice, Repeat, build, made
from funct.core import (
    INEXACT,
    Absent,
    Level,
    Met,
    Region,
    ShapeDtype,
    Size,
    join,
    size_values,
    top_level,
    usable,
)  # fmt: skip
from funct.core.effects import Carried, once
from funct.errors import FunctError, TransformError
from funct.graph import Control, Graph, Interpreter, acting, acts
from funct.graph.controls import Written
from funct.graph.passes import own_rules
from funct.ops.fast import wrap
from funct.source import with_line
from funct.transforms.control.bodies import (
    Avals,
    Flags,
    Flat,
    SizeError,
    at_sizes,
    known_sizes,
    symbols_of,
    zeros_of,
)
from funct.transforms.forward import Forward, ForwardTracer
from funct.transforms.jet import Jet, JetTracer
from funct.transforms.reverse import Reverse, ReverseTracer, Watched
from funct.transforms.vmap import BatchTracer

__all__ = ["MANY", "Less", "Staged", "op_by_op", "plainly_transformed"]

_TOLD = (FunctError, Carried, MemoryError, RecursionError, Warning)  # for what they are

MANY = 256  # steps of a loop that are worth capturing its body


class Less(Struct, frozen=True):
    """A branch, a loop or a checkpoint that needs not all of what it was made from: which operands
    of that it takes, and which results it gives.
    """

    staged: Staged
    takes: Flags
    gives: Flags


class Staged:
    """A branch, a loop or a checkpoint: a flat function made of graphs, with every rule.

    Subclasses give `run` on buffers, `push`, `forward`, `backward` and `batch` on values. In these
    `mine` says which operands vary, and cotangents of the others are None; so are, for `backward`,
    those of results that nothing used.
    """

    name: ClassVar[str]

    def __init__(self, bodies: Sequence[tuple[str, Graph]], ins: Avals, outs: Avals) -> None:
        self.ins = ins
        self.outs = outs
        self.symbols = symbols_of([a.shape for a in ins])
        known_sizes(self.symbols, *[a.shape for a in (*ins, *outs)])
        self._made: dict[Any, Any] = {}
        self.primitive = Control(
            name=self.name,
            raw=self._raw,
            operands=tuple([f"x{k}" for k in range(len(ins))]),
            params=(),
            rules=(Absent("a region has rules for all operands at once"),) * len(ins),
            batch=self._batched,
            aval=self._aval,
            code=Absent("a function of its own"),
            onnx=Absent("control flow has no ONNX form yet"),
            samples=_no_samples,
            masks=False,
            spread=None,
            results=len(outs),
            effect=any(acts(g) for _, g in bodies),
            bodies=tuple(bodies),
            kind=self,
        )
        join(self.primitive, self._fn)

    def run(self, *buffers: Any) -> Flat:
        """The results on bare buffers."""
        raise NotImplementedError

    def mapped(self, change: Callable[[Graph], Graph]) -> Staged:
        """The same with other bodies."""
        raise NotImplementedError

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """Results and their tangents; the tangents of operands that are not mine are ignored."""
        raise NotImplementedError

    def forward(self, mine: Flags, *vals: Any) -> tuple[Flat, Flat]:
        """Results and residuals."""
        raise NotImplementedError

    def backward(self, mine: Flags, residuals: Flat, cts: Flat) -> Flat:
        """One cotangent per operand."""
        raise NotImplementedError

    def batch(self, size: Any, flags: Flags, vals: Flat) -> Flat:
        """The results for a batch, which is on axis 0 of the flagged values and of all results but
        those that are `Shared`.
        """
        raise NotImplementedError

    def depends(self, flags: Flags) -> Flags:
        """Whether each result depends on flagged operands, of which there are some."""
        return (True,) * len(self.outs)

    def without(self, moving: Flags, absent: Flags, wanted: Flags) -> Less | None:
        """The same without absent operands, and at least with the results that are wanted; None if
        there is no such. moving, absent: as in `absent.without`.
        """
        return None

    def on_some(self, args: Sequence[Any], moving: Flags) -> Flat:
        """The results where some operands are None: absent, of those that it is linear in. moving:
        which of these are not. What depends on absent ones alone is None. Raises SizeError.
        """
        absent = tuple([a is None for a in args])
        if not any(absent):
            return self(*args)
        less, wanted = self.once(("less", moving, absent), lambda: self._less(moving, absent))
        given = [
            self._zero(t, args) if a is None else a
            for a, t, f in zip(args, self.ins, less.takes, strict=True)
            if f
        ]
        found = iter(less.staged(*given))
        outs = [next(found) if f else None for f in less.gives]
        return tuple([o if f else None for o, f in zip(outs, wanted, strict=True)])

    def _zero(self, aval: ShapeDtype, args: Sequence[Any]) -> Any:
        """A zero of the type of an operand, beside these. Raises SizeError."""
        sizes = {
            s.name: args[s.input].shape[s.axis] for s in self.symbols if args[s.input] is not None
        }
        if len(sizes) < len(self.symbols):
            raise SizeError(())
        return zeros_of([ShapeDtype(size_values(aval.shape, sizes), aval.dtype)])[0]

    def pulled(self, half: Staged, held: Sequence[Any], cts: Sequence[Any]) -> Flat:
        """What its backward half gives for what is held, and for cotangents."""
        moving = (*(False,) * len(held), *[c is not None for c in cts])
        return self.reaching(half, half.on_some((*held, *cts), moving), moving)

    def reaching(self, half: Staged, found: Flat, moving: Flags) -> Flat:
        """What a backward half gave, None for each cotangent that nothing came to: it depends on
        none of those given. Only a rule of the user's may make something of nothing.
        """
        if self.own:
            return found
        return tuple([x if m else None for x, m in zip(found, half.moved(moving), strict=True)])

    def moved(self, flags: Flags) -> Flags:
        """`depends`; nothing does on nothing."""
        return self.depends(flags) if any(flags) else (False,) * len(self.outs)

    def _less(self, moving: Flags, absent: Flags) -> tuple[Less, Flags]:
        pairs = zip(self.moved(moving), self.depends(absent), strict=True)
        wanted = tuple([m or not gone for m, gone in pairs])
        whole = Less(self, (True,) * len(self.ins), (True,) * len(self.outs))
        return self.without(moving, absent, wanted) or whole, wanted

    def written(self) -> Written | None:
        """It taken apart, for files and hashes; None where something in it is no data."""
        return None

    def form(self) -> Repeat | Choice | None:
        """What it is to the compiler; None: calls of its bodies, as Python says."""
        return None

    @functools.cached_property
    def own(self) -> bool:
        """Whether functions with rules of their own are called in it."""
        return any(own_rules(g) for _, g in self.primitive.bodies)

    def native(self) -> Any:
        """Its blocks in a program; None if it cannot be part of one."""

        def make() -> tuple[Any]:
            form = self.form()
            return (None if form is None else made(form),)

        return self.once("native", make)[0]

    def __call__(self, *args: Any) -> Flat:
        """On arrays or tracers of any levels."""
        if not self.outs and not self.primitive.effect:
            return ()
        args = tuple([a if isinstance(a, Tensor) else asarray(a) for a in args])
        level = usable(self.name, top_level(args))
        level = acting(level) if self.primitive.effect else level
        if not self.symbols or not level.transforms:
            return self._bound(level, args)
        now = {s.name: args[s.input].shape[s.axis] for s in self.symbols}
        own = [self.ins[s.input].shape[s.axis] for s in self.symbols]
        if not all(_same(n, o) for n, o in zip(now.values(), own, strict=True)):
            return self.at(now)(*args)
        try:
            return self._bound(level, args)
        except SizeError:
            return self.at({k: int(n) for k, n in now.items()})(*args)

    def at(self, sizes: dict[str, Any]) -> Staged:
        """The same for these values of the symbols."""
        if all(isinstance(n, int) for n in sizes.values()):
            return self.once(("at", *sizes.values()), lambda: self.made_for(sizes))
        return self.made_for(sizes)

    def made_for(self, sizes: dict[str, Any]) -> Staged:
        """`at`, made now."""
        return self.mapped(lambda g: at_sizes(g, sizes))

    def _bound(self, level: Level, args: Flat) -> Flat:
        if isinstance(level, Reverse | Forward | Jet):
            return level.region(self._region(level, args), args)
        try:
            out = level.run(self.primitive, args, ())
        except Carried as carried:
            raise carried.error from None
        return out if len(self.outs) != 1 else (out,)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives, made once per key."""
        found = self._made.get(key)
        if found is None:
            found = self._made.setdefault(key, make())
        return found

    def compiled(self, graph: Graph) -> Callable[..., Flat]:
        """A body as a function of buffers; an error in it is the one that eager execution gives."""

        def make() -> Callable[..., Flat]:
            raw = build(graph, guards=False)

            def run(*buffers: Any) -> Flat:
                try:
                    return raw(*buffers)
                except Exception as error:
                    raise _located(graph, buffers, error) from None

            def acting_run(*buffers: Any) -> Flat:
                with once() as again:
                    try:
                        return raw(*buffers)
                    except Exception as error:
                        again()
                        raise _located(graph, buffers, error) from None

            return acting_run if acts(graph) else run

        return self.once(("compiled", graph), make)

    def _fn(self, *args: Any) -> Any:
        out = self(*args)
        return out if len(self.outs) != 1 else out[0]

    def _raw(self, *buffers: Any) -> Any:
        if self.own:
            Met.latest = object()
        try:
            out = self.run(*buffers)
        except _TOLD:
            raise
        except Exception as error:  # of the compiler or what it made: no op was refused
            raise TransformError(
                f"{self.name}: its body could not be compiled or run, which is a fault of funct: "
                f"{type(error).__name__}: {error}"
            ) from error
        return out if len(self.outs) != 1 else out[0]

    def _aval(self, args: Sequence[Any], params: Flat) -> Any:
        return self.outs if len(self.outs) != 1 else self.outs[0]

    def _batched(self, prim: Any, vals: Sequence[Any], flags: Sequence[bool], params: Flat) -> Any:
        vals = [asarray(v) for v in vals]
        size = next(v.shape[0] for v, f in zip(vals, flags, strict=True) if f)
        out = self.batch(size, tuple(flags), tuple(vals))
        return out if len(self.outs) != 1 else out[0]

    def _region(self, level: Reverse | Forward | Jet, args: Flat) -> Region:
        mine = tuple(
            [
                a.__class__ in (ReverseTracer, ForwardTracer, JetTracer)
                and a.level is level
                and a.dtype in INEXACT
                for a in args
            ]
        )
        return Region(
            self.name, self.__call__, functools.partial(self.push, mine),
            functools.partial(self.forward, mine), functools.partial(self.backward, mine),
            some=True,
        )  # fmt: skip


def plainly_transformed(values: Sequence[Any]) -> bool:
    """Whether no one looks at single ops of these values: they are arrays, or only derivatives and
    batches of arrays are taken.
    """
    for x in values:
        while x.level.transforms:
            if x.__class__ not in (ReverseTracer, ForwardTracer, JetTracer, BatchTracer):
                return False
            if isinstance(x.level, Watched):
                return False
            x = x.value
    return True


def _same(n: Any, own: Any) -> bool:
    """Whether a length is the very size that a body was made for."""
    return isinstance(n, Size) and n.scope is own.scope and n.terms == own.terms


def _no_samples(rng: Any) -> Sequence[Any]:
    return ()


def _located(graph: Graph, buffers: Sequence[Any], error: Exception) -> Exception:
    """The error with the user's line: found by interpreting, once, in the innermost body."""
    if isinstance(error, Carried):
        return error
    try:
        op_by_op(graph, buffers)
    except Carried as better:
        return better
    return error


def op_by_op(graph: Graph, buffers: Sequence[Any]) -> Flat:
    """What a body gives in eager code. What an op or a function of the user's raises is carried."""
    try:
        outs = Interpreter(graph).run(*[wrap(b) for b in buffers])
    except Exception as error:
        raise Carried(with_line(error)) from None
    return tuple([o.data for o in outs])
