"""einops on Tensors, on handles, and under transforms."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.interop import rebind
from tests import laws

einops = pytest.importorskip("einops", reason="einops is not installed")
pytest.importorskip("funct.interop.einops")

X = np.arange(2.0 * 4 * 6).reshape(2, 4, 6)
CALLS = {
    "rearrange": lambda x, e: e.rearrange(x, "b (h p) w -> b p (w h)", p=2),
    "list": lambda x, e: e.rearrange([x[0], x[1]], "b h w -> h (b w)"),
    "max": lambda x, e: e.reduce(x, "b (h p) w -> b h w", "max", p=2),
    "mean": lambda x, e: e.reduce(x, "b h w -> b () w", "mean"),
    "repeat": lambda x, e: e.repeat(x, "b h w -> b (h 2) w c", c=3),
    "min": lambda x, e: e.reduce(x, "b h (w q) -> h q", "min", q=2),
    "sum": lambda x, e: e.reduce(x, "b ... -> b", "sum"),
    "prod": lambda x, e: e.reduce(0.1 * x, "... w -> w", "prod"),
    "ellipsis": lambda x, e: e.rearrange(x, "b ... w -> w ... b"),
    "axis of 1": lambda x, e: e.rearrange(x, "b h w -> b 1 (h w)"),
    "pack": lambda x, e: e.pack([x[0], x[1, 0]], "* w")[0],
    "unpack": lambda x, e: e.unpack(x, [(), (3,)], "b * w")[1],
}


@pytest.mark.parametrize("name", CALLS)
def test_einops_equals_numpy(name: str) -> None:
    """Plain einops and einops.array_api, on Tensors and on handles, give what NumPy gives."""
    import einops.array_api

    call = CALLS[name]
    expected = call(X, einops)
    laws.same(call(xp.asarray(X), einops), expected)
    laws.same(call(rebind.asarray(X), einops).unwrap(), expected)
    laws.same(call(xp.asarray(X), einops.array_api), expected)
    laws.same(call(rebind.asarray(X), einops.array_api).unwrap(), expected)


@pytest.mark.parametrize("name", CALLS)
def test_einops_under_transforms(name: str, rng: np.random.Generator) -> None:
    """Derivatives are right; vmap is a loop; jit gives the same: both forms, both namespaces."""
    import einops.array_api

    x = xp.asarray(rng.normal(size=X.shape))
    for client in (einops, einops.array_api):

        def plain(x: Any, client: Any = client) -> Any:
            return CALLS[name](x, client)

        def handled(x: Any, client: Any = client) -> Any:
            return CALLS[name](rebind.wrap(x), client).unwrap()

        for call in (plain, handled):
            laws.check_derivatives(call, [x], rng, order=1)
            laws.check_batch(call, [x], rng)
            laws.check_jit(call, [x])


def test_einsum_and_conversion() -> None:
    """einops.einsum and asnumpy."""
    x = xp.asarray(X)
    laws.same(einops.einsum(x, x, "b h w, b h v -> b w v"), np.einsum("bhw,bhv->bwv", X, X))
    assert np.array_equal(einops.asnumpy(x), X)
    gradient = ft.grad(lambda x: xp.sum(einops.einsum(x, x, "b h w, b h w -> b")))(x)
    laws.close(gradient, 2 * X)
