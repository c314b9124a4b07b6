"""Attention in loops: eager's numbers, and no Python between the steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.native import native
from funct.compile.stored import stored
from funct.kernels import table
from funct.kernels.cpu import jobs
from funct.nn import functional
from tests import laws
from tests.compile.test_stored import graph_of, never
from tests.compile.test_windows import compiled, looped, steps_python

pytestmark = pytest.mark.skipif(
    not table.met(("llvm", "avx2", "fma")), reason="no attention for this processor"
)

RNG = np.random.default_rng(0)
# lead, lead of keys, queries, keys, depth, width
SIZES: dict[str, Any] = {
    "one": ((), (), 1, 1, 1, 1),
    "one query": ((2, 3), (2, 3), 1, 40, 16, 16),
    "few queries": ((3,), (3,), 5, 33, 12, 7),
    "block": ((2, 2), (2, 2), 50, 70, 16, 24),
    "long": ((1,), (1,), 9, 300, 8, 8),
    "shared heads": ((2, 4), (2, 1), 3, 20, 8, 8),
    "shared heads, many": ((2, 3), (1, 1), 40, 20, 8, 9),
}
MASKS = ["none", "causal", "keys", "all", "added", "added keys", "heads", "one"]


def mask_of(kind: str, lead: Any, queries: int, keys: int, dtype: str) -> Any:
    """A mask for each of three steps; None where there is none."""
    if kind in ("none", "causal"):
        return None
    size = {
        "keys": (1, keys), "all": (queries, keys), "added": (queries, keys), "one": (1, 1),
        "added keys": (1, keys), "heads": (*lead, queries, keys),
    }[kind]  # fmt: skip
    numbers = RNG.normal(size=(3, *size))
    return xp.asarray(numbers.astype(dtype) if kind.startswith("added") else numbers > -0.5)


def attend(q: Any, k: Any, v: Any, mask: Any = None, *, causal: bool = False) -> Any:
    return functional.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)


def operands(name: str, dtype: str) -> Any:
    lead, keys_lead, queries, keys, depth, width = SIZES[name]
    shapes = (*lead, queries, depth), (*keys_lead, keys, depth), (*keys_lead, keys, width)
    return [xp.asarray(RNG.normal(size=(3, *s)).astype(dtype)) for s in shapes]


def each(f: Any, args: Any) -> Any:
    """What eager execution gives of three steps."""
    found = [f(*[a[k] for a in args]) for k in range(3)]
    return ft.tree.map(lambda *ys: xp.stack(ys), *found)


def near(found: Any, expected: Any) -> None:
    """But for the order of the sum of each result times its cotangent."""
    eps = float(np.finfo(expected.dtype).eps)
    laws.close(found, expected, 0, 32 * eps * max(1.0, float(xp.max(xp.abs(expected)))))


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("name", SIZES)
def test_loops_have_eagers_numbers(name: str, kind: str, dtype: str) -> None:
    """Its bits of results, whatever the mask hides; cotangents are as near as one sum is."""
    lead, _, queries, keys, *_ = SIZES[name]
    mask = mask_of(kind, lead, queries, keys, dtype)
    args = [*operands(name, dtype), *([] if mask is None else [mask])]

    def forward(*xs: Any) -> Any:
        q, k, v, *rest = xs
        return attend(q, k, v, *rest, causal=kind == "causal")

    def backward(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        y, pull = ft.vjp(lambda *xs: forward(*xs, *rest), q, k, v)
        return pull(xp.sin(y))

    assert not steps_python(looped(forward), *args)
    np.testing.assert_array_equal(compiled(looped(forward), *args), each(forward, args))
    assert not steps_python(looped(backward), *args)
    ft.tree.map(near, compiled(looped(backward), *args), each(backward, args))


def test_a_decoder_reads_its_cache_where_it_lies() -> None:
    """Each step writes a key and a value into caches that it carries, and hides what is to come."""
    heads, length, depth = 2, 24, 8
    rows = [xp.asarray(RNG.normal(size=(length, heads, depth)).astype("float32")) for _ in "qkv"]
    empty = xp.zeros((length, heads, depth), dtype=xp.float32)

    def step(carry: Any, row: Any) -> Any:
        (keys, values, t), (q, k, v) = carry, row
        keys, values = keys.at[t].set(k), values.at[t].set(v)
        seen = (xp.arange(length) <= t)[None, :]
        k, v = (xp.permute_dims(x, (1, 0, 2)) for x in (keys, values))
        return (keys, values, t + 1), attend(q[:, None, :], k, v, seen)[:, 0]

    def run(*rows: Any) -> Any:
        return ft.scan(step, (empty, empty, 0), rows)[1]

    assert not steps_python(run, *rows)
    found = ft.jit(run)(*rows)
    q, k, v = [xp.permute_dims(x, (1, 0, 2)) for x in rows]
    expected = xp.permute_dims(attend(q, k, v, causal=True), (1, 0, 2))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_dropout_is_eagers() -> None:
    """What is dropped follows from a key of each step."""
    args = operands("few queries", "float64")
    keys = ft.random.split(ft.random.key(3), 3)

    def f(key: Any, q: Any, k: Any, v: Any) -> Any:
        drop = {"dropout_p": 0.4, "dropout_key": key}

        def value(q: Any, k: Any, v: Any) -> Any:
            return functional.scaled_dot_product_attention(q, k, v, **drop)

        y, pull = ft.vjp(value, q, k, v)
        return y, *pull(y)

    assert not steps_python(looped(f), keys, *args)
    found, expected = compiled(looped(f), keys, *args), each(f, (keys, *args))
    np.testing.assert_array_equal(found[0], expected[0])
    ft.tree.map(near, found[1:], expected[1:])


def test_it_is_kept_on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the job is made of is kept; where it is made otherwise, the code is made anew."""
    args = operands("block", "float32")
    graph = graph_of(looped(attend), *args)
    given = [np.asarray(x) for x in args]
    first = stored(graph, lambda: native(graph))(*given)
    jobs.job.cache_clear()
    again = stored(graph, never)(*given)
    ft.tree.map(np.testing.assert_array_equal, again, first)
