"""`__array_namespace_info__`: what the namespace can do, its devices and its dtypes.

Source: Array API 2025.12, "Inspection".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.array import dtypes as names
from funct.array.device import CPU, Device, check_device, devices
from funct.array.dtypes import isdtype

__all__ = ["NamespaceInfo", "namespace_info"]

_STANDARD = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip


class NamespaceInfo:
    """Answers about `funct.array`; the same in every context and under every transform."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """What portable code may rely on.

        Masks and data-dependent shapes work outside of transforms, but a graph has no place for
        them: the answer False sends clients along the `where` road, which always works.
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> Device:
        """Where arrays are made when no device is given."""
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes that functions choose when none is given."""
        check_device("default_dtypes", device)
        found = {
            "real floating": names.float64, "complex floating": names.complex128,
            "integral": names.int64, "indexing": names.int64,
        }  # fmt: skip
        return {kind: np.dtype(t) for kind, t in found.items()}

    def devices(self) -> tuple[Device, ...]:
        """Every device on which arrays can be made now."""
        return devices()

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes by name, of one kind (see `isdtype`) or of all.

        The namespace has more (`float16`, `bfloat16` …); portable code shall not meet them here.
        """
        check_device("dtypes", device)
        all_ = {name: np.dtype(getattr(names, name)) for name in _STANDARD}
        return all_ if kind is None else {n: d for n, d in all_.items() if isdtype(d, kind)}


def namespace_info() -> NamespaceInfo:
    """What the namespace can do, which devices and which dtypes it has.

    Example:
        >>> import funct.array as xp
        >>> info = xp.__array_namespace_info__()
        >>> info.default_dtypes()["real floating"], info.default_device()
        (dtype('float64'), cpu)
    """
    return NamespaceInfo()
