"""Elementwise loops over operands that broadcast: NumPy's results, whatever the layouts are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funct.kernels.cpu.elementwise import vector_loops
from funct.kernels.cpu.loops import available
from tests import guarded

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

many = settings(max_examples=4 * settings.default.max_examples)
OPS = {"add": np.add, "outer_product": np.multiply, "maximum": np.maximum, "less": np.less}


@st.composite
def layouts(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Any]]:
    """A shape, and for each of two operands its own shape, the order of its axes in memory, which
    are reversed, and how far elements lie apart on the last.
    """
    lengths = st.one_of(st.integers(1, 5), st.integers(6, 40))
    shape = tuple(draw(st.lists(lengths, min_size=1, max_size=4)))
    found = []
    for _ in range(2):
        own = tuple([n if draw(st.booleans()) else 1 for n in shape])
        own = own[draw(st.integers(0, len(own))) :]
        order = draw(st.permutations(range(len(own))))
        flips = [draw(st.sampled_from([1, 1, -1])) for _ in own]
        found.append((own, order, flips, draw(st.sampled_from([1, 1, 1, 2]))))
    return shape, found


def laid(layout: Any, dtype: Any, seed: int, *, at_end: bool) -> Any:
    """Integers in that layout, between forbidden pages."""
    own, order, flips, apart = layout
    raw = [own[k] for k in order]
    x = np.random.default_rng(seed).integers(-9, 9, (*raw, apart)).astype(dtype)
    x = guarded.copy(x, at_end=at_end)[..., 0]
    x = x.transpose(np.argsort(order)) if order else x
    return x[(*[slice(None, None, f) for f in flips], ...)]


@many
@given(
    layouts(), st.sampled_from(sorted(OPS)), st.sampled_from([np.float32, np.float64]),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_operands_broadcast_in_any_layout(
    given_: Any, name: str, dtype: Any, at_end: bool, still: bool
) -> None:
    shape, found = given_
    with guarded.memory(at_end=at_end):
        x, y = (laid(layout, dtype, k, at_end=at_end) for k, layout in enumerate(found))
        if still:
            x = np.broadcast_to(x, shape)  # which says that it is whole
        result = np.dtype(bool if name == "less" else dtype)
        z = vector_loops.combined(name, (x, y), result)
        expected = OPS[name](x, y)
        np.testing.assert_array_equal(z, expected, strict=True)


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 31, 32, 33, 63, 65, 100])
def test_rows_of_any_length_have_the_same_bits(columns: int) -> None:
    """The last elements of a row are computed with some before them."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.1, 9, (5, 11, 1)), rng.uniform(-3, 3, (5, 1, columns))
    found = vector_loops.combined("pow", (x, y), x.dtype)
    whole = [np.ascontiguousarray(a) for a in np.broadcast_arrays(x, y)]
    assert found.tobytes() == vector_loops.combined("pow", whole, x.dtype).tobytes()


def test_blocks_of_rows_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_loops, "_copied", lambda *_: pytest.fail("copied"))
    x, y = np.ones((6, 9, 1)), np.ones((6, 1, 40))
    for a, b in (
        (x, y),
        (y, x),
        (x, y[0]),
        (np.ones((6, 9, 40)), y),
        (x[:, :, 0].T[:, :, None], y[0]),
    ):
        vector_loops.combined("outer_product", (a, b), x.dtype)


@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF", "C1", "F1", "1C", "1F"])
def test_results_lie_as_all_whole_operands_do(orders: str) -> None:
    """In Fortran's order where every operand that is not repeated does; else in C's."""
    rng = np.random.default_rng(0)
    x, y = (
        rng.standard_normal(7) if order == "1" else np.asarray(rng.random((5, 6, 7)), order=order)
        for order in orders
    )
    found = vector_loops.combined("add", (x, y), x.dtype)
    np.testing.assert_array_equal(found, x + y)
    assert found.flags.f_contiguous == ("C" not in orders)
    assert found.flags.c_contiguous == ("C" in orders)
