"""Factors, inverses and products of stacks of small matrices and vectors, in G operations/s;
Fourier transforms of many lines, in GB/s.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg

import funct as ft
import funct.array as xp
from benchmarks.kernels.irregular import row_of
from benchmarks.kernels.row import Row
from benchmarks.peers import optional
from funct.kernels.linalg import matrices as linalg

TITLE = "stacks of small matrices, and of lines, one thread"


def _normal(shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def rows() -> Iterator[Row]:
    """Every row: vectors known up to a phase are turned, cofactors found."""
    torch: Any = optional("torch")
    x = _normal((1000, 8, 8), 0) + 1j * _normal((1000, 8, 8), 1)
    points = x[:, :3, :3].astype(np.complex128)
    lengths = points.real.copy()
    more = _normal((20, 32, 32), 4) + 1j * _normal((20, 32, 32), 5)
    wide, real = x[:, :5].copy(), _normal((1000, 6, 6), 2)
    kinds: dict[str, tuple[Any, Callable[[Any], Any], Any, str]] = {
        "eigh": (x, linalg.eigh, np.linalg.eigh, "linalg.eigh"),
        "eigh of more rows": (more, linalg.eigh, np.linalg.eigh, "linalg.eigh"),
        "eigh of real ones": (real, linalg.eigh, np.linalg.eigh, "linalg.eigh"),
        "eigh of points": (points, linalg.eigh, np.linalg.eigh, "linalg.eigh"),
        "eigvalsh of points": (lengths, linalg.eigvalsh, np.linalg.eigvalsh, "linalg.eigvalsh"),
        "eigvalsh of more rows": (more.real.copy(), linalg.eigvalsh, np.linalg.eigvalsh,
                                  "linalg.eigvalsh"),
        "svd": (wide, lambda v: linalg.svd(v, True), np.linalg.svd, "linalg.svd"),
        "svdvals": (real, linalg.svdvals, np.linalg.svdvals, "linalg.svdvals"),
        "inv of complex ones": (x, linalg.inv, np.linalg.inv, "linalg.inv"),
        "det of complex ones": (wide[:, :, :5].copy(), linalg.det, np.linalg.det, "linalg.det"),
        "cholesky of complex ones": (x @ np.conj(x.mT) + np.eye(8, dtype=x.dtype), linalg.cholesky,
                                     np.linalg.cholesky, "linalg.cholesky"),
        "lu of complex ones": (wide, linalg.lu, scipy.linalg.lu, "linalg.lu"),
        "qr of complex ones": (wide, lambda v: linalg.qr(v, False), np.linalg.qr, "linalg.qr"),
    }  # fmt: skip
    many, long = (_normal(s, 3).astype(np.float64) for s in ((10000, 5, 5), (100, 24, 24)))
    kinds |= {
        "det": (many, linalg.det, np.linalg.det, "linalg.det"),
        "inv": (many, linalg.inv, np.linalg.inv, "linalg.inv"),
        "cholesky": (many @ many.mT + np.eye(5), linalg.cholesky, np.linalg.cholesky,
                     "linalg.cholesky"),
        "qr": (many, lambda v: linalg.qr(v, False), np.linalg.qr, "linalg.qr"),
        "lu": (many, linalg.lu, scipy.linalg.lu, "linalg.lu"),
        "lu of more rows": (more.real.copy(), linalg.lu, scipy.linalg.lu, "linalg.lu"),
        "det of more rows": (long, linalg.det, np.linalg.det, "linalg.det"),
        "inv of more rows": (long, linalg.inv, np.linalg.inv, "linalg.inv"),
        "qr of more rows": (long, lambda v: linalg.qr(v, False), np.linalg.qr, "linalg.qr"),
        "svd of more rows": (long, lambda v: linalg.svd(v, False), np.linalg.svd, "linalg.svd"),
        "lu of few": (many[:10], linalg.lu, scipy.linalg.lu, "linalg.lu"),
        "qr of few": (many[:10], lambda v: linalg.qr(v, False), np.linalg.qr, "linalg.qr"),
        "det of few": (many[:10], linalg.det, np.linalg.det, "linalg.det"),
    }  # fmt: skip
    for rows in (4, 64):
        one = _normal((rows, rows), 7).astype(np.float64)
        kinds |= {
            f"det of {rows} rows": (one, linalg.det, np.linalg.det, "linalg.det"),
            f"slogdet of {rows} rows": (one, linalg.slogdet, np.linalg.slogdet, "linalg.slogdet"),
            f"inv of {rows} rows": (one, linalg.inv, np.linalg.inv, "linalg.inv"),
            f"lu of {rows} rows": (one, linalg.lu, scipy.linalg.lu, "linalg.lu"),
            f"qr of {rows} rows": (one, lambda v: linalg.qr(v, False), np.linalg.qr, "linalg.qr"),
            f"cholesky of {rows} rows": (one @ one.mT + np.eye(rows), linalg.cholesky,
                                         np.linalg.cholesky, "linalg.cholesky"),
            f"eigh of {rows} rows": (one, linalg.eigh, np.linalg.eigh, "linalg.eigh"),
            f"svd of {rows} rows": (one, lambda v: linalg.svd(v, True), np.linalg.svd,
                                    "linalg.svd"),
        }  # fmt: skip
    few = x[0, :4, :4].copy()
    kinds |= {
        "qr of one complex matrix": (few, lambda v: linalg.qr(v, False), np.linalg.qr,
                                     "linalg.qr"),
        "qr of one larger complex matrix": (_normal((64, 64), 7) + 1j * _normal((64, 64), 8),
                                            lambda v: linalg.qr(v, False), np.linalg.qr,
                                            "linalg.qr"),
        "lu of one complex matrix": (few, linalg.lu, scipy.linalg.lu, "linalg.lu"),
    }  # fmt: skip
    for name, (v, ours, theirs, known) in kinds.items():
        peers: dict[str, Any] = {"numpy": functools.partial(theirs, v)}
        if torch is not None:
            of = functools.reduce(getattr, known.split("."), torch)
            peers["torch"] = functools.partial(of, torch.from_numpy(v))
        work = 8 * v.size * v.shape[-1]
        yield Row(f"{name} {v.shape}, {v.dtype}", work, functools.partial(ours, v), peers, "f32")
    for rows, sides in ((4, 1), (64, 64)):
        system, right = _normal((rows, rows), 8), _normal((rows, sides), 9)
        yield row_of(
            f"solve of {rows} rows, {sides} sides", (system, right), xp.linalg.solve,
            numpy=np.linalg.solve, torch=lambda t, a, b: t.linalg.solve(a, b),
        )  # fmt: skip
    for rows in (4, 16):
        factor = _normal((rows, rows), 10)
        yield row_of(
            f"kron, {factor.shape} {factor.shape}", (factor, factor), xp.kron, numpy=np.kron,
            torch=lambda t, a, b: t.kron(a, b),
        )  # fmt: skip
    yield row_of(
        f"trace, {factor.shape}", (factor,), xp.linalg.trace, numpy=np.trace,
        torch=lambda t, a: t.trace(a),
    )  # fmt: skip
    vector = _normal((256,), 10)
    yield row_of(
        f"outer, {vector.shape} {vector.shape}", (vector, vector), xp.linalg.outer,
        numpy=np.outer, torch=lambda t, v, w: t.outer(v, w),
    )  # fmt: skip
    for sizes in ((16, 16), (64, 64), (128, 32)):
        system = _normal(sizes, 8), _normal(sizes, 9)[:, :1].copy()
        yield row_of(
            f"lstsq, {sizes}", system, xp.linalg.lstsq, numpy=np.linalg.lstsq,
            torch=lambda t, a, b: t.linalg.lstsq(a, b, driver="gelsd"),  # singular values too
        )  # fmt: skip
    for some in ((5, 5), (64, 64), (50, 5, 5)):
        yield from _parts(_normal(some, 8))
    for shape in ((4, 4), (3, 20, 20), (128, 128)):
        triangle, right = np.tril(_normal(shape, 8)) + 9 * np.eye(shape[-1]), _normal(shape, 9)
        yield row_of(
            f"triangular systems {shape}", (triangle.astype(np.float32), right[..., :2].copy()),
            functools.partial(xp.linalg.solve_triangular, lower=True),
            torch=lambda t, a, b: t.linalg.solve_triangular(a, b, upper=False),
        )  # fmt: skip
    for x in (real, real.astype(np.float64)):
        yield _cofactors(x)
    vectors = _normal((30_000, 3), 5)
    yield row_of(
        f"cross, {vectors.shape}", (vectors, vectors), xp.linalg.cross, numpy=np.linalg.cross,
        torch=lambda t, v, w: t.linalg.cross(v, w),
    )  # fmt: skip
    kinds = (
        ((300, 100), "f4"), ((1000, 256), "c8"), ((65536,), "c8"), ((4096, 64), "c8"),
        ((3750, 8), "f8"), ((65536, 4), "c8"), ((1000, 17), "c8"), ((30, 32), "c16"),
    )  # fmt: skip
    for shape, kind in kinds:
        lines = _normal(shape, 6).astype(kind)
        yield row_of(
            f"fft, {shape}, {lines.dtype}", (lines,), xp.fft.fft, numpy=scipy.fft.fft,
            torch=lambda t, v: t.fft.fft(v),
        )  # fmt: skip
    for shape in ((1000, 1000), (100, 101), (1000, 256), (20, 60)):
        lines = _normal(shape, 6)
        yield row_of(
            f"rfft, {lines.shape}, {lines.dtype}", (lines,), xp.fft.rfft, numpy=scipy.fft.rfft,
            torch=lambda t, v: t.fft.rfft(v),
        )  # fmt: skip


def _parts(x: Any) -> Iterator[Row]:
    """Gradients of values alone, of which the vectors that come with them have no part."""
    even = x + x.mT
    ours = {
        "w of eigh": (even, lambda v: xp.sum(xp.linalg.eigh(v)[0] ** 2)),
        "S of svd": (x, lambda v: xp.sum(xp.linalg.svd(v, full_matrices=False)[1] ** 2)),
        "R of qr": (x, lambda v: xp.sum(xp.linalg.qr(v)[1] ** 2)),
        "lengths of vectors": (x, lambda v: xp.sum(xp.linalg.vector_norm(v, axis=-1))),
    }
    theirs: dict[str, Callable[[Any, Any], Any]] = {
        "w of eigh": lambda t, v: (t.linalg.eigh(v)[0] ** 2).sum(),
        "S of svd": lambda t, v: (t.linalg.svd(v, full_matrices=False)[1] ** 2).sum(),
        "R of qr": lambda t, v: (t.linalg.qr(v)[1] ** 2).sum(),
        "lengths of vectors": lambda t, v: t.linalg.vector_norm(v, dim=-1).sum(),
    }
    for name, (v, fun) in ours.items():
        yield row_of(
            f"gradient of {name} {x.shape}", (v,), ft.grad(fun), torch=_slopes(theirs[name])
        )


def _slopes(value: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """torch's gradient of a number."""

    def gradient(t: Any, x: Any) -> Any:
        x = x.detach().requires_grad_()
        return t.autograd.grad(value(t, x), x)[0]

    return gradient


def _cofactors(x: Any) -> Row:
    torch: Any = optional("torch")
    peers = {}
    if torch is not None:
        t = torch.from_numpy(x).requires_grad_()
        total = torch.linalg.det(t).sum()
        peers["torch"] = lambda: torch.autograd.grad(total, t, retain_graph=True)
    call = functools.partial(linalg.cofactor, x)
    return Row(f"gradient of det {x.shape}, {x.dtype}", 2 * x.size * 6, call, peers, "f32")
