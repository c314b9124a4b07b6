"""Steps of random programs that have structure: bodies of loops and branches, rules, named axes,
inner transforms, linear systems. Each takes two (3, 3) arrays and gives one; all are smooth almost
everywhere.
"""

from typing import Any

import numpy as np
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from tests.strategies import BINARY, SIDE, UNARY, Program

ROUGH = {"stop", "single"}  # differences see what stop_gradient hides; float32 is too coarse
EYE = np.eye(SIDE)


@ft.custom_jvp
def _pushed(x: Any, y: Any) -> Any:
    return xp.sin(x) * y


@_pushed.defjvp
def _push(primals: Any, tangents: Any) -> Any:
    (x, y), (s, t) = primals, tangents
    return _pushed(x, y), xp.cos(x) * y * s + xp.sin(x) * t


@ft.custom_vjp
def _pulled(x: Any, y: Any) -> Any:
    return xp.tanh(x) * y


_pulled.defvjp(
    lambda x, y: (_pulled(x, y), (x, y)),
    lambda kept, g: (g * kept[1] / xp.square(xp.cosh(kept[0])), g * xp.tanh(kept[0])),
)


def _cell(c: Any, r: Any) -> Any:
    c = xp.tanh(c + xp.sin(r))
    return c, c * r


def _halved(x: Any, y: Any) -> Any:
    """As many steps as the values ask for."""
    return ft.while_loop(
        lambda s: xp.sum(s * s) > 1.0, lambda s: s * 0.7 + 0.01 * xp.sin(y), xp.tanh(x)
    )


STRUCTURED: dict[str, Any] = {
    "checkpoint": lambda x, y: ft.checkpoint(lambda v: xp.sin(v) * y)(x),
    "cond": lambda x, y: ft.cond(xp.sum(x) > 0.0, lambda v: xp.sin(v) * y, lambda v: v + y, x),
    "switch": lambda x, y: ft.switch(
        xp.astype(xp.sum(x) > 0.3, "int64"), [xp.tanh, lambda v: v * y], x
    ),
    "scan": lambda x, y: ft.scan(_cell, x[0], y)[1],
    "scan_back": lambda x, y: ft.scan(_cell, y[-1], x, reverse=True)[1],
    "scan_closed": lambda x, y: ft.scan(lambda c, _: (xp.tanh(c @ y * 0.3) + x, None), x, length=2)[
        0
    ],
    "while": lambda x, y: ft.while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, xp.sin(s[1]) + 0.1 * y), (0, x)
    )[1],
    "while_data": _halved,
    "fori": lambda x, y: ft.fori_loop(0, 2, lambda i, s: xp.tanh(s + i * y), x),
    "map": lambda x, y: ft.map(lambda r: xp.tanh(r) + xp.sum(y[0] * r), x),
    "associative": lambda x, y: ft.associative_scan(lambda a, b: xp.sin(a) * 0.5 + b, x + y),
    "custom_jvp": _pushed,
    "custom_vjp": _pulled,
    "centred": lambda x, y: ft.vmap(lambda r: y[1] + r - ft.pmean(r, "i"), axis_name="i")(x),
    "crossed": ft.vmap(
        ft.vmap(lambda a, b: a * ft.psum(b, "j") + ft.psum(a, "i"), axis_name="j"), axis_name="i"
    ),
    "jit": lambda x, y: ft.jit(lambda v: xp.exp(-v * v) + y)(x),
    "grad": lambda x, y: ft.grad(lambda v: xp.sum(xp.sin(v) * y * v))(x),
    "jvp": lambda x, y: ft.jvp(lambda v: xp.sin(v) * x, (x,), (y,))[1],
    "vjp": lambda x, y: ft.vjp(lambda v: xp.tanh(v) * y, x)[1](y)[0],
    "rows": ft.vmap(lambda r, c: xp.sin(r) * c, in_axes=(0, 1), out_axes=1),
    "rowwise_grad": ft.vmap(ft.grad(lambda r, c: xp.sum(xp.sin(r) * c))),
    "set": lambda x, y: x.at[1].set(xp.sin(y[0])),
    "scatter": lambda x, y: x.at[xp.asarray([0, 2, 0])].add(y * x),
    "sort_columns": lambda x, y: xp.sort(x, axis=0) * y,
    "order": lambda x, y: xp.take_along_axis(y, xp.argsort(x, axis=1), axis=1),
    "max": lambda x, y: xp.max(x, axis=1, keepdims=True) + y,
    "logsumexp": lambda x, y: x - xp.logsumexp(y, axis=0, keepdims=True),
    "product": lambda x, y: xp.prod(xp.tanh(x), axis=0, keepdims=True) + xp.sin(y),
    "spread": lambda x, y: xp.std(x, axis=0, keepdims=True) * xp.tanh(y),
    "solve": lambda x, y: xp.linalg.solve(xp.tanh(x) + 4.0 * EYE, y),
    "inverse": lambda x, y: xp.linalg.inv(xp.tanh(x) * 0.5 + 2.0 * EYE) * y,
    "cholesky": lambda x, y: xp.linalg.cholesky(xp.tanh(x) @ xp.tanh(x).T + EYE) + y,
    "det": lambda x, y: xp.sin(xp.linalg.det(xp.tanh(x)) * y),
}


@st.composite
def structured(draw: Any, max_steps: int = 5) -> Program:
    """A program with at least one structured step among plain ones."""
    plain = st.sampled_from([n for n in (*UNARY, *BINARY) if n not in ROUGH])
    names = st.one_of(st.sampled_from(list(STRUCTURED)), plain)
    recent = st.one_of(st.sampled_from([-1, -1, -2]), st.integers(0, 10))
    steps = draw(st.lists(st.tuples(names, recent, recent), min_size=1, max_size=max_steps))
    first = (draw(st.sampled_from(list(STRUCTURED))), 0, 1)
    outputs = draw(st.lists(recent, min_size=1, max_size=2))
    return Program((first, *steps), (-1, *outputs), STRUCTURED)
