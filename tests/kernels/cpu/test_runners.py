"""Builtins that run jobs: what is in the job, in whichever way it is run."""

from __future__ import annotations

import math
import struct
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from funct.device import assemble
from funct.kernels.cpu import loops, runners
from funct.kernels.cpu.record import address

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")

_WORDS = 6
_COPY = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @copy(ptr %job) {{
  %y = load ptr, ptr %job
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %job, i64 {8 * _WORDS}, i1 false)
  ret void
}}
"""  # the job, into its first array


@pytest.mark.parametrize("shape", [(), (8,), (4, 1, 2), (1 << 14,)])
@pytest.mark.parametrize("turned", [False, True])
def test_results_are_made_in_the_call(shape: tuple[int, ...], turned: bool) -> None:
    """Small ones and large ones, in either order of the operands."""
    text = (
        _COPY.replace("ptr %job\n", "ptr %third\n", 1)
        .replace("  %y", "  %third = getelementptr i64, ptr %job, i64 2\n  %y", 1)
        .replace(str(8 * _WORDS), str(8 * min(_WORDS, math.prod(shape))))
    )
    code, (x, y) = assemble(text).keep().address("copy"), (np.zeros(3), np.zeros((2, 2)))
    made = runners.making(code, shape, np.dtype(np.int64), [7, 8, 9], 1 << 13, turned=turned)
    z = made(x, y)
    assert (z.shape, z.dtype, z.flags.owndata) == (shape, np.int64, True)
    places = [*map(address, (y, x) if turned else (x, y)), address(z), 7, 8, 9]
    assert z.reshape(-1)[:_WORDS].tolist() == places[: z.size]


@pytest.mark.parametrize("size", [_WORDS, 1 << 14])
@pytest.mark.parametrize("others", [0, 1, 3])
@pytest.mark.parametrize("readable", [True, False])
def test_jobs_are_addresses_and_words(
    size: int, others: int, readable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays of any rank and layout, few and many elements."""
    monkeypatch.setattr(runners, "readable", lambda: readable)
    run = runners.runner(assemble(_COPY).keep().address("copy"))
    y = np.zeros(size, np.int64)
    arrays: list[Any] = [y, np.ones((), np.float32), np.ones((3, 4)).T, np.ones(5)[::-1]]
    given = arrays[: 1 + others]
    words = range(7, 7 + _WORDS - len(given))
    none, counts = sys.getrefcount(None), [sys.getrefcount(a) for a in given]
    call = partial(run, *given, struct.pack(f"{len(words)}q", *words))
    assert call() is None
    assert y[:_WORDS].tolist() == [*map(address, given), *words]
    del call
    assert [sys.getrefcount(a) for a in given] == counts
    assert abs(sys.getrefcount(None) - none) < 100


@pytest.mark.parametrize("readable", [True, False])
def test_prepared_jobs_are_filled(readable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With arrays of any layout and with numbers, in any order; what was prepared stays so."""
    monkeypatch.setattr(runners, "readable", lambda: readable)
    y, x = np.zeros(_WORDS, np.int64), np.ones((3, 4), np.float32).T
    prepared = np.arange(_WORDS)
    run = runners.filling(assemble(_COPY).keep().address("copy"), prepared, [4, 0, 2])
    counts = [sys.getrefcount(a) for a in (x, y)]
    for number in (-3, 1 << 62):
        assert run(x, y, number) is None
        assert y.tolist() == [address(y), 1, number, 3, address(x), 5]
    assert prepared.tolist() == list(range(_WORDS))
    assert [sys.getrefcount(a) for a in (x, y)] == counts
