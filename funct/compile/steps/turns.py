"""Loops and branches as kernels of programs.

What moves from step to step of a loop stands in its *slots*: an address for each buffer that it
carries or goes through. Before each step these, plus an offset each, are written into the frames of
the calls in its body, those of loops inside among them.

Bodies over few elements need none of that: see `lines/registers.py`.
"""

from __future__ import annotations

import functools

from funct.compile.loops.kernel import CONTROL_WORDS, STOPPED
from funct.compile.steps.moves import copy_bytes
from funct.compile.steps.walker import bytes_on, run_steps
from funct.device.machine_code import offer
from funct.kernels.cpu.outside import address_in_python
from funct.kernels.llvm import I32, I64, PTR, Emitter, Module, Value, typed

__all__ = ["look", "now", "print_choose", "print_repeat"]

_LOOKS = 1 << 28  # cycles between two looks at what the user wants
_BYTE = typed("i8")

for _name in ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals"):
    offer(_name, functools.partial(address_in_python, _name))


class _Turns:
    """A loop as it is printed.

    Its frame: what all control flow has; first step and number of steps of two blocks, test and
    body; number of steps at most, or if the next word is an address, what stands there; address of
    the boolean that says whether to go on, or 0; whether it goes from the last row to the first;
    where the number of steps that were made is written, or 0; numbers of carries and of rows; the
    slots. Then for each carry the addresses of its first value, of its result and of a second
    buffer, and its bytes; for each row an address and a stride.

    The slots of a carry are where it is read and where it is written. It goes back and forth
    between result and buffer, and where the number of steps is known ends at the result by itself.
    Where the buffer is the result, the body changes the carry in place, and it begins as a copy.
    """

    def __init__(self, module: Module, name: str) -> None:
        self.f = f = module.function(name, [("frame", PTR), ("task", I64)])
        frame, _ = f.arguments
        self.space, self.steps = f.pointer(frame), f.pointer(frame, 1)
        self.moves, self.n_moves = f.at(self.steps, f.word(frame, 2), "i64"), f.word(frame, 3)
        self.test, self.body = [(f.word(frame, k), f.word(frame, k + 1)) for k in (4, 6)]
        self.goes_back = f.word(frame, 11)
        self.asks, self.counts = f.ne(f.word(frame, 10), 0), f.ne(f.word(frame, 12), 0)
        self.go_place, self.count_place = f.pointer(frame, 10), f.pointer(frame, 12)
        self.n_carries, self.n_rows = f.word(frame, 13), f.word(frame, 14)
        self.slots = f.pointer(frame, 15)
        self.carries = f.at(frame, 16, "i64")
        self.rows = f.at(self.carries, self.n_carries * 4, "i64")
        self.row_slots = f.at(self.slots, self.n_carries * 2, "i64")
        given, limit = f.ne(f.word(frame, 9), 0), f.word(frame, 8)
        self.n = f.branch(given, lambda: [f.word(f.pointer(frame, 9))], lambda: [limit])[0]

    def begin(self) -> None:
        """Fill the slots, and ask whether there is a first step."""
        f = self.f
        into_result = f.bitor(self.asks, f.ne(self.n & 1, 0))  # the first step

        def start(k: Value, _: list[Value]) -> list[Value]:
            carry, slot = self._carry(k)
            first, result = f.word(carry), f.word(carry, 1)
            still = f.eq(result, f.word(carry, 2))

            def bring() -> None:
                copy_bytes(f, f.pointer(carry, 1), f.pointer(carry), f.word(carry, 3))

            f.when(f.bitand(still, f.ne(first, result)), bring)
            f.store(f.select(still, result, first), slot)
            into = f.select(into_result, f.word(carry, 1), f.word(carry, 2))
            f.store(into, f.at(slot, 1, "i64"))
            return []

        def start_row(k: Value, _: list[Value]) -> list[Value]:
            f.store(self.first_row(k), f.at(self.row_slots, k, "i64"))
            return []

        f.loop(0, self.n_carries, 1, start, maybe_empty=True)
        f.loop(0, self.n_rows, 1, start_row, maybe_empty=True)
        self._move()
        f.when(self.asks, lambda: run_steps(f, self.steps, self.space, *self.test))

    def _carry(self, k: Value) -> tuple[Value, Value]:
        return self.f.at(self.carries, k * 4, "i64"), self.f.at(self.slots, k * 2, "i64")

    def first_row(self, k: Value | int) -> Value:
        """The address of the first row that is gone through."""
        f = self.f
        row = f.at(self.rows, k * 2, "i64")
        return f.word(row) + (self.n - 1) * f.word(row, 1) * self.goes_back

    def stride(self, k: Value | int) -> Value:
        """Bytes from a row to the next that is gone through."""
        f = self.f
        stride = f.word(f.at(self.rows, k * 2, "i64"), 1)
        return f.select(f.ne(self.goes_back, 0), f.neg(stride), stride)

    def _move(self) -> None:
        """Write the slots' addresses into frames."""
        f = self.f

        def move(k: Value, _: list[Value]) -> list[Value]:
            entry = f.at(self.moves, k * 3, "i64")
            slot = bytes_on(f, self.space, f.word(entry, 1))
            place = bytes_on(f, self.space, f.word(entry))
            f.store(f.word(slot) + f.word(entry, 2), place)
            return []

        f.loop(0, self.n_moves, 1, move, maybe_empty=True)

    def go(self) -> Value:
        """Whether the test says so, as 0 or 1."""
        f = self.f
        one = f.constant(I64, 1)
        return f.branch(self.asks, lambda: [_flag(f, self.go_place)], lambda: [one])[0]

    def goes_on(self, k: Value, go: Value) -> Value:
        """Whether there is a k-th step."""
        f = self.f
        going = f.bitand(f.compare("lt", k, self.n), f.ne(go, 0))
        return f.bitand(going, f.eq(f.word(self.space), 0))

    def run(self) -> Value:
        """All steps; how many they were."""
        f = self.f

        def flip(k: Value, _: list[Value]) -> list[Value]:
            carry, slot = self._carry(k)
            now = f.word(slot, 1)
            at_result = f.eq(now, f.word(carry, 1))
            f.store(now, slot)
            into = f.select(at_result, f.word(carry, 2), f.word(carry, 1))
            f.store(into, f.at(slot, 1, "i64"))
            return []

        def advance(k: Value, _: list[Value]) -> list[Value]:
            slot = f.at(self.row_slots, k, "i64")
            f.store(f.word(slot) + self.stride(k), slot)
            return []

        def step(carried: list[Value]) -> list[Value]:
            k, then = carried
            run_steps(f, self.steps, self.space, *self.body)
            f.loop(0, self.n_carries, 1, flip, maybe_empty=True)
            f.loop(0, self.n_rows, 1, advance, maybe_empty=True)
            self._move()
            return [k + 1, look(f, self.space, k + 1, then)]

        first = [f.constant(I64, 0), now(f)]
        return f.while_loop(first, lambda c: self.goes_on(c[0], self.go()), step)[0]

    def settle(self) -> None:
        """Bring what is carried to the results."""
        f = self.f

        def bring(k: Value, _: list[Value]) -> list[Value]:
            carry, slot = self._carry(k)
            at = f.word(slot)
            from_, to, size = f.pointer(slot), f.pointer(carry, 1), f.word(carry, 3)
            f.when(f.ne(at, f.word(carry, 1)), lambda: copy_bytes(f, to, from_, size))
            return []

        f.loop(0, self.n_carries, 1, bring, maybe_empty=True)

    def end(self, k: Value) -> None:
        """Tell how many steps they were, and return."""
        self.f.when(self.counts, lambda: self.f.store(k, self.count_place))
        self.f.ret()


def print_repeat(module: Module, name: str) -> None:
    """Add the kernel of all loops."""
    loop = _Turns(module, name)
    loop.begin()
    k = loop.run()
    loop.settle()
    loop.end(k)


def print_choose(module: Module, name: str, element: str, blocks: int) -> None:
    """Add the kernel of branches.

    Frame: what all control flow has; first step and number of steps of each block; where the number
    of the block that runs stands.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    space, steps = f.pointer(frame), f.pointer(frame, 1)
    place = f.pointer(frame, CONTROL_WORDS + 2 * blocks)
    if element == "i1":
        index = _flag(f, place)
    else:
        index = f.convert(f.load(typed(element), place), "i64")
        last, zero = f.constant(I64, blocks - 1), f.constant(I64, 0)
        index = f.intrinsic("smax", f.intrinsic("smin", index, last), zero)  # whoever made it
    block = f.at(frame, index * 2 + CONTROL_WORDS, "i64")
    run_steps(f, steps, space, f.word(block), f.word(block, 1))
    f.ret()


def _flag(f: Emitter, place: Value) -> Value:
    """A boolean in memory as 0 or 1."""
    return f.emit(I64, f"zext {f.load(_BYTE, place)!r} to i64")


def look(f: Emitter, space: Value, k: Value, then: Value) -> Value:
    """When somebody looked last whether the user wants to stop; after k steps maybe that is now."""

    def ask() -> list[Value]:
        state = f.call("PyGILState_Ensure", I32, [])
        wants = f.call("PyErr_CheckSignals", I32, [])
        assert state is not None
        assert wants is not None
        f.when(f.ne(wants, 0), lambda: f.store(f.constant(I64, STOPPED), space))
        f.call("PyGILState_Release", None, [state])
        return [now(f)]

    def measure() -> list[Value]:
        long = f.compare("gt", now(f) - then, _LOOKS)
        return f.branch(long, ask, lambda: [then], rare=True)

    return f.branch(f.eq(k & 255, 0), measure, lambda: [then], rare=True)[0]


def now(f: Emitter) -> Value:
    """What the processor's clock says."""
    name = "@llvm.readcyclecounter"
    f.module.declare(name, f"declare i64 {name}()")
    return f.emit(I64, f"call i64 {name}()", pure=False)
