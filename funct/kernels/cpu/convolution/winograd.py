"""Convolution with 3 × 3 taps, and its adjoint in x, by squares: see `squares.py`.

What is not worth it, or comes out infinite or as no number, is left to others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import Code, Host, host, printed
from funct.device.machine_code import LEAN
from funct.kernels.channels import channels_first, channels_last, lie_last
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.panels import batch_of
from funct.kernels.cpu.convolution.squares import PAIRS, PLACES, TAPS, cut, worth
from funct.kernels.cpu.convolution.winograd_text import CHUNK, JOB, text
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.tile import most_rows, tile_table
from funct.kernels.cpu.dense.words import filled
from funct.kernels.cpu.quantized.narrowing import TO_CODES
from funct.kernels.cpu.record import Fields, address
from funct.kernels.cpu.runners import filling
from funct.kernels.table import UNFIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

__all__ = ["Plan", "convolution", "convolution_input", "entry", "panels", "plan", "served"]

_ELEMENT = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_PAIRS = "s16"  # the dot of words of two integers
_UNIT_BYTES = 384 << 10  # of a unit's squares, which stay in the second-level cache
_FEWEST, _MOST = 28, 112  # squares of a unit,
_SHARED = 21  # or of one image that cores share
_WEIGHTS = 25  # squares that take as long as to transform the weights
_NEAR_BYTES = 2 << 20  # of all weights, transformed: more are read again for each unit from afar
_FAR_BYTES = 8 << 20  # more than these, transformed, leave the second-level cache:
_FAR, _FAR_WEIGHTS = 128, 64  # units, which all read them, are larger, and transforms take longer
_LINE_BYTES = 64

_Text = Callable[..., str]  # of an element, the target, and whether channels are last


class Plan(Struct, frozen=True, eq=False):
    """What is prepared for shapes. text: prints the code, for this element. fields: those of the
    job, which is all but the addresses of arrays. missing: these, but for scratch and flag. tables:
    what it points to.
    """

    text: _Text
    element: str
    fields: Fields
    missing: tuple[str, ...]
    job: NDArray[np.int64]
    scratch_bytes: int
    tables: tuple[NDArray[np.int64], ...]

    def run(self, last: bool, *arrays: Any) -> bool:
        """Fill the result, one of the arrays; whether it is right. last: whether x has its
        channels last.
        """
        wrong = np.empty(1, np.int64)
        _filling(self, last)(*arrays, memory.scratch(self.scratch_bytes), wrong)
        return not wrong[0]

    def to_codes(self, written: str, fields: dict[str, int]) -> Callable[..., None]:
        """What fills images of codes of this element from (x, panels, y, bias, multiplier).

        fields: the others of `TO_CODES`.
        """
        job = self.job.copy()
        self.fields.put(job, **fields)
        places = [self.fields.place(n) for n in (*self.missing, "bias", "multiplier", "scratch")]
        fill = filling(entry(self.text, self.element, "squares", False, written), job, places)
        return lambda *given: fill(*given, memory.scratch(self.scratch_bytes))


def served(kernel: Sizes, slide: Sliding) -> bool:
    """Whether there are squares at all."""
    return kernel == (3, 3) and slide.stride == slide.dilation == (1, 1)


@functools.lru_cache(512)
def plan(
    dot: str, x: Sizes, w: Sizes, size: Sizes, slide: Sliding, adjoint: bool, last: bool = False
) -> Plan | None:  # fmt: skip
    """What is known of shapes, if squares are worth it. size: of the result. Of pairs of integers,
    which are told in words, weights are laid out before. last: whether channels are last.
    """
    laid = dot == _PAIRS
    outputs, channels = w[0] // slide.groups, w[1]
    steps = channels * TAPS, TAPS  # of an output, of a channel, in w
    lows = [low for low, _ in slide.padding]
    if adjoint:
        outputs, channels, steps = channels, outputs, steps[::-1]
        lows = [2 - low for low in lows]
    batch = batch_of(x[0], slide.groups, channels, outputs, dot, last=last)
    out = size[0], size[1]
    of_weights = PLACES * channels * outputs * slide.groups * batch.word_bytes
    far = of_weights >= _FAR_BYTES
    weights = 0 if laid else _FAR_WEIGHTS if far else _WEIGHTS
    if not worth(batch, *out, weights, 1 + DOTS[dot].beside):
        return None
    lanes, word = batch.lanes, batch.word_bytes
    line, pair = _LINE_BYTES // word, 2 * lanes
    most = _UNIT_BYTES // (PLACES * slide.groups * channels * word)
    most = max(_FEWEST, min(_MOST, most))
    most = _FAR if far else most
    if x[0] < batch.cores:  # so bands are shared
        high, wide = (-(-n // 2) for n in out)
        most = min(most, max(_SHARED, -(-high // batch.cores) * wide))
    wanted = 4 * batch.cores
    if of_weights > _NEAR_BYTES:
        squares = x[0] * -(-out[0] // 2) * -(-out[1] // 2)
        wanted = min(wanted, max(batch.cores, squares // _FEWEST))
    of = cut(batch, (x[2], x[3]), out, lows, most, wanted)
    padded = -(-outputs // lanes) * lanes
    blocks, chunks = -(-padded // pair), -(-channels // CHUNK)
    tasks, weight_units = min(of.units, 2 * batch.cores), slide.groups * blocks * chunks
    panel_plane = channels * pair + line  # see Note [Places apart]
    product_plane = of.count * pair + line
    together = of.fields["unit_images"]
    sums_place = 2 * of.fields["band_squares"] * out[1] * pair
    of_x = together * of.fields["slab_place"]
    products = of_x + PLACES * of.fields["plane"]
    sums = products + PLACES * product_plane
    own_words = max(sums + together * sums_place, CHUNK * TAPS * pair)
    flags = 0 if laid else slide.groups * blocks * PLACES * panel_plane
    flags = -(-flags // line) * line
    own = flags + tasks * line
    numbers = np.arange(of.count)
    rows = np.stack([numbers * of.fields["square_words"], numbers * pair], axis=1)
    tap = np.zeros(2, np.int64)
    width = supported(DOTS[dot], host())
    fields = {
        **of.fields, "tasks": tasks, "units": of.units,
        "scratch_step": -(-own_words // line) * line, "panels": 0,
        "flags": flags, "own": own, "squares": of_x, "products": products,
        "sums": sums, "product_plane": product_plane, "sums_place": sums_place,
        "rows": address(rows), "weight_tasks": min(tasks, weight_units),
        "weight_units": weight_units, "chunks": chunks, "output_step": steps[0],
        "channel_step": steps[1], "flipped": int(adjoint), "groups": slide.groups,
        "group_channels": channels, "group_outputs": outputs, "padded_outputs": padded,
        "blocks": blocks, "panel_plane": panel_plane, "panel_step": PLACES * panel_plane // pair,
        "panel_group": blocks * PLACES * panel_plane, "most_rows": most_rows(DOTS[dot], width),
        "tiles": address(tile_table(dot, width, of.counts, padded)), "tap": address(tap),
    }  # fmt: skip
    job = JOB.fill(**fields, x=0, w=0, y=0, scratch=0, flag=0, **dict.fromkeys(TO_CODES, 0))
    room = (own + tasks * fields["scratch_step"]) * word
    return Plan(text, PAIRS if laid else dot, JOB, ("x", "w", "y"), job, room, (rows, tap))


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution`."""
    return _run(x, w, slide, None)


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_input`."""
    return _run(g, w, slide, size)


def _run(x: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes | None) -> NDArray[Any]:
    if not served(w.shape[2:], slide) or x.dtype != w.dtype or not (x.size and w.size):
        return NotImplemented
    adjoint = size is not None
    size = size or slide.size(x.shape[2:], w.shape[2:])
    dot = _ELEMENT[x.dtype]
    last = lie_last(x)
    made = plan(dot, x.shape, w.shape, size, slide, adjoint, last)
    if made is None:
        return NotImplemented
    x = channels_last(x) if last else np.ascontiguousarray(x)
    w = np.ascontiguousarray(w)
    outputs = w.shape[1] * slide.groups if adjoint else len(w)
    y = memory.fresh((len(x), *((*size, outputs) if last else (outputs, *size))), x.dtype)
    if not made.run(last, x, w, y):
        return UNFIT
    return channels_first(y) if last else y


def panels(w: NDArray[Any], groups: int) -> NDArray[np.int32]:
    """Weights of bytes, (outputs, channels of a group, 3, 3), as `plan` has those of all places:
    (group, block of outputs, place, word, lane). See Note [Codes] in `squares.py`.
    """

    def turned(a: Any, b: Any, c: Any) -> list[Any]:
        return [2 * a, a + b + c, a - b + c, 2 * c]

    rows = np.stack(turned(*np.moveaxis(w.astype(np.int16), 2, 0)), 2)
    places = np.stack(turned(*np.moveaxis(rows, 3, 0)), 3).reshape(*w.shape[:2], PLACES)
    words = filled(places, np.dtype(np.int16))
    lanes = supported(DOTS[_PAIRS], host()) // words.itemsize
    outputs, depth, pair = len(w) // groups, words.shape[1], 2 * lanes
    blocks, line = -(-outputs // pair), _LINE_BYTES // words.itemsize
    y = np.zeros((groups, blocks, PLACES, depth * pair + line), np.int32)
    of_group = words.reshape(groups, outputs, depth, PLACES)
    for o in range(0, outputs, pair):
        part = of_group[:, o : o + pair].transpose(0, 3, 2, 1)
        wide = -(-part.shape[3] // lanes) * lanes
        to = y[:, o // pair, :, : depth * wide].reshape(groups, PLACES, depth, wide)
        to[..., : part.shape[3]] = part
        y[:, o // pair, :, : depth * wide] = to.reshape(groups, PLACES, -1)
    return y


@functools.lru_cache(1 << 10)
def _filling(made: Plan, last: bool) -> Callable[..., None]:
    places = [made.fields.place(name) for name in (*made.missing, "scratch", "flag")]
    return filling(entry(made.text, made.element, "squares", last), made.job, places)


def entry(text: _Text, element: str, name: str, last: bool = False, *codes: str) -> int:
    """The address of `squares` or `rest` of a text on this machine."""
    return _code(text, element, host(), last, *codes).address(name)


@functools.cache
def _code(text: _Text, element: str, target: Host, last: bool, *codes: str) -> Code:
    return printed(text, element, target, last, *codes, opt=LEAN)
