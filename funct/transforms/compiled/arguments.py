"""The arguments of a compiled function: what is an array, what is part of the signature.

Arrays are operands. Everything else (numbers, strings, static arguments, the structure of
containers) is a constant of the captured graph and part of the key under which it is kept.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import optree
from msgspec import Struct, field

from funct import pytree
from funct.array import Tensor, asarray
from funct.errors import ArgumentError, TransformError, TreeError
from funct.records import InParts, identity, opened, remedy

__all__ = [
    "NUMBERS", "Key", "Split", "difference", "fitting", "is_array", "numeric_keys", "positions",
    "resolved", "split",
]  # fmt: skip

_P = inspect.Parameter


def is_array(x: Any) -> bool:
    """Whether a leaf is an operand."""
    return isinstance(x, Tensor | np.ndarray | np.generic)


@attrs.frozen
class Key:
    """What a call is told apart by: the structure of its arguments, its static values, its types.

    places: which leaves are arrays. static: the others; fixed: (position or name, value) of static
    arguments. types: (shape, dtype) per array. keys: what the structure does not tell apart.
    """

    spec: pytree.Structure
    places: tuple[bool, ...]
    static: tuple[Any, ...]
    fixed: tuple[tuple[int | str, Any], ...]
    types: tuple[tuple[tuple[int, ...], Any], ...]
    keys: tuple[Any, ...]
    hashed: int = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        found = hash((self.spec, self.places, self.static, self.fixed, self.types, self.keys))
        object.__setattr__(self, "hashed", found)

    def __hash__(self) -> int:
        return self.hashed

    @property
    def ranks(self) -> Any:
        """The key without lengths."""
        types = tuple([(len(s), d) for s, d in self.types])
        return self.spec, self.keys, self.places, self.static, self.fixed, types

    @property
    def kin(self) -> Any:
        """The key without lengths and without Python's numbers."""
        static = tuple([kind if kind in NUMBERS else (kind, x) for kind, x in self.static])
        types = tuple([(len(s), d) for s, d in self.types])
        return self.spec, self.keys, self.places, static, self.fixed, types


NUMBERS = frozenset({int, float, complex})  # whose kinds alone kin have in common


class Split(Struct, frozen=True, eq=False):
    """A call taken apart. call: the function on other arrays, and on other static leaves if they
    are given. leaves: the static ones. owners: the positional argument that each array belongs to;
    -1 for keywords. count: of positional arguments. served: the path for any number that served
    the call, if one did.
    """

    key: Key
    arrays: list[Any]
    call: Callable[..., Any]
    leaves: list[Any]
    owners: tuple[int, ...]
    count: int
    names: Callable[[], list[str]]
    served: list[Any] = field(default_factory=list)

    @property
    def others(self) -> list[Any]:
        """The arguments, and leaves of them, that are no arrays."""
        found = [x for _, x in (*self.key.static, *[held for _, held in self.key.fixed])]
        return [x.value if isinstance(x, InParts) else x for x in found]


def numeric_keys(spec: pytree.Structure) -> tuple[Any, ...]:
    """The keys of dicts that are no texts: as structures 1, 1.0 and True are one key."""
    return tuple(_other_keys(spec)) if _has_other_keys(spec) else ()


@functools.lru_cache(256)
def _has_other_keys(spec: pytree.Structure) -> bool:
    return any(_other_keys(spec))


def _other_keys(spec: pytree.Structure) -> Iterator[Any]:
    """Keys that are no texts; structures that are too deep for C code are not looked at."""
    todo = [spec] if isinstance(spec, optree.PyTreeSpec) else []
    while todo:
        node = todo.pop()
        if node.type is not None and issubclass(node.type, Mapping):
            yield from [identity(k) for k in node.entries() if k.__class__ is not str]
        todo += node.children()


def positions(argnums: Any, given: int) -> list[int]:
    """Positions from the front, of those that the call gives."""
    return sorted({i % given for i in argnums if -given <= i < given}) if given else []


def resolved(
    fun: Callable[..., Any], static: Any, names: Any, donated: Any
) -> tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...]]:
    """Positions and names of static arguments, and positions of donated ones. Where only one of the
    first two is given the signature tells the other: an argument is static however a call passes
    it. Positions from the end are the signature's.

    What has no signature is taken as given. Raises: ArgumentError: for an argument that the
    function does not take.
    """
    if not (static or names or donated):
        return static, names, donated
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return static, names, donated
    kinds = [p.kind for p in parameters]
    called = getattr(fun, "__name__", type(fun).__name__)
    placed = [p for p in parameters if p.kind in (_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD)]
    many = len(placed)
    if _P.VAR_POSITIONAL not in kinds:
        for option, given in (("static_argnums", static), ("donate_argnums", donated)):
            for i in given:
                if not -many <= i < many:
                    raise ArgumentError(
                        f"jit: {option} names argument {i}, {called} takes {many} by position"
                    )
        static, donated = (tuple([i % many for i in given]) for given in (static, donated))
    by_name = _P.POSITIONAL_OR_KEYWORD, _P.KEYWORD_ONLY
    if _P.VAR_KEYWORD not in kinds:
        known = [p.name for p in parameters if p.kind in by_name]
        for name in names:
            if name not in known:
                takes = ", ".join(known) or "none by name"
                raise ArgumentError(f"jit: static_argnames names {name!r}, {called} takes {takes}")
    if not names:
        some = [placed[i] for i in static if -many <= i < many]
        names = tuple([p.name for p in some if p.kind in by_name])
    elif not static:
        static = tuple([i for i, p in enumerate(placed) if p.name in names])
    return static, names, donated


def split(
    fun: Callable[..., Any], argnums: Any, argnames: Any, args: Any, kwargs: Mapping[str, Any]
) -> Split:
    """Take a call apart. TransformError for a static value or a leaf that does not hash.

    An object without arrays is a value if it hashes, whatever its class; arrays in one are operands
    if its class can be made a pytree.
    """
    fixed = positions(argnums, len(args))
    held: dict[int | str, Any] = {i: args[i] for i in fixed}
    held |= {k: kwargs[k] for k in sorted(kwargs) if k in argnames}
    free = [None if i in fixed else a for i, a in enumerate(args)]
    rest = {k: v for k, v in kwargs.items() if k not in held}
    leaves, spec = pytree.flatten((free, rest))
    moving = [is_array(x) for x in leaves]
    if opened([x for x, m in zip(leaves, moving, strict=True) if not m], is_array):
        return split(fun, argnums, argnames, args, kwargs)
    arrays = [asarray(x) for x, m in zip(leaves, moving, strict=True) if m]

    others = [x for x, m in zip(leaves, moving, strict=True) if not m]

    def call(*xs: Any, others: Sequence[Any] = others) -> Any:
        given, static = iter(xs), iter(others)
        full = [next(given) if m else next(static) for m in moving]
        a, k = spec.unflatten(full)
        a = [held.get(i, v) for i, v in enumerate(a)]
        return fun(*a, **k, **{n: v for n, v in held.items() if isinstance(n, str)})

    def names() -> list[str]:
        paths = [p for p, _ in pytree.flatten_with_path((free, rest))]
        return [_leaf_name(fun, p) for p, m in zip(paths, moving, strict=True) if m]

    for n, v in held.items():
        try:
            hash(identity(v))
        except TypeError:
            raise TransformError(
                f"jit: static argument {_parameter(fun, n)} must be hashable, got a "
                f"{type(v).__name__}",
                fix="pass a tuple instead of a list, a frozen record instead of a dict",
            ) from None
    try:
        key = Key(
            spec,
            tuple(moving),
            tuple([identity(x) for x in others]),
            tuple([(n, identity(x)) for n, x in held.items()]),
            tuple([(tuple(x.shape), x.dtype) for x in arrays]),
            numeric_keys(spec),
        )
    except TypeError:
        if opened([x for x in leaves if not is_array(x) and not _hashes(x)]):
            return split(fun, argnums, argnames, args, kwargs)
        paths = pytree.flatten_with_path((free, rest))
        at, bad = next((p, x) for p, x in paths if not is_array(x) and not _hashes(x))
        raise TransformError(
            f"jit: arguments that are no arrays must be hashable, got a {type(bad).__name__} "
            f"in {_leaf_name(fun, at)}",
            fix=remedy(bad) or "pass arrays, or tuples instead of lists for static arguments",
        ) from None
    counts = [c.num_leaves for c in spec.children()[0].children()]
    each = [i for i, n in enumerate(counts) for _ in range(n)]
    each += [-1] * (len(leaves) - len(each))
    owners = tuple([i for i, m in zip(each, moving, strict=True) if m])
    return Split(key, arrays, call, others, owners, len(args), names)


def _hashes(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _parameter(fun: Callable[..., Any], at: int | str) -> str:
    """Name of a positional parameter, as the function declares it."""
    if isinstance(at, str):
        return repr(at)
    try:
        names = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return str(at)
    taken = [p for p in names if p.kind is not p.KEYWORD_ONLY]
    named = at < len(taken) and taken[at].kind is not inspect.Parameter.VAR_POSITIONAL
    return repr(taken[at].name) if named else str(at)


def _leaf_name(fun: Callable[..., Any], path: str) -> str:
    """`x.w` for the path `0.1.w` of (args, kwargs)."""
    side, _, rest = path.partition(".")
    first, _, inner = rest.partition(".")
    head = first if side == "1" else _parameter(fun, int(first)).strip("'")
    return f"{head}.{inner}" if inner else head


def difference(new: Key, known: Sequence[Key], names: list[str]) -> str:
    """How a call differs from the most similar of those that are known, in words."""
    same = [k for k in known if k.spec == new.spec]
    if not same:
        return "the structure of the arguments is new"
    same = [k for k in same if k.keys == new.keys]
    if not same:
        return "the keys of a dict are equal, and of other types"
    alike = [k for k in same if k.places == new.places]
    if not alike:
        at = next(i for i, p in enumerate(new.places) if p != same[-1].places[i])
        kinds = ("an array", "none") if new.places[at] else ("no array", "one")
        return f"leaf {at} of the arguments is {kinds[0]}, was {kinds[1]}"
    same = alike
    fits = [k for k in same if k.static == new.static and k.fixed == new.fixed]
    if not fits:
        old = same[-1]
        before = dict(old.fixed)
        for n, a in new.fixed:
            if n not in before:
                return f"static argument {n!r} is {a[1]!r}, was not given"
            if a != before[n]:
                return f"static argument {n!r} is {a[1]!r}, was {before[n][1]!r}"
        if len(before) > len(new.fixed):
            return "a static argument is not given"
        for a, b in zip(new.static, old.static, strict=True):
            if a != b:
                return f"an argument that is no array is {a[1]!r}, was {b[1]!r}"
    others = fits or same
    old = min(others, key=lambda k: sum(a != b for a, b in zip(k.types, new.types, strict=True)))
    changed = [
        f"{n}: {_text(a)}, was {_text(b)}"
        for n, a, b in zip(names, new.types, old.types, strict=True)
        if a != b
    ]
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return "; ".join(changed[:3]) + more


def _text(t: Any) -> str:
    return f"{t[1]}[{', '.join(map(str, t[0]))}]"


def fitting(name: str, new: Key, known: Key, names: list[str]) -> None:
    """Raise unless a call is one that `known` was made for."""
    if new.spec != known.spec:
        raise TreeError(
            f"{name}: compiled for arguments {known.spec}, got {new.spec}",
            fix="lower the function for these arguments, or call the jitted function itself",
        )
    if new != known:
        raise ArgumentError(
            f"{name}: compiled for other arguments: {difference(new, [known], names)}",
            fix="lower the function for these arguments, or call the jitted function itself",
        )
