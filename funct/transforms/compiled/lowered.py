"""What `jit(...).lower(*args)` gives: the captured graph, and from it code for those arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from funct.compile import MISS
from funct.errors import GuardError
from funct.graph import Graph
from funct.transforms.compiled.arguments import Key, Split, fitting
from funct.transforms.compiled.executable import Executable

__all__ = ["Lowered", "Ready"]


@attrs.frozen(eq=False, repr=False)
class Lowered:
    """A function captured for its arguments, and not yet compiled.

    graph: what was captured, simplified.
    """

    name: str
    graph: Graph
    _make: Callable[[], Ready]

    def as_text(self) -> str:
        """The graph as readable Python."""
        return str(self.graph)

    def compile(self) -> Ready:
        """Code for these arguments, and for no others."""
        return self._make()

    def __repr__(self) -> str:
        return f"<Lowered {self.name}: {self.graph!r}>"


@attrs.frozen(eq=False, repr=False)
class Ready:
    """A function compiled for arguments of one structure and type. It never compiles again.

    graph: what was compiled.
    """

    name: str
    graph: Graph
    exe: Executable
    _key: Key
    _rebuild: Callable[[list[Any]], Any]
    _split: Callable[[Any, Any], Split]

    def as_text(self) -> str:
        """The graph as readable Python."""
        return str(self.graph)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result.

        Raises: TreeError: for arguments of another structure. ArgumentError: for other types or
        static values. GuardError: where a decision leads another way.
        """
        given = self._split(args, kwargs)
        if given.key != self._key:
            fitting(self.name, given.key, self._key, given.names())
        out = self.exe(*given.arrays)
        if out is MISS:
            raise GuardError(
                f"{self.name}: compiled for values that decide otherwise",
                fix="call the jitted function itself, which keeps one path per decision",
            )
        return self._rebuild(list(out))

    def __repr__(self) -> str:
        return f"<Ready {self.name}: {self.graph!r}>"
