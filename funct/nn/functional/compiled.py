"""Compositions that run as one piece of machine code where their arrays are large.

A function of this package is a composition of primitives; op by op it passes over memory once for
each, and calls NumPy as often. `compiled` runs it through `jit` instead, where the first array has
`LEAST` elements and everything is computed at once, below any number of `grad`s: value and pull are
then a few loops. Elsewhere – small arrays, other transforms, a function that is being compiled –
the composition runs as it is written, so `jit` fuses it with what stands around it. Calls
with small concrete arrays that come often are one node of a tape, or one call, with the bits of
the composition (`transforms/compiled/single.py`); norms are such nodes of their loops (decision
0027).

Which way is taken depends on sizes alone, so a call has the same bits each time. The first few
shapes that a call comes with have a program each, made in milliseconds; one program that knows no
sizes serves all others. The two ways differ where sums are added in another order, and in the last
bits of functions that NumPy rounds otherwise: by a few units in the last place of the largest term.
Images whose channels are last in memory are read so, and so are results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import FunctionType, MappingProxyType, MethodType
from typing import Any, ParamSpec, TypeVar, cast

import funct.array as xp
from funct.array import Array, Tensor
from funct.array.direct import DIRECT
from funct.kernels.channels import channels_first, channels_last, lie_last
from funct.kernels.neural import FEW
from funct.ops.fast import wrap
from funct.source import hide
from funct.transforms import jit
from funct.transforms.compiled.single import Single, is_told, static_key
from funct.transforms.reverse import ReverseTracer

__all__ = [
    "COMPILED", "LEAST", "SINGLES", "WHOLE", "below_tapes", "compiled", "concrete", "lies_last",
    "whole",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")

LEAST = FEW  # elements from which on a call of compiled code costs less than what it saves

_MATRICES = 3  # axes of many, which have no channels
_MOST = 256  # calls of one function that are told apart
_SHAPES = 16  # of the first array of calls alike, with a program each; all others share one

COMPILED: dict[str, Callable[..., Any]] = {}  # by name, the composition
WHOLE: dict[str, Callable[..., Any]] = {}  # those that are not compiled where arrays are large
SINGLES: dict[str, Single] = {}  # by name, what is known of calls on few elements


def compiled(
    fun: Callable[P, R], least: int | None = None, loops: int | None = None
) -> Callable[P, R]:
    """fun, which takes an array first and may take more, as machine code where that pays.

    least: elements from which on it does, where fun has so many ops that fewer will do. loops: the
    same, where calls with few elements are one node of a tape as well, of the same loops.
    """
    COMPILED[fun.__name__] = fun
    known: dict[Any, Any] = {}  # by what is given, and the shape of the first array, or without it
    several: dict[Any, int] = {}  # by what is given alone, how many shapes were met
    lone: dict[Any, Any] = {}  # of one array and plain values, by its shape, these and all classes
    anything = functools.cache(lambda: jit(fun))

    def large(*args: P.args, **options: P.kwargs) -> R:
        key: list[Any] = list(options)
        arrays: list[Any] = []
        shape: Any = None
        last = False  # of the first one
        for a in (*args, *options.values()) if options else args:
            if a.__class__ is Array or isinstance(a, Tensor):
                below = a if a.__class__ is Array else below_tapes(a)
                if below.__class__ is not Array:
                    return fun(*args, **options)
                turned = below.data.ndim > _MATRICES and lie_last(below.data)
                if shape is None:
                    shape, last = below.data.shape, turned
                arrays.append(_as_it_lies(a) if turned else a)
                key.append("last" if turned else None)
            else:
                part = static_key(a)
                if part is None:
                    return cast("R", anything()(*args, **options))
                key.append(part)
        key.append(shape)
        frame = tuple(key)
        run = known.get(frame) or known.get(frame[:-1])
        if run is None:
            if len(known) >= _MOST:
                known.clear()
                several.clear()
                lone.clear()
            several[frame[:-1]] = count = several.get(frame[:-1], 0) + 1
            run = jit(_of_arrays(fun, args, options))
            known[frame if count <= _SHAPES else frame[:-1]] = run
            if len(arrays) == 1 and not (last or options) and all(map(is_told, args[1:])):
                lone[(shape, *args[1:], *map(type, args))] = run
        y = run(*arrays)
        if last and y.__class__ is Array and y.ndim == arrays[0].ndim:
            return cast("R", wrap(channels_first(y.data)))
        return cast("R", _turned(y, arrays[0].ndim, -1, 1) if last else y)

    single = Single if loops is None else functools.partial(Single, loops=loops)
    return _by_size(fun, large, single, least, lone, loops)


def whole(fun: Callable[P, R]) -> Callable[P, R]:
    """fun as `compiled` has it on few elements alone: of large arrays its ops have kernels."""
    WHOLE[fun.__name__] = fun
    return _by_size(fun, fun, functools.partial(Single, least=1))


def _by_size(
    fun: Callable[P, R], large: Callable[P, R], single: Callable[..., Single],
    least: int | None = None, lone: Mapping[Any, Any] = MappingProxyType({}),
    loops: int | None = None,
) -> Callable[P, R]:  # fmt: skip
    most = LEAST if least is None else min(least, LEAST)
    alone = most if loops is None else min(loops, most)  # the same of what is on no tape

    def made() -> Single:
        direct = DIRECT.get(f"{fun.__module__}.{fun.__name__}")
        few = SINGLES[fun.__name__] = single(fun, None if direct is None else direct.public)
        return few

    @functools.wraps(fun)
    def call(*args: P.args, **options: P.kwargs) -> R:
        first: Any = args[0] if args else None
        kind = first.__class__
        if kind is Array:
            d = first.data
            size = d.size
            if 0 < size < alone and not options:
                few = SINGLES.get(fun.__name__) or made()
                if few.alone:
                    try:
                        known = few.alone.get((d.dtype.num, d.shape, *args[1:], *map(type, args)))
                        if known is not None:
                            serve: Any = known.serve
                            answer: Any = None if serve is None else serve(first)
                            found: R = wrap(known.run(d)[0]) if answer is None else answer
                            return found
                    except Exception:  # other arrays, or an error that the composition names
                        known = None
            elif lone and size >= alone and d.ndim <= _MATRICES and not options:
                try:
                    run = lone.get((d.shape, *args[1:], *map(type, args)))
                except TypeError:
                    run = None  # other arrays have no hash
                if run is not None:
                    found = run(first)
                    return found
        elif kind is ReverseTracer:
            size = first.size
        else:
            return fun(*args, **options)
        if 0 < size < (alone if kind is Array else most):
            few = SINGLES.get(fun.__name__) or made()
            refused = (kind is ReverseTracer) in few.refused
            once = None if refused else few(args, options)
            if once is None:
                return (fun if size < alone else large)(*args, **options)
            found = once
            return found
        return large(*args, **options) if size else fun(*args, **options)

    return call


def lies_last(a: Any) -> bool:
    """Whether a is images whose channels are last in memory: code reads them as they lie."""
    d = below_tapes(a).data
    return d.ndim > _MATRICES and lie_last(d)


def _as_it_lies(a: Any) -> Any:
    """Images with the axis of channels last."""
    return wrap(channels_last(a.data)) if a.__class__ is Array else xp.moveaxis(a, 1, -1)


def _turned(y: Any, rank: int, source: int, to: int) -> Any:
    """Results with an axis moved, of those that are images."""
    if isinstance(y, tuple):
        return tuple([_turned(v, rank, source, to) for v in y])
    return xp.moveaxis(y, source, to) if len(y.shape) == rank else y


def _of_arrays(
    fun: Callable[..., R], args: tuple[Any, ...], options: dict[str, Any]
) -> Callable[..., R]:
    """fun as a function of its arrays, all else as in this call: there is least to compare."""
    given = (*args, *options.values())
    plain = tuple([None if isinstance(a, Tensor) else a for a in given])  # no array lives on here
    places = tuple([k for k, a in enumerate(given) if isinstance(a, Tensor)])
    last = tuple([lies_last(given[k]) for k in places])
    # a method, since what a closure holds is looked at before each call; by its name it is told
    filled = FunctionType(_filled.__code__, _filled.__globals__, fun.__name__)
    return MethodType(filled, (fun, plain, places, last, tuple(options)))


def _filled(call: tuple[Any, ...], *arrays: Any) -> Any:
    """A function of plain values, the last by name, with arrays in their places."""
    fun, plain, places, last, names = call
    full, n = list(plain), len(plain) - len(names)
    for k, a, turned in zip(places, arrays, last, strict=True):
        full[k] = xp.moveaxis(a, -1, 1) if turned else a
    y = fun(*full[:n], **dict(zip(names, full[n:], strict=True)))
    return _turned(y, full[0].ndim, 1, -1) if last[0] else y


hide(_filled)


def below_tapes(x: Any) -> Any:
    """What stands below the tapes that x is on: itself, if it is on none."""
    while x.__class__ is ReverseTracer:
        x = x.value
    return x


def concrete(x: Any) -> bool:
    """Whether x is an array, on tapes or not."""
    return below_tapes(x).__class__ is Array
