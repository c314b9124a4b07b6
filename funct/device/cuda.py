"""CUDA devices through CuPy, which is imported here alone, when the first of them is named."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from funct.device.memory.allocator import register
from funct.device.memory.pooled import Pooled
from funct.device.places import Place, register_place
from funct.errors import ArgumentError, MissingExtraError

__all__: list[str] = []

_DLPACK_CODE = 2  # kDLCUDA


def _open(number: int) -> Place:
    if find_spec("cupy") is None:
        raise MissingExtraError(
            f"arrays on cuda:{number} need CuPy", fix="pip install 'funct[cuda13]'"
        )
    import cupy
    import cupyx.scipy.special as special

    if number >= _count():
        raise ArgumentError(f"CuPy finds {_count()} CUDA devices, none has number {number}")
    device = cupy.cuda.Device(number)
    _count_memory(cupy, number, device)

    def put(data: Any) -> Any:
        with device:
            return cupy.array(data)

    def take(x: Any) -> Any:
        with device:
            return cupy.from_dlpack(x)

    return Place(
        name=f"cuda:{number}",
        buffer=cupy.ndarray,
        number=lambda buffer: int(buffer.device.id),
        put=put,
        get=cupy.asnumpy,
        take=take,
        special=lambda name: getattr(special, name, None),
        add_at=cupy.add.at,
        active=lambda: device,
    )


def _count() -> int:
    if find_spec("cupy") is None:
        return 0
    import cupy

    return int(cupy.cuda.runtime.getDeviceCount()) if cupy.cuda.is_available() else 0


class _OnDevice:
    """CuPy's default pool, asked about one device: it answers for the current one."""

    def __init__(self, pool: Any, device: Any) -> None:
        self._pool, self._device = pool, device

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._device:
                return getattr(self._pool, name)(*args, **kwargs)

        return call


_memory: dict[int, Pooled] = {}


def _count_memory(cupy: Any, number: int, device: Any) -> None:
    """Let CuPy's requests be counted; an allocator that somebody else has set stays."""
    pool = cupy.get_default_memory_pool()
    _memory[number] = Pooled(_OnDevice(pool, device))
    register(f"cuda:{number}", _memory[number])
    if cupy.cuda.get_allocator() == pool.malloc:

        def counted(size: int) -> Any:
            here = _memory.get(cupy.cuda.runtime.getDevice())
            return pool.malloc(size) if here is None else here.malloc(size)

        cupy.cuda.set_allocator(counted)


register_place("cuda", _open, _count, _DLPACK_CODE)
