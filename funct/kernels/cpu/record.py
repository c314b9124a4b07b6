"""What a kernel is told: one array of 64-bit integers and addresses, read by name on both sides."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.calls import DATA, readable
from funct.kernels.llvm import I64, PTR, Emitter, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Fields", "Record", "address"]


class Fields:
    """The names, in order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._place = {name: k for k, name in enumerate(names)}

    def fill(self, **values: int) -> NDArray[np.int64]:
        """The array for these values, all of them given."""
        assert len(values) == len(self.names), sorted(self._place.keys() ^ values.keys())
        return np.array([values[name] for name in self._place], np.int64)

    def put(self, job: NDArray[np.int64], **values: int) -> None:
        """Write some fields."""
        for name, value in values.items():
            job[self._place[name]] = value

    def place(self, name: str) -> int:
        """Where a field stands, in words."""
        return self._place[name]

    def __len__(self) -> int:
        return len(self._place)


class Record:
    """The fields as a printed function reads them: `record.size`; `record.pointer("x")`."""

    def __init__(self, f: Emitter, fields: Fields, address: Value) -> None:
        self._f, self._fields, self._address = f, fields, address

    def __getattr__(self, name: str) -> Value:
        f = self._f
        return f.load(I64, f.at(self._address, self._fields.place(name), "i64"))

    def pointer(self, name: str) -> Value:
        """A field that is an address."""
        f = self._f
        return f.load(PTR, f.at(self._address, self._fields.place(name), "i64"))


def _read(array: NDArray[Any]) -> int:
    """Where an array's elements are."""
    return _word(id(array) + DATA).value


def _asked(array: NDArray[Any]) -> int:
    """Where an array's elements are."""
    return int(array.__array_interface__["data"][0])


_word = ctypes.c_size_t.from_address
address = _read if readable() else _asked  # NumPy takes 5 µs to answer
