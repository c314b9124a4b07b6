"""Pytrees: nested containers whose leaves are arrays. Tuples, lists, dicts, named tuples, slices
(of their bounds), None, and every class given to `register`. The walking is optree's, and where a
tree is too deep for it, that of `funct/deep_tree.py`.
"""

from __future__ import annotations

import builtins
import dataclasses
import operator
import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import attrs
import optree

from funct import deep_tree
from funct.deep_tree import DeepStructure
from funct.errors import TreeError

__all__ = [
    "Structure", "all", "broadcast_prefix", "flatten", "flatten_with_path", "is_static", "leaves",
    "map", "map_with_path", "one_level", "reduce", "register", "remedy", "same_structure",
    "static_field", "structure", "transpose", "unflatten",
]  # fmt: skip

Structure = optree.PyTreeSpec | DeepStructure
C = TypeVar("C", bound=type)

_NAMESPACE = "funct"
_STATIC = "static"


def flatten(tree: Any, *, none_is_leaf: bool = False) -> tuple[list[Any], Structure]:
    """Leaves in a fixed order, and the structure that holds them.

    Example:
        >>> from funct import tree
        >>> tree.flatten({"b": 2, "a": (1, None)})[0]
        [1, 2]
    """
    try:
        return optree.tree_flatten(tree, none_is_leaf=none_is_leaf, namespace=_NAMESPACE)
    except RecursionError as error:
        _expect_depth(error)
        return deep_tree.flatten(tree, none_is_leaf=none_is_leaf)


def _expect_depth(error: RecursionError) -> None:
    """The walking is recursive C code with a limit; a recursion of the user's keeps its error."""
    if "tree" not in str(error):
        raise error


def unflatten(spec: Structure, values: Iterable[Any]) -> Any:
    """The tree of that structure with these leaves.

    Raises: TreeError: for another number of leaves.
    Example:
        >>> from funct import tree
        >>> leaves, spec = tree.flatten({"a": 1, "b": (2, 3)})
        >>> tree.unflatten(spec, [10 * v for v in leaves])
        {'a': 10, 'b': (20, 30)}
    """
    try:
        return spec.unflatten(values)
    except ValueError as error:
        raise TreeError(f"unflatten: {error}") from None


def leaves(tree: Any) -> list[Any]:
    """The leaves alone.

    Example:
        >>> from funct import tree
        >>> tree.leaves({"b": 2, "a": (1, None)})  # keys of dicts in sorted order; None is no leaf
        [1, 2]
    """
    try:
        return optree.tree_leaves(tree, namespace=_NAMESPACE)
    except RecursionError as error:
        _expect_depth(error)
        return deep_tree.flatten(tree)[0]


def structure(tree: Any) -> Structure:
    """The structure alone.

    Example:
        >>> from funct import tree
        >>> tree.structure((1, [2])) == tree.structure((3, [4])), tree.structure([1, 2]).num_leaves
        (True, 2)
    """
    try:
        return optree.tree_structure(tree, namespace=_NAMESPACE)
    except RecursionError as error:
        _expect_depth(error)
        return deep_tree.flatten(tree)[1]


def map(fun: Callable[..., Any], tree: Any, *rest: Any, none_is_leaf: bool = False) -> Any:
    """fun of each leaf, and of the leaves at the same place of other trees of equal structure.

    Raises: TreeError: when another tree has another structure.
    Example:
        >>> from funct import tree
        >>> tree.map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
        {'a': 11, 'b': (22,)}
    """
    try:
        return optree.tree_map(fun, tree, *rest, none_is_leaf=none_is_leaf, namespace=_NAMESPACE)
    except RecursionError as error:
        _expect_depth(error)
        return _deep_map(fun, tree, rest, none_is_leaf)
    except ValueError:  # of the trees, or of fun?
        spec = optree.tree_structure(tree, none_is_leaf=none_is_leaf, namespace=_NAMESPACE)
        for other in rest:
            _fitting("map", spec, other)
        raise


def _deep_map(fun: Callable[..., Any], tree: Any, rest: Any, none_is_leaf: bool) -> Any:
    values, spec = deep_tree.flatten(tree, none_is_leaf=none_is_leaf)
    for other in rest:
        _fitting("map", spec, other)
    columns = [values, *[spec.flatten_up_to(other) for other in rest]]
    return spec.unflatten([fun(*xs) for xs in zip(*columns, strict=True)])


def _fitting(name: str, spec: Structure, tree: Any) -> None:
    """Raise TreeError unless spec is the upper part of the tree."""
    try:
        spec.flatten_up_to(tree)
    except ValueError as error:
        above = spec.unflatten(range(spec.num_leaves))
        raise TreeError(f"{name}: {_misfit(above, tree, spec.none_is_leaf) or error}") from None


def _misfit(above: Any, tree: Any, none_is_leaf: bool) -> str | None:
    """Where the tree stops being one that has `above` as its upper part; arrays are not printed."""
    todo = [("", above, tree)]
    while todo:
        path, a, b = todo.pop()
        if optree.tree_is_leaf(a, none_is_leaf=none_is_leaf, namespace=_NAMESPACE):
            continue
        place = f"at {path!r}" if path else "at the root"
        wanted = _opened(a)
        found = None if optree.tree_is_leaf(b, namespace=_NAMESPACE) else _opened(b)
        if found is None or type(a) is not type(b) or wanted[0] != found[0]:
            return f"{place} expected {_container(a)}, got {_container(b)}"
        steps = [f"{path}.{k}" if path else str(k) for k in wanted[0]]
        todo += list(zip(steps, wanted[1], found[1], strict=True))[::-1]
    return None


def _opened(tree: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Names of the children, and the children."""
    children, _, names, _ = optree.tree_flatten_one_level(tree, namespace=_NAMESPACE)
    return tuple(names), children


def _container(x: Any) -> str:
    """What a part of a tree is, in a few words: an array is its dtype and shape."""
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return f"an array {x.dtype} {tuple(x.shape)}"
    if x is None or optree.tree_is_leaf(x, namespace=_NAMESPACE):
        return reprlib.repr(x)
    if isinstance(x, Mapping):
        return f"a {type(x).__name__} with keys {reprlib.repr(list(x))}"
    if type(x) in (tuple, list):
        return f"a {type(x).__name__} of length {len(x)}"
    return f"a {type(x).__name__}"


def reduce(fun: Callable[[Any, Any], Any], tree: Any, initial: Any) -> Any:
    """Fold the leaves from the left.

    Example:
        >>> from funct import tree
        >>> tree.reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)}, 0)
        6
    """
    out = initial
    for leaf in leaves(tree):
        out = fun(out, leaf)
    return out


def all(tree: Any) -> bool:
    """Whether every leaf is true.

    Example:
        >>> from funct import tree
        >>> tree.all({"a": True, "b": (True, 0)}), tree.all(())
        (False, True)
    """
    return builtins.all(leaves(tree))


def transpose(outer: Structure, inner: Structure, tree: Any) -> Any:
    """An outer tree of inner trees as an inner tree of outer trees.

    Raises: TreeError: when the tree is not made of those two.
    Example:
        >>> from funct import tree
        >>> pairs = [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
        >>> tree.transpose(tree.structure([0, 0]), tree.structure(pairs[0]), pairs)
        {'x': [1, 3], 'y': [2, 4]}
    """
    if not outer.num_leaves or not inner.num_leaves:
        return unflatten(inner, [])
    if isinstance(outer, DeepStructure) or isinstance(inner, DeepStructure):
        raise TreeError("transpose: containers are nested too deeply")
    try:
        return optree.tree_transpose(outer, inner, tree)
    except (TypeError, ValueError):
        expected, got = outer.compose(inner), structure(tree)
        raise TreeError(
            f"transpose: expected the structure {_plain(expected)}, got {_plain(got)}"
        ) from None


def flatten_with_path(tree: Any) -> list[tuple[str, Any]]:
    """(dotted path, leaf) pairs: keys, indices and attrs field names joined by dots.

    Example:
        >>> from funct import tree
        >>> tree.flatten_with_path({"layers": [{"w": 1}, {"w": 2}]})
        [('layers.0.w', 1), ('layers.1.w', 2)]
    """
    try:
        paths, values, _ = optree.tree_flatten_with_path(tree, namespace=_NAMESPACE)
    except RecursionError as error:
        _expect_depth(error)
        return list(deep_tree.flatten_with_path(tree))
    return [(".".join(str(k) for k in p), v) for p, v in zip(paths, values, strict=True)]


def broadcast_prefix(
    name: str,
    prefix: Any,
    tree: Any,
    of: str = "the tree it describes",
    *,
    none_is_leaf: bool = False,
) -> list[Any]:
    """For each leaf of tree the leaf of prefix that stands above it; `name` and `of` say whose.

    Raises: TreeError: when prefix is not the upper part of tree.
    Example:
        >>> from funct import tree
        >>> tree.broadcast_prefix("in_axes", (0, None), ([1, 2], 3), none_is_leaf=True)
        [0, 0, None]
    """
    try:
        return list(
            optree.broadcast_prefix(prefix, tree, none_is_leaf=none_is_leaf, namespace=_NAMESPACE)
        )
    except RecursionError as error:
        _expect_depth(error)
    except ValueError as error:
        raise TreeError(
            f"{name} must be a prefix of {of}: {_misfit(prefix, tree, none_is_leaf) or error}"
        ) from None
    try:
        return deep_tree.broadcast_prefix(prefix, tree, none_is_leaf=none_is_leaf)
    except ValueError as error:
        raise TreeError(
            f"{name} must be a prefix of {of}: {_misfit(prefix, tree, none_is_leaf) or error}"
        ) from None


def map_with_path(fun: Callable[[str, Any], Any], tree: Any) -> Any:
    """fun(dotted path, leaf) of each leaf.

    Example:
        >>> from funct import tree
        >>> tree.map_with_path(lambda path, x: f"{path}={x}", {"w": [1, 2], "b": 3})
        {'w': ['w.0=1', 'w.1=2'], 'b': 'b=3'}
    """
    named = flatten_with_path(tree)
    return unflatten(structure(tree), [fun(p, v) for p, v in named])


def one_level(tree: Any) -> tuple[list[tuple[str, Any]], Callable[[list[Any]], Any]] | None:
    """The (name, child) pairs of the outermost node and what rebuilds it; None for a leaf.

    Example:
        >>> from funct import tree
        >>> children, rebuild = tree.one_level({"a": [1, 2], "b": 3})
        >>> children, tree.one_level(3)
        ([('a', [1, 2]), ('b', 3)], None)
    """
    if optree.tree_is_leaf(tree, namespace=_NAMESPACE):
        return None
    children, meta, names, build = optree.tree_flatten_one_level(tree, namespace=_NAMESPACE)
    pairs = [(str(n), c) for n, c in zip(names, children, strict=True)]
    return pairs, lambda values: build(meta, values)


def same_structure(name: str, expected: Any, got: Any) -> None:
    """Raise TreeError unless both trees have one structure; `name` says whose.

    Example:
        >>> from funct import tree
        >>> tree.same_structure("step", {"w": 0}, {"b": 0})  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
            ...
        funct.errors.TreeError: step: expected the structure {'w': *}, got {'b': *}
    """
    a, b = structure(expected), structure(got)
    if a != b:
        raise TreeError(f"{name}: expected the structure {_plain(a)}, got {_plain(b)}")


def _plain(spec: Structure) -> str:
    text = str(spec).removeprefix("PyTreeSpec(").removesuffix(")")
    return text.rsplit(", namespace", 1)[0]  # trees of builtin containers alone have none


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
        _register(cls, flatten, unflatten)
        return cls
    if dataclasses.is_dataclass(cls):
        fields: Any = dataclasses.fields(cls)
    elif attrs.has(cls):
        fields = attrs.fields(cls)
    else:
        raise TreeError(
            f"register: {cls.__name__} is neither an attrs class nor a dataclass",
            fix="register(cls, flatten, unflatten)",
        )
    children = tuple([f.name for f in fields if not is_static(f.metadata)])
    static = tuple([f.name for f in fields if is_static(f.metadata)])
    child_values, static_values = _getter(children), _getter(static)

    def flat(x: Any) -> tuple[Any, Any, Any]:
        return child_values(x), static_values(x), children

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

    slots = cls.__dictoffset__ == 0
    _register(cls, flat, build if slots else build_dict)
    return cls


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
    if not fields or not optree.tree_is_leaf(x, namespace=_NAMESPACE):
        return None
    return f"funct.tree.register({cls.__name__})"


def _register(cls: type, flatten: Any, unflatten: Any) -> None:
    try:
        optree.register_pytree_node(cls, flatten, unflatten, namespace=_NAMESPACE)
    except ValueError:
        raise TreeError(f"register: {cls.__name__} is a pytree already") from None


_register(
    slice,
    lambda s: ((s.start, s.stop, s.step), None, ("start", "stop", "step")),
    lambda _, bounds: slice(*bounds),
)
