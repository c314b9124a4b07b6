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
    for shape in ((4, 4), (3, 20, 20)):
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
    kinds = ((300, 100), "f4"), ((1000, 256), "c8"), ((65536,), "c8"), ((3750, 8), "f8")
    for shape, kind in kinds:
        lines = _normal(shape, 6).astype(kind)
        yield row_of(
            f"fft, {shape}, {lines.dtype}", (lines,), xp.fft.fft, numpy=scipy.fft.fft,
            torch=lambda t, v: t.fft.fft(v),
        )  # fmt: skip
    lines = _normal((1000, 1000), 6)
    yield row_of(
        f"rfft, {lines.shape}, {lines.dtype}", (lines,), xp.fft.rfft, numpy=scipy.fft.rfft,
        torch=lambda t, v: t.fft.rfft(v),
    )  # fmt: skip


def _cofactors(x: Any) -> Row:
    torch: Any = optional("torch")
    peers = {}
    if torch is not None:
        t = torch.from_numpy(x).requires_grad_()
        total = torch.linalg.det(t).sum()
        peers["torch"] = lambda: torch.autograd.grad(total, t, retain_graph=True)
    call = functools.partial(linalg.cofactor, x)
    return Row(f"gradient of det {x.shape}, {x.dtype}", 2 * x.size * 6, call, peers, "f32")
