"""Passages of the text of builtins that read arrays themselves: each stands in several of them."""

from __future__ import annotations

__all__ = ["flags_asked", "flags_cleared", "restriction_asked", "sought", "unlocked"]


def sought(first: str, words: int, begin: str, found: str, missing: str) -> str:
    """Text from %kind on that finds %dtype among the %kinds entries of a table, each of so many
    words, and goes on at `found`: %at is the entry, %i its number. begin: the block before.
    """
    return f"""kind:
  %i = phi i64 [ 0, %{begin} ], [ %i.next, %other ]
  %unknown = icmp eq i64 %i, %kinds
  br i1 %unknown, label %{missing}, label %compare
compare:
  %entry.before = mul i64 %i, {words}
  %at = getelementptr i64, ptr {first}, i64 %entry.before
  %wanted = load ptr, ptr %at
  %same = icmp eq ptr %wanted, %dtype
  br i1 %same, label %{found}, label %other
other:
  %i.next = add i64 %i, 1
  br label %kind
{found}:"""


def restriction_asked() -> str:
    """Text that asks whether `restricted` is not around: %unbound says so. %restriction: the
    variable of context; %none; %value: room for the answer.
    """
    return """  %unasked = call i32 @PyContextVar_Get(ptr %restriction, ptr null, ptr %value)
  %only = load ptr, ptr %value
  call void @Py_DecRef(ptr %only)
  %unbound = icmp eq ptr %only, %none"""


def unlocked(call: str, when: str, answer: str = "") -> str:
    """Text of a call, while which other Python threads may run where that bit is set; %give is
    next. answer: the type of what the call gives, if %answer is to be that there.
    """
    soon, late, give = "", "", ""
    if answer:
        soon, late = "%soon = ", "%late = "
        give = f"\ngive:\n  %answer = phi {answer} [ %soon, %locked ], [ %late, %free ]"
    return f"""  br i1 {when}, label %free, label %locked
locked:
  {soon}{call}
  br label %give
free:
  %state = call ptr @PyEval_SaveThread()
  {late}{call}
  call void @PyEval_RestoreThread(ptr %state)
  br label %give{give}"""


def flags_cleared(flags: str) -> str:
    """Text that takes the flags of the processor back, if any are asked for; %run is next."""
    return f"""  %looks = icmp ne i32 {flags}, 0
  br i1 %looks, label %look, label %run
look:
  %old = call i32 @fetestexcept(i32 {flags})
  %stale = icmp ne i32 %old, 0
  br i1 %stale, label %clear, label %run
clear:
  %cleared = call i32 @feclearexcept(i32 {flags})
  br label %run"""


def flags_asked(flags: str) -> str:
    """Text behind `flags_cleared` that asks whether one of them stands since then: %again is next
    if so, and else %good.
    """
    return f"""  br i1 %looks, label %ask, label %good
ask:
  %met = call i32 @fetestexcept(i32 {flags})
  %silent = icmp eq i32 %met, 0
  br i1 %silent, label %good, label %again"""
