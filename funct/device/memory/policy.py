"""Which piece of memory a request gets: the policy of a caching allocator, over any arena.

After the caching allocator for CUDA in PyTorch. Memory comes from the arena in segments; a segment
is a chain of blocks, lent or free. A request takes the smallest free block that holds it, of the
small or of the large pool, and leaves the rest as a block of its own; a block that comes back
merges with its free neighbours. Whole free segments go back to the arena when it has no more to
give, when the threshold for collection is passed, or when somebody empties the cache.

It counts bytes and touches none, so any address space will do: tests run it on a made-up one.

A handler of a signal may raise at any line. What was being changed then is found so by the next
call, which forgets all blocks: those that are lent stay with their arrays, and are not lent again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import attrs
from msgspec import Struct, field

from funct.errors import ArgumentError

__all__ = ["Arena", "Block", "Options", "Policy", "Pool", "Segment", "Tally"]

MIB = 1 << 20


class Arena(Protocol):
    """Where segments come from. `reserved` and `limit` (None: no limit) are in bytes."""

    limit: int | None

    @property
    def reserved(self) -> int:
        """Bytes that are out."""

    def take(self, size: int, near: int, at: int | None = None) -> int | None:
        """The address of that many bytes, just at `at` or else beyond `near`; None: there are none,
        or the limit forbids it."""

    def give(self, start: int, size: int) -> None:
        """Back again, whole or a part."""


def _one_of(says: str, holds: Callable[[Any], bool]) -> Callable[[Any, Any, Any], None]:
    """What an option must be; what is no number of the machine never gets to its arithmetic."""

    def check(_: object, field: attrs.Attribute[Any], value: Any) -> None:
        if not holds(value):
            raise ArgumentError(f"configure: {field.name} must be {says}, got {value!r}")

    return check


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


_size = _one_of("bytes, an int that is not negative", _is_size)
_segment = _one_of(
    "a multiple of 64 KiB, and some", lambda v: _is_size(v) and v > 0 and not v % (64 << 10)
)
_maybe = _one_of("None or bytes, an int that is not negative", lambda v: v is None or _is_size(v))
_powers = _one_of("a power of two to 32", lambda v: type(v) is int and v in (1, 2, 4, 8, 16, 32))
_fraction = _one_of(
    "None or a float in (0, 1]", lambda v: v is None or (type(v) in (int, float) and 0 < v <= 1)
)
_switch = _one_of("True or False", lambda v: type(v) is bool)


@attrs.frozen
class Options:
    """How memory is divided; all sizes in bytes.

    small_most: the largest block of the small pool. small_segment, large_segment: what is taken
    from the system at once, at least. divisions: a size is rounded up to one of so many between
    two powers of two. max_split_size: larger blocks are not divided (None: all are).
    gc_threshold: beyond this share of the limit, free segments go back, oldest first, before a new
    one is taken (None: only when it must be). expandable: a segment grows in place where the
    addresses behind it are free (and all blocks are divided), and free parts of it go back.
    keep: free bytes that stay with their pages; None: a quarter of the memory.
    """

    small_most: int = attrs.field(default=MIB, validator=_size)
    small_segment: int = attrs.field(default=8 * MIB, validator=_segment)
    large_segment: int = attrs.field(default=32 * MIB, validator=_segment)
    divisions: int = attrs.field(default=8, validator=_powers)
    max_split_size: int | None = attrs.field(default=None, validator=_maybe)
    gc_threshold: float | None = attrs.field(default=None, validator=_fraction)
    expandable: bool = attrs.field(default=True, validator=_switch)
    keep: int | None = attrs.field(default=None, validator=_maybe)


@attrs.define(eq=False)
class Segment:
    """What the arena gave at once, or in pieces that follow each other."""

    start: int
    size: int
    pool: Pool
    first: Block = attrs.field(init=False)
    last: Block = attrs.field(init=False)

    def blocks(self) -> Iterator[Block]:
        """In order of their addresses."""
        block: Block | None = self.first
        while block is not None:
            yield block
            block = block.after


class Block(Struct, eq=False):
    """A part of a segment; time is when it became free."""

    start: int
    size: int
    segment: Segment
    free: bool = True
    before: Block | None = None
    after: Block | None = None
    time: int = 0


class Tally(Struct):
    """How much there is, was at most, was added and was taken."""

    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def add(self, amount: int) -> None:
        """So much more, or less."""
        self.current += amount
        self.peak = max(self.peak, self.current)
        self.allocated += max(amount, 0)
        self.freed += max(-amount, 0)

    def settle(self) -> None:
        """What there is now was there: the peak of a tally that is counted in several steps."""
        if self.current > self.peak:
            self.peak = self.current


class Pool(Struct, eq=False):
    """Free blocks in order of size, and the segments they are in."""

    name: str
    step: int
    near: int
    free: list[tuple[int, int, Block]] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    number: Tally = field(default_factory=Tally)  # of segments
    reserved: Tally = field(default_factory=Tally)  # bytes
    inactive: Tally = field(default_factory=Tally)  # bytes of free blocks in divided segments

    def add(self, block: Block) -> None:
        """A block has become free. Until it is removed its neighbours are lent, and remain."""
        insort(self.free, (block.size, block.start, block))
        if block.before is not None or block.after is not None:
            self.inactive.current += block.size
            self.inactive.allocated += block.size

    def remove(self, block: Block) -> None:
        """A free block is lent, grows or goes."""
        if block.before is not None or block.after is not None:
            self.inactive.current -= block.size
            self.inactive.freed += block.size
        del self.free[bisect_left(self.free, (block.size, block.start))]


class Policy:
    """The blocks of one arena, or of one user of it. Not safe for threads: its owner locks."""

    def __init__(self, arena: Arena, options: Options, unit: int, near: tuple[int, int]) -> None:
        self.arena = arena
        self.options = options
        self.unit = unit  # every size is a multiple of it
        self.small = Pool("small_pool", options.small_segment, near[0])
        self.large = Pool("large_pool", options.large_segment, near[1])
        self.lent: dict[int, Block] = {}
        self.reclaim: Callable[[], object] = lambda: None  # brings back what its owner still holds
        self.pressure: Callable[[], object] = lambda: None  # and what others hold in vain
        self.clock = 0
        self.changing = False  # whether a change has begun, and not ended
        self.retries = self.failures = 0

    def allocate(self, size: int) -> int | None:
        """The address of a block of `size` bytes; None where the arena has no more."""
        if self.changing:
            self._forget()
        pool = self.small if size <= self.options.small_most else self.large
        block = self._fitting(pool, size)
        if block is None:
            self.reclaim()
            block = self._fitting(pool, size) or self._grown(pool, size)
        if block is None:
            self.retries += 1
            self.pressure()
            self.empty()
            block = self._fitting(pool, size) or self._grown(pool, size)
        if block is None:
            self.failures += 1
            return None
        self.changing = True
        pool.remove(block)
        most = self.options.max_split_size
        if block.size > size and (most is None or block.size <= most):
            rest = Block(block.start + size, block.size - size, block.segment, time=block.time)
            block.size = size
            self._insert(rest, block, block.after)
            pool.add(rest)
        pool.inactive.settle()
        block.free = False
        self.lent[block.start] = block
        self.changing = False
        return block.start

    def release(self, start: int) -> None:
        """The block at that address is free again, and one with its free neighbours."""
        if self.changing:
            self._forget()
        self.changing = start in self.lent
        if not self.changing:
            return  # forgotten
        self.clock += 1
        block = self.lent.pop(start)
        pool = block.segment.pool
        block.free = True
        block.time = self.clock
        for other in (block.before, block.after):
            if other is not None and other.free:
                pool.remove(other)
                self._merge(block, other)
        pool.add(block)
        pool.inactive.settle()
        self.changing = False

    def empty(self) -> int:
        """Give free memory to the arena; how many bytes. Whole segments, unless they may change."""
        if self.changing:
            self._forget()
        self.changing, given = True, 0
        for pool in (self.small, self.large):
            for size, _, block in list(pool.free):
                whole = block.before is block.after is None
                if whole or self.options.expandable:
                    self._give(block)
                    given += size
        self.changing = False
        return given

    def _forget(self) -> None:
        """Begin anew, with memory that is not out yet."""
        self.lent = {}
        for pool in (self.small, self.large):
            pool.free, pool.segments = [], []
            pool.inactive.add(-pool.inactive.current)
            pool.number.add(-pool.number.current)
        self.changing = False

    def _fitting(self, pool: Pool, size: int) -> Block | None:
        """The smallest free block that holds so much, among those that it may have."""
        k = bisect_left(pool.free, (size,))
        if k == len(pool.free):
            return None
        block = pool.free[k][2]
        most = self.options.max_split_size
        whole = most is not None and block.size > most  # it stays so
        wasted = size <= (most or 0) or block.size >= size + self.options.large_segment
        return None if whole and wasted else block

    def _grown(self, pool: Pool, size: int) -> Block | None:
        """A free block of at least so much, of memory that the arena gives for it."""
        self.changing = True
        block = self._made(pool, size)
        self.changing = False
        return block

    def _made(self, pool: Pool, size: int) -> Block | None:
        self._collect(size)
        if self.options.expandable and self.options.max_split_size is None and pool.segments:
            segment = pool.segments[-1]
            tail = segment.last.size if segment.last.free else 0
            missing = -(-(size - tail) // pool.step) * pool.step
            if self.arena.take(missing, pool.near, at=segment.start + segment.size) is not None:
                return self._extended(segment, missing)
        step = pool.step if size < pool.step else 2 * MIB
        for length in dict.fromkeys((-(-size // step) * step, size)):
            start = self.arena.take(length, pool.near)
            if start is not None:
                segment = Segment(start, length, pool)
                segment.first = segment.last = Block(start, length, segment, time=self.clock)
                pool.segments.append(segment)
                pool.number.add(1)
                pool.reserved.add(length)
                pool.add(segment.first)
                return segment.first
        return None

    def _extended(self, segment: Segment, more: int) -> Block:
        """The free block at the end of a segment that has become longer."""
        last = segment.last
        if last.free:
            segment.pool.remove(last)
            last.size += more
        else:
            fresh = Block(segment.start + segment.size, more, segment, time=self.clock)
            self._insert(fresh, last, None)
            last = fresh
        segment.size += more
        segment.pool.reserved.add(more)
        segment.pool.add(last)
        return last

    def _collect(self, size: int) -> None:
        """Give whole free segments back, oldest first, while the threshold is passed."""
        if self.options.gc_threshold is None or self.arena.limit is None:
            return
        bound = self.options.gc_threshold * self.arena.limit
        whole = [
            s
            for p in (self.small, self.large)
            for s in p.segments
            if s.first is s.last and s.first.free
        ]
        for segment in sorted(whole, key=lambda s: s.first.time):
            if self.arena.reserved + size <= bound:
                return
            self._give(segment.first)

    def _give(self, block: Block) -> None:
        """A free block goes back; what is left of its segment is one segment, two or none."""
        segment, pool = block.segment, block.segment.pool
        pool.remove(block)
        pool.segments.remove(segment)
        pool.reserved.add(-block.size)
        pool.number.add(-1)
        self.arena.give(block.start, block.size)
        if block.before is not None:
            left = Segment(segment.start, block.start - segment.start, pool)
            self._found(left, segment.first, block.before)
        if block.after is not None:
            end = block.start + block.size
            right = Segment(end, segment.start + segment.size - end, pool)
            self._found(right, block.after, segment.last)

    def _found(self, segment: Segment, first: Block, last: Block) -> None:
        """A segment of these blocks, up to now of another."""
        segment.first, segment.last = first, last
        first.before = last.after = None
        for block in segment.blocks():
            block.segment = segment
        segment.pool.segments.append(segment)
        segment.pool.number.add(1)

    def _insert(self, block: Block, before: Block, after: Block | None) -> None:
        block.before, block.after, before.after = before, after, block
        if after is None:
            block.segment.last = block
        else:
            after.before = block

    def _merge(self, block: Block, other: Block) -> None:
        """The block takes its neighbour's place too."""
        segment = block.segment
        if other is block.before:
            block.start, block.before = other.start, other.before
            if other.before is None:
                segment.first = block
            else:
                other.before.after = block
        else:
            block.after = other.after
            if other.after is None:
                segment.last = block
            else:
                other.after.before = block
        block.size += other.size
