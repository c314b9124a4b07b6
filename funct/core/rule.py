"""Derivative rules: one per operand, from which both modes come.

A rule is a linear function of g and names what it needs:

    def _divide_rule_x2(g, ans, x2): return -g * ans / x2

The names after g (`ans`, operands, parameters, `x_shape` for a shape alone) decide what the tape
keeps.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NoReturn

from funct.errors import UndefinedDerivativeError

if TYPE_CHECKING:
    from funct.core.primitive import Primitive

__all__ = ["Absent", "Derived", "Diagonal", "Joint", "Linear", "Pair", "Rule", "parameters"]

RuleFunction = Callable[..., Any]


class Absent:
    """A rule that does not exist, with the reason, which the user reads verbatim."""

    pull = None
    fast = False

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def raise_for(self, prim: Primitive) -> NoReturn:
        """Raise the derivative error that names the op and quotes the reason."""
        raise UndefinedDerivativeError(f"{prim.name}: no derivative: {self.reason}")

    def __repr__(self) -> str:
        return f"Absent({self.reason!r})"


class Rule:
    """Base of the rules that exist.

    pull(g, *kept): cotangent of the operand; None where it is derived from `push`.
    keep(known): the tuple `kept`, taken from (ans, *operands, *params, *operand shapes).
    push(...): tangent of the result from the tangent t of operand i.
    fast: `pull` is there and needs no more than it keeps, so it may be printed (`ways`).
    """

    pull: RuleFunction | None
    keep: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    fast: bool = True

    def push(
        self,
        prim: Primitive,
        i: int,
        t: Any,
        vals: Sequence[Any],
        params: tuple[Any, ...],
        ans: Any,
    ) -> Any:
        """Tangent of the result contributed by operand i."""
        raise NotImplementedError


class Diagonal(Rule):
    """Elementwise in this operand: linear in g and its own transpose, so it serves both modes."""

    def __init__(self, rule: RuleFunction, names: Sequence[str]) -> None:
        self.rule = self.pull = rule
        self.keep = keeper(rule, names)

    def push(
        self,
        prim: Primitive,
        i: int,
        t: Any,
        vals: Sequence[Any],
        params: tuple[Any, ...],
        ans: Any,
    ) -> Any:
        """The rule itself."""
        return self.rule(t, *self.keep((ans, *vals, *params)))


class Linear(Rule):
    """Linear in this operand: the push is the op itself; `transpose(g, ...)` is stated."""

    def __init__(self, transpose: RuleFunction, names: Sequence[str], fast: bool = True) -> None:
        self.pull = transpose
        self.keep = keeper(transpose, names)
        self.fast = fast

    def push(
        self,
        prim: Primitive,
        i: int,
        t: Any,
        vals: Sequence[Any],
        params: tuple[Any, ...],
        ans: Any,
    ) -> Any:
        """The op, with the tangent in the operand's place."""
        return prim.fn(*vals[:i], t, *vals[i + 1 :], *params)


class Derived(Rule):
    """Only the push is stated, `push(t, ans, *operands, *params)`; the pull is its transpose."""

    pull: RuleFunction | None = None
    fast = False

    def __init__(self, push: RuleFunction) -> None:
        self.rule = push
        self.keep = itemgetter(slice(0, 0))

    def push(
        self,
        prim: Primitive,
        i: int,
        t: Any,
        vals: Sequence[Any],
        params: tuple[Any, ...],
        ans: Any,
    ) -> Any:
        """The stated push."""
        return self.rule(t, ans, *vals, *params)


class Pair(Derived):
    """Both modes stated: `push(t, ans, *operands, *params)` and `pull(g, <named>)`.

    For an op with several results g and the tangents are tuples; the pull is the adjoint itself,
    conj included. None stands for an integer result, and in g for one that nothing used: what it
    would cost is not computed, and its singular derivatives make no NaN. One of g is there.
    """

    fast = True

    def __init__(self, push: RuleFunction, pull: RuleFunction, names: Sequence[str]) -> None:
        self.rule = push
        self.pull = pull
        self.keep = keeper(pull, names)


class Joint(Rule):
    """One rule for all operands of an op, in one mode or both; the other mode is its transpose.

    joint_push(tangents, ans, *operands, *params): tangents of the results (a tuple for several).
    joint_pull(g, ans, *operands, *params): one cotangent per operand, None for zero; one that costs
    more than the others may be a function that gives it, which is called where it is wanted.
    Every differentiable operand of the op has the same Joint.
    """

    pull = None
    fast = False

    def __init__(self, push: RuleFunction | None, pull: RuleFunction | None) -> None:
        self.joint_push = push
        self.joint_pull = pull
        self.keep = itemgetter(slice(0, 0))

    def push_all(
        self,
        prim: Primitive,
        tangents: Sequence[Any],
        vals: Sequence[Any],
        params: tuple[Any, ...],
        ans: Any,
    ) -> tuple[Any, ...]:
        """Tangents of the results, one each."""
        assert self.joint_push is not None
        out = self.joint_push(tuple(tangents), ans, *vals, *params)
        return tuple(out) if prim.results != 1 else (out,)

    def pull_all(
        self,
        prim: Primitive,
        cts: Sequence[Any],
        vals: Sequence[Any],
        params: tuple[Any, ...],
        ans: Any,
        wanted: Container[int],
    ) -> Sequence[Any]:
        """Cotangents of the operands, one each; those that are not wanted may be None."""
        assert self.joint_pull is not None
        out = self.joint_pull(tuple(cts) if prim.results != 1 else cts[0], ans, *vals, *params)
        if not isinstance(out, tuple | list):
            return (out,)
        if not any(map(callable, out)):
            return out
        return [(c() if i in wanted else None) if callable(c) else c for i, c in enumerate(out)]


def parameters(fun: Any) -> list[str]:
    """The names of a function's parameters, read off its code: at a tenth of `inspect`'s cost.

    What is made around a rule tells the names itself, in `parameters`.
    """
    named = getattr(fun, "parameters", None)
    if named is not None:
        return list(named)
    code = getattr(fun, "__code__", None)
    if code is None or hasattr(fun, "__wrapped__"):
        return list(inspect.signature(fun).parameters)
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def keeper(
    rule: RuleFunction, names: Sequence[str]
) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """What picks the values that `rule` names after g out of (ans, *names, *shapes)."""
    known = ["ans", *names, *(f"{n}_shape" for n in names)]
    wanted = parameters(rule)[1:]
    unknown = [w for w in wanted if w not in known]
    assert not unknown, f"{rule.__name__} names {unknown}, the op has {known}"
    at = [known.index(w) for w in wanted]
    if len(at) > 1 and at != list(range(at[0], at[-1] + 1)):
        return itemgetter(*at)
    return itemgetter(
        slice(at[0], at[-1] + 1) if at else slice(0, 0)
    )  # a slice gives a tuple for one
