"""Effects happen once per call, however often the program that has them is run.

A compiled path whose decision does not hold may have acted before it came there, and the next path
starts anew; the line of an error is found by interpreting what has failed; a decision on what a
callback gave runs it while the function is captured. Each of these is the same program run from
its start again: what it has done is remembered, and given again instead of being done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from funct.core.level import Level

__all__ = ["Carried", "act", "once"]


class Carried(Exception):  # noqa: N818
    """Carries an exception of the user's own past those who explain errors of ops."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _Journal:
    """What was done in a call: (who did it, what it gave, what it raised), and the place in it."""

    __slots__ = ("at", "done")

    def __init__(self) -> None:
        self.done: list[tuple[str, Any, Exception | None]] = []
        self.at = 0


_Journals = dict[Any, _Journal]  # one for each level that acts; None: what is really done
_journals: ContextVar[_Journals | None] = ContextVar("journals", default=None)


@contextmanager
def once(level: Level | None = None) -> Iterator[Callable[[], None]]:
    """While a call runs, what acts in it is done once, or written down once by the level. Gives a
    function that says that the call is run from here again.
    """
    known = _journals.get() or {}
    token = None
    if level not in known:
        known = known | {level: _Journal()}
        token = _journals.set(known)
    journal = known[level]
    start = journal.at

    def again() -> None:
        journal.at = start

    try:
        yield again
    finally:
        if token is not None:
            _journals.reset(token)


def act(level: Level | None, name: str, do: Callable[[], Any]) -> Any:
    """What an effect gives, or gave when this call came by before."""
    journal = (_journals.get() or {}).get(level)
    if journal is None:
        return do()
    if journal.at < len(journal.done) and journal.done[journal.at][0] == name:
        _, out, error = journal.done[journal.at]
        journal.at += 1
        if error is not None:
            raise error
        return out
    del journal.done[journal.at :]
    out, error = None, None
    token = _journals.set(None)  # what it calls is a program of its own
    try:
        out = do()
    except Exception as raised:
        error = raised
        raise
    finally:
        _journals.reset(token)
        journal.done.append((name, out, error))
        journal.at += 1
    return out
