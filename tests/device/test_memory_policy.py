"""The policy against a model: blocks never overlap, merging restores, limits hold, sums agree."""

import random
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from funct.device.memory.policy import MIB, Options, Policy
from funct.errors import ArgumentError

UNIT = 1 << 16
policy_file = Policy.allocate.__code__.co_filename


class Paper:
    """An arena of made-up addresses; it knows which of them are out."""

    def __init__(self, size, limit=None):
        self.size, self.limit, self.out = size, limit, set()

    @property
    def reserved(self):
        return len(self.out) * UNIT

    def take(self, size, near, at=None):
        if self.limit is not None and self.reserved + size > self.limit:
            return None
        ends = sorted([(g + 1) * UNIT for g in self.out if g + 1 not in self.out])
        for start in [at] if at is not None else [near, 0, *ends]:
            wanted = self.granules(start, size)
            if not wanted & self.out and start + size <= self.size:
                self.out |= wanted
                return start
        return None

    def give(self, start, size):
        given = self.granules(start, size)
        assert given <= self.out
        self.out -= given

    def granules(self, start, size):
        return set(range(start // UNIT, (start + size) // UNIT))


def options():
    sizes = st.sampled_from([UNIT, 2 * UNIT, 8 * UNIT, MIB, 4 * MIB])
    return st.builds(
        Options,
        small_most=sizes,
        small_segment=sizes,
        large_segment=sizes,
        max_split_size=st.none() | sizes,
        gc_threshold=st.none() | st.floats(0.1, 1.0),
        expandable=st.booleans(),
    )


class Machine(RuleBasedStateMachine):
    @initialize(options=options(), limit=st.none() | st.integers(0, 40).map(lambda n: n * MIB))
    def begin(self, options, limit):
        self.arena = Paper(64 * MIB, limit)
        self.policy = Policy(self.arena, options, UNIT, (0, 16 * MIB))
        self.lent = {}

    @rule(granules=st.integers(1, 32) | st.integers(1, 400))
    def allocate(self, granules):
        size = granules * UNIT
        start = self.policy.allocate(size)
        if start is None:
            assert self.policy.failures
            assert not any(self.policy._fitting(p, size) for p in self.pools(size))
        else:
            self.lent[start] = size

    def pools(self, size):
        return [self.policy.small if size <= self.policy.options.small_most else self.policy.large]

    @precondition(lambda self: self.lent)
    @rule(data=st.data())
    def release(self, data):
        start = data.draw(st.sampled_from(sorted(self.lent)))
        del self.lent[start]
        self.policy.release(start)

    @rule()
    def empty(self):
        before = self.arena.reserved
        assert self.policy.empty() == before - self.arena.reserved

    @precondition(lambda self: self.lent)
    @rule()
    def release_all(self):
        for start in sorted(self.lent, key=lambda s: s * 31 % 1009):
            self.policy.release(start)
        self.lent.clear()
        self.policy.empty()
        assert self.arena.reserved == 0
        assert self.policy.small.free == self.policy.large.free == []

    @invariant()
    def lent_blocks_do_not_overlap_and_are_out(self):
        last = 0
        for start, size in sorted(self.lent.items()):
            assert start >= last
            assert start % UNIT == 0
            last = start + size
            assert self.arena.granules(start, size) <= self.arena.out

    @invariant()
    def segments_are_chains_of_their_blocks(self):
        policy = self.policy
        free, lent, reserved = [], [], 0
        for pool in (policy.small, policy.large):
            assert pool.number.current == len(pool.segments)
            assert pool.reserved.current == sum(s.size for s in pool.segments)
            idle, divided = pool.inactive, [s for s in pool.segments if s.first is not s.last]
            assert idle.current == sum(b.size for s in divided for b in s.blocks() if b.free)
            assert idle.current == idle.allocated - idle.freed <= idle.peak <= idle.allocated
            assert [b.start for _, _, b in pool.free] == [start for _, start, _ in pool.free]
            assert pool.free == sorted(pool.free, key=lambda f: f[:2])
            for segment in pool.segments:
                place = segment.start
                before = None
                for block in segment.blocks():
                    assert block.start == place
                    assert block.before is before
                    assert block.segment is segment
                    assert not (before and before.free and block.free)  # they would have merged
                    (free if block.free else lent).append(block.start)
                    place, before = place + block.size, block
                assert place == segment.start + segment.size
                assert segment.last is before
                reserved += segment.size
        assert sorted(free) == sorted(b.start for p in self.pools_all() for _, _, b in p.free)
        assert sorted(lent) == sorted(self.lent) == sorted(policy.lent)
        assert reserved == self.arena.reserved

    def pools_all(self):
        return (self.policy.small, self.policy.large)

    @invariant()
    def the_limit_holds(self):
        assert self.arena.limit is None or self.arena.reserved <= self.arena.limit


Machine.TestCase.settings = settings(
    max_examples=5 * settings.default.max_examples, stateful_step_count=30
)
test_random_sequences = Machine.TestCase


def policy(limit=None, **changes):
    return Policy(Paper(1 << 40, limit), Options(**changes), UNIT, (0, 1 << 39))


def test_the_smallest_block_that_fits_is_taken():
    p = policy()
    places = [p.allocate(n * MIB) for n in (8, 2, 4, 2, 6, 2)]
    for k in (0, 2, 4):
        p.release(places[k])
    assert p.allocate(4 * MIB) == places[2]
    assert p.allocate(5 * MIB) == places[4]


def test_neighbours_merge_whatever_the_order():
    for order in ((0, 1, 2), (1, 0, 2), (0, 2, 1), (2, 1, 0)):
        p = policy(large_segment=30 * MIB)
        places = [p.allocate(10 * MIB) for _ in range(3)]
        for k in order:
            p.release(places[k])
        assert p.allocate(30 * MIB) == places[0]


def test_a_segment_grows_in_place_where_it_may():
    assert grown(True).large.number.current == 1
    assert grown(False).large.number.current == 4


def grown(expandable):
    p = policy(large_segment=16 * MIB, expandable=expandable)
    for _ in range(4):
        p.allocate(16 * MIB)
    return p


def test_a_block_beyond_the_split_size_stays_whole():
    p = policy(max_split_size=64 * MIB, expandable=False)
    large = p.allocate(100 * MIB)
    p.release(large)
    assert p.allocate(10 * MIB) != large
    assert p.allocate(90 * MIB) == large


def test_what_is_free_goes_back_before_a_request_fails():
    p = policy(limit=64 * MIB, expandable=False)
    small = [p.allocate(32 * MIB) for _ in range(2)]
    for start in small:
        p.release(start)
    assert p.allocate(60 * MIB) is not None
    assert (p.retries, p.failures) == (1, 0)
    assert p.allocate(60 * MIB) is None
    assert (p.retries, p.failures) == (2, 1)


def test_the_oldest_segments_go_at_the_threshold():
    p = policy(limit=1000 * MIB, gc_threshold=0.2, expandable=False)
    places = [p.allocate(50 * MIB) for _ in range(4)]
    for start in (places[2], places[0]):
        p.release(start)
    p.allocate(60 * MIB)
    assert {s.start for s in p.large.segments} >= {places[1], places[3]}
    assert places[2] not in {s.start for s in p.large.segments}  # free for longer than places[0]


SIZES = (-1, 1.0, "1", True, 1 << 70)
WRONG: dict[str, tuple[object, ...]] = {
    "small_most": (*SIZES, None), "max_split_size": SIZES, "keep": SIZES,
    "small_segment": (*SIZES, None, 0, 100_000), "large_segment": (*SIZES, None, 0, MIB + 1),
    "divisions": (3, 64, 0, 2.0, True, "8", None), "expandable": (0, 1, 5, "yes", None),
    "gc_threshold": (0.0, 1.5, -0.1, float("nan"), "0.5", True),
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, some in WRONG.items() for v in some])
def test_options_are_checked(name, value):
    with pytest.raises(ArgumentError, match=name):
        Options(**{name: value})


def test_free_pieces_of_divided_segments_are_counted():
    """As long as they are pieces: a segment that is free as a whole can go back, and has none."""
    policy = Policy(Paper(64 * MIB), Options(expandable=False), UNIT, (0, 16 * MIB))
    idle = policy.small.inactive
    a, b = policy.allocate(UNIT), policy.allocate(UNIT)
    rest = 8 * MIB - 2 * UNIT
    assert (idle.current, idle.peak) == (rest, 8 * MIB - UNIT)
    policy.release(a)
    assert (idle.current, idle.peak) == (8 * MIB - UNIT, 8 * MIB - UNIT)
    policy.release(b)
    assert (idle.current, idle.peak) == (0, 8 * MIB - UNIT)
    assert idle.allocated == idle.freed


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("expandable", [False, True])
def test_a_change_that_is_left_at_any_line_lends_nothing_twice(expandable):
    """As where a handler of a signal raises: what is lent stays so, and more can be had."""
    line, stopped = 0, True
    while stopped:
        rng = random.Random(7)
        arena, held = Paper(4096 * MIB), {}
        policy = Policy(arena, Options(expandable=expandable, large_segment=MIB), UNIT, (0, MIB))

        def work(count, rng=rng, arena=arena, held=held, policy=policy):
            for _ in range(count):
                if held and rng.random() < 0.5:
                    start = rng.choice(sorted(held))
                    del held[start]
                    policy.release(start)
                elif rng.random() < 0.2:
                    policy.empty()
                else:
                    size = rng.choice([1, 2, 17, 40]) * UNIT
                    start = policy.allocate(size)
                    new = arena.granules(start, size)
                    assert new <= arena.out
                    assert not any(new & arena.granules(*block) for block in held.items())
                    held[start] = size

        line += 1
        stopped = stopped_at(line, lambda work=work: work(16))
        work(16)


def stopped_at(line, call):
    """Whether the call came to so many lines of the policy, and was stopped there."""
    left = line

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename != policy_file:
            return None
        left -= event == "line"
        if left == 0:
            left = -1
            raise StoppedError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except StoppedError:
        return True
    finally:
        sys.settrace(before)
    return False
