"""Direct ways: what one kernel computes where every array is concrete, and primitives elsewhere.

A function that is composed of primitives costs as many calls as it has ops, and on small arrays the
calls are the whole cost. `direct` puts a kernel on bare arrays before it. The kernel is a partial
function: it declines by None, or by raising, whatever it does not give exactly as the composition
does, so values, dtypes and errors are the composition's. Tracers never reach it, so transforms,
capture and watches see primitives. `DIRECT` lists all of them, and a law compares the two ways.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import attrs
import numpy as np

from funct.array.tensor import Array
from funct.device.memory import LARGE, serve
from funct.kernels.special import find
from funct.ops.refusals import out_of_memory

__all__ = ["DIRECT", "Direct", "direct"]

P = ParamSpec("P")
R = TypeVar("R")

new = object.__new__
asarray = np.asarray
ndarray = np.ndarray

Gives = Callable[[Any], Any]


@attrs.frozen(eq=False)
class Direct:
    """A function with a direct way.

    composed: the function by primitives. kernel: its direct way, on buffers. public: what users
    call.
    """

    composed: Callable[..., Any]
    kernel: Callable[..., Any] | str
    public: Callable[..., Any]


DIRECT: dict[str, Direct] = {}


def direct(
    kernel: Callable[..., Any] | str,
    *,
    arrays: str = "first",
    gives: Gives | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let kernel answer calls of the decorated function in which every array is concrete.

    Args: kernel: takes buffers in place of arrays, and all else as it is; or the name of a function
    of scipy.special. arrays: where arrays stand among the arguments: "first", "all" (any of those
    given by position, at least one), "doubles" (the same, all of them float64 or Python's numbers),
    "sequence" (the first argument is a tuple or list of them) or "none". gives:
    what makes the result where there are several.
    """

    def declare(fun: Callable[P, R]) -> Callable[P, R]:
        way: Any = _WAYS["doubles" if isinstance(kernel, str) else arrays]
        public = functools.wraps(fun)(way(fun, kernel, gives))
        DIRECT[f"{fun.__module__}.{fun.__name__}"] = Direct(fun, kernel, public)
        return public

    return declare


def _declined(fun: Any, error: Exception) -> Any:
    """A kernel that raises declines: the composition refuses by name. Memory that there is not is
    not asked for again.
    """
    if isinstance(error, MemoryError):
        raise out_of_memory(fun.__name__, error) from None
    return None


def _none(fun: Any, kernel: Any, gives: Gives | None) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        try:
            d = kernel(*args, **options) if options else kernel(*args)
        except Exception as error:
            d = _declined(fun, error)
        if d is None:
            return fun(*args, **options)
        if d.nbytes >= LARGE:
            serve(d.nbytes)
        r = new(Array)
        r.data = d
        return r

    return call


def _one(fun: Any, kernel: Any, gives: Gives | None) -> Any:
    def call(x: Any, /, *rest: Any, **options: Any) -> Any:
        if x.__class__ is Array:
            try:
                d = kernel(x.data, *rest, **options) if rest or options else kernel(x.data)
            except Exception as error:
                d = _declined(fun, error)
            if d is not None:
                if gives is not None:
                    return gives(_arrays(d))
                r = new(Array)
                r.data = d if d.__class__ is ndarray else asarray(d)
                return r
        return fun(x, *rest, **options)

    return call


def _many(fun: Any, kernel: Any, gives: Gives | None) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        raws, known = [], False
        for a in args:
            if a.__class__ is Array:
                raws.append(a.data)
                known = True
            elif a.__class__ in _PLAIN:
                raws.append(a)
            else:
                return fun(*args, **options)
        try:
            d = None if not known else kernel(*raws, **options) if options else kernel(*raws)
        except Exception as error:
            d = _declined(fun, error)
        if d is None:
            return fun(*args, **options)
        if gives is not None:
            return gives(_arrays(d))
        r = new(Array)
        r.data = d if d.__class__ is ndarray else asarray(d)
        return r

    return call


_PLAIN = frozenset({bool, int, float, str, type(None)})


def _doubles(fun: Any, kernel: Any, gives: Gives | None) -> Any:
    most = len(inspect.signature(fun).parameters)  # a ufunc takes more: where results are written
    f = None if kernel.__class__ is str else kernel

    def call(*args: Any, **options: Any) -> Any:
        nonlocal f
        raws, known = [], False
        for a in args:
            if a.__class__ is Array:
                d = a.data
                if d.dtype is not _DOUBLE:
                    return fun(*args, **options)
                raws.append(d)
                known = True
            elif a.__class__ is float or a.__class__ is int:
                raws.append(a)
            else:
                return fun(*args, **options)
        try:
            if f is None:
                f = find(kernel)
            d = f(*raws) if known and len(args) <= most and not options else None
        except Exception as error:
            d = _declined(fun, error)
        if d is None:
            return fun(*args, **options)
        if gives is not None:
            return gives(_arrays(d))
        r = new(Array)
        r.data = d if d.__class__ is ndarray else asarray(d)
        return r

    return call


_DOUBLE = np.dtype(np.float64)


def _arrays(raws: Any) -> list[Any]:
    found = []
    for d in raws:
        r = new(Array)
        r.data = d if d.__class__ is ndarray else asarray(d)
        found.append(r)
    return found


def _sequence(fun: Any, kernel: Any, gives: Gives | None) -> Any:
    def call(arrays: Any, /, *rest: Any, **options: Any) -> Any:
        d = None
        if arrays.__class__ is tuple or arrays.__class__ is list:
            raws = [a.data for a in arrays if a.__class__ is Array]
            if len(raws) == len(arrays):
                try:
                    d = kernel(raws, *rest, **options) if rest or options else kernel(raws)
                except Exception as error:
                    d = _declined(fun, error)
        if d is None:
            return fun(arrays, *rest, **options)
        r = new(Array)
        r.data = d
        return r

    return call


_WAYS = {"none": _none, "first": _one, "all": _many, "doubles": _doubles, "sequence": _sequence}
