"""Ops that are no loops are called once on zeros, while code of loops is made.

What such an op makes at its first call of a kind – machine code, tables, plans – follows from
shapes and dtypes, and to make it takes many times as long as to run it. On a first call one core
makes the code of loops, which comes first, and has LLVM for that; so others call these ops
meanwhile, in order. Where the function comes to one that is not done, it waits for what is being
made of it, or makes it itself.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import Any

import numpy as np

from funct.device import host
from funct.graph import Node, Var
from funct.settings import cores

__all__ = ["REHEARSED", "rehearse", "run_at_once"]

REHEARSED = frozenset([
    "attention", "attention_keep", "attention_pull", "avg_pool", "convolution", "convolution_input",
    "convolution_weight", "fold_windows", "max_pool", "max_pool_index", "put", "scatter_add",
])  # fmt: skip
_MOST = 1 << 25  # bytes of the arrays of one op: more take longer to run than code to make

_at_once: ContextVar[bool] = ContextVar("at_once", default=False)


@contextmanager
def run_at_once() -> Iterator[None]:
    """Functions that are made in the block are called there, once at least."""
    token = _at_once.set(True)
    try:
        yield
    finally:
        _at_once.reset(token)


def rehearse(steps: Sequence[Any]) -> list[threading.Thread]:
    """Begin to call those of the steps that are such ops, if the function is run at once; the
    threads that do.
    """
    if not _at_once.get() or cores() < 2:
        return []
    given: dict[Any, Node] = {}
    for e in steps:
        if isinstance(e, Node) and e.primitive.name in REHEARSED and _bytes(e) <= _MOST:
            types = tuple([_type(a) if isinstance(a, Var) else a for a in e.operands])
            given.setdefault((e.primitive, types, e.params), e)
    rest = iter(list(given.values()))

    def work() -> None:
        for e in rest:
            with suppress(Exception):  # the function finds it again
                zeros = [np.zeros(*_type(a)) if isinstance(a, Var) else a for a in e.operands]
                e.primitive.raw(*zeros, *e.params)

    threads = [
        threading.Thread(target=copy_context().run, args=(work,))
        for _ in range(min(host().cores, len(given)))  # some wait for what another one makes
    ]
    for thread in threads:
        thread.start()
    return threads


def _type(v: Var) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return v.shape, v.dtype


def _bytes(e: Node) -> int:
    arrays = [v for v in (*e.operands, *e.results) if isinstance(v, Var)]
    return sum([math.prod(v.shape) * v.dtype.itemsize for v in arrays])
