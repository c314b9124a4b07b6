"""What few elements need: the text branches to it where a lane is one of them.

An element's bits depend on it alone, not on whether another lane of the vector went that way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["rarely"]


def rarely(
    e: Emitter, rare: Value, name: str, slow: Callable[..., Value], operands: Sequence[Value],
    found: Value,
) -> Value:  # fmt: skip
    """What was found, but slow(e, *operands) in the lanes of the mask `rare`.

    The text has one function of that name, which prints `slow` for a whole vector.
    """
    type = found.type

    given = [(f"x{k}", x.type) for k, x in enumerate(operands)]

    def define(called: str) -> None:
        f = e.module.function(called, given, type, local=True)
        f.ret(slow(f, *f.arguments))

    def there() -> list[Value]:
        other = e.call(e.module.shared(f"{name}_{type.suffix}", define), type, operands)
        assert other is not None
        return [e.select(rare, other, found)]

    return e.branch(e.any(rare), there, lambda: [found], rare=True)[0]
