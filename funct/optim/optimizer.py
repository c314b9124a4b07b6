"""What an optimizer is: a pair of pure functions, and the walk over parameters that all share.

    state = opt.init(params)
    params, state, info = opt.step(params, grads, state)

Nothing is kept outside of `state`, and all of `state` is arrays: it compiles, batches and is saved
like any pytree. Hyper-parameters are leaves of it: `attrs.evolve(state, lr=…)` changes one, and
`vmap` trains one model per learning rate.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

import funct.array as xp
from funct import pytree, tree
from funct.array.trees import flat_arrays
from funct.core import INEXACT, OpenNumber, Value
from funct.errors import ArgumentError, DTypeError, ShapeError, TreeError
from funct.kernels.table import call
from funct.ops import fast
from funct.ops.fast import wrap
from funct.ops.refusals import out_of_memory

__all__ = [
    "Info", "LeafRule", "LearningRate", "Optimizer", "bare", "cast", "check_rate", "first_rate",
    "global_norm", "scalar", "smallest", "step_count", "update_leaves",
]  # fmt: skip

_DOUBLE = np.dtype(np.float64)
_KNOWN = (np.dtype(np.float32), _DOUBLE)

LearningRate = float | Value | Callable[[Any], Any]


@tree.register
@attrs.frozen(eq=False)
class Info:
    """What a step reports: lr, that it used; grad_norm, of all gradients as given; step, from 1.

    Example:
        >>> import funct.array as xp
        >>> from funct import optim
        >>> opt, params = optim.sgd(0.5), xp.zeros(2)
        >>> info = opt.step(params, xp.asarray([3.0, 4.0]), opt.init(params))[2]
        >>> float(info.lr), float(info.grad_norm), int(info.step)
        (0.5, 5.0, 1)
    """

    lr: Any
    grad_norm: Any
    step: Any

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


@attrs.frozen(eq=False)
class Optimizer:
    """Two pure functions.

    init(params) -> state: params is any tree of floating arrays, with empty places or without.
    step(params, grads, state) -> (params, state, info): grads has the structure of params; info is
    an `Info`. Raises: TreeError: when the structures differ. ShapeError: when a gradient, or the
    state, has another shape than its parameter. DTypeError: when a parameter is not floating.
    ArgumentError: when state is none that init gives. Both refuse leaves that are no arrays, by
    DTypeError.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import optim
        >>> opt, params = optim.sgd(0.1), {"w": xp.asarray([2.0])}
        >>> state = opt.init(params)
        >>> slope = ft.grad(lambda p: xp.sum(p["w"] ** 2))
        >>> for _ in range(100):
        ...     params, state, info = opt.step(params, slope(params), state)
        >>> abs(float(params["w"][0])) < 1e-6, int(info.step)
        (True, 100)
    """

    name: str
    start: Callable[[Any], Any]
    update: Callable[[Any, Any, Any], tuple[Any, Any, Info]]
    kind: type  # of states

    def init(self, params: Any) -> Any:
        """The state before the first step."""
        _check_arrays(f"{self.name}.init", params)
        return self.start(params)

    def step(self, params: Any, grads: Any, state: Any) -> tuple[Any, Any, Info]:
        """New parameters, the state for the next step, and what the step reports."""
        if not isinstance(state, self.kind):
            raise ArgumentError(
                f"{self.name}.step: state must be what init gave ({self.kind.__name__}), got "
                f"{type(state).__name__}",
                fix="opt.step(params, grads, state)",
            )
        return self.update(params, grads, state)

    def __repr__(self) -> str:
        return f"Optimizer({self.name})"


def check_rate(name: str, **values: Any) -> None:
    """Refuse negative hyper-parameters; what is traced or a schedule passes."""
    for argument, value in values.items():
        if isinstance(value, int | float) and not value >= 0.0:
            raise ArgumentError(f"{name}: {argument} must be >= 0, got {value}")


def scalar(value: Any) -> Any:
    """A hyper-parameter as a leaf: a 0-d float64 array; a Tensor stays as it is."""
    if isinstance(value, Value):
        return value
    number = value if type(value) is OpenNumber else float(value)
    return xp.asarray(number, dtype=xp.float64)


def step_count() -> Any:
    """The counter before the first step: an array, so that counting compiles nothing anew."""
    return xp.asarray(0, dtype=xp.int64)


def first_rate(lr: LearningRate) -> Any:
    """The learning rate of the first step, as a leaf."""
    return scalar(lr(step_count()) if callable(lr) else lr)


def bare(*values: Any) -> tuple[Any, Sequence[Any]]:
    """The namespace in which to compute with hyper-parameters, and these: NumPy's own numbers where
    nothing is traced, for ops on arrays without axes cost ten times as much.
    """
    numbers = []
    for x in values:
        if x.__class__ is not xp.Array or x.data.ndim or x.data.dtype is not _DOUBLE:
            return xp, values
        numbers.append(x.data[()])
    return np, numbers


def cast(value: Any, like: Any) -> Any:
    """A hyper-parameter in a parameter's dtype, so that float32 parameters stay float32."""
    return xp.astype(scalar(value), like.dtype, copy=False)


def global_norm(grads: Any) -> Any:
    """Euclidean norm of all leaves taken as one vector; its derivative at 0 is 0.

    Returns: a 0-d array, float64 when there is no leaf.
    Example:
        >>> import funct.array as xp
        >>> from funct import optim
        >>> float(optim.global_norm({"w": xp.asarray([3.0]), "b": xp.asarray(4.0)}))
        5.0
    """
    leaves, _ = flat_arrays(grads)
    if not leaves:
        return xp.asarray(0.0)
    return _root(_sum_of_squares(leaves))


def _root(total: Any) -> Any:
    if total.__class__ is xp.Array:
        return wrap(np.asarray(np.sqrt(total.data)))
    some = total != 0  # also NaN
    return xp.where(some, xp.sqrt(xp.where(some, total, 1.0)), 0.0)


def _sum_of_squares(leaves: list[Any]) -> Any:
    raw = _buffers(leaves)
    if raw is not None:
        dtype = raw[0].dtype
        return wrap(np.asarray(call("sum_of_squares", dtype, 0, raw), dtype))
    return sum([xp.sum(xp.square(xp.abs(g))) for g in leaves])


@attrs.frozen(eq=False)
class LeafRule:
    """What an optimizer does to every element of every parameter.

    update(e, numbers, p, g, *slots) -> (new p, *new slots): arithmetic, and e.sqrt and e.maximum.
    It is run on arrays, with e the namespace, or printed as one pass over all of them. numbers are
    those given to `update_leaves`. key: with the name, all that the update depends on.
    """

    name: str
    update: Callable[..., tuple[Any, ...]]
    key: tuple[Any, ...]


def smallest(dtype: Any) -> float:
    """The least positive normal number."""
    return float(xp.finfo(dtype).smallest_normal)


def update_leaves(
    rule: LeafRule, numbers: Sequence[Any], params: Any, grads: Any, *slots: Any
) -> tuple[list[Any], Any]:
    """The rule at every leaf: the new parameters and new slots, as one tree for each of them; and
    the norm of the gradients.

    numbers: hyper-parameters as 0-d arrays or as `bare` gives them, in each leaf's dtype as the
    rule sees them, or functions of the dtype. On arrays (not traced) of one dtype it is one pass in
    machine code, with the same bits.
    """
    leaves, spec = pytree.flatten(params)
    given = _arrays(spec, grads)
    if given is None:
        given, got = pytree.flatten(grads)
        if got != spec:
            pytree.same_structure(f"{rule.name}: grads", params, grads)
    columns = [leaves, given, *[_arrays(spec, x) or pytree.leaves(x) for x in slots]]
    found = _in_one_pass(rule, numbers, columns)
    if found is None:  # also when shapes differ
        _check_floating(rule.name, leaves, params)
        _check_shapes(rule.name, columns, params)
        rows = [
            rule.update(xp, [x(p.dtype) if callable(x) else cast(x, p) for x in numbers], p, *rest)
            for p, *rest in zip(*columns, strict=True)
        ]
        found = [[row[i] for row in rows] for i in range(1 + len(slots))], global_norm(grads)
    new, norm = found
    return [pytree.unflatten(spec, column) for column in new], norm


def _arrays(spec: pytree.Structure, x: Any) -> list[Any] | None:
    """The leaves of a tree of that structure; None where they are not all arrays. To follow a
    structure costs a twentieth of finding it.
    """
    try:
        found = spec.flatten_up_to(x)
    except (ValueError, TypeError, RecursionError):
        return None
    return found if {y.__class__ for y in found} == {xp.Array} else None


def _in_one_pass(
    rule: LeafRule, numbers: Sequence[Any], columns: list[list[Any]]
) -> tuple[list[list[Any]], Any] | None:
    """What a kernel makes of it; None where something is traced, or of a dtype of its own."""
    classes = {x.__class__ for column in columns for x in column}
    if classes != {xp.Array}:
        return None
    rows = [[x.data for x in column] for column in columns]
    dtype, values = rows[0][0].dtype, []
    if dtype not in _KNOWN:
        return None
    for x in numbers:
        if x.__class__ is xp.Array and not x.data.ndim:
            values.append(x.data.item())
        elif x.__class__ is np.float64:
            values.append(x)
        elif callable(x):
            values.append(x(dtype))
        else:
            return None
    key, results = (rule.name, rule.key), len(columns) - 1
    try:
        found = call("update", dtype, 0, rule.update, key, np.array(values, dtype), rows, results)
    except MemoryError as error:
        raise out_of_memory("step", error) from None
    if found is None:
        return None
    columns, squares = found
    new, make = [], fast.make
    for column in columns:
        made = []
        for x in column:  # a call for each would cost more than all else here
            r = make(None)
            r.data = x
            made.append(r)
        new.append(made)
    return new, wrap(np.asarray(math.sqrt(squares), dtype))


def _buffers(leaves: list[Any]) -> list[Any] | None:
    """What arrays hold, if all are arrays of one dtype that kernels know."""
    if {x.__class__ for x in leaves} != {xp.Array}:
        return None
    raw = [x.data for x in leaves]
    dtypes = {x.dtype for x in raw}
    return raw if len(dtypes) == 1 and dtypes <= {*_KNOWN} else None


def _check_arrays(name: str, params: Any) -> None:
    if all(hasattr(x, "dtype") for x in tree.leaves(params)):
        return
    path, leaf = next(f for f in pytree.flatten_with_path(params) if not hasattr(f[1], "dtype"))
    raise DTypeError(
        f"{name}: parameters must be arrays, got {reprlib.repr(leaf)} at {path or 'the root'}",
        fix="funct.array.asarray of it" if isinstance(leaf, float) else None,
    )


def _check_floating(name: str, leaves: list[Any], params: Any) -> None:
    _check_arrays(name, params)
    for leaf in leaves:
        if leaf.dtype not in INEXACT:
            path = next(p for p, x in pytree.flatten_with_path(params) if x is leaf)
            raise DTypeError(
                f"{name}: parameters must be floating, got {leaf.dtype} at {path or 'the root'}",
                fix="take the parameters by nn.partition(model)",
            )


def _check_shapes(name: str, columns: list[list[Any]], params: Any) -> None:
    """Gradients and state have the parameters' shapes: by broadcasting, a step would give
    parameters of other shapes.
    """
    leaves, grads, *slots = columns
    for slot in slots:
        if len(slot) != len(leaves):
            raise TreeError(
                f"{name}: state was made for {len(slot)} parameters, got {len(leaves)}",
                fix="state = opt.init(params)",
            )
    for what, column in (("the gradient of", grads), *[("the state at", x) for x in slots]):
        for k, (p, x) in enumerate(zip(leaves, column, strict=True)):
            got = getattr(x, "shape", ())
            if got != p.shape:
                path = pytree.flatten_with_path(params)[k][0]
                raise ShapeError(
                    f"{name}: {what} {path!r} must have the parameter's shape {p.shape}, got {got}"
                )
