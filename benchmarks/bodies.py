"""Ops in bodies of compiled loops, a step each, next to JAX's, in float32 where not said."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.peers import optional
from benchmarks.timing import minima, table

RNG = np.random.default_rng(0)
KEYS, HEADS, DEPTH = 128, 4, 32

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def _numbers(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


ROWS = _numbers(3, KEYS, HEADS, DEPTH)
ENTRIES = 8000
PLACES = np.sort(RNG.integers(0, 1000, ENTRIES)), RNG.integers(0, 1000, ENTRIES)
BESIDE = np.eye(64, dtype=np.float32), _numbers(64, 64) * 0.05
CODES = RNG.integers(-127, 128, (512, 512)).astype(np.int8)
GIVEN, WEIGHTS = _numbers(100, 8, 32), _numbers(32, 32) * 0.1
PIXELS, TAPS = _numbers(1, 32, 14, 14), _numbers(32, 32, 3, 3) * 0.05


def programs(ns: Any, control: Any, ops: Any) -> dict[str, Program]:
    """Each row's function and arguments. control: where scan is. ops: a library's own functions."""

    def decoder(q: Any, k: Any, v: Any) -> Any:
        none = ns.zeros((KEYS, HEADS, DEPTH), dtype=ns.float32)

        def step(s: Any, row: Any) -> Any:
            (keys, values, t), (q, k, v) = s, row
            keys, values = keys.at[t].set(k), values.at[t].set(v)
            seen = (ns.arange(KEYS) <= t)[None, None]
            return (keys, values, t + 1), ops.attention(q[None], keys, values, seen)

        return control.scan(step, (none, none, 0), (q, k, v))[1]

    def network(x: Any, w: Any) -> Any:
        step = lambda x, _: (ns.tanh(ops.convolution(x, w)), None)  # noqa: E731
        return control.scan(step, x, None, length=100)[0]

    def power(data: Any, x: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            y = ops.sparse(data, x)
            return y / ns.max(ns.abs(y)), None

        return control.scan(step, x, None, length=100)[0]

    def roots(s: Any, a: Any) -> Any:
        def step(s: Any, _: Any) -> Any:
            r = ns.linalg.qr(ns.concat([s @ a.mT, 0.1 * ns.eye(64, dtype=s.dtype)]))[1]
            return r, r[0, 0]

        return control.scan(step, s, None, length=100)

    def quantized(x: Any, w: Any) -> Any:
        step = lambda x, _: (ops.few_bits(x, w), None)  # noqa: E731
        return control.scan(step, x, None, length=100)[0]

    def recurrent(x: Any, w: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = ns.tanh(h @ w + x)
            return h, h

        return control.scan(step, ns.zeros_like(x[0]), x)[1]

    def in_halves(dtype: Any) -> Program:
        return recurrent, tuple([ns.asarray(v, dtype=dtype) for v in (GIVEN, WEIGHTS)])

    return {
        "recurrent layer in float16, 100 steps, 8 x 32": in_halves(ns.float16),
        "recurrent layer in bfloat16, 100 steps, 8 x 32": in_halves(ns.bfloat16),
        "decoder, 128 steps, 4 heads of 32": (decoder, tuple(map(ns.asarray, ROWS))),
        "convolution, 100 steps, 32 channels of 14 x 14": (
            network, (ns.asarray(PIXELS), ns.asarray(TAPS)),
        ),
        "power iteration, 100 steps, 8,000 entries of 1,000 x 1,000": (
            power, (ns.asarray(_numbers(ENTRIES)), ns.ones(1000, dtype=ns.float32)),
        ),
        "8-bit weights, 100 steps, 512 features": (
            quantized, (ns.asarray(_numbers(1, 512)), ns.asarray(CODES)),
        ),
        "square-root filter by QR, 100 steps, 64 x 64": (roots, tuple(map(ns.asarray, BESIDE))),
    }  # fmt: skip


class _Funct:
    """Functions of this library. Queries, keys and values have their heads behind the time."""

    @staticmethod
    def attention(q: Any, k: Any, v: Any, seen: Any) -> Any:
        q, k, v = (xp.permute_dims(x, (1, 0, 2)) for x in (q, k, v))
        return ft.nn.functional.scaled_dot_product_attention(q, k, v, seen)

    @staticmethod
    def convolution(x: Any, w: Any) -> Any:
        return ft.nn.functional.conv2d(x, w, padding=1)

    @staticmethod
    def sparse(data: Any, x: Any) -> Any:
        starts = np.searchsorted(PLACES[0], np.arange(1001)).astype(np.int32)
        return ft.interop.CSR(data, PLACES[1].astype(np.int32), starts, (1000, 1000)) @ x

    @staticmethod
    def few_bits(x: Any, w: Any) -> Any:
        scale = xp.full((512, 1), 1 / 512, dtype=xp.float32)
        return xp.tanh(ft.ops.weight_only_linear(x, w, scale))


def _jax(jax: Any) -> Any:
    from jax.experimental import sparse as of_jax

    class Functions:
        @staticmethod
        def attention(q: Any, k: Any, v: Any, seen: Any) -> Any:
            return jax.nn.dot_product_attention(q, k, v, mask=seen)

        @staticmethod
        def convolution(x: Any, w: Any) -> Any:
            return jax.lax.conv(x, w, (1, 1), "SAME")

        @staticmethod
        def sparse(data: Any, x: Any) -> Any:
            places = jax.numpy.stack(list(map(jax.numpy.asarray, PLACES)), 1)
            how = {"shape": (1000, 1000), "indices_sorted": True}
            return of_jax.BCOO((data, places), **how) @ x

        @staticmethod
        def few_bits(x: Any, w: Any) -> Any:
            return jax.numpy.tanh(x @ (w.astype(x.dtype) / 512).T)

    return Functions


def _waiting(jax: Any, fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], object]:
    return lambda: jax.block_until_ready(fun(*args))


def run() -> str:
    """Measure everything; the table."""
    rows: dict[str, dict[str, Callable[[], object]]] = {}
    for label, (fun, args) in programs(xp, ft, _Funct).items():
        rows[label] = {"funct": partial(ft.jit(fun), *args)}
    jax = optional("jax")
    if jax is not None:
        for label, (fun, args) in programs(jax.numpy, jax.lax, _jax(jax)).items():
            rows[label]["jax"] = _waiting(jax, jax.jit(fun), args)
    return table("bodies", {label: minima(c, rounds=8) for label, c in rows.items()})
