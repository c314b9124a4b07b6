"""The Array API on arrays that may be written into: `from funct.interop import rebind as xp`.

Client libraries (SciPy, scikit-learn, array-api-extra) take an array they do not know for writable
and write `x[mask] = 0`. Arrays of this namespace allow that: each is a handle on an immutable
Tensor, and a write makes the handle hold a new one. What NumPy gives as a view (slices, transposed
and reshaped arrays) sees what is written into its base, and the base what is written into it.
`grad`, `vmap` and `jit` see the Tensors, so client code runs under them unchanged; what a
transformed function writes into its arguments, the caller's arrays do not see.

Every name of `funct.array`, its extensions included, is here, lifted to handles when it is first
asked for.
"""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import Any

from funct import array as _plain
from funct.interop.handle import Array as Array
from funct.interop.handle import lift as _lift
from funct.interop.handle import wrap as wrap

__all__ = sorted({*_plain.__all__, "wrap"} - {"Tensor", "At", "Ground"})  # noqa: PLE0605


class Extension(ModuleType):
    """An extension of `funct.array` (linalg, fft, special), lifted name by name."""

    def __init__(self, source: ModuleType) -> None:
        super().__init__(f"{__name__}.{source.__name__.rpartition('.')[2]}", source.__doc__)
        self._source = source

    def __getattr__(self, name: str) -> Any:
        value = _lifted(self._source, name, self.__name__)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted(self._source.__all__)


def _lifted(source: Any, name: str, module: str) -> Any:
    """What stands in source under a name, for handles: functions are lifted, constants as is."""
    if name not in source.__all__:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    value = getattr(source, name)
    if isinstance(value, ModuleType):
        return sys.modules.setdefault(f"{module}.{name}", Extension(value))
    return _lift(value, module, name) if isinstance(value, FunctionType) else value


def __getattr__(name: str) -> Any:
    value = globals()[name] = _lifted(_plain, name, __name__)
    return value


def __dir__() -> list[str]:
    return __all__
