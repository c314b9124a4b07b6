"""Convolution with one channel per group, and both of its adjoints, line by line (`lines.py`).

So are convolutions and adjoints to a few channels per group, which would fill few lanes of a tile.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from funct.device import Code, Host, host, printed
from funct.kernels.channels import lie_last
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.axes import Axis, Folded, countless, filled, folded
from funct.kernels.cpu.convolution.byte_lines import byte_planes_text, gathering
from funct.kernels.cpu.convolution.line_weights import WEIGHTS, sharing, sums, weights_text
from funct.kernels.cpu.convolution.lines import NEAR, PLANES, Ends, Pattern, planes_text
from funct.kernels.cpu.quantized.codes import BYTE, to_codes_fields
from funct.kernels.cpu.quantized.narrowing import TO_CODES
from funct.kernels.cpu.quantized.words import QUADS
from funct.kernels.cpu.record import address
from funct.kernels.cpu.runners import filling

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.quantized.affine import Codes
    from funct.kernels.windows.views import Sizes, Sliding

__all__ = [
    "Plan", "convolution", "convolution_input", "convolution_of_codes", "convolution_weight",
    "entry", "planes", "weight_planes", "weights_of_codes",
]  # fmt: skip

_ELEMENT = {"float32": "f32", "float64": "f64", "int32": "i32"}  # i32: words of bytes
_TASKS = 4  # per core
_SUMS = 8  # registers: enough for two units of latency 4, beside weights and what is read
_SHARED_TAPS = 1 << 10  # of outputs at a time: more are too much code
_ALONE = 1 << 20  # products that are no work for threads
_WORD_SUMS = 14  # of 32 registers: words have few weights, and each line that is read is permuted
_NARROWEST = 32  # bytes of a vector
_SMALL = 256  # pixels of an image, of whose lines as many as fill a vector's lanes are summed
_SMALL_TAPS = 64  # of these: more are too much code
_PHASES = 64  # of an adjoint; texts grow with them
_FEW_OUTPUTS = 2  # leave most of the lanes of tiles empty
_SHORT = 32  # bytes of a vector, with which tiles are never very empty,
_PRODUCTS = 16  # of each tap: signals, of which a strip is one chain of sums, do better in them;
# and the second-level cache is small:
_AFAR = 4 << 20  # bytes that all outputs of a group read of an image are from afar, by lines
_FEW_BYTES, _SHARE = 8 << 10, 3  # of an image of one channel; of the caches, that all images fill
_LANES, _SHORT_LINE = 8, 16  # outputs that fill them, better than so many pixels do;
_SOME_TAPS = 9  # or twice as many longer ones, if so many would take two loads and a shuffle each
_MANY_TERMS = 16  # channels; tiles are as quick with a quarter of those pixels, where they lie
_SHUFFLED = 4  # elements apart that several outputs of a channel take of whole vectors
_NARROW = 4  # pixels of a line; of narrower ones too many lanes are empty


class Plan(Struct, frozen=True, eq=False):
    """What is known of shapes.

    pattern: what the machine code of that name is printed for. job: all but addresses of arrays;
    missing: where they go in it. shape: of the result. sums: bytes of those kept in memory. room:
    so far vectors reach beyond a line. kept: elements of either end of x that are copied. tables:
    what the job points to.
    """

    name: str
    pattern: Pattern
    job: NDArray[np.int64]
    missing: Sizes
    shape: Sizes
    sums: int
    room: int
    kept: int
    tables: tuple[NDArray[Any], ...]


class Coded(Struct, frozen=True, cache_hash=True):
    """What x and the result are where they are codes; the zero point is that of x."""

    read: np.dtype[Any]
    zero_point: int
    written: np.dtype[Any]


@functools.lru_cache(512)
def planes(
    dtype: np.dtype[Any], x: Sizes, w: Sizes, slide: Sliding, size: Sizes | None,
    coded: Coded | None = None,
) -> Plan | None:  # fmt: skip
    """The plan of a convolution of x, or of its adjoint to images of that size.

    dtype: what is computed with.
    """
    groups, adjoint = slide.groups, size is not None
    out = slide.size(x[2:], w[2:]) if size is None else size
    if len(out) > 3 or min(*x, *w, *out) < 1 or (adjoint and countless(out, slide, _PHASES)):
        return None
    ours, theirs = w[0] // groups, w[1]  # outputs and channels of a group
    shared, terms = (theirs, ours) if adjoint else (ours, theirs)
    lanes = _lanes(dtype)
    small = terms <= lanes == shared and prod(out) <= _SMALL and prod(w[2:]) <= _SMALL_TAPS
    short = host().vector_bytes <= _SHORT
    small = small and max(slide.stride) == 1 and short
    # tiles of long vectors are quicker, and lines of no more pixels leave as many lanes empty
    most = lanes if short else min(lanes, _LANES + 1, out[-1])
    few = small or shared < most
    if theirs > 1 and not (few and prod(w[2:]) > 1 and out[-1] >= _NARROW):
        return None
    narrow = short and coded is None and theirs > 1
    signal = len(out) == max(slide.stride) == 1 and shared * terms >= _PRODUCTS
    if narrow and signal and shared > _FEW_OUTPUTS:
        return None
    if narrow and shared * terms * prod(x[2:]) * dtype.itemsize >= _AFAR:
        return None
    if not adjoint and (
        _gathers(groups, w[0], slide)
        or (coded is None and _fill_tiles(shared, slide, w[2:], out[-1]))
    ):
        return None
    outputs = shared * groups
    axes, kernel = filled(x[2:], out, w[2:], slide, adjoint)
    width = host().vector_bytes if coded else _width(dtype, axes[2])
    lanes = width // dtype.itemsize
    pattern = _pattern(dtype, axes, kernel, _ends(axes, lanes), terms > 1, width)
    if coded is None and terms > 1:
        products = x[0] * max(prod(x[2:]), prod(out)) * terms * outputs * prod(kernel)
        pattern = _sharing(pattern, axes, shared, x[0] * outputs, products)
    units = x[0] * outputs // pattern.sharing
    given = {
        "tasks": min(units, _TASKS * host().cores), "units": units, "outputs": outputs,
        "terms": terms, "shared": shared, "row_unit": 1 if adjoint else terms,
        "row_step": shared if adjoint else 1, "w": 0, "y": 0, "x_zero": 0, "order": 0,
        **dict.fromkeys(TO_CODES, 0),
    }  # fmt: skip
    if coded is None:
        aligned = pattern.ends == "overlap" and out[-1] % lanes == 0
        touched = (prod(x) + x[0] * outputs * prod(out)) * dtype.itemsize
        pattern = replace(pattern, streams=aligned and host().overflows(touched))
        return _filled(dtype, pattern, axes, x, (x[0], outputs, *out), given)
    if pattern.element == "i32":
        along, way = [o for _, o in pattern.phases[2][0]], gathering(host())
        if way is None or not way.known(along, pattern.strides[2], lanes):
            return None
    pattern = replace(pattern, codes=(BYTE[coded.read], BYTE[coded.written]))
    given["x_zero"] = coded.zero_point
    return _filled(dtype, pattern, axes, x, (x[0], outputs, *out), given, coded)


@functools.lru_cache(512)
def weight_planes(
    dtype: np.dtype[Any], x: Sizes, g: Sizes, slide: Sliding, size: Sizes
) -> Plan | None:
    """The plan of the adjoint in w."""
    outputs, groups = g[1], slide.groups
    if x[1] != groups or len(size) > 3 or min(*x, *g, *size) < 1:
        return None
    shared = outputs // groups
    spread = len(size) == 1 < slide.dilation[0]
    fills = _fill_tiles(shared, slide, size, g[-1]) or _long_walk(shared, slide, size)
    if _gathers(groups, outputs, slide) or (fills and not spread):
        return None
    axes, kernel = filled(x[2:], g[2:], size, slide, False)
    width = _width(dtype, axes[2])
    fold = folded(axes, kernel, width // dtype.itemsize)
    if fold is not None:
        axes, kernel = fold.axes, fold.kernel
    pattern = _pattern(dtype, axes, kernel, "mask", False, width)
    together = sharing(shared, kernel[1:], width)
    height = min(2, pattern.height) if together == 1 else 1
    pixels = max(prod(x[2:]), prod(g[2:]))
    apart = x[0] > 1 and pixels * dtype.itemsize <= _FEW_BYTES
    touched = (prod(x) + prod(g)) * dtype.itemsize
    waits = together > 1 or (apart and _SHARE * touched >= host().cache_bytes)
    pattern = replace(pattern, height=height, sharing=together, waits=waits)
    units = groups * -(-shared // together)
    given = {
        "tasks": min(units, _TASKS * host().cores), "units": units, "outputs": outputs,
        "shared": shared, "images": x[0], "w": 0, "g": 0, "sums": 0,
    }  # fmt: skip
    return _filled(dtype, pattern, axes, x, (outputs, 1, *size), given, fold=fold)


def _gathers(groups: int, outputs: int, slide: Sliding) -> bool:
    """Whether pixels lie so far apart that taking them costs more than several outputs gain."""
    return slide.stride[-1] > _SHUFFLED and (groups == 1 or outputs > groups)


def _fill_tiles(shared: int, slide: Sliding, kernel: Sizes, line: int) -> bool:
    """Whether so many outputs share a channel that they fill vectors better than short lines do, or
    such that are gathered.
    """
    strided = max(slide.stride) > 1
    if host().vector_bytes <= _SHORT:
        return shared >= _LANES and (strided or line <= _SHORT_LINE)
    return shared >= 2 * _LANES and (line <= _LANES or (strided and prod(kernel) >= _SOME_TAPS))


def _long_walk(shared: int, slide: Sliding, kernel: Sizes) -> bool:
    """Whether the taps of the only channel, side by side, fill vectors of tiles, for many outputs,
    and are worth laying there.
    """
    many = slide.groups == 1 and shared >= 2 * _LANES and host().vector_bytes > _SHORT
    return many and max(slide.dilation) == 1 and prod(kernel) > max(_SOME_TAPS, 3 ** len(kernel))


def _lanes(dtype: np.dtype[Any]) -> int:
    return host().vector_bytes // dtype.itemsize


def _width(dtype: np.dtype[Any], line: Axis) -> int:
    """Bytes of vectors for such lines: half of the widest where a line leaves that half empty."""
    widest = host().vector_bytes
    half = widest // 2
    pixels = -(-line.out // line.step)
    return half if half >= _NARROWEST and pixels * dtype.itemsize <= half else widest


def _pattern(
    dtype: np.dtype[Any], axes: list[Axis], kernel: Sizes, ends: Ends, several: bool, width: int
) -> Pattern:
    sums = (_WORD_SUMS if dtype == np.int32 and width == 64 else _SUMS) // len(axes[2].phases)
    return Pattern(
        _ELEMENT[dtype.name], tuple([tuple([p.taps for p in a.phases]) for a in axes]),
        tuple([a.step for a in axes]), tuple([a.stride for a in axes]), kernel,
        _height([p.count for p in axes[1].phases], max(1, sums)), ends, several,
        vector_bytes=width,
    )  # fmt: skip


def _sharing(
    pattern: Pattern, axes: list[Axis], shared: int, planes: int, products: int
) -> Pattern:
    """The same with as many outputs of a group at a time as leave all cores a share of the planes,
    and the lines of a strip that suit them; see Note [Shared lines].
    """
    phases, taps = len(axes[2].phases), prod(pattern.kernel)
    lines = [p.count for p in axes[1].phases]
    registers = (1 if host().vector_bytes <= _SHORT else 2) * _SUMS
    least = phases * min(2, *lines)  # sums of an output
    planned = host().cores if products > _ALONE else 1
    n = max([
        n for n in range(1, shared + 1)
        if shared % n == 0 and n * least <= registers and n * taps <= _SHARED_TAPS
        and planes // n >= planned
    ], default=1)  # fmt: skip
    if n == 1:
        return pattern
    most = max(registers * 3 // 4, n * least) // (n * phases)
    return replace(pattern, sharing=n, height=_height(lines, max(1, most)))


def _height(counts: list[int], most: int) -> int:
    """So many lines that few are computed twice, and all sums fit into registers."""
    heights = range(min(most, *counts), 0, -1)
    return min(heights, key=lambda n: sum([-(-c // n) * (n + 1) for c in counts]))


def _ends(axes: list[Axis], lanes: int) -> Ends:
    out, step = axes[2].out, axes[2].step
    if out >= step * lanes and out % step == 0:
        return "overlap"
    dense = all(a.step == 1 for a in axes)
    return "reach" if dense and lanes <= 2 * out < 2 * lanes else "mask"


def _filled(
    dtype: np.dtype[Any], pattern: Pattern, axes: list[Axis], x: Sizes, shape: Sizes,
    given: dict[str, int], coded: Coded | None = None, fold: Folded | None = None,
) -> Plan:  # fmt: skip
    fields, name, arrays = (
        (WEIGHTS, "weights", ("g", "w")) if "g" in given else (PLANES, "planes", ("w", "y"))
    )  # fmt: skip
    a, lanes = axes[2], pattern.vector_bytes // dtype.itemsize
    offsets = sorted({o for p in a.phases for _, o in p.taps})
    first = np.arange(0, -(-a.out // a.step), lanes)
    final = a.out // a.step - lanes
    starts = np.minimum(first, final) if pattern.ends == "overlap" else first
    pixels = starts[:, None, None] + np.arange(lanes)
    read = pixels * a.stride + np.array(offsets)[:, None] - a.low  # (block, offset, lane)
    inside = (read >= 0) & (read < a.size)
    if fold is not None:
        inside &= fold.inside(pixels, offsets)
    beyond = a.stride - 1 if a.stride <= NEAR else 0  # of whole vectors some elements are taken
    whole = inside.all(axis=(1, 2)) & (read.max(axis=(1, 2), initial=0) + beyond < a.size)
    whole &= (starts + lanes) * a.step <= a.out
    run = np.flatnonzero(whole if offsets else whole[:0])
    # up to the first gap: blocks between the lines of a folded image may reach beyond them
    inner = starts[run[run - run[:1] == np.arange(len(run))]]
    inside &= pixels * a.step < a.out
    room = max(0, -int(read.min(initial=0)), int(read.max(initial=0)) + beyond + 1 - a.size)
    order = np.zeros(0, np.int8)
    masks: NDArray[Any] = -inside.astype(f"i{dtype.itemsize}")
    if pattern.element == "i32" and (way := gathering(host())) is not None:
        masks, read = way.masks(a, starts, offsets)
        room = max(0, -int(read.min()), int(read.max()) + 1 - a.size)
        order = way.orders(offsets, a.stride, lanes)
        given = {**given, "order": address(order)}
    read, zero = (coded.read, coded.zero_point) if coded else (dtype, 0)
    zeros = np.full(a.size + 2 * room, zero, read)
    plane, planes = prod(x[2:]), x[0] * x[1]
    ends = min(-(-room // plane), planes)
    job = fields.fill(
        **given, **{f"{name}{k}": v for k, a in enumerate(axes)
                    for name, v in (("size", a.size), ("out", a.out), ("low", a.low))},
        inner_start=min(inner, default=1), inner_last=max(inner, default=0), inputs=x[1], x=0,
        masks=address(masks), zeros=address(zeros[room:]), head=0, tail=0, end_planes=ends,
        planes=planes,
    )  # fmt: skip
    kept = min(2 * ends, planes) * plane
    scratch = ("sums",) if fields is WEIGHTS else ()
    missing = tuple([fields.place(name) for name in ("x", *arrays, "head", "tail", *scratch)])
    held = given["units"] * sums(pattern) * pattern.vector_bytes if fields is WEIGHTS else 0
    return Plan(name, pattern, job, missing, shape, held, room, kept, (masks, zeros, order))


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution`."""
    vain = _copied_in_vain(len(w) // slide.groups, w.shape[1])
    if lie_last(x) and (vain or (slide.stride[-1] > 1 and w.shape[1] >= _MANY_TERMS)):
        return NotImplemented
    return _run(planes(x.dtype, x.shape, w.shape, slide, None), x, w)


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_input`."""
    shared = len(w) // slide.groups
    if lie_last(g) and (_copied_in_vain(w.shape[1], shared) or _sole(w.shape[2:], shared)):
        return NotImplemented
    return _run(planes(g.dtype, g.shape, w.shape, slide, size), g, w)


def _copied_in_vain(shared: int, terms: int) -> bool:
    """Whether tiles, which read channels that are last as they lie, do as well as lines, of which
    copies are made. shared: outputs of a group.
    """
    return terms >= shared > _FEW_OUTPUTS


def _sole(kernel: Sizes, shared: int) -> bool:
    """Whether a line is read for one tap, of many outputs of a channel: tiles read them as they
    lie.
    """
    return prod(kernel) == 1 and shared >= _LANES


def convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_weight`."""
    if lie_last(g) and _sole(size, g.shape[1] // slide.groups):
        return NotImplemented
    return _run(weight_planes(x.dtype, x.shape, g.shape, slide, size), x, g)


def weights_of_codes(
    w: NDArray[Any], x_zero_point: int, x_dtype: np.dtype[Any], bias: NDArray[np.int32], to: Codes,
    number: np.dtype[Any],
) -> tuple[NDArray[Any], dict[str, int], tuple[NDArray[Any], ...]]:  # fmt: skip
    """What `convolution_of_codes` takes for weights of codes: numbers or words, fields of its job,
    and arrays that these point to.
    """
    if number == np.int32 and (way := gathering(host())) is not None:
        weights = way.weights(w)
        offset = bias - QUADS.zero_point(x_zero_point, x_dtype) * QUADS.offset(w)
    else:
        weights = w.astype(number)
        offset = (bias - x_zero_point * weights.sum(tuple(range(1, w.ndim)))).astype(number)
    return weights, *to_codes_fields(offset, to)


def convolution_of_codes(
    x: Sizes, read: np.dtype[Any], zero_point: int, w: Sizes, written: np.dtype[Any],
    slide: Sliding, number: np.dtype[Any],
) -> Callable[..., NDArray[Any]] | None:  # fmt: skip
    """The function of images of codes of this shape, and of what `weights_of_codes` made; None: it
    is not known. See `funct.kernels.quantized.affine.convolution`.

    number: int32, or float32, in which all sums must be exact then.
    """
    if slide.stride[-1] > 2:
        return None  # there is no instruction that gathers bytes
    made = planes(number, x, w, slide, None, Coded(read, zero_point, written))
    if made is None:
        return None

    def run(x: NDArray[Any], weights: NDArray[Any], fields: dict[str, int], _: Any) -> Any:
        return _run(made, x, weights, written, **fields)

    return run


def _run(
    made: Plan | None, x: NDArray[Any], other: NDArray[Any], dtype: np.dtype[Any] | None = None,
    **more: int,
) -> NDArray[Any]:  # fmt: skip
    """The result, from x, which is read by lines, and w or g. more: fields of the job."""
    if made is None or (dtype is None and x.dtype != other.dtype):
        return NotImplemented
    x, other = np.ascontiguousarray(x), np.ascontiguousarray(other)
    y = memory.fresh(made.shape, dtype or x.dtype)
    room, kept = made.room, made.kept
    copies = np.empty(2 * kept + 3 * room, x.dtype)  # room before, between and behind
    flat, behind = x.reshape(-1), 2 * room + 2 * kept
    copies[room : room + kept] = flat[:kept]
    copies[behind - kept : behind] = flat[flat.size - kept :]
    here, size = address(copies), x.itemsize
    ends = here + room * size, here + behind * size
    sums = (memory.scratch(made.sums),) if made.name == "weights" else ()
    streams = made.pattern.streams and not address(y) % host().vector_bytes
    run = _filling(made, streams, tuple(more))
    run(x, other, y, *ends, *sums, *more.values())
    return y


@functools.lru_cache(1 << 10)
def _filling(made: Plan, streams: bool, more: tuple[str, ...]) -> Callable[..., None]:
    """more: fields of codes."""
    code = entry(replace(made.pattern, streams=streams), made.name)
    return filling(code, made.job, (*made.missing, *map(PLANES.place, more)))


def entry(pattern: Pattern, name: str) -> int:
    """The address of `planes` or `weights`."""
    return _code(pattern, name, host()).address(name)


@functools.cache
def _code(pattern: Pattern, name: str, target: Host) -> Code:
    planes = byte_planes_text if pattern.element == "i32" else planes_text
    target = replace(target, vector_bytes=min(target.vector_bytes, pattern.vector_bytes))
    return printed(planes if name == "planes" else weights_text, pattern, target)
