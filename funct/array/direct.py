"""Direct ways: what one kernel computes where every array is concrete, and primitives elsewhere.

A function that is composed of primitives costs as many calls as it has ops, and on small arrays the
calls are the whole cost. `direct` puts a kernel on bare arrays before it. The kernel is a partial
function: it declines by None, or by raising, whatever it does not give exactly as the composition
does, so values, dtypes and errors are the composition's. Tracers never reach it, so transforms,
capture and watches see primitives. `DIRECT` lists all of them, and a law compares the two ways.

Collecting `*args` and `**options` to pass them on would cost half of what is saved. Hence what
users call is printed with the function's own parameters, at its first call. For `sum`:

    def call(x, /, *, axis=None, dtype=None, keepdims=None):
        if x.__class__ is Array and (axis is None or axis.__class__ in PLAIN) and …:
            try:
                _d = kernel(x.data, axis, dtype, keepdims)
            except Exception as _error:
                _d = declined(fun, _error)
            if _d is not None:
                _r = make(None)
                _r.data = _d if _d.__class__ is ndarray else asarray(_d)
                return _r
        try:
            return fun(x, axis=axis, dtype=dtype, keepdims=keepdims)
        except Exception as _error:
            refuse(fun.__name__, _error, {"x": x, "axis": axis, …})
            raise

`entrances` prints the other functions of a package in the same way, with the last part alone: what
goes wrong behind any public function comes out as a typed error, which costs nothing before.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from msgspec import Struct

from funct.array.tensor import Array, Tensor
from funct.kernels.dtypes import INTEGER, NAMED
from funct.kernels.special.functions import find
from funct.ops import fast
from funct.ops.refusals import out_of_memory, refuse
from funct.source import ENTRANCE, known_as_called

__all__ = ["DIRECT", "Direct", "direct", "entrances"]

P = ParamSpec("P")
R = TypeVar("R")

Names = tuple[str, ...]


class Direct(Struct, frozen=True, eq=False):
    """A function with a direct way.

    composed: the function by primitives. public: what users call. arrays: as given to `direct`.
    """

    composed: Callable[..., Any]
    public: Callable[..., Any]
    arrays: int | str | Names


DIRECT: dict[str, Direct] = {}


def direct(
    kernel: Callable[..., Any] | str,
    *,
    arrays: int | str | Names = 1,
    maybe: Names = (),
    gives: Callable[[Any], Any] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let kernel answer calls of the decorated function in which every array is concrete.

    Args: kernel: takes the function's arguments by position, buffers in place of arrays; or the
    name of a function of scipy.special. arrays: how many arguments are arrays, the first ones; or
    their names; or "doubles" (any, at least one, all of float64 or integers, which become float64,
    or Python's numbers), "sequence" (the first argument is a tuple or list of them) or "rest" (of
    those that `*args` collects). maybe: names of arguments that are arrays or plain Python. Other
    arguments are plain Python, which a kernel without arrays finds out by itself. gives: what makes
    the result where the kernel gives several.
    """

    def declare(fun: Callable[P, R]) -> Callable[P, R]:
        how = "doubles" if isinstance(kernel, str) else arrays
        public = _public(fun, how, maybe, gives=gives, kernel=kernel)
        if isinstance(kernel, str):
            names = public.__globals__
            names["kernel"] = functools.partial(_load, kernel, names)
        DIRECT[f"{fun.__module__}.{fun.__name__}"] = Direct(fun, public, how)
        return cast("Callable[P, R]", public)

    return declare


def entrances(package: dict[str, Any]) -> None:
    """Let the functions that a package names in `__all__` refuse what they cannot serve by name.

    Inside of the package they are called as they are written.
    """
    for name in package["__all__"]:
        fun = package[name]
        if not inspect.isfunction(fun) or hasattr(fun, "primitive") or _OWN in fun.__globals__:
            continue  # a class, an op, which refuses by itself, or printed already
        if fun not in _ENTRANCES:  # another package may name it too
            public = _ENTRANCES[fun] = _public(fun, None)
            public.__module__ = package["__name__"]  # where pickle finds it
        package[name] = _ENTRANCES[fun]


_ENTRANCES: dict[Any, FunctionType] = {}
_OWN = "printed"


def _public(
    fun: Any, how: int | str | Names | None, maybe: Names = (), **names: Any
) -> FunctionType:
    """A function whose body is printed at its first call, or its second one if tracers come
    first: of most functions that are captured that call is the only one.
    """
    names.update(_NAMES, fun=fun, unseen=True)
    written: Any = inspect.unwrap(fun)
    public = FunctionType(_at_first.__code__, names, fun.__name__, written.__defaults__)
    public.__kwdefaults__ = written.__kwdefaults__
    functools.update_wrapper(public, fun)
    public.__wrapped__ = written  # type: ignore[attr-defined]
    names[_OWN] = functools.partial(_become, public, how, maybe)
    return public


def _load(name: str, names: dict[str, Any], *args: Any) -> Any:
    """SciPy's function takes this one's place."""
    names["kernel"] = find(name)
    return names["kernel"](*args)


# Printing -----------------------------------------------------------------------------------------

# Classes of arguments that kernels know: what is a tracer, or may be an array, goes by primitives.
# `type`, and the classes of dtypes, are those of what names a dtype.
_PLAIN = frozenset({bool, int, float, str, tuple, list, type(None), type})
_PLAIN |= {dtype.__class__ for dtype in NAMED.values()}


def _declined(fun: Any, error: Exception) -> Any:
    """A kernel that raises declines: the composition refuses by name. Memory that there is not is
    not asked for again.
    """
    if isinstance(error, MemoryError):
        raise out_of_memory(fun.__name__, error) from None
    return None


_NAMES = {
    "Array": Array, "DOUBLE": np.dtype(np.float64), "KNOWN": _PLAIN | {Array}, "PLAIN": _PLAIN,
    "INTEGER": INTEGER, "asarray": np.asarray, "declined": _declined, "make": fast.make,
    "ndarray": np.ndarray, "refuse": refuse,
}  # fmt: skip

_KERNEL = """\
{found}    if {known}:
        try:
            _d = kernel({buffers})
        except Exception as _error:
            _d = declined(fun, _error)
        if _d is not None:
{result}
"""

_COMPOSED = """\
    try:
        return fun({passed})
    except Exception as _error:
        refuse(fun.__name__, _error, {{{given}}})
        raise
"""

_ONE = """\
            _r = make(None)
            _r.data = _d if _d.__class__ is ndarray else asarray(_d)
            return _r"""

_SEVERAL = """\
            if _d.__class__ is ndarray:
                _r = make(None)
                _r.data = _d
                return _r
            _found = []
            for _v in _d:
                _r = make(None)
                _r.data = _v if _v.__class__ is ndarray else asarray(_v)
                _found.append(_r)
            return gives(_found)"""

_DOUBLED = """\
    if {0}.__class__ is Array:
        {0}_ = {0}.data
        if {0}_.dtype is not DOUBLE and {0}_.dtype.num <= INTEGER:
            {0}_ = {0}_.astype(DOUBLE)
    else:
        {0}_ = {0}
"""

_SEQUENCE = """\
    _raws = []
    if {0}.__class__ is tuple or {0}.__class__ is list:
        for _a in {0}:
            if _a.__class__ is not Array:
                _raws = []
                break
            _raws.append(_a.data)
"""


def _at_first(*args: Any, **options: Any) -> Any:
    return printed(args)(*args, **options)  # type: ignore[name-defined]  # noqa: F821


def _become(
    public: FunctionType, arrays: int | str | Names | None, maybe: Names, args: tuple[Any, ...]
) -> Callable[..., Any]:
    """What is called from now on has the parameters of the function, and a printed body."""
    names = public.__globals__
    traced = any(isinstance(a, Tensor) and a.__class__ is not Array for a in args)
    if names.pop("unseen", False) and traced:
        return functools.partial(_composed, names["fun"])
    signature = inspect.signature(names["fun"])
    public.__code__ = _printed(signature, arrays, maybe, names.get("gives") is not None)
    return public


def _composed(fun: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What a printed function does with tracers."""
    try:
        return fun(*args, **options)
    except Exception as error:
        try:
            given = inspect.signature(fun).bind(*args, **options)
        except TypeError:
            given = None  # not such arguments: Python has said so
        if given is not None:
            given.apply_defaults()
            refuse(fun.__name__, error, given.arguments)
        raise


known_as_called(_composed)


@functools.cache
def _printed(
    signature: inspect.Signature, arrays: int | str | Names | None, maybe: Names, several: bool
) -> CodeType:
    parameters = list(signature.parameters.values())
    bare = [p.replace(annotation=p.empty) for p in parameters]
    # the defaults themselves are the function's; here it only matters that there are some
    bare = [p if p.default is p.empty else p.replace(default=None) for p in bare]
    shown = str(inspect.Signature(bare)).removeprefix("(").removesuffix(")")
    names = tuple([p.name for p in parameters])
    text = f"def call({shown}):\n"
    if arrays is not None:
        form: Callable[..., Any] = _FORMS.get(arrays, _named)
        found, known, buffers = form(names, arrays, maybe)
        text += _KERNEL.format(
            found=found, known=" and ".join(known) or "True", buffers=", ".join(buffers),
            result=_SEVERAL if several else _ONE,
        )  # fmt: skip
    passed = [_PASSED.get(p.kind, "{0}").format(p.name) for p in parameters]
    given = [f"{n!r}: {n}" for n in names]
    text += _COMPOSED.format(passed=", ".join(passed), given=", ".join(given))
    made: dict[str, Any] = {}
    exec(compile(text, ENTRANCE, "exec"), made)
    code: CodeType = made["call"].__code__
    return code


_PASSED: dict[Any, str] = {
    inspect.Parameter.KEYWORD_ONLY: "{0}={0}",
    inspect.Parameter.VAR_POSITIONAL: "*{0}",
    inspect.Parameter.VAR_KEYWORD: "**{0}",
}


def _plain(names: Iterable[str]) -> list[str]:
    return [f"({n} is None or {n}.__class__ in PLAIN)" for n in names]


def _named(names: Names, arrays: Any, maybe: Names) -> tuple[str, list[str], list[str]]:
    """Some are arrays, others may be."""
    some = names[:arrays] if isinstance(arrays, int) else arrays
    known = [f"{n}.__class__ is Array" for n in some]
    known += [f"({n} is None or {n}.__class__ in KNOWN)" for n in maybe]
    known += _plain([n for n in names if n not in some and n not in maybe]) if known else []
    buffers = {n: f"{n}.data" for n in some}
    buffers |= {n: f"{n}.data if {n}.__class__ is Array else {n}" for n in maybe}
    return "", known, [buffers.get(n, n) for n in names]


def _sequence(names: Names, *_: Any) -> tuple[str, list[str], list[str]]:
    first, *rest = names
    return _SEQUENCE.format(first), ["_raws", *_plain(rest)], ["_raws", *rest]


def _rest(names: Names, *_: Any) -> tuple[str, list[str], list[str]]:
    *first, rest = names
    return _SEQUENCE.format(rest), ["_raws", *_plain(first)], [*first, "_raws"]


def _doubles(names: Names, *_: Any) -> tuple[str, list[str], list[str]]:
    """Each is an array of doubles or a number; some one is an array. Integers become doubles."""
    lines = [_DOUBLED.format(n) for n in names]
    known = [
        f"({n}_.__class__ is float or {n}_.__class__ is int if {n}_ is {n} "
        f"else {n}_.dtype is DOUBLE)"
        for n in names
    ]
    some = " or ".join([f"{n}_ is not {n}" for n in names])
    return "".join(lines), [*known, f"({some})"], [f"{n}_" for n in names]


_FORMS: dict[Any, Callable[..., Any]] = {
    "doubles": _doubles, "rest": _rest, "sequence": _sequence,
}  # fmt: skip
