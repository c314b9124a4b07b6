"""vjp: the value of a function and its pullback, a value that can be looked into; and
linear_transpose.

Note [Convention]: rules and tapes speak one language: a cotangent of z holds df/d(Re z) +
i df/d(Im z). `config.complex_convention` acts where cotangents enter and leave, here and in `grad`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from funct import ops, pytree
from funct.array import Array, Tensor, asarray
from funct.array.trees import flat_arrays
from funct.core import FLOATING, INEXACT, Region, ShapeDtype, open_shape
from funct.errors import DTypeError, ShapeError, TransformError
from funct.graph import dependent, inline_calls
from funct.graph.capture import capture
from funct.graph.json_form import decode_graph, encode_graph
from funct.ops.fast import wrap
from funct.ops.refusals import finding_room
from funct.records import opened, remedy
from funct.settings import config
from funct.transforms.forward import split_aux
from funct.transforms.given import expect_function
from funct.transforms.hidden import flat_results, visible
from funct.transforms.recipes import noted
from funct.transforms.reverse import (
    Reverse,
    ReverseTracer,
    lower,
    open_tape,
    pull_back,
    sink,
    zero_of,
)
from funct.transforms.tape.backward import backward
from funct.transforms.tape.nodes import Node, walk

__all__ = [
    "Pullback", "Zero", "arranged", "aux_below", "cotangent_of", "in_convention", "leaves_on_tape",
    "linear_transpose", "recorded", "vjp",
]  # fmt: skip


class Zero(Struct, frozen=True):
    """The derivative with respect to an integer: exactly zero, with no array behind it.

    Example:
        >>> import funct as ft
        >>> ft.grad(lambda n, x: n * x, argnums=0, allow_int=True)(2, 3.0)
        Zero(shape=(), dtype=dtype('int64'))
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


_LEAF = pytree.structure(0)


def leaves_on_tape(
    label: str, fun: Any, args: Any, nums: Sequence[int], *, allow_int: bool, sites: bool = False
) -> tuple[Reverse, list[Any], Any]:
    """A tape, and a leaf of it for every floating leaf of args, the arguments that nums names.

    Their structure comes with it; None where args are real arrays themselves, which need no trees.
    """
    traced: list[Any] = []
    for x in args:
        if x.__class__ is not Array or x.data.dtype not in FLOATING:
            break
    else:
        level = open_tape(label, fun, args, sites)
        for x in args:
            traced.append(level.record(x, sink, ()))
        return level, traced, None
    values, spec = pytree.flatten(args)
    level = open_tape(label, fun, values, sites)
    for k, v in enumerate(values):
        if v.__class__ is Array and v.data.dtype in INEXACT:
            traced.append(level.record(v, sink, ()))
            continue
        try:
            x = v if isinstance(v, Tensor) else asarray(v)
        except DTypeError:
            if opened([v]):
                level.open = False
                again = leaves_on_tape(label, fun, args, nums, allow_int=allow_int, sites=sites)
                return again
            raise DTypeError(
                f"{label}: inputs must be arrays, got {reprlib.repr(v)} in {_place(args, nums, k)}",
                fix=remedy(v)
                or "leave it out of argnums, or make it a static field of a registered class",
            ) from None
        if x.dtype in INEXACT:
            traced.append(level.record(x, sink, ()))
        elif allow_int:
            traced.append(x)
        else:
            raise DTypeError(
                f"{label}: inputs must be floating or complex, got {x.dtype} in "
                f"{_place(args, nums, k)}",
                fix="cast it to a float, leave it out of argnums, or set allow_int=True",
            )
    return level, traced, spec


def arranged(spec: Any, leaves: list[Any]) -> Sequence[Any]:
    """The arguments with these leaves, for the structure that `leaves_on_tape` gave."""
    return leaves if spec is None else pytree.unflatten(spec, leaves)


def _place(args: Any, nums: Sequence[int], k: int) -> str:
    """Where the k-th leaf stands: in which argument, and by which path."""
    first, _, rest = pytree.flatten_with_path(args)[k][0].partition(".")
    return f"argument {nums[int(first)]}" + (f", leaf {rest}" if rest else "")


def cotangent_of(found: dict[Any, Any], t: Any, level: Reverse) -> Any:
    """The cotangent of a leaf; `Zero` for an integer."""
    node = lower(t, level)[1]
    return found[node] if node in found else _none_of(t, level)


def _none_of(t: Any, level: Reverse) -> Any:
    """The cotangent of a leaf that none came to."""
    node = lower(t, level)[1]
    return Zero(tuple(t.shape), t.dtype) if node is None else zero_of(node)


def aux_below(name: str, out: Any, level: Reverse) -> tuple[Any, tuple[Any, ...]]:
    """(output, (aux,)) of a function called with has_aux=True."""
    out, side = split_aux(name, out)
    found, inside = visible(name, side, level)
    return out, (inside.unflatten([lower(x, level)[0] for x in found]),)


def in_convention(cts: list[Any]) -> list[Any]:
    """Cotangents as the user reads them; see Note [Convention]."""
    complex_ones = [not isinstance(c, Zero) and c.dtype.kind == "c" for c in cts]
    if not any(complex_ones) or config.get("complex_convention") == "torch":
        return cts
    return [ops.conj(c) if z else c for c, z in zip(cts, complex_ones, strict=True)]


def _fits(out: Any, c: Any) -> bool:
    """Whether c is an array of the type of out, which is known; if not, it may be converted yet."""
    below = out.value if out.__class__ is ReverseTracer else out
    known = below.__class__ is Array and c.__class__ is Array
    return known and c.dtype == below.dtype and c.shape == below.shape


def _is_real(t: Any) -> bool:
    """Whether a leaf is on the tape, and no complex one."""
    return t.__class__ is ReverseTracer and t.node.dtype in FLOATING


class Pullback:
    """The transpose of a function's derivative at a point: a function of cotangents.

    `pull(ct)` may be called again; `pull.once(ct)` frees what the tape saved as it goes, and the
    pullback is used up. `pull.nodes()` walks the tape.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> y, pull = ft.vjp(xp.sin, xp.asarray(0.0))
        >>> [float(v) for v in pull(xp.asarray(1.0))]
        [1.0]
    """

    __slots__ = ("_level", "_outs", "_spec", "_structure", "_top", "_traced", "_used")

    def __init__(
        self, level: Reverse, traced: list[Any], spec: Any, outs: list[Any], structure: Any
    ) -> None:
        self._level = level
        self._traced = traced
        self._spec = spec
        self._outs = outs
        self._structure = structure
        self._used = False
        self._top: Node | None = None  # of the only output, where that and all leaves are real
        if structure is _LEAF and (out := outs[0]).value.__class__ is Array:
            real = out.node.dtype in FLOATING
            if real and (spec is None or all(map(_is_real, traced))):
                self._top = out.node

    def __call__(self, ct: Any, /) -> tuple[Any, ...]:
        """One cotangent per primal, for a cotangent with the output's structure, shapes, dtypes.

        Raises: TreeError, ShapeError, DTypeError: when ct does not fit. TransformError: when the
        pullback was used up by `once`.
        """
        return self._run(ct, once=False)

    def once(self, ct: Any, /) -> tuple[Any, ...]:
        """`pull(ct)` for the last time: saved values are freed while it runs."""
        return self._run(ct, once=True)

    def _run(self, ct: Any, once: bool) -> tuple[Any, ...]:
        top = self._top
        if top is not None and ct.__class__ is Array and not self._used:
            d = ct.data
            if d.dtype == top.dtype and d.shape == top.shape:
                self._used = once
                cts = backward(top, ct, once)
                leaves = []
                for t in self._traced:
                    n = t.node
                    leaves.append(cts[n] if n in cts else zero_of(n))
                return tuple(leaves if self._spec is None else arranged(self._spec, leaves))
        given = self.fitting(ct)
        found = self.adjoint(in_convention(given), once)
        return tuple(arranged(self._spec, in_convention(found)))

    def adjoint(self, cts: Sequence[Any], once: bool = False) -> list[Any]:
        """Flat cotangents of the leaves for flat cotangents of the outputs, in the engine's
        convention, unchecked. None: of an output that has no cotangent.
        """
        found = zip(self.reaching(cts, once), self._traced, strict=True)
        return [_none_of(t, self._level) if g is None else g for g, t in found]

    def reaching(self, cts: Sequence[Any], once: bool = False) -> list[Any]:
        """`adjoint`, with None for each leaf that no cotangent comes to."""
        if self._used:
            raise TransformError(
                f"{self._level.label}: the pullback was used up by once(), which frees the tape",
                fix="call pull(ct) instead, for every use but the last",
            )
        self._used = once
        found = pull_back(self._level, self._outs, cts, once)
        return [found.get(node) if node is not None else None for node in self.inputs]

    def fitting(self, ct: Any) -> list[Any]:
        """The leaves of a cotangent, checked against the output's structure, shapes and dtypes."""
        given, structure = pytree.flatten(ct)
        if structure == self._structure and all(map(_fits, self._outs, given)):
            return given
        name = self._level.label
        result = self._structure.unflatten([ShapeDtype(o.shape, o.dtype) for o in self._outs])
        pytree.same_structure(f"{name}: cotangent", result, ct)
        out = []
        for (path, v), c in zip(pytree.flatten_with_path(result), given, strict=True):
            at = f" at {path}" if path else ""
            c = asarray(c)
            if c.shape != open_shape(v.shape):
                raise ShapeError(
                    f"{name}: a cotangent must have its output's shape {v.shape}, got {c.shape}{at}"
                )
            if c.dtype != v.dtype and v.dtype in INEXACT:
                if c.dtype.kind == "c" and v.dtype.kind != "c":
                    raise DTypeError(
                        f"{name}: a cotangent must have its output's dtype {v.dtype}, got "
                        f"{c.dtype}{at}"
                    )
                c = ops.astype(c, v.dtype)
            out.append(c)
        return out

    @property
    def roots(self) -> tuple[Node | None, ...]:
        """The node of each output leaf; None for one that does not vary with the primals."""
        return tuple([lower(o, self._level)[1] for o in self._outs])

    @property
    def inputs(self) -> tuple[Node | None, ...]:
        """The node of each leaf of the primals; None for an integer."""
        return tuple([lower(t, self._level)[1] for t in self._traced])

    def nodes(self) -> Iterator[Node]:
        """All nodes, in the order in which the pullback visits them."""
        return walk([n for n in self.roots if n is not None])

    def __reduce__(self) -> Any:
        """The derivative as a graph: a pullback that was pickled has one node, and no hooks."""
        name = self._level.label
        outs = [ShapeDtype(o.shape, o.dtype) for o in self._outs]
        ins = [ShapeDtype(t.shape, t.dtype) for t in self._traced]
        varies = [n is not None for n in self.roots]

        def flat(*cts: Any) -> list[Any]:
            given = iter(cts)
            full = [next(given) if v else _zeros(o) for v, o in zip(varies, outs, strict=True)]
            return [g for g in self.adjoint(full) if not isinstance(g, Zero)]

        types = [o for o, v in zip(outs, varies, strict=True) if v]
        graph, outer = capture(flat, types, label=name)
        if outer:
            raise TransformError(
                f"{name}: the pullback holds traced values, which cannot be pickled",
                fix="pickle it after the transform around it has returned",
            )
        form = encode_graph(inline_calls(graph))
        return _unpickled, (name, form, ins, self._spec, outs, varies, self._structure)

    def __repr__(self) -> str:
        return f"<Pullback: {sum(1 for _ in self.nodes())} nodes>"


def _unpickled(
    name: str, form: Any, ins: Any, spec: Any, outs: Any, varies: Any, structure: Any
) -> Pullback:
    """What `Pullback.__reduce__` took apart."""
    graph = decode_graph(*form)

    def run(*_: Any) -> tuple[Any, ...]:
        return tuple([_zeros(o) for o, v in zip(outs, varies, strict=True) if v])

    region = Region(name, run, forward=lambda *_: (run(), ()), backward=lambda _, cts: graph(*cts))
    level = Reverse(name, None)
    traced = [level.record(_zeros(t), sink, ()) if t.dtype in INEXACT else _zeros(t) for t in ins]
    mine = [t for t in traced if t.__class__ is ReverseTracer]
    found = iter(level.region(region, mine) if mine else run())
    full = [next(found) if v else _zeros(o) for o, v in zip(outs, varies, strict=True)]
    level.open = False
    return Pullback(level, traced, spec, full, structure)


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Value of fun, and its pullback.

    Args: primals: pytrees of floating or complex arrays; integer leaves are constants, whose
    cotangent is a `Zero`. has_aux: fun returns (output, aux).
    Returns: (out, pull[, aux]); pull(ct) takes a cotangent with out's structure, shapes and dtypes,
    gives a tuple with one cotangent per primal, and may be called again; see `Pullback`.
    Raises: TreeError, ShapeError, DTypeError: when a cotangent does not fit.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> y, pull = ft.vjp(xp.sin, xp.asarray(0.0))
        >>> float(pull(xp.asarray(2.0))[0])
        2.0
    """
    expect_function("vjp", "fun", fun)
    return recorded("vjp", fun, primals, has_aux)


def recorded(
    name: str,
    fun: Callable[..., Any],
    primals: Any,
    has_aux: bool = False,
    *,
    allow_int: bool = True,
    sites: bool = False,
) -> Any:
    """What `vjp` does, under another name; sites: the nodes know the user's lines."""
    nums = range(len(primals))
    level, traced, spec = leaves_on_tape(name, fun, primals, nums, allow_int=allow_int, sites=sites)
    try:
        out = fun(*traced) if spec is None else fun(*arranged(spec, traced))
    finally:
        level.open = False
    aux: tuple[Any, ...] = ()
    if has_aux:
        out, aux = aux_below(name, out, level)
    if out.__class__ is ReverseTracer and out.level is level:
        outs, structure, result = [out], _LEAF, out.value
    else:
        outs, structure = flat_results(name, out)
        result = structure.unflatten([lower(o, level)[0] for o in outs])
    return result, Pullback(level, traced, spec, outs, structure), *aux


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[..., Any]:
    """The transpose of a linear function; for complex ones too, without conjugation.

    Args: primals: trees of floating or complex arrays or `ShapeDtype`s, which give the shapes and
    dtypes of fun's operands; their values do not matter.
    Returns: a function from a cotangent with the structure of fun's result to a tuple with one
    cotangent per primal.
    Raises: TransformError: when fun is not linear. DTypeError: for integer operands. TreeError,
    ShapeError, DTypeError: when a cotangent does not fit.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.linear_transpose(lambda x: xp.sum(x * 3.0), xp.ones(2))(xp.asarray(1.0))[0].tolist()
        [3.0, 3.0]
    """
    expect_function("linear_transpose", "fun", fun)
    with finding_room("linear_transpose"):
        flat, spec = flat_arrays(primals, _zeros)
    zeros = spec.unflatten(flat)
    name = getattr(fun, "__name__", "fun")
    out, pull = recorded("linear_transpose", fun, zeros, allow_int=False)
    for o in pytree.leaves(out):
        if o.__class__ is Array and np.any(o.data):
            raise TransformError(
                f"linear_transpose: {name} is not linear: its value at 0 is not 0",
                fix="transpose its derivative: linearize(fun, *primals)[1]",
            )

    def joint(*values: Any) -> list[Any]:
        xs, cts = values[: len(flat)], values[len(flat) :]
        _, inner = vjp(fun, *pytree.unflatten(spec, xs))
        return [_conj(g) for g in inner.adjoint([_conj(c) for c in cts])]

    like = [_zeros(o) for o in pytree.leaves(out)]
    graph, outer = capture(joint, [*flat, *like], label="linear_transpose", user_fun=fun)
    if any(dependent(graph, [k < len(flat) for k in range(len(graph.inputs))])):
        raise TransformError(
            f"linear_transpose: {name} is not linear: its derivative depends on where it is taken",
            fix="transpose its derivative: linearize(fun, *primals)[1]",
        )

    def transposed(ct: Any, /) -> tuple[Any, ...]:
        return tuple(spec.unflatten(graph(*flat, *pull.fitting(ct), *outer)))

    return noted(transposed, linear_transpose, (fun, *zeros))


def _conj(x: Any) -> Any:
    return ops.conj(x) if x.dtype.kind == "c" else x


def _zeros(x: Any) -> Any:
    known = x if hasattr(x, "shape") and hasattr(x, "dtype") else asarray(x)
    return wrap(np.zeros(known.shape, known.dtype))
