"""Where in a workspace the buffers stand that only the calls of a program see.

What is dead makes room for what is made next. A kernel that reads each element of one buffer for
the last time where it writes that of another writes it into its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from funct.compile.fusion.calls import Address, Call, Slot, size_bytes
from funct.compile.memory.in_place import in_place

__all__ = ["place_buffers"]


class _Lives(Struct, frozen=True, eq=False):
    """For each buffer that only the calls see, when it is first and last used, and the kernels that
    run at a time.

    What stands outside of a block and is used in it lives until the block's end, since a loop comes
    to it again.
    """

    first: dict[Any, int] = field(default_factory=dict)
    last: dict[Any, int] = field(default_factory=dict)
    kernels: dict[int, Call] = field(default_factory=dict)

    @classmethod
    def of(cls, calls: Sequence[Call], given: set[Any]) -> _Lives:
        """Of the buffers that are not given."""
        found = cls()
        found._visit(calls, given, 0)
        return found

    def _visit(self, calls: Sequence[Call], given: set[Any], now: int) -> tuple[set[Any], int]:
        """What the calls use, and when they are done."""
        used: set[Any] = set()
        for c in calls:
            now += 1
            began = now
            self.kernels[now] = c
            mine = [w.of for w in c.words if isinstance(w, Address)]
            mine = [*mine, *([c.slots] if c.slots is not None else [])]
            own = {of for of in mine if of not in given and not isinstance(of, Slot)}
            for of in own:
                self.first.setdefault(of, now)
            inside: set[Any] = set()
            for block in c.blocks:
                there, now = self._visit(block, given, now)
                inside |= there
            now += bool(c.blocks)
            own |= {of for of in inside if self.first[of] < began}
            self.last.update(dict.fromkeys(own, now))
            used |= own | inside
        return used, now


def place_buffers(calls: Sequence[Call], given: set[Any]) -> tuple[dict[Any, int], int]:
    """The place of each buffer that is not given, and how many bytes there must be."""
    lives = _Lives.of(calls, given)
    begins: dict[int, list[Any]] = {}
    ends: dict[int, list[Any]] = {}
    for of, k in lives.first.items():
        begins.setdefault(k, []).append(of)
        ends.setdefault(lives.last[of], []).append(of)
    free: list[tuple[int, int]] = []  # (start, length)
    places: dict[Any, int] = {}
    top = 0
    sizes = {of: -(-max(1, size_bytes(of)) // 64) * 64 for of in lives.first}
    for k in sorted({*begins, *ends}):
        dying = [of for of in ends.get(k, ()) if lives.first[of] < k]
        for of in begins.get(k, ()):
            size = sizes[of]
            heirs = [v for v in dying if sizes[v] == size and in_place(lives.kernels[k], v, of)]
            if heirs:
                dying.remove(heirs[0])
                ends[k].remove(heirs[0])
                places[of] = places[heirs[0]]
                continue
            fits = [(n, s) for s, n in free if n >= size]
            if fits:
                n, s = min(fits)
                free.remove((s, n))
                if n > size:
                    free.append((s + size, n - size))
            else:
                s, top = top, top + size
            places[of] = s
        for of in ends.get(k, ()):
            free = _joined([*free, (places[of], sizes[of])])
    return places, top


def _joined(free: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Free ranges, neighbours made one."""
    out: list[tuple[int, int]] = []
    for s, n in sorted(free):
        if out and sum(out[-1]) == s:
            out[-1] = (out[-1][0], out[-1][1] + n)
        else:
            out.append((s, n))
    return out
