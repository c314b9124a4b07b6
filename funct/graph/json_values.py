"""What stands in a graph besides arrays, as JSON and back: numbers, tuples, dtypes, sizes.

A JSON list is a tuple; an object with one key says what it is: {"float": "inf"},
{"complex": [re, im]}, {"dtype": "int8"}, {"size": "2*N"}.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from funct.core import Primitive, Size
from funct.errors import ExportError, FileFormatError
from funct.graph.size_text import parse_size

__all__ = ["decode_shape", "decode_value", "dtype_named", "encode_value", "params_fit"]

_DTYPES = {
    d.name: d
    for d in (
        *[np.dtype(t) for t in "?bBhHiIlLefdFD"],
        *[
            np.dtype(getattr(ml_dtypes, n))
            for n in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4")
        ],
    )
}


def dtype_named(name: Any) -> np.dtype[Any]:
    """The dtype of that name."""
    if not isinstance(name, str) or name not in _DTYPES:
        raise FileFormatError(f"graph.json: unknown dtype {name!r}")
    return _DTYPES[name]


def encode_value(v: Any) -> Any:
    """A parameter or a number as JSON; ExportError for what has no form."""
    if v is None or isinstance(v, bool | str) or type(v) is int:
        return v
    if isinstance(v, float):
        return float(v) if math.isfinite(v) else {"float": repr(float(v))}
    if isinstance(v, complex):
        return {"complex": [encode_value(v.real), encode_value(v.imag)]}
    if isinstance(v, tuple):
        return [encode_value(e) for e in v]
    if isinstance(v, Size):
        return {"size": repr(v)}
    if isinstance(v, np.dtype) and v.name in _DTYPES:
        return {"dtype": v.name}
    if isinstance(v, np.integer):
        return int(v)
    raise ExportError(f"save: a {type(v).__name__} has no form in a file")


def decode_value(v: Any, symbols: Mapping[str, Size]) -> Any:
    """The value that `encode_value` wrote."""
    if v is None or isinstance(v, bool | str | int | float):
        return v
    if isinstance(v, list):
        return tuple([decode_value(e, symbols) for e in v])
    ((kind, inner),) = v.items() if len(v) == 1 else (("", None),)
    if kind == "size":
        return parse_size(inner, symbols)
    if kind == "dtype":
        return dtype_named(inner)
    if kind == "float" and inner in ("inf", "-inf", "nan"):
        return float(inner)
    if kind == "complex" and isinstance(inner, list) and len(inner) == 2:
        parts = [decode_value(e, symbols) for e in inner]
        if all(isinstance(e, float) for e in parts):
            return complex(*parts)
    raise FileFormatError(f"graph.json: an unknown kind of value: {str(v)[:60]}")


def decode_shape(v: Any, symbols: Mapping[str, Size]) -> tuple[Any, ...]:
    """A shape: non-negative integers and sizes."""
    shape = decode_value(v, symbols)
    if not isinstance(shape, tuple) or not all(isinstance(n, Size) or _is_count(n) for n in shape):
        raise FileFormatError(f"graph.json: {str(v)[:60]} is no shape")
    return shape


def _is_count(n: Any) -> bool:
    return type(n) is int and 0 <= n < 2**63


# parameters -------------------------------------------------------------------------------------


def params_fit(prim: Primitive, params: tuple[Any, ...]) -> bool:
    """Whether the parameters are of the types that the primitive's samples have."""
    if len(params) != len(prim.params):
        return False
    samples = _sample_params(prim)
    return not samples or all(_fits(p, [s[k] for s in samples]) for k, p in enumerate(params))


@cache
def _sample_params(prim: Primitive) -> list[tuple[Any, ...]]:
    return [s.params for s in prim.samples(np.random.default_rng(0))]


def _fits(v: Any, examples: list[Any]) -> bool:
    if isinstance(v, tuple):
        tuples = [e for e in examples if isinstance(e, tuple)]
        elements = [e for t in tuples for e in t]
        return bool(tuples) and all(not elements or _fits(e, elements) for e in v)
    return any(_type(v) == _type(e) for e in examples)


def _type(v: Any) -> str:
    if isinstance(v, Size | np.integer):
        return "int"
    return "dtype" if isinstance(v, np.dtype) else type(v).__name__
