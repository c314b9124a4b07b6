"""Classes whose objects are containers: attrs classes, dataclasses, and those that say how.

Attrs classes and dataclasses are pytrees, and optree wants to be told of each. A class that nobody
has told of is met as a leaf that is no array, where a transform would raise: there `opened` tells,
and the tree is flattened anew. Trees whose classes are known pay nothing for it.
"""

from __future__ import annotations

import contextlib
import copyreg
import dataclasses
import functools
import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import getattr_static
from typing import Any, TypeVar

import attrs
import optree

from funct.errors import TreeError

__all__ = [
    "NAMESPACE", "InParts", "identity", "is_record_class", "is_static", "of_parts", "opened",
    "parts_of", "register", "remedy", "static_field",
]  # fmt: skip

C = TypeVar("C", bound=type)

NAMESPACE = "funct"
_STATIC = "static"
_LOCK = threading.Lock()
_unasked: set[type] = set()  # classes that `opened` made pytrees


def static_field(**kwargs: Any) -> Any:
    """An attrs field that belongs to the structure, not to the leaves; its value must hash.

    In a dataclass it is `dataclasses.field(metadata={"static": True})`.
    Example:
        >>> from funct import tree
        >>> import attrs
        >>> @tree.register
        ... @attrs.frozen
        ... class Scale:
        ...     factor: float
        ...     name: str = tree.static_field(default="scale")
        >>> tree.leaves(Scale(2.0)), tree.map(lambda x: x + 1.0, Scale(2.0))
        ([2.0], Scale(factor=3.0, name='scale'))
    """
    return attrs.field(metadata={_STATIC: True}, **kwargs)


def is_static(metadata: Mapping[str, Any]) -> bool:
    """Whether a field with this metadata belongs to the structure.

    Example:
        >>> from funct import tree
        >>> tree.is_static({"static": True}), tree.is_static({})
        (True, False)
    """
    return bool(metadata.get(_STATIC))


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """The attributes of an object as a tuple; attrgetter alone gives one name bare."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return (lambda x: (getattr(x, names[0]),)) if names else (lambda x: ())


def register(
    cls: C,
    flatten: Callable[[Any], tuple[Iterable[Any], Any, Iterable[Any]]] | None = None,
    unflatten: Callable[[Any, Any], Any] | None = None,
) -> C:
    """Make a class a pytree.

    Args: cls: an attrs class or a dataclass: its fields are children, static fields are structure.
    Any other class, or one whose children are to be named otherwise, gives both functions:
    flatten(x) -> (children, static, names), where static must hash, and unflatten(static, children)
    -> x.
    Raises: TreeError: for another class without both functions, or one that is a pytree already.
    Example:
        >>> from funct import tree
        >>> class Box:
        ...     def __init__(self, content): self.content = content
        >>> take_apart = lambda box: ((box.content,), None, ("content",))
        >>> _ = tree.register(Box, take_apart, lambda _, children: Box(*children))
        >>> tree.flatten_with_path({"box": Box(1)})
        [('box.content', 1)]
    """
    if flatten is not None and unflatten is not None:
        with _LOCK:
            if cls in _unasked:
                optree.unregister_pytree_node(cls, namespace=NAMESPACE)
                _unasked.discard(cls)
            _register(cls, flatten, unflatten)
        return cls
    names = _fields(cls)
    if names is None:
        raise TreeError(
            f"register: {cls.__name__} is neither an attrs class nor a dataclass",
            fix="register(cls, flatten, unflatten)",
        )
    with _LOCK:
        if cls in _unasked:
            _unasked.discard(cls)  # it is what it was to become
        else:
            _register(cls, *_ways(cls, *names))
    return cls


@functools.lru_cache(1024)
def _fields(cls: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Names of the fields that are children, and of those that are structure; None for a class that
    is neither an attrs class nor a dataclass.
    """
    if dataclasses.is_dataclass(cls):
        fields: Any = dataclasses.fields(cls)
    elif attrs.has(cls):
        fields = attrs.fields(cls)
    else:
        return None
    children = tuple([f.name for f in fields if not is_static(f.metadata)])
    return children, tuple([f.name for f in fields if is_static(f.metadata)])


@functools.lru_cache(1024)
def _compared(cls: Any) -> tuple[str, ...]:
    """Names of the fields by which objects of a class are equal; none where it has no fields."""
    if cls.__eq__ is object.__eq__:
        return ()
    if dataclasses.is_dataclass(cls):
        return tuple([f.name for f in dataclasses.fields(cls) if f.compare])
    return tuple([f.name for f in attrs.fields(cls) if f.eq]) if attrs.has(cls) else ()


class InParts:
    """A value that is told apart by its parts: a slice, which hashes from Python 3.12 on alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InParts)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return repr(self.value)


def identity(x: Any) -> tuple[Any, Any]:
    """What a value is told apart by: 1, 1.0 and True are equal and 0.0 is -0.0, but they
    compute differently, in tuples, sets and records too; NaN is not even equal to itself.

    Example:
        >>> from funct import records
        >>> records.identity(1) == records.identity(1.0), records.identity(-0.0)
        (False, (<class 'float'>, '-0.0'))
    """
    if isinstance(x, float | complex):  # by Python's text: classes of others may print less
        return type(x), (float if isinstance(x, float) else complex).__repr__(x)
    if isinstance(x, _ATOMS):
        return type(x), x
    if isinstance(x, tuple | slice):
        parts: Any = x if isinstance(x, tuple) else (x.start, x.stop, x.step)
        return (type(x), tuple([identity(v) for v in parts])), InParts(x)
    if isinstance(x, frozenset):
        return (type(x), frozenset([identity(v) for v in x])), x
    kind: Any = type(x)
    names = _compared(kind)
    return ((kind, tuple([identity(getattr(x, n, None)) for n in names])) if names else kind), x


_ATOMS = (int, str, bytes, type(None), type)


class _Structure(tuple[Any, ...]):
    """The fields of a record that belong to the structure: equal if they compute alike."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Structure) or len(self) != len(other):
            return False
        return all(map(operator.is_, self, other)) or identity(self) == identity(other)

    def __ne__(self, other: object) -> bool:
        return not self == other


def _ways(cls: type, children: tuple[str, ...], static: tuple[str, ...]) -> tuple[Any, Any]:
    """How objects of a class with these fields are taken apart and put together."""
    child_values, static_values = _getter(children), _getter(static)

    def flat(x: Any) -> tuple[Any, Any, Any]:
        return child_values(x), _Structure(static_values(x)), children

    # no converters, no validators: leaves may be anything
    def build(meta: Any, values: Any) -> Any:
        x: Any = object.__new__(cls)
        for names, given in ((children, values), (static, meta)):
            for n, v in zip(names, given, strict=True):
                object.__setattr__(x, n, v)
        return x

    def build_dict(meta: Any, values: Any) -> Any:
        x: Any = object.__new__(cls)
        x.__dict__.update(zip(children, values, strict=True))
        x.__dict__.update(zip(static, meta, strict=True))
        return x

    return flat, build if cls.__dictoffset__ == 0 else build_dict


def opened(leaves: Iterable[Any], holding: Callable[[Any], bool] | None = None) -> bool:
    """Make pytrees of the classes of leaves that are attrs classes or dataclasses; whether there
    was one: then the tree is flattened anew.

    Left as they are: classes of this package, which say themselves what they are; objects that
    hold themselves; and objects with attributes that are no fields, which a tree would lose.
    holding: of leaves in an object, of which one must be for its class to become a pytree.
    Example:
        >>> from funct import records, tree
        >>> import attrs
        >>> Point = attrs.make_class("Point", ["x"])
        >>> Point.__module__ = "users"
        >>> tree.leaves(Point(1.0)), records.opened([Point(1.0)]), tree.leaves(Point(1.0))
        ([Point(x=1.0)], True, [1.0])
    """
    found = {
        type(x) for x in leaves
        if type(x) in _unasked or (_is_record(x) and _opens(x, holding))
    }  # fmt: skip
    _open(found)
    return bool(found)


def _open(classes: Iterable[type]) -> None:
    """Make them pytrees, unless another thread was first."""
    for cls in classes:
        with _LOCK, contextlib.suppress(TreeError):
            _register(cls, *_ways(cls, *(_fields(cls) or ((), ()))))
            _unasked.add(cls)


def parts_of(x: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Children and structure of an object by their names, if its class is a pytree by its fields:
    namedtuples are as well.

    Example:
        >>> from funct import records, tree
        >>> import attrs
        >>> Point = tree.register(attrs.make_class("Point", ["x", "y"]))
        >>> records.parts_of(Point(1.0, 2.0)), records.parts_of((1.0, 2.0))
        (({'x': 1.0, 'y': 2.0}, {}), None)
    """
    if optree.is_namedtuple(x):
        return dict(zip(x._fields, x, strict=True)), {}
    cls: Any = type(x)
    fields = _fields(cls)
    if fields is None or optree.tree_is_leaf(x, namespace=NAMESPACE):
        return None
    _, static, names, _ = optree.tree_flatten_one_level(x, namespace=NAMESPACE)
    if tuple(names) != fields[0] or not isinstance(static, tuple):
        return None  # somebody has said how it is taken apart
    children, structure = ({n: getattr(x, n) for n in part} for part in fields)
    return children, structure


def of_parts(cls: Any, children: dict[str, Any], structure: dict[str, Any]) -> Any:
    """The object that `parts_of` took apart.

    Raises: TreeError: for a class that has no such fields.
    Example:
        >>> from funct import records
        >>> import attrs
        >>> records.of_parts(attrs.make_class("Point", ["x", "y"]), {"x": 1.0, "y": 2.0}, {})
        Point(x=1.0, y=2.0)
    """
    if optree.is_namedtuple_class(cls) and cls._fields == tuple(children) and not structure:
        return tuple.__new__(cls, children.values())
    fields = _fields(cls)
    if fields != (tuple(children), tuple(structure)):
        raise TreeError(f"{cls.__name__} has other fields than {[*children, *structure]}")
    _, build = _ways(cls, *fields)
    return build(tuple(structure.values()), tuple(children.values()))


def is_record_class(cls: type) -> bool:
    """Whether a class is made of fields, and none of this package.

    Example:
        >>> from funct import records
        >>> records.is_record_class(float)
        False
    """
    return _fields(cls) is not None and cls.__module__.partition(".")[0] != "funct"


def _is_record(x: Any) -> bool:
    """Whether x is a leaf that its fields make up."""
    cls: Any = type(x)
    names = _fields(cls) if is_record_class(cls) else None
    if names is None or not optree.tree_is_leaf(x, namespace=NAMESPACE):
        return False
    fields = {*names[0], *names[1]}
    others = getattr(x, "__dict__", {}).keys() - fields
    return all(hasattr(x, n) for n in fields) and all(
        isinstance(getattr_static(cls, n, None), functools.cached_property) for n in others
    )


def _opens(x: Any, holding: Callable[[Any], bool] | None) -> bool:
    try:
        inside = [*_inside(x, ())]
    except RecursionError:
        return False
    return holding is None or any(map(holding, inside))


def _inside(x: Any, above: tuple[int, ...]) -> Iterator[Any]:
    """The leaves in an object, to the bottom. RecursionError: for one that holds itself."""
    if not _is_record(x):
        yield x
        return
    if id(x) in above:
        raise RecursionError
    cls: Any = type(x)
    children, _ = _fields(cls) or ((), ())
    held: Any = [getattr(x, n) for n in children]
    for v in optree.tree_leaves(held, namespace=NAMESPACE):
        yield from _inside(v, (*above, id(x)))


def _reduced(spec: Any) -> Any:
    """How structures pickle: with the classes in them that nobody registers, so that they are
    pytrees where the structure is read.
    """
    todo, found = [spec], {}
    while todo:
        part = todo.pop()
        todo += part.children()
        if part.type in _unasked:
            found[part.type] = True
    return (_restored, (tuple(found), spec.__getstate__())) if found else spec.__reduce_ex__(4)


def _restored(classes: tuple[type, ...], state: Any) -> Any:
    """What `_reduced` took apart."""
    _open(classes)
    spec: Any = optree.PyTreeSpec.__new__(optree.PyTreeSpec)
    spec.__setstate__(state)
    return spec


copyreg.pickle(optree.PyTreeSpec, _reduced)


def remedy(x: Any) -> str | None:
    """What makes a leaf's class a pytree, where one call does; None for others.

    Example:
        >>> from funct import tree
        >>> import attrs
        >>> @attrs.frozen
        ... class Point:
        ...     x: float
        >>> tree.remedy(Point(1.0)), tree.remedy(1.0)
        ('funct.tree.register(Point)', None)
    """
    cls = type(x)
    fields = dataclasses.is_dataclass(cls) or attrs.has(cls)
    if not fields or not optree.tree_is_leaf(x, namespace=NAMESPACE):
        return None
    return f"funct.tree.register({cls.__name__})"


def _register(cls: type, flatten: Any, unflatten: Any) -> None:
    try:
        optree.register_pytree_node(cls, flatten, unflatten, namespace=NAMESPACE)
    except ValueError:
        raise TreeError(f"register: {cls.__name__} is a pytree already") from None


_register(
    slice,
    lambda s: ((s.start, s.stop, s.step), None, ("start", "stop", "step")),
    lambda _, bounds: slice(*bounds),
)
