"""Codes, and how sums become codes, as tests draw them; the words that they are multiplied in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from funct.kernels.cpu.quantized import layers
from funct.kernels.cpu.quantized.words import PAIRS, Words, best
from funct.kernels.quantized import affine as plain

BYTES = st.sampled_from([np.uint8, np.int8])
WORDS = sorted({PAIRS, best()}, key=lambda words: words.dot)  # all that this processor multiplies


@contextmanager
def taken(words: Words) -> Iterator[None]:
    """As on a processor whose best words these are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "best", lambda: words)
        yield


def zero_points(dtype: Any) -> st.SearchStrategy[int]:
    """Any, the extreme ones often."""
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    return st.sampled_from([low, high, low + 1, high - 1]) | st.integers(low, high)


@st.composite
def to_codes(draw: st.DrawFn, outputs: int) -> tuple[Any, plain.Codes]:
    """A bias, and how its sums become codes."""
    dtype = draw(BYTES)
    limits = np.iinfo(dtype)
    zero = draw(st.integers(int(limits.min), int(limits.max)))
    relu = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    size = 10.0 ** draw(st.integers(-6, 0))
    shape = (outputs,) if draw(st.booleans()) else ()
    multiplier = (size * rng.uniform(0.5, 2, shape)).astype(np.float32)
    bias = rng.integers(-9999, 9999, outputs).astype(np.int32)
    lowest = zero if relu else int(limits.min)
    return bias, plain.Codes(multiplier, zero, lowest, int(limits.max), dtype)
