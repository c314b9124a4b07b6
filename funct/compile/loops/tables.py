"""Elements of tables at indices, as loops look them up."""

from __future__ import annotations

from funct.compile.loops.kernel import Access
from funct.compile.loops.reductions import in_memory, read
from funct.compile.loops.warned import refuse
from funct.kernels.llvm import Emitter, Value, typed

__all__ = ["called_up", "in_vectors", "inside", "kept_inside", "looked_up", "placed"]


def placed(f: Emitter, given: Value, n: Value) -> tuple[Value, Value]:
    """Indices counted from the begin of an axis of length n, and which are not on it."""
    length = f.splat(f.convert(n, given.type.element), given.type.lanes)
    at = f.select(given < 0, given + length, given)
    return at, f.bitor(at < 0, at >= length)


def kept_inside(f: Emitter, given: Value, n: Value) -> tuple[Value, Value]:
    """The same, with the axis's last place for those that are not on it."""
    length = f.splat(f.convert(n, given.type.element), given.type.lanes)
    at = f.select(given < 0, given + length, given)
    kept = f.intrinsic("umin", at, length - 1)
    return kept, f.ne(kept, at)


def inside(f: Emitter, index: Value, length: Value, space: Value, mask: Value | None) -> Value:
    """Which places of an axis are meant; the workspace is told if one is not on it. mask: of the
    lanes that count.
    """
    at, outside = kept_inside(f, index, length)
    refuse(f, outside if mask is None else outside & mask, space)
    return at


def in_vectors(element: str) -> str:
    """In which element vectors of indices are put on their axis."""
    return "i32" if element in ("i8", "u8", "i16", "u16", "i32") else "i64"


def looked_up(
    f: Emitter, access: Access, base: Value, index: Value, *, length: Value | None = None,
    space: Value | None = None, stride: Value | None = None, column: Value | None = None,
    step: Value | None = None, mask: Value | None = None,
) -> Value:  # fmt: skip
    """The elements at indices that differ along a row.

    length: of the axis, with the workspace that is told of those that are not on it; None: none is.
    stride: of the axis, if it is not 1. column: by what an access moves that does, by a step.
    """
    assert access.look is not None, "it looks elements up"
    reach, lanes, memory = access.look.reach, index.type.lanes, in_memory(access.element)
    at = f.convert(index, in_vectors(index.type.element))
    if length is not None and space is not None:
        at = inside(f, at, length, space, mask)
    # indices of four bytes are what processors gather by
    at = f.convert(at, "i64" if reach == "far" else "i32")
    if stride is not None:
        at = at * f.splat(f.convert(stride, at.type.element), lanes)
    if column is not None:
        along = f.splat(f.convert(column, at.type.element), lanes) + f.lanes(at.type)
        along = along if mask is None else f.select(mask, along, f.constant(at.type, 0))
        if step is not None:
            along = along * f.splat(f.convert(step, at.type.element), lanes)
        at = at + (-along if access.inner == "back" else along)
    if lanes == 1 or mask is not None or reach != "next" or access.inner != "none":
        x = f.elements(memory, base, at)
    else:
        x = _run_or_each(f, base, memory, at)
    return f.convert(x, "i1") if access.element == "i1" else x


def called_up(f: Emitter, access: Access, given: dict[str, Value]) -> Value:
    """The same by a call of a function of the text's own: code for each place that is looked up
    takes its time, and such functions are long beside a call.
    """
    assert access.look is not None, "it looks elements up"
    index = given["index"].type
    type = typed(access.element, index.lanes)

    def build(name: str) -> None:
        own = f.module.function(name, [(n, x.type) for n, x in given.items()], type, local=True)
        own.ret(looked_up(own, access, **dict(zip(given, own.arguments, strict=True))))

    told = [access.element, access.look.reach, access.inner, index.suffix, *given]
    name = f.module.shared("_".join(["looked_up", *map(str, told)]), build)
    x = f.call(name, type, list(given.values()))
    assert x is not None, "it gives something"
    return x


def _run_or_each(f: Emitter, base: Value, memory: str, at: Value) -> Value:
    """Elements that may lie side by side, as those of what is moved by a number of steps do: to see
    that costs little beside what it costs to gather them.
    """
    lanes, first = at.type.lanes, f.extract(at, 0)
    apart = f.any(f.ne(at, f.splat(first, lanes) + f.lanes(at.type)))
    return f.branch(
        apart,
        lambda: [f.elements(memory, base, at)],
        lambda: [read(f, memory, f.at(base, f.convert(first, "i64"), memory), lanes, None)],
    )[0]
