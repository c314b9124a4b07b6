"""primitive: ops that users bring, with the same record as those of the catalogue.

A user's op states its implementation and any subset of rules. What is missing is derived where that
is possible (one mode of derivative from the other, batching by a loop, shapes by a trial run) and
named absent where it is not.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from funct.array import Tensor, asarray, stack
from funct.core import (
    INEXACT,
    Absent,
    Diagonal,
    Joint,
    Primitive,
    Sample,
    ShapeDtype,
    bind,
    enter,
    size_values,
)
from funct.device.places import BUFFERS, device_kinds
from funct.errors import ArgumentError, FallbackWarning, SignatureError
from funct.ops.broadcasting import align, broadcast_shapes, of_none

__all__ = ["Op", "find_primitive", "primitive"]

Function = Callable[..., Any]
_NAME = r"[A-Za-z]\w*(\.\w+)*::[A-Za-z]\w*"
_registered: dict[str, Op] = {}


class Op:
    """A registered op: a function of arrays, and the place where its rules are added.

    primitive: its record. The `def_` methods give back the function, so that they serve as
    decorators; add rules before the op is first used.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> half = ft.primitive("docs::half_of", lambda x: x / 2, elementwise=True)
        >>> _ = half.def_rule(lambda g, x: g / 2)
        >>> ft.grad(lambda x: xp.sum(half(x)))(xp.ones(2)).tolist()
        [0.5, 0.5]
    """

    def __init__(self, name: str, impl: Function, elementwise: bool, results: int) -> None:
        self.name = self.__name__ = name
        self.__doc__ = impl.__doc__
        self.impl = impl
        self.kernels: dict[str, Function] = {}
        self.elementwise = elementwise
        self.signature = _signature(name, impl)
        self.operands, self.params = _parameters(name, self.signature)
        self._abstract: Function | None = None
        self._batch: Function | None = None
        self._joint: tuple[Function | None, Function | None] = (None, None)
        self._warned = False
        self._trials: dict[Any, Any] = {}
        n = len(self.operands)
        absent = Absent("the op was registered without a derivative rule")
        self.primitive = Primitive(
            name=name,
            raw=self._raw,
            operands=self.operands,
            params=self.params,
            rules=(absent,) * n,
            batch=self._batching,
            aval=self._aval,
            code=Absent("registered from outside"),
            onnx=Absent("the op was registered without an ONNX lowering"),
            samples=lambda rng: (),
            masks=False,
            spread=(n > 1) if elementwise else None,
            results=results,
        )

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """The op.

        Raises: SignatureError: where the call does not fit the implementation's signature, or a
        parameter does not hash.
        """
        try:
            bound = self.signature.bind(*operands, **params)
        except TypeError as error:
            raise SignatureError(f"{self.name}: {error}; it is {self}") from None
        bound.apply_defaults()
        values = [bound.arguments[p] for p in self.params]
        for p, v in zip(self.params, values, strict=True):
            try:
                hash(v)
            except TypeError:
                raise SignatureError(
                    f"{self.name}: parameter {p} must hash, got {type(v).__name__}",
                    fix="pass a tuple, or make it an operand",
                ) from None
        given = [bound.arguments[p] for p in self.operands]
        return self.primitive.fn(*_arrays(given), *values)

    def __repr__(self) -> str:
        keywords = [f"*, {', '.join(self.params)}"] if self.params else []
        return f"{self.name}({', '.join([*self.operands, *keywords])})"

    def __reduce__(self) -> Any:
        return find_primitive, (self.name,)

    def _set(self, field: str, value: Any) -> None:
        object.__setattr__(
            self.primitive, field, value
        )  # graphs hold the record: it stays the same

    def _named(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.params, values, strict=True))

    def _raw(self, *args: Any) -> Any:
        n = len(self.operands)
        out = self._kernel(args[:n])(*args[:n], **self._named(args[n:]))
        if self.primitive.results == 1:
            return _buffer(out)
        if not isinstance(out, tuple | list) or len(out) != self.primitive.results:
            raise SignatureError(
                f"{self.name}: the implementation must give {self.primitive.results} results, got "
                f"{len(out) if isinstance(out, tuple | list) else type(out).__name__}"
            )
        return tuple(map(_buffer, out))

    def _kernel(self, operands: Sequence[Any]) -> Function:
        """The implementation for where the operands lie."""
        for a in operands:
            if a.__class__ in BUFFERS:
                return self.kernels.get(BUFFERS[a.__class__][0], self.impl)
        return self.impl

    def _aval(self, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        typed = [a if hasattr(a, "dtype") else asarray(a) for a in args]
        avals = [ShapeDtype(a.shape, a.dtype) for a in typed]
        if self._abstract is not None:
            out = self._abstract(*avals, **self._named(params))
            many = out if isinstance(out, tuple | list) else (out,)
            if len(many) != self.primitive.results or not all(hasattr(o, "dtype") for o in many):
                raise SignatureError(
                    f"{self.name}: abstract must give {self.primitive.results} ShapeDtype(s), got "
                    f"{out!r}"
                )
        elif self.elementwise:
            out = self._raw(*[np.ones(0, a.dtype) for a in avals], *params)
            shape = broadcast_shapes(*[a.shape for a in avals])
            many = [ShapeDtype(shape, out.dtype)]
        else:  # sizes that are symbolic become numbers
            types = tuple([(tuple([int(n) for n in a.shape]), a.dtype) for a in avals])
            many = self._trial(types, size_values(params))
        found = tuple([ShapeDtype(o.shape, o.dtype) for o in many])
        return found if self.primitive.results != 1 else found[0]

    def _trial(self, types: Any, params: tuple[Any, ...]) -> Any:
        """What one run on zeros gives; remembered."""
        key = types, params
        if key not in self._trials:
            out = self._raw(*[np.zeros(s, d) for s, d in types], *params)
            many = out if isinstance(out, tuple) else (out,)
            self._trials[key] = tuple([ShapeDtype(o.shape, o.dtype) for o in many])
        return self._trials[key]

    def _batching(self, prim: Primitive, args: Any, batched: Any, params: tuple[Any, ...]) -> Any:
        if self._batch is not None:
            return self._batch(tuple(args), tuple(batched), **self._named(params))
        if self.elementwise:
            return align(prim, args, batched, params)
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"vmap: {self.name} has no batching rule: it is called once per lane; def_batch "
                "gives it one", FallbackWarning, stacklevel=2,
            )  # fmt: skip
        return _lane_by_lane(prim, [asarray(a) for a in args], batched, params)

    def def_abstract(self, fun: Function) -> Function:
        """`fun(*operands, **params)` on ShapeDtypes: that of the result, a tuple for several."""
        self._check("abstract", fun, len(self.operands))
        self._abstract = fun
        return fun

    def def_rule(self, *rules: Function | None) -> Any:
        """One rule per operand, `rule(g, ...)`, of an elementwise op: linear in g, naming what it
        needs of `ans`, operands and parameters. It serves both modes; None: no dependence.
        """
        if not self.elementwise:
            raise ArgumentError(
                f"{self.name}: a rule is for elementwise ops", fix="give push, pull or both"
            )
        if len(rules) != len(self.operands):
            raise SignatureError(
                f"{self.name}: expected {len(self.operands)} rules, one per operand, got "
                f"{len(rules)}"
            )
        names = (*self.operands, *self.params)
        for r in rules:
            wanted = list(inspect.signature(r).parameters)[1:] if r is not None else []
            unknown = [w for w in wanted if w not in ("ans", *names)]
            if unknown:
                raise SignatureError(
                    f"{self.name}: a rule names {unknown}; there are ans, {', '.join(names)}"
                )
        self._set("rules", tuple([None if r is None else Diagonal(r, names) for r in rules]))
        return rules[0]

    def def_push(self, fun: Function) -> Function:
        """`fun(tangents, ans, *operands, **params)`: the tangent of the result, from a tuple of
        the operands' tangents; a tuple for several results.
        """
        self._check("push", fun, len(self.operands) + 2)
        self._derivative(fun, self._joint[1])
        return fun

    def def_pull(self, fun: Function) -> Function:
        """`fun(g, ans, *operands, **params)`: one cotangent per operand, None for zero."""
        self._check("pull", fun, len(self.operands) + 2)
        self._derivative(self._joint[0], fun)
        return fun

    def def_batch(self, fun: Function) -> Function:
        """`fun(args, batched, **params)`: the op with the batch on axis 0 of args[i] where
        batched[i]; the result has it on axis 0.
        """
        self._check("batch", fun, 2)
        self._batch = fun
        return fun

    def def_kernel(self, fun: Function, *, backend: str = "numpy") -> Function:
        """Another implementation with the same signature, for a backend.

        "numpy" replaces the one on ndarrays; "cuda" is called with CuPy's arrays, on their device.
        """
        kinds = device_kinds()
        if backend != "numpy" and backend not in kinds:
            raise ArgumentError(
                f"{self.name}: there is no backend {backend!r}; the backends are: "
                f"{', '.join(['numpy', *kinds])}"
            )
        if _parameters(self.name, _signature(self.name, fun)) != (self.operands, self.params):
            raise SignatureError(f"{self.name}: a kernel must have the op's signature, {self}")
        if backend == "numpy":
            self.impl = fun
            self._trials.clear()
        else:
            self.kernels[backend] = fun
        return fun

    def def_onnx(self, lowering: Any) -> Any:
        """The ONNX op type, or `lowering(writer, *input names, *params) -> output name(s)`."""
        self._set("onnx", lowering)
        return lowering

    def _derivative(self, push: Function | None, pull: Function | None) -> None:
        self._joint = push, pull
        rule = Joint(*[None if f is None else self._positional(f) for f in (push, pull)])
        self._set("rules", (rule,) * len(self.operands))

    def _positional(self, fun: Function) -> Function:
        n = len(self.operands) + 2

        def call(*args: Any) -> Any:
            return fun(*args[:n], **self._named(args[n:]))

        return call

    def _check(self, what: str, fun: Function, count: int) -> None:
        try:
            inspect.signature(fun).bind(*[None] * count, **dict.fromkeys(self.params))
        except TypeError as error:
            raise SignatureError(
                f"{self.name}: {what} is called with {count} positional arguments and "
                f"{list(self.params)} by name: {error}"
            ) from None


@of_none
def _lane_by_lane(prim: Primitive, args: Any, batched: Any, params: tuple[Any, ...]) -> Any:
    """Batching of an op that has no rule for it."""
    size = int(next(a for a, b in zip(args, batched, strict=True) if b).shape[0])
    lanes = [
        prim.fn(*[a[k] if b else a for a, b in zip(args, batched, strict=True)], *params)
        for k in range(size)
    ]
    if prim.results == 1:
        return stack(lanes)
    return tuple([stack([lane[i] for lane in lanes]) for i in range(prim.results)])


def _buffer(out: Any) -> Any:
    return out if out.__class__ in BUFFERS else np.asarray(out)


def _signature(name: str, fun: Function) -> inspect.Signature:
    """Of an implementation; a ufunc's operands are its inputs, for all else it has are options."""
    inputs = getattr(inspect.unwrap(fun), "nin", None)  # some of SciPy's are wrapped
    if isinstance(inputs, int):
        names = [f"x{k + 1}" for k in range(inputs)] if inputs > 1 else ["x"]
        return inspect.Signature(
            [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in names]
        )
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError) as error:
        raise SignatureError(
            f"{name}: an implementation must be a function whose signature Python knows: {error}"
        ) from None


def _parameters(name: str, signature: inspect.Signature) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of operands (positional) and parameters (keyword-only)."""
    operands, params = [], []
    for p in signature.parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise SignatureError(f"{name}: *args and **kwargs have no place in an op's signature")
        if p.kind is p.KEYWORD_ONLY:
            params.append(p.name)
        elif p.default is not p.empty:
            raise SignatureError(
                f"{name}: operand {p.name} has a default", fix="make it keyword-only: (*, name=...)"
            )
        else:
            operands.append(p.name)
    if not operands:
        raise SignatureError(f"{name}: an op takes at least one operand")
    return tuple(operands), tuple(params)


def _arrays(given: Sequence[Any]) -> list[Any]:
    """Operands as Tensors; a Python number adopts the dtype of the first floating one."""
    like = [x.dtype for x in given if isinstance(x, Tensor) and x.dtype in INEXACT]
    return [
        asarray(x, dtype=like[0]) if like and x.__class__ in (int, float) else asarray(x)
        for x in given
    ]


def primitive(
    name: str,
    impl: Function | None = None,
    *,
    abstract: Function | None = None,
    rule: Function | Sequence[Function | None] | None = None,
    push: Function | None = None,
    pull: Function | None = None,
    batch: Function | None = None,
    onnx: Any = None,
    samples: Iterable[Any] | Function = (),
    elementwise: bool = False,
    results: int = 1,
) -> Any:
    """Register an op of one's own; with `impl` left out, a decorator of the implementation.

    Args: name: namespaced, "mylib::op". impl: the implementation on NumPy arrays; its positional
    parameters are the operands, its keyword-only ones are static and must hash. It is called as is:
    anything that takes and gives arrays will do, ufuncs of NumPy, SciPy and numba too. abstract,
    rule, push, pull, batch, onnx: see the `def_` methods of `Op`; all but the implementation may be
    left out or added later. samples: example calls for `check_primitive`: `Sample((x, y), params)`,
    tuples of operands, or a function of a random generator that gives them. elementwise: operands
    broadcast, each element alone. results: how many arrays it gives.
    Derived where missing: shapes by a trial run on zeros, push and pull from each other by
    transposition, batching by a loop, with one `FallbackWarning`. Without push, pull and rule the
    derivative is absent, and asking for it raises UndefinedDerivativeError.
    Returns: an `Op`, which every transform takes.
    Raises: ArgumentError: for a name that is taken or has no namespace. SignatureError: for an
    implementation with defaults for operands, and where a rule cannot be called as it would be.
    Example:
        >>> import funct as ft, funct.array as xp, numpy as np
        >>> @ft.primitive("docs::cube", elementwise=True, rule=lambda g, x: 3.0 * g * x * x)
        ... def cube(x):
        ...     return np.power(x, 3)
        >>> ft.vmap(ft.grad(cube))(xp.asarray([1.0, 2.0])).tolist()
        [3.0, 12.0]
    """
    given: Any = name
    if not isinstance(given, str) or re.fullmatch(_NAME, given) is None:
        raise ArgumentError(f"primitive: a name is namespaced, like 'mylib::op', got {name!r}")
    if name in _registered:
        raise ArgumentError(
            f"primitive: {name} is registered already",
            fix=f"add to it: find_primitive({name!r}).def_kernel(...)",
        )
    if rule is not None and (push is not None or pull is not None):
        raise ArgumentError(f"primitive: {name} has a rule, which serves both modes, or push, pull")
    if elementwise and results != 1:
        raise ArgumentError(f"primitive: {name} is elementwise and has {results} results")

    def register(impl: Function) -> Op:
        op = Op(name, impl, elementwise, results)
        if rule is not None:
            op.def_rule(*([rule] if callable(rule) else rule))
        for value, define in (
            (abstract, op.def_abstract),
            (push, op.def_push),
            (pull, op.def_pull),
            (batch, op.def_batch),
            (onnx, op.def_onnx),
        ):
            if value is not None:
                define(value)
        op._set("samples", _samples(op, samples))
        n = len(op.operands)
        enter(op.primitive, lambda *args: bind(op.primitive, args[:n], args[n:]))
        _registered[name] = op
        return op

    return register if impl is None else register(impl)


def _samples(op: Op, given: Iterable[Any] | Function) -> Function:
    def one(s: Any) -> Sample:
        if isinstance(s, Sample):
            return s
        operands = s if isinstance(s, tuple) else (s,)
        defaults = [op.signature.parameters[p].default for p in op.params]
        return Sample([np.asarray(x) for x in operands], defaults)

    kept = None if callable(given) else [one(s) for s in given]
    make: Any = given

    def samples(rng: Any) -> list[Sample]:
        return kept if kept is not None else [one(s) for s in make(rng)]

    return samples


def find_primitive(name: str) -> Op:
    """The op that was registered under a name.

    Raises: ArgumentError: where there is none.
    Example:
        >>> import funct as ft
        >>> half = ft.primitive("docs::half", lambda x: x / 2, elementwise=True)
        >>> ft.find_primitive("docs::half") is half
        True
    """
    if name not in _registered:
        known = ", ".join(sorted(_registered)) or "none"
        raise ArgumentError(f"find_primitive: no op {name!r} is registered; there is: {known}")
    return _registered[name]
