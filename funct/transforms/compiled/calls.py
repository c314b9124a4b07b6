"""Which path serves a call: by the kinds of its arguments, and what the call before went through.

Arrays alone are told by their types, pytrees by their structure first. What no path serves is
captured (`table.py`). `Compiled` (`jit.py`) adds the shortest way, options and modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from funct import pytree
from funct.array import Array, asarray
from funct.array.dtypes import DTYPES
from funct.compile import MISS
from funct.core import OpenNumber
from funct.ops.fast import wrap
from funct.records import identity
from funct.transforms.compiled.arguments import Split, is_array, numeric_keys, positions, split
from funct.transforms.compiled.numbered import Latest
from funct.transforms.compiled.paths import Front
from funct.transforms.compiled.table import Groups, Table
from funct.transforms.tape.nodes import ReverseTracer

__all__ = ["Calls"]

_NUMPYS = frozenset({np.ndarray, *[d.type for d in DTYPES]})  # what is an Array once it is copied


class _Before(NamedTuple):
    """The structure of the last call of pytrees, its static values, and what it went through."""

    spec: pytree.Structure
    held: Any
    front: Front


class Calls:
    """The calls of one function. static: of which arguments are part of the signature whole."""

    fun: Callable[..., Any]
    static_argnums: tuple[int, ...]
    static_argnames: tuple[str, ...]
    _static: bool  # whether there are such arguments

    def _begin(self, table: Table) -> None:
        """Begin anew, with a table of paths."""
        self._table = table
        self._front: Front | None = None  # of the last call of arrays alone
        self._before: _Before | None = None
        self._latest: Latest | None = None
        self._follows = True  # whether structures have been like the one before so far

    def _served(self, groups: Groups | None, raws: Sequence[Any]) -> tuple[Front, Any] | None:
        """The result from the first path that holds, and what the next such call goes through."""
        for group in groups or ():
            for path in group:
                if path.exe.acts:
                    return None  # who else captures, and what was done already, matters
                if path.watched and not path.current():
                    continue
                try:
                    out = path.raw(*raws)
                except Exception as error:
                    path.exe.raise_located(error, [wrap(r) for r in raws])
                if out is not MISS:
                    self._table.hits += 1
                    whole = wrap(out[0]) if path.single else path.rebuild([wrap(d) for d in out])
                    return path.front(), whole
        return None

    def _on_tape(self, args: Any) -> Any:
        """A call of arrays of which some are on tapes: there is no structure to follow."""
        key = []
        for x in args:
            if x.__class__ is ReverseTracer:
                if x.value.__class__ is not Array:
                    return self._trees(args, (), args, {})
                x = x.value
            key.append((x.data.shape, x.data.dtype))
        exact = tuple(key)
        out = self._recorded(self._table.exact.get(exact), args)
        return self._general(args, {}, exact) if out is MISS else out

    def _mixed(self, args: Any, kwargs: Any) -> Any:
        """A call with keywords or static arguments."""
        if not self._static:
            return self._trees((args, kwargs), (), args, kwargs)
        fixed = positions(self.static_argnums, len(args))
        named = [k for k in sorted(kwargs) if k in self.static_argnames]
        held = tuple(
            [(i, identity(args[i])) for i in fixed] + [(k, identity(kwargs[k])) for k in named]
        )
        free = [None if i in fixed else a for i, a in enumerate(args)]
        rest = {k: v for k, v in kwargs.items() if k not in named}
        return self._trees((free, rest), held, args, kwargs)

    def _trees(self, free: Any, held: Any, args: Any, kwargs: Any) -> Any:
        """A call of pytrees. Most calls have the structure of the call before, and to follow a
        structure that is known costs a fraction of finding it.
        """
        before, leaves = self._before, None
        if before is not None:
            try:
                leaves = before.spec.flatten_up_to(free)
            except (ValueError, TypeError, RecursionError):
                before = self._before = None  # optree prints the arrays of what does not fit,
                self._follows = False  # which costs milliseconds
        if leaves is None:
            leaves, spec = pytree.flatten(free)
            if keys := numeric_keys(spec):
                self._follows, held = False, (*held, keys)  # to follow them tells none apart
        else:
            assert before is not None
            spec = before.spec
            out = self._again(before, held, leaves)
            if out is not MISS:
                return out
        kinds = set(map(type, leaves))
        if OpenNumber in kinds:  # the capture around this call writes all down
            return self.fun(*args, **kwargs)
        if not kinds.isdisjoint(_NUMPYS):
            leaves = [asarray(x) if x.__class__ in _NUMPYS else x for x in leaves]
            out = self._again(before, held, leaves)
            if out is not MISS:
                return out
        raws, types, taped = [], [], False
        for x in leaves:
            kind = x.__class__
            if kind is Array:
                raws.append(x.data)
                types.append((x.data.shape, x.data.dtype))
            elif kind is ReverseTracer and x.value.__class__ is Array:
                taped = True
                types.append((x.node.shape, x.node.dtype))
            elif is_array(x):
                return self._general(args, kwargs, None)
            else:
                types.append(identity(x))
        latest = self._latest
        if latest is not None and not taped:
            out = latest.call(spec, held, types, leaves, raws)
            if out is not MISS:
                self._table.hits += 1
                return out
        key = (spec, held, *types)
        try:
            groups = self._table.exact.get(key)
        except TypeError:
            return self._general(args, kwargs, None)  # says which argument does not hash
        if taped:
            out = self._recorded(groups, [x for x in leaves if is_array(x)])
            return self._general(args, kwargs, key) if out is MISS else out
        served = self._served(groups, raws)
        if served is None:
            if self._table.is_plain(key):
                return self.fun(*args, **kwargs)
            call = self._split(args, kwargs)
            out = self._table.call(call, args, kwargs, key)
            for numbered in call.served:
                arrays = [x.__class__ is Array for x in leaves]
                self._latest = Latest.of(spec, held, types, arrays, numbered)
            return out
        front, out = served
        if self._follows:
            self._before = _Before(spec, held, front)
        return out

    def _recorded(self, groups: Groups | None, arrays: Sequence[Any]) -> Any:
        """The result on a tape, from the first path that holds; MISS where none does."""
        for group in groups or ():
            for path in group:
                if path.exe.acts:
                    return MISS  # as in `_served`
                if path.watched and not path.current():
                    continue
                out = path.exe(*arrays)
                if out is not MISS:
                    self._table.hits += 1
                    return out[0] if path.single else path.rebuild(list(out))
        return MISS

    def _again(self, before: _Before | None, held: Any, leaves: Sequence[Any]) -> Any:
        """The result, if the leaves are arrays of the types of the call before and its static
        values are held; else MISS.
        """
        if before is None or held != before.held:
            return MISS
        entry, raw, path = before.front
        if path.watched and not path.current():
            return MISS
        try:
            out = entry(*leaves)
            if raw is not None and out is not None:
                out = raw(*out)
        except Exception as error:
            path.exe.raise_located(error, leaves)
        if out is None or out is MISS:
            return MISS
        if raw is None:
            return out if path.single else path.rebuild(out)
        self._table.hits += 1
        return wrap(out[0]) if path.single else path.rebuild([wrap(d) for d in out])

    def _split(self, args: Any, kwargs: Any) -> Split:
        return split(self.fun, self.static_argnums, self.static_argnames, args, kwargs)

    def _general(self, args: Any, kwargs: Any, exact: Any) -> Any:
        if exact is not None and self._table.is_plain(exact):
            return self.fun(*args, **kwargs)
        return self._table.call(self._split(args, kwargs), args, kwargs, exact)
