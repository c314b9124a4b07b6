"""Images that are turned: the change between channels first and channels last, as a kernel's own.

    x = turned(x)     # (N, C, P) becomes (N, P, C), contiguous, as x is

Tiles are transposed in registers (`dense/turn.py`); the images are dealt out to threads.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from funct.device import Code, Host, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.lines import begin
from funct.kernels.cpu.dense.turn import turn_name
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.runners import filling
from funct.kernels.llvm import I64, PTR, Value, each

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["turned"]

_TURN = Fields(("tasks", "images", "rows", "columns", "source", "to"))
_TASKS = 4  # per core
_ELEMENT = {4: "f32", 8: "f64"}  # by bytes


def turned(x: NDArray[Any]) -> NDArray[Any]:
    """A copy of (N, R, C) with its last two axes the other way round.

    >>> import numpy as np
    >>> turned(np.arange(4, dtype=np.float32).reshape(1, 2, 2))
    array([[[0., 2.],
            [1., 3.]]], dtype=float32)
    """
    n, rows, columns = x.shape
    y = memory.fresh((n, columns, rows), x.dtype)
    _turning(x.dtype, x.shape)(x, y)
    return y


@functools.lru_cache(1 << 8)
def _turning(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Callable[..., None]:
    images, rows, columns = shape
    job = _TURN.fill(
        tasks=min(images, _TASKS * host().cores), images=images, rows=rows, columns=columns,
        source=0, to=0,
    )  # fmt: skip
    places = [_TURN.place(name) for name in ("source", "to")]
    return filling(_code(_ELEMENT[dtype.itemsize], host()).address("turned"), job, places)


@functools.cache
def _code(element: str, target: Host) -> Code:
    return printed(_text, element, target)


def _text(element: str, target: Host) -> str:
    """`turned(job)`: some images for each task."""
    module = begin(target, "turned", "range", _TURN)
    turn = turn_name(element, target.vector_bytes)
    f = module.function("range", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, _TURN, f.arguments[0]), f.arguments[1]
    rows, columns = job.rows, job.columns
    source, to, size = job.pointer("source"), job.pointer("to"), rows * columns
    begins, ends = (f.div(n * job.images, job.tasks) for n in (task, task + 1))

    def image(n: Value) -> None:
        x, y = f.at(source, n * size, element), f.at(to, n * size, element)
        f.call(turn, None, [x, y, rows, columns, columns, rows])

    each(f, begins, ends, image)
    f.ret()
    return module.text()
