"""Planes taken flat: where elements go, what the offsets of taps are, and jobs for the loops."""

from __future__ import annotations

import functools
import itertools
from math import prod
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funct.kernels.cpu.plane_copies import PIECE
from funct.kernels.cpu.plane_loops import JOB, LINES, SHARED_TAPS, VECTORS, WEIGHT
from funct.kernels.cpu.record import Fields, address

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Geometry", "Plan", "planes_plan", "weights_plan"]

Three = tuple[int, int, int]

_GROUP_BYTES = 16 << 10  # half of the first-level cache


@attrs.frozen(cache_hash=True)
class Geometry:
    """size: of the plane that is read. out: of what is written, *T. All with three axes."""

    size: Three
    out: Three
    kernel: Three
    stride: Three
    low: Three
    dilation: Three


@attrs.frozen(eq=False)
class Flat:
    """The flat plane: pieces to copy, its pitches, its words, offsets of the taps."""

    pieces: NDArray[np.int64]
    pitches: tuple[int, int]
    words: int
    offsets: list[int]
    length: int  # of the result, flat


def _dealt(geo: Geometry) -> Flat:
    """Of a convolution: one plane per residue."""
    shifts = [
        [k * d // s for k in range(n)] for n, s, d in zip(geo.kernel, geo.stride, geo.dilation)
    ]
    extent = [t + max(sh) for t, sh in zip(geo.out, shifts)]
    pitches = (extent[1] * extent[2], extent[2])
    plane = prod(extent)
    strides = (geo.size[1] * geo.size[2], geo.size[2], 1)
    pieces = []
    for number, residues in enumerate(itertools.product(*[range(s) for s in geo.stride])):
        ranges = []
        for n, e, s, low, r in zip(geo.size, extent, geo.stride, geo.low, residues):
            first = max(0, -(-(low - r) // s))
            stop = min(e, (n - 1 + low - r) // s + 1)
            ranges.append((first, max(0, stop - first), first * s + r - low))
        if all(c for _, c, _ in ranges):
            to = number * plane + sum([f * p for (f, _, _), p in zip(ranges, (*pitches, 1))])
            pieces.append([
                *[c for _, c, _ in ranges],
                sum([i * p for (_, _, i), p in zip(ranges, strides)]),
                *[s * p for s, p in zip(geo.stride, strides)], to, *pitches, 1,
            ])  # fmt: skip
    offsets = []
    for taps in itertools.product(*[range(n) for n in geo.kernel]):
        number, at = 0, 0
        for k, s, d, p in zip(taps, geo.stride, geo.dilation, (*pitches, 1)):
            number = number * s + k * d % s
            at += k * d // s * p
        offsets.append(number * plane + at)
    return _flat(geo, pieces, pitches, plane * prod(geo.stride), offsets)


def _inserted(geo: Geometry) -> Flat:
    """Of the adjoint, which reads g with zeros in between and the taps backwards."""
    reach = [d * (k - 1) for d, k in zip(geo.dilation, geo.kernel)]
    extent = [t + r for t, r in zip(geo.out, reach)]
    pitches = (extent[1] * extent[2], extent[2])
    strides = (geo.size[1] * geo.size[2], geo.size[2], 1)
    ranges = []
    for n, e, s, low, r in zip(geo.size, extent, geo.stride, geo.low, reach):
        first = max(0, -((r - low) // s))  # the first element that lies in the plane
        stop = min(n, (e - 1 - (r - low)) // s + 1)
        ranges.append((first, max(0, stop - first), first * s + r - low))
    piece = [
        *[c for _, c, _ in ranges], sum([f * p for (f, _, _), p in zip(ranges, strides)]), *strides,
        sum([i * p for (_, _, i), p in zip(ranges, (*pitches, 1))]),
        *[s * p for s, p in zip(geo.stride, (*pitches, 1))],
    ]  # fmt: skip
    offsets = [
        sum([k * d * p for k, d, p in zip(taps, geo.dilation, (*pitches, 1))])
        for taps in itertools.product(*[range(n) for n in geo.kernel])
    ]
    return _flat(geo, [piece], pitches, prod(extent), offsets)


def _flat(
    geo: Geometry,
    pieces: list[list[int]],
    pitches: tuple[int, int],
    words: int,
    offsets: list[int],
) -> Flat:
    length = (geo.out[0] - 1) * pitches[0] + (geo.out[1] - 1) * pitches[1] + geo.out[2]
    table = np.array(pieces, np.int64).reshape(-1, len(PIECE))
    return Flat(table, pitches, words, offsets, length)


def _lines(words: int, lanes: int) -> int:
    """Words for so many, and for the vectors that reach beyond, in whole lines."""
    return -(-(words + (VECTORS + 1) * lanes) // 16) * 16


@attrs.frozen(eq=False)
class Plan:
    """job: all but addresses and how often. tables: what it points to."""

    job: NDArray[np.int64]
    scratch_words: int
    tables: tuple[NDArray[np.int64], ...]


def _line_fields(geo: Geometry, flat: Flat, inserted: bool) -> tuple[dict[str, int], Any]:
    """The fields of Note [Lines]; 0 shared taps where it does not apply."""
    along = 0 if geo.out[1] == geo.kernel[1] == 1 else 1
    taps = geo.kernel[along]
    steps = [prod(geo.kernel[k + 1 :]) for k in range(3)]
    fits = (
        taps in SHARED_TAPS
        and geo.out[along] >= LINES
        and geo.dilation[along] == 1
        and (inserted or geo.stride[along] == 1)
    )
    last = len(flat.offsets) - 1
    columns = np.array([
        (flat.offsets[k], last - k if inserted else k)
        for k in range(len(flat.offsets)) if k // steps[along] % taps == 0
    ])  # fmt: skip
    return {
        "shared_taps": taps if fits else 0, "blocks": geo.out[0] if along else 1,
        "block_pitch": flat.pitches[0], "lines": geo.out[along], "line_pitch": flat.pitches[along],
        "line_step": -steps[along] if inserted else steps[along], "columns": address(columns),
        "n_columns": len(columns),
    }, columns  # fmt: skip


@functools.lru_cache(256)
def planes_plan(geo: Geometry, inserted: bool, terms: int, lanes: int, word: int) -> Plan:
    """Of a convolution, or, inserted, its adjoint in x, which sums so many terms."""
    flat = (_inserted if inserted else _dealt)(geo)
    order = range(len(flat.offsets))
    taps = np.array([flat.offsets, order[::-1] if inserted else order]).T.copy()
    lines, columns = _line_fields(geo, flat, inserted)
    if terms > 1:
        lines["shared_taps"] = 0  # what is written twice cannot be added to
    direct = lines["shared_taps"] > 0 and geo.out[2] >= 2 * lanes
    beyond = 2 * lanes  # of the last line
    plane, sums = (_lines(n + beyond, lanes) for n in (flat.words, flat.length))
    group = max(1, _GROUP_BYTES // ((plane + sums) * word))
    fields = {
        "pieces": address(flat.pieces), "n_pieces": len(flat.pieces), "flat": 0,
        "plane_words": prod(geo.size), "flat_bytes": group * plane * word, "group": group,
        "flat_words": plane, "sums": group * plane, "sum_words": sums,
        "scratch_step": group * (plane + sums), "taps": address(taps), "n_taps": len(taps),
        "length": flat.length, "rows0": geo.out[0], "rows1": geo.out[1], "row": geo.out[2],
        "pitch0": flat.pitches[0], "pitch1": flat.pitches[1], "result_words": prod(geo.out),
        "direct": int(direct), **lines,
    }  # fmt: skip
    return Plan(_filled(JOB, fields), fields["scratch_step"], (flat.pieces, taps, columns))


@functools.lru_cache(256)
def weights_plan(geo: Geometry, lanes: int, word: int) -> Plan:
    """Of the adjoint in w."""
    flat = _dealt(geo)
    taps = np.array([flat.offsets, range(len(flat.offsets))]).T.copy()
    plane, g_words = _lines(flat.words, lanes), _lines(flat.length, lanes)
    out = geo.out
    g_piece = np.array([*out, 0, out[1] * out[2], out[2], 1, 0, *flat.pitches, 1], np.int64)
    fields = {
        "pieces": address(flat.pieces), "n_pieces": len(flat.pieces), "flat": 0,
        "plane_words": prod(geo.size), "flat_bytes": plane * word, "g_flat": plane,
        "g_flat_bytes": g_words * word, "g_words": prod(out), "g_piece": address(g_piece),
        "sums": plane + g_words, "scratch_step": plane + g_words + _lines(len(taps) * lanes, lanes),
        "taps": address(taps), "n_taps": len(taps), "length": flat.length,
    }  # fmt: skip
    return Plan(_filled(WEIGHT, fields), fields["scratch_step"], (flat.pieces, taps, g_piece))


def _filled(names: Fields, known: dict[str, int]) -> NDArray[np.int64]:
    """A job whose other fields are 0."""
    return names.fill(**dict.fromkeys(names.names, 0) | known)
