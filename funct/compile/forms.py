"""What branches and loops are to the compiler."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from funct.graph import Graph

__all__ = ["Choice", "Inner", "Refused", "Repeat"]


class Refused(Exception):  # noqa: N818
    """A program found an operand that its op refuses."""


class Repeat(Struct, frozen=True, eq=False):
    """A loop. body: (*constants, *carry, *x) -> (*carry, *y), at most `steps` times.

    test: (*constants, *carry) -> whether to go on; None: always. back: the rows of xs and ys are
    gone through from the last to the first.
    """

    body: Graph
    constants: int
    carry: int
    steps: int | None = None
    test: Graph | None = None
    back: bool = False

    @property
    def most(self) -> int:
        """Steps at most, as far as is known."""
        return self.steps if self.steps is not None else (1 << 63) - 1


class Inner(Struct, frozen=True, eq=False):
    """A loop that a body is rewritten with, and no transform sees. made: its blocks, once they are
    asked for.
    """

    repeat: Repeat
    made: list[Any] = field(default_factory=list)

    def form(self) -> Repeat:
        """To the compiler."""
        return self.repeat


class Choice(Struct, frozen=True, eq=False):
    """One of several graphs; the first operand says which. A single graph has no such operand."""

    graphs: tuple[Graph, ...]
