"""`Region`: a call of a function with its own derivative rules (custom_vjp, custom_jvp, jit).

Everything is flat: a tuple of values in, a tuple of values out. Levels decide what to do with it;
the missing one of the two modes is derived from the other by transposition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any
from weakref import ref

from msgspec import Struct

__all__ = ["Met", "Region"]

Flat = tuple[Any, ...]


class Region(Struct, frozen=True, eq=False):
    """One function with rules.

    name: shown in graphs and errors.
    run: the function itself, `run(*values) -> values`.
    push: forward rule, `push(primals, tangents) -> (values, tangents)`, or None.
    forward, backward: reverse rule, `forward(*values) -> (values, residuals)` and
        `backward(residuals, cotangents) -> cotangents, one per operand (None: zero)`, or both None.
    some: whether `backward` takes None for a result that no cotangent came for; else it gets a
        zero.
    own: whether the rules may say something else than the derivatives of what `run` does.
    batch: `batch(level, flags) -> Region`, for the level of the batch and operands that have it on
        axis 0 where flags say, whose results all have it; None for the function and its rules,
        batched op by op.
    """

    name: str
    run: Callable[..., Flat]
    push: Callable[[Flat, Flat], tuple[Flat, Flat]] | None = None
    forward: Callable[..., tuple[Flat, Flat]] | None = None
    backward: Callable[[Flat, Flat], Flat] | None = None
    batch: Callable[[Any, Sequence[bool]], Region] | None = None
    own: bool = False
    some: bool = False

    @property
    def ruled(self) -> bool:
        """Whether it brings derivative rules."""
        return self.push is not None or self.forward is not None


class Met:
    """What all threads know of calls of functions with rules of their own, those inside of compiled
    code too.

    latest: another object after each, but for those in machine code that answers by itself.
    """

    latest = object()
    _silent: tuple[ref[Any], ...] = ()
    _lock = Lock()

    @classmethod
    def silent(cls, code: Any) -> None:
        """Ask code from now on how many calls it has answered: `code.answered()`."""
        with cls._lock:
            cls._silent = (*[r for r in cls._silent if r() is not None], ref(code))

    @classmethod
    def told(cls) -> tuple[object, ...]:
        """Something that equals nothing from before a call."""
        return (cls.latest, *[code.answered() for r in cls._silent if (code := r()) is not None])
