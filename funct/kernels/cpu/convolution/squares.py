"""Squares of 2 × 2 pixels, whose convolution with 3 × 3 taps takes 16 products of each channel, not
36 (Lavin and Gray 2015, Fast Algorithms for Convolutional Neural Networks: F(2 × 2, 3 × 3)).

With d the 4 × 4 pixels that a square y of the result reads and w the taps,

    y = A' [ Σ_c (G w G') ⊙ (B' d B) ] A

    B' = 1  0 -1  0     G = 1    0   0       A' = 1  1  1  0
         0  1  1  0         1/2  1/2 1/2          0  1 -1 -1
         0 -1  1  0         1/2 -1/2 1/2
         0  1  0 -1         0    0   1

The map is linear in each of y, d and w, so its adjoint in w has the same three matrices. Each of
the 16 places of a square is a product of matrices, for the micro-kernel (`dense/tile.py`).

Note [Places apart]
    The 16 words that meet in a square lie a plane apart. A plane is one line of the cache longer
    than it need be, or they would fall into one set.

Note [No less exact]
    Sums have a ninth of the terms, so errors are half of those that a sum tap by tap makes; small
    whole numbers stay exact. A result is made of the 3 × 3 pixels under it and no others: A' leaves
    out the places that hold others. What is infinite comes out as no number, so it is found, and
    computed tap by tap.

Note [Codes]
    Differences of codes from their zero point have 9 bits, weights 8. With 2 G for G nothing is
    halved, B' d B stays below 2^10 and 4 G w G' below 2^11: pairs of 16-bit integers hold them, and
    one instruction multiplies and sums these. Sums are four times those of taps, modulo 2^32, which
    is exact where those are below 2^29.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from funct.kernels.cpu.convolution.axes import Axes, Batch, axis, slab_fields
from funct.kernels.cpu.dense.slab import Slab
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

__all__ = [
    "PAIRS", "PLACES", "REST", "SQUARES", "TAPS", "Cut", "Squares", "cut", "define_rest", "grid",
    "note", "of_gradients", "of_pixels", "of_products", "of_sums", "of_weights", "worth",
]  # fmt: skip

PLACES, TAPS = 16, 9
PAIRS = "i32"  # words of two 16-bit integers; see Note [Codes]
SQUARES = (
    "images", "unit_images", "slab_place", "squares",  # offset in a task's scratch
    "square_words", "plane",  # words from one square, and from one place, to the next
    "square_rows", "square_columns", "band_squares", "out_rows", "out_columns",
    "flag",  # where to say whether another way must be taken
)  # fmt: skip

_LINE_BYTES = 64
_SETS_BYTES = 1 << 10  # pixels a multiple of this apart fall into few sets of the cache
# by the cycles of a vector of products:
_PLAIN = 36.0  # of a square and a channel, tap by tap
_FAST = 17.6  # of the same by places
_TURNED = 85.0  # of a transform of a square, over all outputs or channels
_SHORT, _TURNED_SHORT = 32, 180.0  # the same of vectors of so many bytes
_WORTH = 1.05
_LEAST = 1 << 20  # floating-point operations, tap by tap
_GROUPS_BYTES = 1 << 10  # of a pixel of all groups; others have squares that leave the cache
_MOST_BYTES = 64 << 20  # of transformed weights, which scratch holds on to


def worth(
    batch: Batch, rows: int, columns: int, weights: int, steps: int = 1, narrow: int = 1,
    least: float = _WORTH,
) -> bool:  # fmt: skip
    """Whether images of so many pixels are done quicker by squares. weights: squares that take as
    long as the transform of the weights does. steps: instructions of a product and its sum.
    narrow: vectors of channels, or of outputs, that had better be summed tap by tap in groups; of
    several, less than these in any case. least: how much quicker.
    """
    squares = batch.images * -(-rows // 2) * -(-columns // 2)
    turned = _TURNED_SHORT if batch.lanes * batch.word_bytes <= _SHORT else _TURNED
    turned *= squares / steps * (1 / batch.group_channels + 1 / batch.group_outputs)
    pixels = batch.images * rows * columns
    numbers = batch.groups * batch.group_channels * batch.group_outputs
    if 2 * pixels * TAPS * numbers < _LEAST or PLACES * numbers * batch.word_bytes > _MOST_BYTES:
        return False
    if not _suit(batch, narrow):
        return False
    plain = _PLAIN / 4 * pixels
    return plain > least * (_FAST * (squares + weights) + turned)


def _suit(batch: Batch, narrow: int) -> bool:
    """Whether a place has enough channels and outputs: of one vector, it loads a number for each
    product, and a few channels are one walk with the taps of a row, tap by tap. And whether the
    squares of a unit, which have the channels of all groups, stay in the cache.
    """
    channels, outputs, lanes = batch.group_channels, batch.group_outputs, batch.lanes
    few = min(channels, outputs)
    if batch.groups > 1:
        most = batch.groups * max(channels, outputs)
        return few > narrow * lanes and most * batch.word_bytes <= _GROUPS_BYTES
    if narrow > 1:
        return few >= narrow * lanes
    return channels > lanes and (not batch.last or channels * outputs > 2 * lanes * lanes)


REST = Fields(("flag", "entry"))  # and the words that the entry is told


class Cut(Struct, frozen=True):
    """Images cut into units, each a band of squares of one image or of a few whole images.

    fields: of the job. count: squares of a unit, counts: all that occur. units: how many there are.
    """

    fields: dict[str, int]
    count: int
    counts: frozenset[int]
    units: int


def cut(
    batch: Batch, size: tuple[int, int], out: tuple[int, int], lows: Sequence[int], most: int,
    units: int,
) -> Cut:  # fmt: skip
    """Units of at most about so many squares, and as many units if there are as many images.

    size: of what is read. out: of the result. lows: pixels that stand before the image, as zeros,
    or as many less of it.
    """
    rows, columns = (-(-n // 2) for n in out)
    first, second = (axis(s, 2 * n, 3, 1, low, 1) for s, n, low in zip(size, (rows, columns), lows))
    axes: Axes = first, axis(1, 1, 1, 1, 0, 1), second
    images = batch.images
    together, band = 1, rows
    if rows * columns <= most:
        together = max(1, min(most // (rows * columns), images // units))
        together = -(-images // -(-images // together))
    else:
        band = -(-rows // -(-rows // max(1, most // columns)))
    line = _LINE_BYTES // batch.word_bytes
    channels = batch.groups * batch.group_channels
    slab = slab_fields(batch, axes, 2 * band, channels)
    words = -(-channels // batch.lanes) * batch.lanes
    words += line * (words * batch.word_bytes % _SETS_BYTES == 0)
    count = together * band * columns
    several, bands = -(-images // together), slab["bands"]
    counts = [
        n * r * columns
        for n in (together, images - (several - 1) * together)
        for r in (band, rows - (bands - 1) * band)
    ]
    fields = {
        **slab, "images": images, "unit_images": together, "square_words": words,
        "slab_place": -(-(slab["slab_words"] + batch.lanes) // line) * line,
        "plane": count * words + line, "square_rows": rows, "square_columns": columns,
        "band_squares": band, "out_rows": out[0], "out_columns": out[1],
    }  # fmt: skip
    return Cut(fields, count, frozenset(counts), several * bands)


# transforms along one axis ------------------------------------------------------------------------


def of_weights(f: Emitter, a: Value, b: Value, c: Value) -> list[Value]:
    """G w."""
    outer = a + c
    return [a, (outer + b) * 0.5, (outer - b) * 0.5, c]


def of_pixels(f: Emitter, a: Value, b: Value, c: Value, d: Value) -> list[Value]:
    """B' d."""
    return [a - c, b + c, c - b, b - d]


def of_products(f: Emitter, a: Value, b: Value, c: Value, d: Value) -> list[Value]:
    """A' m."""
    return [a + b + c, b - c - d]


def of_gradients(f: Emitter, a: Value, b: Value) -> list[Value]:
    """A y."""
    return [a, a + b, a - b, -b]


def of_sums(f: Emitter, a: Value, b: Value, c: Value, d: Value) -> list[Value]:
    """G' m."""
    both = (b + c) * 0.5
    return [a + both, (b - c) * 0.5, both + d]


def grid(f: Emitter, one: Callable[..., list[Value]], held: Sequence[Value]) -> list[Value]:
    """A transform along both axes of a square, whose words stand row by row."""
    side = 2 if len(held) == 4 else 3 if len(held) == TAPS else 4
    columns = [one(f, *held[k::side]) for k in range(side)]
    return [x for row in zip(*columns, strict=True) for x in one(f, *row)]


class Squares(Slab):
    """Prints the work on the squares of a band."""

    def __init__(self, f: Emitter, job: Record, element: str, turn: str, last: bool) -> None:
        super().__init__(f, job, element, turn, last)
        self.lanes = f.module.target.vector_bytes // self.bytes
        self.vector = typed(element, self.lanes)
        self.numbers = typed("i16", 2 * self.lanes) if element == PAIRS else self.vector

    def unit(self, u: Value) -> tuple[Value, Value, Value, Value, Value]:
        """The first image of a unit and their number, the band, its rows of squares, and of those
        of the result.
        """
        f, job = self.f, self.job
        several = f.div(u, job.bands)
        band = u - several * job.bands
        image = several * job.unit_images
        rows = f.min(job.band_squares, job.square_rows - band * job.band_squares)
        left = job.out_rows - (band * job.band_squares << 1)
        images = f.min(job.unit_images, job.images - image)
        return image, images, band, rows, f.min(rows << 1, left)

    def over(
        self, first: Value, rows: Value, body: Callable[..., list[Value]],
        carried: Sequence[Value] = (),
    ) -> list[Value]:  # fmt: skip
        """body(number, row, column, carried) for all squares of an image, numbered from `first`;
        row and column are those of their first pixel.
        """
        f, job = self.f, self.job

        def row(i: Value, held: list[Value]) -> list[Value]:
            def column(j: Value, held: list[Value]) -> list[Value]:
                return body(first + i * job.square_columns + j, i << 1, j << 1, held)

            return f.loop(0, job.square_columns, 1, column, held)

        return f.loop(0, rows, 1, row, carried)

    def read(
        self, image: Value, images: Value, band: Value, rows: Value, slab: Value, to: Value
    ) -> None:
        """B' d B of a unit's images, of all channels: (place, square, channel)."""
        f, job = self.f, self.job

        def one(k: Value) -> None:
            here = self.at(slab, k * job.slab_place)
            self.fill(image + k, band, here)

            def square(n: Value, i: Value, j: Value, _: list[Value]) -> list[Value]:
                pixel = self.at(here, (i * job.slab2 + j) * job.pitch)
                place = self.at(to, n * job.square_words)

                def some(c: Value) -> None:
                    first = self.at(pixel, c)
                    held = [
                        f.load(self.numbers, self.at(first, (job.slab2 * a + b) * job.pitch))
                        for a in range(4)
                        for b in range(4)
                    ]
                    for t, x in enumerate(grid(f, of_pixels, held)):
                        f.store(x, self.at(place, job.plane * t + c))

                each(f, 0, job.channels, some, self.lanes)
                return []

            self.over(k * rows * job.square_columns, rows, square)

        each(f, 0, images, one)


def note(f: Emitter, job: Record, flags: Value, count: Value, step: int) -> None:
    """Set the job's flag if one of these, so many words apart, is set; else clear it."""

    def gathered(k: Value, found: list[Value]) -> list[Value]:
        return [f.bitor(found[0], f.load(I64, f.at(flags, k * step, "i64")))]

    (found,) = f.loop(0, count, 1, gathered, [f.constant(I64, 0)])
    f.store(found, job.pointer("flag"))


def define_rest(module: Module) -> None:
    """`rest(job)`: do what is told behind the flag, if it is set."""
    f = module.function("rest", [("job", PTR)])
    (given,) = f.arguments
    job = Record(f, REST, given)

    def run() -> None:
        words = f.at(given, len(REST), "i64")
        f.line(f"call void {job.pointer('entry').name}({words!r})")

    f.when(f.ne(f.load(I64, job.pointer("flag")), 0), run)
    f.ret()
