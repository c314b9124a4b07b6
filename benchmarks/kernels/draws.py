"""Random numbers, in GB/s of what comes out. JAX's threads share one core."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import attrs
import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.kernels.irregular import ORDERS, SIZES, TURNS
from benchmarks.kernels.row import Row
from benchmarks.peers import jax_of_one_thread, optional

TITLE = "random numbers, one thread [GB/s]"


def rows(sizes: tuple[int, ...] = SIZES) -> Iterator[Row]:
    """Every row."""
    for n in sizes:
        for kind in (_random, _chosen, _parametric):
            for row in kind(n):
                yield attrs.evolve(row, rounds=TURNS.get(n, row.rounds))
    yield _folded()


def _random(n: int) -> Iterator[Row]:
    torch, jax = optional("torch"), jax_of_one_thread()
    generator = np.random.default_rng(0)
    drawn = {"uniform": generator.random, "normal": generator.standard_normal}
    for name in drawn:
        for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
            peers: dict[str, Callable[[], object]] = {"numpy": partial(drawn[name], n, dtype)}
            if torch is not None:
                theirs = {"uniform": torch.rand, "normal": torch.randn}[name]
                peers["torch"] = partial(theirs, n, dtype=getattr(torch, dtype.name))
            if jax is not None:
                jax.config.update("jax_enable_x64", True)
                f = jax.jit(partial(getattr(jax.random, name), shape=(n,), dtype=dtype))
                peers["jax"] = partial(_finished, jax, f, jax.random.key(1))
            ours = partial(getattr(ft.random, name), ft.random.key(1), (n,), dtype)
            yield Row(f"random.{name}, {dtype}, {n:,}", n * dtype.itemsize, ours, peers)

    whole: dict[str, Callable[[], object]] = {"numpy": partial(generator.integers, 100, size=n)}
    if torch is not None:
        whole["torch"] = partial(torch.randint, 100, (n,))
    ours = partial(ft.random.randint, ft.random.key(1), (n,), 0, 100)
    yield Row(f"random.randint, {n:,}", 8 * n, ours, whole)
    orders: dict[str, Callable[[], object]] = {"numpy": partial(generator.permutation, n)}
    if torch is not None:
        orders["torch"] = partial(torch.randperm, n)
    keys = itertools.cycle(ft.random.split(ft.random.key(1), ORDERS))  # of one, branches are known
    yield Row(
        f"random.permutation, {n:,}", 8 * n, lambda: ft.random.permutation(next(keys), n), orders
    )
    numbers = xp.arange(n)
    folded: dict[str, Callable[[], object]] = {}
    if jax is not None:
        many = jax.vmap(jax.random.fold_in, (None, 0))
        fold = jax.jit(lambda key: many(key, np.arange(n)))
        folded["jax"] = partial(_finished, jax, fold, jax.random.key(1))
    ours = partial(ft.random.fold_in, ft.random.key(1), numbers)
    yield Row(f"random.fold_in, {n:,}", 16 * n, ours, folded)


def _chosen(n: int) -> Iterator[Row]:
    """A tenth of a population, elements with weights, and others that are not made by one op."""
    torch, key, generator = optional("torch"), ft.random.key(1), np.random.default_rng(0)
    few, weights = n // 10, np.full(100, 0.01)
    w, chances = xp.asarray(weights), xp.asarray(generator.random(n))
    calls: dict[str, tuple[int, Callable[[], object], dict[str, Callable[[], object]]]] = {
        "choice of a tenth": (
            8 * few, lambda: ft.random.choice(key, n, (few,), replace=False),
            {"numpy": lambda: generator.choice(n, few, replace=False)},
        ),
        "choice of 100 with weights": (
            8 * n, lambda: ft.random.choice(key, 100, (n,), p=w),
            {"numpy": lambda: generator.choice(100, n, p=weights)},
        ),
        "laplace": (
            8 * n, lambda: ft.random.laplace(key, (n,)),
            {"numpy": lambda: generator.laplace(size=n)},
        ),
        "gumbel": (
            8 * n, lambda: ft.random.gumbel(key, (n,)), {"numpy": lambda: generator.gumbel(size=n)},
        ),
        "bernoulli of chances": (n, lambda: ft.random.bernoulli(key, chances), {}),
        "uniform, float16": (2 * n, lambda: ft.random.uniform(key, (n,), xp.float16), {}),
        "uniform between, float32": (
            4 * n, lambda: ft.random.uniform(key, (n,), xp.float32, -0.1, 0.1), {},
        ),
        "randint, int8": (
            n, lambda: ft.random.randint(key, (n,), 0, 100, xp.int8),
            {"numpy": lambda: generator.integers(0, 100, n, np.int8)},
        ),
    }  # fmt: skip
    if torch is not None:
        p, room = torch.from_numpy(np.asarray(chances)), torch.empty(n)
        kept = torch.from_numpy(weights)
        for name, call in {
            "choice of a tenth": lambda: torch.randperm(n)[:few],
            "choice of 100 with weights": lambda: torch.multinomial(kept, n, True),
            "laplace": torch.distributions.Laplace(torch.zeros(n), torch.ones(n)).sample,
            "bernoulli of chances": lambda: torch.bernoulli(p),
            "uniform, float16": lambda: torch.rand(n, dtype=torch.float16),
            "uniform between, float32": lambda: room.uniform_(-0.1, 0.1),
            "randint, int8": lambda: torch.randint(100, (n,), dtype=torch.int8),
        }.items():
            calls[name][2]["torch"] = call
    for name, (moved, ours, peers) in calls.items():
        yield Row(f"random.{name}, {n:,}", moved, ours, peers)


def _folded() -> Row:
    """The key of one step."""
    jax = jax_of_one_thread()
    peers: dict[str, Callable[[], object]] = {}
    if jax is not None:
        fold = partial(jax.random.fold_in, data=3)
        peers["jax"] = partial(_finished, jax, fold, jax.random.key(1))
    ours = partial(ft.random.fold_in, ft.random.key(1), 3)
    return Row("random.fold_in, one number", 16, ours, peers)


PARAMETRIC: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("gamma", (0.5,)), ("gamma", (3.0,)), ("beta", (0.5, 0.5)), ("beta", (2.0, 3.0)),
    ("poisson", (2.0,)), ("poisson", (50.0,)), ("dirichlet", (0.7,) * 4),
)  # fmt: skip


def _parametric(n: int) -> Iterator[Row]:
    torch, jax = optional("torch"), jax_of_one_thread()
    generator, key = np.random.default_rng(0), ft.random.key(1)
    of_torch = {"gamma": "_standard_gamma", "poisson": "poisson", "dirichlet": "_sample_dirichlet"}
    for name, of in PARAMETRIC:
        points = name == "dirichlet"
        shape = n // len(of) if points else n
        given: tuple[Any, ...] = (np.asarray(of),) if points else of
        peers: dict[str, Callable[[], object]] = {
            "numpy": partial(getattr(generator, name), *given, size=shape)
        }
        if torch is not None and name in of_torch:
            full = (shape, len(of)) if points else (n,)
            parameters = torch.tensor(of, dtype=torch.float64).expand(full).contiguous()
            peers["torch"] = partial(getattr(torch, of_torch[name]), parameters)
        if jax is not None:
            f = jax.jit(partial(getattr(jax.random, name), shape=(shape,)))
            peers["jax"] = partial(
                _finished, jax, lambda k, f=f, a=given: f(k, *a), jax.random.key(1)
            )
        ours = partial(getattr(ft.random, name), key, *map(xp.asarray, given), (shape,))
        yield Row(f"random.{name} {of}, {n:,}", n * 8, ours, peers)


def _finished(jax: Any, f: Any, key: Any) -> Any:
    return jax.block_until_ready(f(key))
