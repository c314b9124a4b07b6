"""array-api-extra's `at` on Tensors: after `teach()`, `xpx.at(x)[key].set(v)` takes them.

`at` is how array-API code says a write that need not be in place. It knows JAX's arrays by their
class, takes every other it does not know for writable, and has no hook. So its class is given a
way for Tensors: the update is made on a handle of `rebind`, and the handle's Tensor comes back.
SciPy and scikit-learn each carry a copy of array-api-extra, whose `at` is a class of its own.

Where array-api-extra is installed:

    import array_api_extra as xpx
    extra.teach(xpx)
    xpx.at(xp.zeros(3))[1].add(5.0)  # Array([0., 5., 0.], dtype=float64)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from funct.array import Tensor
from funct.errors import ImmutableError
from funct.interop import rebind
from funct.interop.handle import unwrapped, wrap, wrapped

__all__ = ["teach"]


def teach(*modules: ModuleType) -> list[str]:
    """Let `at` of these copies of array-api-extra take Tensors; of those loaded, if none is given.

    Returns: the copies' names. It is for the whole process; `at` of other arrays stays as it is.
    """
    found = modules or [m for name, m in sorted(sys.modules.items()) if _is_copy(name)]
    for module in found:
        module.at.__new__ = _made
    return [module.__name__ for module in found]


def _is_copy(name: str) -> bool:
    return name.rpartition(".")[2] == "array_api_extra"


def _made(cls: type, x: Any, *key: Any) -> Any:
    """The constructor of a class `at`: of a Tensor it makes an update of ours."""
    if isinstance(x, Tensor):
        return _Update(cls(wrap(x), *map(wrapped, key)))
    return object.__new__(cls)


class _Update:
    """`at(x)[key]` of a Tensor: the same of a handle on it."""

    __slots__ = ("_at",)

    def __init__(self, at: Any) -> None:
        self._at = at

    def __getitem__(self, key: Any) -> _Update:
        return _Update(self._at[wrapped(key)])

    def __getattr__(self, name: str) -> Callable[..., Any]:
        update = getattr(self._at, name)

        def method(y: Any, /, copy: bool | None = None, xp: Any = None) -> Any:
            if copy is False:
                raise ImmutableError(f"at(x).{name}: copy=False, but Tensors are immutable")
            return unwrapped(update(wrapped(y), xp=rebind))

        return method
