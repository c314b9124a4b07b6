"""`Primitive`: the record behind one op, and the catalogue of all of them.

The record is frozen and has no optional rule: what is absent is written `Absent("reason")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import attrs
import numpy as np
from msgspec import Struct

from funct.core.rule import Absent, Rule
from funct.errors import DTypeError, ExportError, FileFormatError

__all__ = [
    "Lowering",
    "OnnxWriter",
    "Primitive",
    "Sample",
    "ShapeDtype",
    "Shared",
    "catalogue",
    "enter",
    "join",
    "lookup",
    "variant",
]


def _as_tuple(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(values)


def _as_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        return np.dtype(dtype)
    except TypeError:
        raise DTypeError(f"ShapeDtype: {dtype!r} is no dtype") from None


@attrs.frozen
class ShapeDtype:
    """Shape and dtype of a value that need not exist.

    Raises: DTypeError: when dtype is none.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.eval_shape(lambda x: x @ x, ft.ShapeDtype((3, 3), xp.float32))
        ShapeDtype(shape=(3, 3), dtype=dtype('float32'))
    """

    shape: tuple[Any, ...] = attrs.field(converter=_as_tuple)
    dtype: np.dtype[Any] = attrs.field(converter=_as_dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)


@attrs.frozen(eq=False)
class Sample:
    """One example call of a primitive: raw operands and its parameters.

    smooth: derivatives exist in a neighbourhood of the operands, so differences may be taken.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> import numpy as np
        >>> sample = ft.Sample((np.asarray([0.3, 1.2]),))
        >>> ft.check_primitive(xp.sin, [sample])
    """

    args: tuple[Any, ...] = attrs.field(converter=_as_tuple)
    params: tuple[Any, ...] = attrs.field(default=(), converter=_as_tuple)
    smooth: bool = True


class OnnxWriter(Protocol):
    """What an ONNX lowering may ask of the exporter; `ops` never imports onnx."""

    results: tuple[ShapeDtype, ...]  # what the node that is being lowered gives

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Append a node with one output and return that output's name.

        An integer type that runtimes do not compute op_type in is widened, and narrowed afterwards.
        """

    def op_many(self, op_type: str, count: int, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """Append a node with several outputs."""

    def cast(self, name: str, dtype: Any) -> str:
        """The value in another dtype; the name itself where it has that dtype already."""

    def constant(self, value: Any, dtype: Any = None) -> str:
        """The name of an initializer that holds value."""

    def initializer(self, name: str, raw: np.ndarray[Any, Any]) -> str:
        """A new initializer, shared with nothing, named after name."""

    def shape_of(self, name: str) -> tuple[Any, ...]:
        """Shape of an operand or a constant, symbolic sizes included."""

    def dtype_of(self, name: str) -> np.dtype[Any]:
        """Dtype of a named value."""

    def dims(self, shape: tuple[Any, ...], *, infer: bool = False) -> str:
        """The name of a 1-D int64 value that holds shape, computed where sizes are symbolic.

        infer: for Reshape; one symbolic size may be left to the operator.
        """


class Shared(Struct, frozen=True, eq=False):
    """What a batching rule gives that is the same in all lanes: the value, without a batch."""

    value: Any


Lowering = Callable[..., str | tuple[str, ...]]  # (writer, *input names, *params) -> output name(s)


@attrs.frozen(eq=False, repr=False)
class Primitive:
    """One op.

    name: the op's name, unique in the catalogue.
    raw: the implementation on bare arrays, `raw(*operands, *params)`.
    operands, params: names, in call order.
    rules: one per operand: a Rule, Absent, or None (the result does not vary with it: indices,
    tests).
    batch: `batch(prim, args, batched, params)`: the op with the batch on axis 0 of args[i] where
        batched[i]; each result has it on axis 0, or is `Shared`.
    aval: `aval(args, params)`: ShapeDtype of the result, or a tuple of them.
    code: scalar expression for the loop compiler, or Absent.
    onnx: ONNX op type, or a Lowering, or Absent.
    samples: `samples(rng)`: example calls that every law is checked on.
    masks: its pull makes structural zeros. spread: its operands broadcast (None: not elementwise).
    results: 1 for a single value; n for a tuple of n.
    effect: it does something besides its results, so it is neither shared nor dropped.
    raises: for values that it is not defined for, so it runs only where its result is asked for.
    fn: the public fast function.
    """

    name: str
    raw: Callable[..., Any]
    operands: tuple[str, ...]
    params: tuple[str, ...]
    rules: tuple[Rule | Absent | None, ...]
    batch: Callable[[Primitive, Sequence[Any], Sequence[bool], tuple[Any, ...]], Any]
    aval: Callable[[Sequence[Any], tuple[Any, ...]], ShapeDtype | tuple[ShapeDtype, ...]]
    code: str | Absent
    onnx: str | Lowering | Absent
    samples: Callable[[np.random.Generator], Sequence[Sample]]
    masks: bool
    spread: bool | None
    results: int
    effect: bool = attrs.field(default=False, kw_only=True)
    raises: bool = attrs.field(default=False, kw_only=True)
    fn: Callable[..., Any] = attrs.field(init=False)

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """The op, with parameters by position or by name."""
        missing = self.params[len(operands) - len(self.operands) :]
        return self.fn(*operands, *[params[name] for name in missing])

    def __repr__(self) -> str:
        return f"<primitive {self.name}({', '.join(self.operands + self.params)})>"

    def __copy__(self) -> Primitive:
        return self

    def __deepcopy__(self, memo: Any) -> Primitive:
        return self

    def __reduce__(self) -> Any:
        if lookup(self.name) is not self:
            raise ExportError(f"pickle: {self.name} is not in the catalogue")
        return _found, (self.name,)


_catalogue: dict[str, Primitive] = {}
_variants: dict[str, Primitive] = {}


def enter(prim: Primitive, fn: Callable[..., Any]) -> None:
    """Bind the record to its function and put it into the catalogue."""
    assert prim.name not in _catalogue, f"two primitives are named {prim.name}"
    join(prim, fn)
    _catalogue[prim.name] = prim


def join(prim: Primitive, fn: Callable[..., Any]) -> None:
    """Bind the record to its function: they need each other, so this is done once, after both."""
    object.__setattr__(prim, "fn", fn)


def catalogue() -> Iterator[Primitive]:
    """All primitives of the package, in the order of their declaration; those that users registered
    are found by name.
    """
    return (p for p in _catalogue.values() if "::" not in p.name)


def variant(
    prim: Primitive, name: str, fn: Callable[..., Any] | None = None, **changes: Any
) -> Primitive:
    """The op under another name, for compiled code, which may compute it in another way.

    It is in no catalogue. fn: what it is where it is interpreted and transformed; None: the op.
    """
    found = _variants.get(name)
    if found is None:
        assert name not in _catalogue, f"two primitives are named {name}"
        found = _variants[name] = attrs.evolve(prim, name=name, **changes)
        join(found, fn or prim.fn)
    return found


def lookup(name: str) -> Primitive | None:
    """The primitive of that name."""
    return _catalogue.get(name) or _variants.get(name)


def _found(name: str) -> Primitive:
    """The primitive of that name, for pickle."""
    found = lookup(name)
    if found is None:
        raise FileFormatError(f"pickle: unknown primitive {name!r}", fix="register it first")
    return found
