"""One kernel: what it costs, what bounds it, and who else does it."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np

import funct as ft
from benchmarks.peers import optional
from benchmarks.timing import minima
from funct.device import host
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.tile import Shape, address, most_rows

__all__ = ["Row", "table"]

_OFTEN = 1_000  # calls after which what comes often has been compiled


@attrs.frozen
class Row:
    """work: operations (with `dot`, the product they are made of) or bytes that must move.

    peers: by name, what computes the same. rounds: how often each has its turn.
    """

    name: str
    work: float
    call: Callable[[], object]
    peers: Mapping[str, Callable[[], object]]
    dot: str | None = None
    rounds: int = 8


@functools.cache
def operations_per_us(dot: str) -> float:
    """The most that the micro-kernel does on data in the first-level cache."""
    width = supported(DOTS[dot], host())
    shape = Shape(DOTS[dot], width, most_rows(DOTS[dot], width), 2)
    depth, taps = 64, 200
    a, b = (np.zeros(64 * 64, np.float64) for _ in range(2))
    c = np.zeros(shape.rows * shape.columns, np.float64)
    rows = np.array([[m * depth, m * shape.columns] for m in range(shape.rows)])
    offsets = np.zeros((taps, 2), np.int64)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 9)(address(shape, host()))
    given = (
        *[v.ctypes.data for v in (a, rows, offsets)], taps, b.ctypes.data, depth, 0, c.ctypes.data,
        0,
    )  # fmt: skip
    work = 2 * shape.rows * shape.columns * depth * taps * shape.dot.per_word
    return work / minima({"tile": lambda: call(*given)})["tile"]


@functools.cache
def bytes_per_us() -> float:
    """What a copy of 64 MiB moves, both ways."""
    x = np.zeros(8 << 20)
    y = np.empty_like(x)
    return 2 * x.nbytes / minima({"copy": lambda: np.copyto(y, x)}, rounds=5)["copy"]


def table(title: str, rows: Iterable[Row]) -> Iterator[str]:
    """Lines of figures in GB/s or G operations/s, the share of the limit, and the best peer."""
    torch: Any = optional("torch")
    if torch is not None:
        torch.set_num_threads(1)
    head = f"{title:44s}{'funct':>10s}{'limit':>8s}{'best peer':>22s}{'funct/peer':>12s}"
    yield head
    yield "-" * len(head)
    with ft.config.using(threads=1):
        for row in rows:
            calls = {"funct": row.call, **row.peers}
            took = minima(calls, rounds=row.rounds, round_s=0.005, before=_OFTEN)
            ours = took.pop("funct")
            limit = operations_per_us(row.dot) if row.dot else bytes_per_us()
            line = f"{row.name:44s}{row.work / ours / 1e3:10.1f}{row.work / ours / limit:8.0%}"
            if took:
                best = min(took, key=lambda name: took[name])
                line += f"{best + f' {row.work / took[best] / 1e3:.1f}':>22s}"
                line += f"{took[best] / ours:12.2f}"
            yield line
