"""scan: a function carried through the steps of a loop.

On concrete values the function is called step by step, and whatever transforms are active see the
steps; a long loop is written down like under jit, if that can be. What jit writes down is one node
with the captured body, whatever the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

from msgspec import Struct

from funct import ops, pytree
from funct.array import Array, stack, zeros
from funct.array.trees import flat_arrays, map_arrays
from funct.core import ShapeDtype, Size
from funct.errors import ArgumentError, ShapeError, TransformError, UnknownValueError
from funct.ops.fast import wrap
from funct.transforms.control import bodies
from funct.transforms.control.bodies import is_symbol
from funct.transforms.control.carry import (
    abstract,
    fitting,
    initial,
    is_number,
    leaf_name,
    only_types,
    settled,
    tried,
    unknown,
)
from funct.transforms.control.closures import always, captured, decides, reaches_out, safely
from funct.transforms.control.scan_blocks import in_blocks
from funct.transforms.control.scan_loop import Scan, counter
from funct.transforms.control.staged import MANY, plainly_transformed
from funct.transforms.given import expect_functions
from funct.transforms.remat import kept_small

__all__ = ["scan", "steps_of"]

_FEW = 8  # steps of a checkpointed body that are worth blocks


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Carry a state through the steps of a loop: `carry, y = f(carry, x)` for each x of xs.

    Args: f: from (carry, x) to (carry, y); the carry keeps its structure, shapes and dtypes. init:
    the first carry, a pytree; a Python number in it takes the dtype that f gives it. xs: a pytree
    of arrays with the steps on axis 0, or None. length: the number of steps, where xs does not tell
    it. reverse: from the last x to the first; ys stay in the order of xs. unroll: under jit, so
    many steps are one step of the loop; True: all of them.
    Returns: (the last carry, ys), where ys has the structure of y and the steps on axis 0.
    Derivatives: reverse mode keeps for each step what the pull of f needs. Where f is a
    `checkpoint` without a policy, it keeps about 2√n carries of n steps, and runs f twice more.
    Raises: TreeError, ShapeError, DTypeError: when the carry's type changes or lengths disagree.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> total, sums = ft.scan(lambda c, x: (c + x, c + x), 0.0, xp.asarray([1.0, 2.0, 3.0]))
        >>> float(total), sums.tolist()
        (6.0, [1.0, 3.0, 6.0])

    Source: `jax.lax.scan`.
    """
    expect_functions("scan", f=f)
    columns, x_spec = flat_arrays(xs)
    n = steps_of(xs, columns, length)
    if unroll < 1 and unroll is not False:
        raise ArgumentError(f"scan: unroll must be a positive int or a bool, got {unroll!r}")
    numbers, spec = flat_arrays(init, initial)

    def call(carry: Sequence[Any], x: Sequence[Any]) -> tuple[Any, Any]:
        out: Any = f(spec.unflatten(carry), x_spec.unflatten(x))
        if not isinstance(out, tuple) or len(out) != 2:
            raise TransformError(f"scan: f must return (carry, y), got {type(out).__name__}")
        return out

    x_avals = [ShapeDtype(x.shape[1:], x.dtype) for x in columns]
    rows_like: list[Any] = []  # of arrays: beside numbers, the rows may have other types

    def probe(*leaves: Any) -> list[Any]:
        split = len(numbers)
        state, y = call(leaves[:split], leaves[split:])
        rows_like[:] = [y] if not any(map(is_number, leaves)) or not pytree.leaves(y) else []
        return pytree.leaves(state)

    carry = settled("scan", numbers, probe, x_avals)
    if only_types() and any(captured(v) for v in (*carry, *columns)):
        if not rows_like:
            abstract("scan", probe, [*carry, *x_avals])
        y_leaves, y_spec = flat_arrays(rows_like[0])
        stacks = [ShapeDtype((n, *y.shape), y.dtype) for y in y_leaves]
        after = unknown(bodies.avals_of(carry))
        return spec.unflatten(after), y_spec.unflatten(unknown(stacks))
    traced = any(captured(v) for v in (*carry, *columns)) or reaches_out(
        "scan", probe, [*bodies.avals_of(carry), *x_avals]
    )
    n = n if traced and unroll is not True else int(n)
    loop = _Loop(f, call, spec.unflatten(carry), bodies.avals_of(carry), n, reverse)
    if (traced and unroll is not True) or (n.__class__ is int and n == 0):
        try:
            return loop.staged(carry, columns, int(unroll))
        except UnknownValueError:
            if n.__class__ is int and n == 0:
                return loop.of_no_steps(carry, columns)
            if not decides():
                raise
            unroll = True
    if (n >= MANY or (n >= _FEW and kept_small(f))) and plainly_transformed((*carry, *columns)):
        try:
            return loop.staged(carry, columns, int(unroll))
        except MemoryError:  # the rows would find no room either
            raise
        except Exception:  # f decides on values, or is wrong: step by step it says so
            pass
    rows = _rows(columns, n)
    order = range(n - 1, -1, -1) if reverse else range(n)
    ys: list[list[Any]] = []
    y_tree: Any = None
    for step, k in enumerate(order):
        state, y = call(carry, rows[k])
        after = fitting("scan", "the carry", loop.tree, loop.avals, state)
        y_leaves, _ = flat_arrays(y)
        if step == 0 and unroll is not True and any(map(captured, (*after, *y_leaves))):
            try:
                return loop.staged(carry, columns, int(unroll))  # f closes over what is captured
            except UnknownValueError:
                if not decides():
                    raise
        if step == 0:
            y_tree, y_avals = y, bodies.avals_of(y_leaves)
        else:
            y_leaves = fitting("scan", "y", y_tree, y_avals, y)
        ys.append(y_leaves)
        carry = after
    ys = ys[::-1] if reverse else ys
    stacked = [stack(list(column)) for column in zip(*ys, strict=True)]
    return spec.unflatten(carry), pytree.structure(y_tree).unflatten(stacked)


def steps_of(xs: Any, columns: Sequence[Any], length: Any) -> Any:
    """The number of steps; every leaf of xs and length must agree."""
    found: dict[str, Any] = {}
    for (path, _), x in zip(pytree.flatten_with_path(xs), columns, strict=True):
        if not x.shape:
            raise ShapeError(f"scan: {leaf_name(path)} of xs has no axis for the steps")
        found[f"{leaf_name(path)} of xs"] = x.shape[0]
    if length is not None:
        found["length"] = length if isinstance(length, Size) else int(length)
    if not found:
        raise TransformError("scan: xs has no leaves, so length is needed", fix="pass length=")
    n = next(iter(found.values()))
    if any(m != n for m in found.values()):
        text = ", ".join(f"{n} from {k}" for k, n in found.items())
        raise ShapeError(f"scan: the number of steps must be one, got {text}")
    if n < 0:
        raise ArgumentError(f"scan: length must not be negative, got {n}")
    return n


def _rows(columns: Sequence[Any], n: int) -> list[list[Any]]:
    """The x of each step."""
    cut = [[wrap(d) for d in x.data] if x.__class__ is Array else _cut(x, n) for x in columns]
    return [[c[k] for c in cut] for k in range(n)]


def _cut(x: Any, n: int) -> list[Any]:
    """The rows of a traced array, by halves of halves: the pull of all cuts together then touches
    an element log n times, where that of n single cuts would touch it n times.
    """
    rest = ((None, None, 1),) * (len(x.shape) - 1)
    parts, lengths = [x], [n]
    while max(lengths) > 1:
        finer: list[Any] = []
        for p, m in zip(parts, lengths, strict=True):
            half = m // 2
            finer += [p] if m == 1 else [
                ops.slice_(p, ((0, half, 1), *rest)), ops.slice_(p, ((half, m, 1), *rest)),
            ]  # fmt: skip
        lengths = [k for m in lengths for k in ((1,) if m == 1 else (m // 2, m - m // 2))]
        parts = finer
    return [ops.reshape(p, x.shape[1:]) for p in parts]


class _Loop(Struct, frozen=True):
    """A scan that is to be written down.

    call: from the leaves of the carry and of x to (carry, y). tree, avals: the first carry and the
    types of its leaves.
    """

    f: Any
    call: Any
    tree: Any
    avals: Any
    steps: Any
    reverse: bool

    def of_no_steps(self, carry: Sequence[Any], columns: Sequence[Any]) -> tuple[Any, Any]:
        """The first carry, and no rows, where f asks for values: its types are those of a trial."""
        types = [*self.avals, *[ShapeDtype(x.shape[1:], x.dtype) for x in columns]]
        _, y = tried("scan", lambda *xs: self.call(xs[: len(carry)], xs[len(carry) :]), types)
        rows = map_arrays(lambda v: zeros((0, *v.shape), dtype=v.dtype), y)
        return pytree.structure(self.tree).unflatten(carry), rows

    def staged(self, carry: Sequence[Any], columns: Sequence[Any], unroll: int) -> tuple[Any, Any]:
        """The result, from a loop of one captured body."""
        c, m, n = len(carry), len(columns), self.steps
        kept: list[Any] = []
        if isinstance(n, Size) and not columns:
            columns = [counter(n)]

        def body(*leaves: Any) -> list[Any]:
            state, y = self.call(leaves[:c], leaves[c : c + m])
            y_leaves, y_spec = flat_arrays(y)
            kept[:] = [y_spec]
            after = fitting("scan", "the carry", self.tree, self.avals, state)
            return [*after, *y_leaves]

        x_avals = [ShapeDtype(x.shape[1:], x.dtype) for x in columns]
        hoist = always if isinstance(n, int) and n > 0 else safely
        graph, outer = bodies.trace(
            "scan", body, [*self.avals, *x_avals], self.f, hoist, () if is_symbol(n) else (n,)
        )
        n_in, n_all = c + len(x_avals), len(graph.inputs)
        order = [*range(n_in, n_all), *range(n_in)]
        graph = bodies.ordered(graph, order, range(len(graph.outputs)))
        loop = Scan(graph, len(outer), c, n, self.reverse)
        size = isqrt(int(n)) if kept_small(self.f) else unroll
        if size > 1 and int(n) > size:
            outs = in_blocks(loop, size, kept_small(self.f), outer, carry, columns)
        else:
            outs = loop(*outer, *carry, *columns)
        return pytree.structure(self.tree).unflatten(outs[:c]), kept[0].unflatten(outs[c:])
