"""A pytest plugin: every array that a test makes is a tracer of a transform that changes nothing.

Run any test-suite that takes an Array-API namespace on `funct.array` with

    python -m pytest -p tests.conformance.inside_transforms --inside grad|jvp|vmap|jit ...

For each test one level is open: `grad` (a leaf of a tape), `jvp` (a value with a zero tangent),
`vmap` (two equal lanes) or `jit` (a captured input). The creation functions of `funct.array` then
return tracers of that level, so that all that the test computes goes through the transform's
rules, and what it looks at is asked from the tracer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import funct.array as xp
from funct import ops
from funct.core import Level
from funct.graph.capture import Capture
from funct.transforms.forward import Forward, ForwardTracer
from funct.transforms.reverse import Reverse, sink, zero_like
from funct.transforms.vmap import Batch, BatchTracer

CREATION = ("arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
            "linspace", "ones", "ones_like", "zeros", "zeros_like")  # fmt: skip

Tracer = Callable[[Any], Any]


def _grad() -> tuple[Level, Tracer]:
    level = Reverse("grad", None)
    return level, lambda x: level.record(x, sink, ()) if x.dtype.kind in "fc" else x


def _jvp() -> tuple[Level, Tracer]:
    level = Forward("jvp", None)
    return level, lambda x: ForwardTracer(x, zero_like(x), level) if x.dtype.kind in "fc" else x


def _vmap() -> tuple[Level, Tracer]:
    level = Batch(None, 2)
    return level, lambda x: BatchTracer(ops.broadcast_to(x, (2, *x.shape)), level)


def _jit() -> tuple[Level, Tracer]:
    level = Capture("jit", None)
    return level, lambda x: level.input(x, None)


TRANSFORMS = {"grad": _grad, "jvp": _jvp, "vmap": _vmap, "jit": _jit}


@contextmanager
def inside(name: str) -> Iterator[Level]:
    """Creation functions give tracers of one level, which is open until the block ends."""
    level, trace = TRANSFORMS[name]()
    plain = {fun: getattr(xp, fun) for fun in CREATION}

    def traced(fun: Callable[..., Any]) -> Callable[..., Any]:
        def create(*args: Any, **kwargs: Any) -> Any:
            x = fun(*args, **kwargs)
            return trace(x) if x.__class__ is xp.Array else x

        create.__signature__ = inspect.signature(fun)  # type: ignore[attr-defined]
        return create

    for fun in CREATION:
        setattr(xp, fun, traced(plain[fun]))
    try:
        yield level
    finally:
        level.open = False
        for fun in CREATION:
            setattr(xp, fun, plain[fun])


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--inside` names the transform."""
    parser.addoption("--inside", choices=sorted(TRANSFORMS), default=None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """One level for each test."""
    name = item.config.getoption("--inside")
    if name is None:
        return (yield)
    with inside(name):
        return (yield)
