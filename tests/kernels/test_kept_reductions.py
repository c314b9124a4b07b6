"""Reductions of arrays that lie as others did: the bits of the first time."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from funct.kernels.cpu import prepared as module
from funct.kernels.cpu.by_words import PLACES
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.prepared import LATER, Job, Prepared
from funct.kernels.reductions import statistical
from funct.kernels.table import restricted
from tests import guarded
from tests.kernels.arrays import forget

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

WAYS = {
    "sum": statistical.total, "prod": statistical.product, "max": statistical.most,
    "any": statistical.some,
}  # fmt: skip
SHAPES = ((3000,), (5, 700), (400, 9), (12, 600), (3, 7, 130), (40, 4, 4), (1, 0, 700), (300_000,))


def axes_of(rank: int) -> list[Any]:
    last = [tuple(range(k, rank)) for k in range(rank)]
    return [None, *range(-rank, rank), *last, (0,), (0, rank - 1), True]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", WAYS)
def test_what_is_kept_has_the_bits_of_the_other_way(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every layout the third call is the builtin's, which makes nothing of other arguments."""
    rng, given = np.random.default_rng(0), 0
    asked: list[Any] = []
    monkeypatch.setattr(module, "_SELDOM", 1)

    def way(x: Any, axis: Any, keepdims: bool) -> Any:
        asked.append(axis)
        return statistical._job(name, x, axis, keepdims)

    kept = Prepared(way)
    kept.load()
    forget(monkeypatch)  # for code of short rows is there once Python was asked for it often
    dtypes = ["float32", "int8"] if name[0] != "a" else ["bool"]
    for shape, dtype in itertools.product(SHAPES, dtypes):
        raw = (rng.normal(size=shape) * 9).astype(dtype)
        for axis, keepdims in itertools.product(axes_of(len(shape)), (False, True)):
            try:
                expected = WAYS[name](raw, axis, keepdims)
            except (ValueError, TypeError):
                continue
            while statistical._job(name, raw, axis, keepdims) is LATER:
                expected = WAYS[name](raw, axis, keepdims)
            with guarded.memory(at_end=keepdims):
                x = guarded.copy(raw, at_end=keepdims)
                kept.call(x, axis, keepdims)
                kept.call(x, axis, keepdims)
                before = len(asked)
                y = kept.call(x, axis, keepdims)
            if y is not None:
                assert len(asked) == before
                assert y.shape == np.shape(expected)
                assert y.dtype == expected.dtype
                assert y.tobytes() == expected.tobytes(), (shape, dtype, axis)
                given += 1
    assert given > 20
    x = np.ones((5, 700), dtypes[0])
    with restricted():
        assert kept.call(x, 1, False) is None
    odd: list[Any] = [(1 << 70, False), (9, True), (1, 1), ((1, "0"), False), ("0", False)]
    for axis, keeps in odd:
        assert kept.call(x, axis, keeps) is kept.call(x, axis, keeps) is None
    assert kept.call(x[::2], 1, False) is kept.call(x.tolist(), 1, False) is None


def test_dtypes_that_may_go_are_not_kept() -> None:
    """One beside NumPy's own lives as long as its arrays, and another may come to its place."""
    asked: list[Any] = []

    def way(x: Any, axis: Any, keepdims: bool) -> Any:
        asked.append(x.dtype)
        return statistical._job("sum", x, axis, keepdims)

    kept = Prepared(way)
    kept.load()
    x = np.ones((5, 700), np.dtype("f4", metadata={"unit": "m"}))
    assert x.dtype == np.float32
    for _ in range(3):
        assert kept.call(x, 1, False) is None
    assert not asked


def test_what_no_longer_is_kept_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more layouts than there are places for, whatever else asks meanwhile."""
    made: list[weakref.ref[Any]] = []

    def plan(job: Job, args: Any) -> Any:
        found = planned(job, args)
        made.append(weakref.ref(found[0]))
        return found

    planned = module._kept
    monkeypatch.setattr(module, "_kept", plan)
    monkeypatch.setattr(module, "_SELDOM", 1)
    kept = Prepared(lambda x, axis, keepdims: statistical._job("sum", x, axis, keepdims))
    kept.load()
    wrong: list[int] = []
    arrays = [np.ones((4, 1024 + n), np.float32) for n in range(3 * PLACES)]

    def run() -> None:
        for x in arrays:
            kept.call(x, None, False)
            kept.call(x, None, False)
            y = kept.call(x, None, False)
            wrong.extend([x.size] if y is not None and y != x.size else [])

    threads = [threading.Thread(target=run) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert len(made) >= len(arrays)
    assert 0 < sum(plan() is not None for plan in made) <= PLACES
