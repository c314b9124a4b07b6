"""What few elements need: the text branches to it where a lane is one of them.

An element's bits depend on it alone, not on whether another lane of the vector went that way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Type, Value

__all__ = ["rarely"]


def rarely(
    e: Emitter, rare: Value, name: str, slow: Callable[..., Value], operands: Sequence[Value],
    found: Value, *, widened: bool = False,
) -> Value:  # fmt: skip
    """What was found, but slow(e, *operands) in the lanes of the mask `rare`.

    The text has one function of that name, which prints `slow` for as many lanes as a vector of the
    processor has (widened: of doubles, which it computes with). More would be as much more code,
    which hardly ever runs.
    """
    type, given = found.type, [x.type for x in operands]
    few = max(1, e.module.target.vector_bytes // (8 if widened else type.bytes))
    some = type.lanes > few and not type.lanes % few

    def piece(called: str) -> None:
        lanes = few if some else type.lanes
        f = _function(e, called, [t.of(lanes) for t in given], type.of(lanes))
        f.ret(slow(f, *f.arguments))

    def pieces(called: str) -> None:
        f = _function(e, called, given, type)
        rooms = [f.allocate(t.scalar, t.lanes) for t in (*given, type)]
        for x, room in zip(f.arguments, rooms, strict=False):
            f.store(x, room)

        def each(k: Value, _: list[Value]) -> list[Value]:
            at = [f.at(room, k, t.element) for room, t in zip(rooms, (*given, type), strict=True)]
            parts = [f.load(t.of(few), p) for t, p in zip(given, at, strict=False)]
            f.store(_called(f, name, piece, type.of(few), parts), at[-1])
            return []

        f.loop(0, type.lanes, few, each)
        f.ret(f.load(type, rooms[-1]))

    def there() -> list[Value]:
        define = pieces if some else piece
        return [e.select(rare, _called(e, name, define, type, operands), found)]

    return e.branch(e.any(rare), there, lambda: [found], rare=True)[0]


def _function(e: Emitter, name: str, given: Sequence[Type], type: Type) -> Emitter:
    return e.module.function(name, [(f"x{k}", t) for k, t in enumerate(given)], type, local=True)


def _called(
    e: Emitter, name: str, define: Callable[[str], None], type: Type, operands: Sequence[Value]
) -> Value:
    found = e.call(e.module.shared(f"{name}_{type.suffix}", define), type, operands)
    assert found is not None, "it gives something"
    return found
