"""vmap: a tracer whose value has the batch on axis 0, always; in_axes and out_axes act at the
border.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from funct import ops, pytree
from funct.array import Tensor, arange, asarray
from funct.array.axes import normal_axis
from funct.array.conversion import as_tensor
from funct.array.trees import flat_arrays, tell_leaf
from funct.core import Primitive, Region, Shared, Size, bind_region, expect_below, handed_on
from funct.core.level import unruled
from funct.errors import (
    ArgumentError,
    DTypeError,
    FunctError,
    ShapeError,
    TransformError,
    UnsupportedOperandError,
)
from funct.ops.refusals import explain, retold
from funct.records import opened
from funct.transforms.collectives import named_axis
from funct.transforms.given import expect_function
from funct.transforms.hidden import as_result
from funct.transforms.lanes import Laned, Lanes, agreed, by_path, joined, select
from funct.transforms.recipes import noted
from funct.transforms.tape.ways import batching

__all__ = ["Batch", "BatchTracer", "differs", "lift", "vmap", "whole"]


class BatchTracer(Tensor):
    """One lane's view of a value that has all lanes on axis 0."""

    __slots__ = ("level", "value")

    level: Batch

    def __init__(self, value: Any, level: Batch) -> None:
        self.value = value
        self.level = level

    @property
    def shape(self) -> Any:
        """Shape of one lane."""
        return self.value.shape[1:]

    def concrete(self) -> Any:
        """The elements, where all lanes have the same ones; else the lanes go their own ways."""
        return agreed(self.level, self.value.concrete())

    def _number(self, name: str) -> Any:
        if any(n != 1 for n in self.shape):
            raise ShapeError(f"{name}: the array must have one element, got shape {self.shape}")
        return self.concrete().item()

    def __bool__(self, /) -> bool:
        if self.dtype.kind != "b":
            return bool(ops.not_equal(self, 0))  # lanes part over the truth, not over the number
        return bool(self._number("bool"))

    def __int__(self, /) -> int:
        return int(self._number("int"))

    def __float__(self, /) -> float:
        return float(self._number("float"))

    def __complex__(self, /) -> complex:
        return complex(self._number("complex"))

    def __index__(self, /) -> int:
        return int(self.concrete().__index__())

    def __repr__(self) -> str:
        return f"BatchTracer({self.value!r})"


class Batch(Laned):
    """The level that carries a batch axis along.

    around: the level for which this one goes on, within a function with rules, and which of its
    lanes it has; what was made there has lanes here.
    """

    __slots__ = ("around", "size")
    computes = True

    def __init__(
        self, fun: Callable[..., Any] | None, size: Any, around: tuple[Batch, Lanes] | None = None
    ) -> None:
        super().__init__("vmap", fun)
        self.size = size
        self.around = around

    def rows(self, x: Any) -> Any:
        """All lanes of x; None where it has none."""
        if x.__class__ is not BatchTracer:
            return None
        if x.level is self or self.around is None:
            return x.value if x.level is self else None
        outer, lanes = self.around
        found = outer.rows(x)
        return None if found is None else select(found, lanes)

    def _lowered(self, args: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """Operands one level down, and which of them have lanes."""
        if self.around is None:
            flags = [a.__class__ is BatchTracer and a.level is self for a in args]
            return [a.value if f else a for a, f in zip(args, flags, strict=True)], flags
        rows = [self.rows(a) for a in args]
        vals = [a if r is None else r for a, r in zip(args, rows, strict=True)]
        return vals, [r is not None for r in rows]

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """The primitive's batching rule, one level down."""
        vals, batched = self._lowered(args)
        for i, a in enumerate(vals):
            if not isinstance(a, Tensor | bool | int | float | complex | Size):
                vals[i] = _operand(prim, args, params, a)
        try:
            out = prim.batch(prim, vals, batched, params)
        except FunctError as error:
            raise retold(prim, args, params) or error from None
        if prim.results == 1:
            return self._lane(out)
        return tuple([self._lane(o) for o in out])

    def _lane(self, out: Any) -> Any:
        return out.value if out.__class__ is Shared else BatchTracer(out, self)

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """The same call of the batched function, with batched rules."""
        vals, flags = self._lowered(args)
        make = region.batch if region.batch is not None else partial(lift, region)
        if region.batch is not None and not any(flags):  # it got here by what it closes over
            unruled(self.label, region)
        outs = bind_region(make(self, flags), vals)
        expect_below(self, region, outs)
        return tuple([BatchTracer(o, self) for o in outs])


BatchTracer.ways = batching(Batch, BatchTracer)


def _operand(prim: Primitive, args: Sequence[Any], params: tuple[Any, ...], a: Any) -> Any:
    """a, one of args, as a Tensor."""
    try:
        return as_tensor(prim.name, a)
    except UnsupportedOperandError:
        raise explain(prim, args, params, TypeError("operand")) from None


def _lanes(
    fun: Callable[..., Any], flags: Sequence[bool], outer: Batch
) -> Callable[..., tuple[Any, ...]]:
    """A flat function of flat operands, batched where flags say; every result is batched."""

    def run(*args: Any) -> tuple[Any, ...]:
        def part(lanes: Lanes, count: Any) -> tuple[Batch, Callable[[], list[Any]]]:
            level = Batch(fun, count, (outer, lanes))
            ins = [
                BatchTracer(select(a, lanes), level) if f else a
                for a, f in zip(args, flags, strict=True)
            ]

            def call() -> list[Any]:
                with handed_on(outer, level):
                    return [whole(o, level) for o in fun(*ins)]

            return level, call

        return tuple(joined("vmap", by_path(part, outer.size), outer.size))

    return run


def lift(region: Region, level: Batch, flags: Sequence[bool]) -> Region:
    """The batched call: the function and its rules, op by op."""
    n = len(flags)
    counts: list[int] = []

    def forward(*args: Any) -> tuple[Any, Any]:
        assert region.forward is not None

        def flat(*xs: Any) -> tuple[Any, ...]:
            outs, residuals = region.forward(*xs)  # type: ignore[misc]
            counts[:] = [len(outs)]
            return (*outs, *residuals)

        both = _lanes(flat, flags, level)(*args)
        return both[: counts[0]], both[counts[0] :]

    def backward(residuals: Any, cts: Any) -> tuple[Any, ...]:
        m = len(residuals)
        came = [c for c in cts if c is not None]
        absent: list[bool] = []

        def flat(*xs: Any) -> list[Any]:
            rest = iter(xs[m:])
            full = tuple([None if c is None else next(rest) for c in cts])
            given = region.backward(xs[:m], full)  # type: ignore[misc]
            absent[:] = [g is None for g in given]
            return [g for g in given if g is not None]

        found = iter(_lanes(flat, [True] * (m + len(came)), level)(*residuals, *came))
        out = [None if a else next(found) for a in absent]
        return tuple(
            [
                g if f or g is None else ops.reduce_sum(g, (0,), False)  # lanes share the operand
                for g, f in zip(out, flags, strict=True)
            ]
        )

    def push(primals: Any, tangents: Any) -> tuple[Any, Any]:
        def flat(*xs: Any) -> tuple[Any, ...]:
            outs, pushed = region.push(xs[:n], xs[n:])  # type: ignore[misc]
            return (*outs, *pushed)

        both = _lanes(flat, [*flags, *flags], level)(*primals, *tangents)
        return both[: len(both) // 2], both[len(both) // 2 :]

    return Region(
        region.name,
        _lanes(region.run, flags, level),
        push if region.push is not None else None,
        forward if region.forward is not None else None,
        backward if region.backward is not None else None,
        own=region.own,
        some=region.some,
    )


def whole(x: Any, level: Batch) -> Any:
    """All lanes of a result; a Python number stays one until the lanes are joined."""
    rows = level.rows(x)
    if rows is not None:
        return rows
    if isinstance(x, bool | int | float | complex):
        return x
    x = as_result(level.label, x)
    return ops.broadcast_to(x, (level.size, *x.shape))


def differs(x: Any) -> bool:
    """Whether x may have another value in each lane of some vmap."""
    while isinstance(x, Tensor) and x.level.transforms:
        if x.__class__ is BatchTracer:
            return True
        x = x.value
    return False


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """fun over a batch, as one call: each op is applied to all lanes at once.

    Args: in_axes: which axis of each argument is the batch: an int, None (the same for all lanes),
    or a tuple or tree of them that is a prefix of the arguments. out_axes: where the batch goes in
    the results, likewise; None for results that are the same for all lanes. axis_name: what `psum`
    and the other collectives call the batch. axis_size: needed where no argument has a batch.
    chunk_size: run at most this many lanes at a time.

    Python control flow works: where lanes disagree on a value that `if`, `while`, `int()` or a
    boolean mask asks for, fun is run once for each distinct path, on the lanes that take it. An
    empty batch has no lane to ask: there `where`, `cond` and `while_loop` give results of no rows.

    Returns: a function with fun's positional signature; keyword arguments are batched on axis 0.
    Raises: TreeError: when in_axes is no prefix of the arguments, or lanes return different trees.
    ShapeError: when lengths disagree, or lanes return different shapes. ConcretizationError: when
    fun asks for a value and the batch is empty. ArgumentError: when chunk_size is no positive int.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> dots = ft.vmap(lambda x, y: xp.sum(x * y), in_axes=(0, None))
        >>> dots(xp.ones((3, 2)), xp.ones(2)).tolist()
        [2.0, 2.0, 2.0]
    """
    expect_function("vmap", "fun", fun)

    if chunk_size is not None and (type(chunk_size) is not int or chunk_size < 1):
        raise ArgumentError(f"vmap: chunk_size must be a positive int, got {chunk_size!r}")

    def run(*args: Any, **kwargs: Any) -> Any:
        axes_tree = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        values, spec = _flatten(args)
        axes = _prefix("in_axes", axes_tree, args, len(values))
        named, named_spec = _flatten(kwargs)
        values, axes = values + named, axes + [0] * len(named)
        axes = [None if v is None else a for v, a in zip(values, axes, strict=True)]
        try:
            values = [v if a is None else asarray(v) for v, a in zip(values, axes, strict=True)]
        except DTypeError:
            if not opened([v for v, a in zip(values, axes, strict=True) if a is not None]):
                tell_leaf((args, kwargs) if kwargs else args, asarray)
                raise
            return run(*args, **kwargs)
        axes = [None if a is None else _axis(v, a) for v, a in zip(values, axes, strict=True)]
        size = _batch_size(values, axes, axis_size)
        values = [
            v if a is None else ops.move_axis(v, a, 0) for v, a in zip(values, axes, strict=True)
        ]
        outs: list[Any] = []  # what fun returned, for each path
        levels: list[Batch] = []

        def part(lanes: Lanes, count: Any) -> tuple[Batch, Callable[[], list[Any]]]:
            level = Batch(fun, count)

            def call() -> list[Any]:
                ins = [
                    v if a is None else BatchTracer(select(v, lanes), level)
                    for v, a in zip(values, axes, strict=True)
                ]
                split = len(ins) - len(named)
                index = None
                if axis_name is not None:
                    index = BatchTracer(arange(int(count)), level)
                with named_axis(axis_name, index, count, whole=lanes is None):
                    out = fun(*spec.unflatten(ins[:split]), **named_spec.unflatten(ins[split:]))
                if outs:
                    pytree.same_structure("vmap: results of other lanes", outs[0], out)
                outs.append(out)
                levels.append(level)
                return flat_arrays(out, lambda o: whole(o, level))[0]

            return level, call

        flat = joined("vmap", by_path(part, size, _chunks(size, chunk_size)), size)
        out = outs[0]
        structure = pytree.structure(out)
        if out_axes != 0:
            all_leaves = _flatten(out)[0]
            places = _prefix("out_axes", out_axes, out, len(all_leaves))
            places = [p for p, leaf in zip(places, all_leaves, strict=True) if leaf is not None]
            leaves = [pytree.leaves(o) for o in outs]
            for k, place in enumerate(places):
                if place is None:
                    flat[k] = _alike([o[k] for o in leaves], levels)
                else:
                    flat[k] = ops.move_axis(flat[k], 0, _out_axis(flat[k], place))
        return structure.unflatten(flat)

    run.__name__ = f"vmap({getattr(fun, '__name__', 'fun')})"
    options = "axis_name", axis_name, "axis_size", axis_size, "chunk_size", chunk_size
    return noted(run, vmap, (fun, in_axes, out_axes), *options)


def _chunks(size: Any, most: int | None) -> list[slice]:
    if most is None or size <= most:
        return []
    return [slice(k, k + most) for k in range(0, int(size), most)]


def _flatten(tree: Any) -> tuple[list[Any], Any]:
    return pytree.flatten(tree, none_is_leaf=True)


def _prefix(name: str, axes: Any, tree: Any, count: int) -> list[Any]:
    """One axis per leaf, None leaves included."""
    if isinstance(axes, int) or axes is None:
        return [axes] * count
    return pytree.broadcast_prefix(f"vmap: {name}", axes, tree, none_is_leaf=True)


def _axis(x: Any, axis: Any) -> int:
    if not isinstance(axis, int):
        raise TransformError(f"vmap: an axis must be an int or None, got {axis!r}")
    if not x.shape:
        raise ShapeError(f"vmap: in_axes names axis {axis} of a 0-d array", fix="use None for it")
    return normal_axis("vmap", axis, len(x.shape))


def _out_axis(x: Any, axis: Any) -> int:
    if not isinstance(axis, int):
        raise TransformError(f"vmap: out_axes must hold ints and None, got {axis!r}")
    return normal_axis("vmap", axis, len(x.shape))


def _alike(found: list[Any], levels: list[Batch]) -> Any:
    """What all lanes return. Where the function decided, each part may have its own constant."""
    paths = len(levels) > 1 and any(level.asked for level in levels)
    if paths or any(x.__class__ is BatchTracer and x.level in levels for x in found):
        raise TransformError(
            "vmap: out_axes is None for a result that may differ between lanes",
            fix="give its batch an axis; where the lanes hold one value, take the first of them",
        )
    return asarray(found[0])


def _batch_size(values: list[Any], axes: list[Any], given: int | None) -> Any:
    """The one length of all batch axes: an int, or a Size where it is symbolic."""
    sizes = [v.shape[a] for v, a in zip(values, axes, strict=True) if a is not None]
    sizes += [] if given is None else [given]
    if not sizes:
        raise TransformError("vmap: no argument has a batch axis", fix="pass axis_size")
    if any(n is not sizes[0] and n != sizes[0] for n in sizes):
        shapes = [tuple(v.shape) for v, a in zip(values, axes, strict=True) if a is not None]
        raise ShapeError(f"vmap: batch sizes must agree, got {sizes} from shapes {shapes}")
    return sizes[0]
