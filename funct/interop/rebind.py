"""The Array API on arrays that may be written into: `from funct.interop import rebind as xp`.

Client libraries (SciPy, scikit-learn, array-api-extra) take an array they do not know for writable
and write `x[mask] = 0`. Arrays of this namespace allow that: each is a handle on an immutable
Tensor, and a write makes the handle hold a new one. `grad`, `vmap` and `jit` see the Tensors, so
client code runs under them unchanged.

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
from funct.interop.handle import unwrapped as _unwrapped
from funct.interop.handle import wrap as wrap
from funct.interop.handle import wrapped as _wrapped

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


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """obj as an array. With copy=False a handle comes back itself, as nothing else shares its cell.

    Source: Array API 2025.12 `asarray`.
    """
    value = _plain.asarray(_unwrapped(obj), dtype=dtype, device=device, copy=copy)
    return obj if copy is False and isinstance(obj, Array) else _wrapped(value)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """x in another dtype; x itself where it has that dtype and copy is False.

    Source: Array API 2025.12 `astype`.
    """
    value = _plain.astype(_unwrapped(x), dtype, copy=copy, device=device)
    return x if not copy and value is _unwrapped(x) else _wrapped(value)
