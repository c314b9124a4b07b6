"""One step of a recurrent layer: what it computes, its weights, and as a layer of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import funct.array as xp
from funct import ops, random
from funct.array import Tensor
from funct.errors import ArgumentError, ShapeError, UnsupportedOperandError
from funct.nn import functional, init
from funct.nn.functional.arguments import shape_of
from funct.nn.module import Module, static

__all__ = [
    "GRU_STEP", "LSTM_STEP", "RNN_STEP", "GRUCell", "Kind", "LSTMCell", "RNNCell", "State",
    "Weights", "affine", "check_nonlinearity", "check_positive", "initial", "pair",
]  # fmt: skip

State = tuple[Any, ...]
Weights = dict[str, Any]

_NONLINEARITIES: dict[str, Callable[[Any], Any]] = {"tanh": ops.tanh, "relu": ops.relu}


def _rnn_step(name: str, state: State, given: Any, w: Weights) -> State:
    return (_NONLINEARITIES[name](given + affine(state[0], w, "hh")),)


def _lstm_step(name: str, state: State, given: Any, w: Weights) -> State:
    h, c = state
    i, f, g, o = _parts(given + affine(h, w, "hh"), 4)
    c = functional.sigmoid(f) * c + functional.sigmoid(i) * ops.tanh(g)
    h = functional.sigmoid(o) * ops.tanh(c)
    return (h if w.get("weight_hr") is None else functional.linear(h, w["weight_hr"])), c


def _gru_step(name: str, state: State, given: Any, w: Weights) -> State:
    (h,) = state
    (r, z, n), (hr, hz, hn) = _parts(given, 3), _parts(affine(h, w, "hh"), 3)
    z = functional.sigmoid(z + hz)
    n = ops.tanh(n + functional.sigmoid(r + hr) * hn)
    return (n + z * (h - n),)


def affine(x: Any, w: Weights, which: str) -> Any:
    """What the weights of the input ("ih") or of the state ("hh") make of it."""
    return functional.linear(x, w[f"weight_{which}"], w.get(f"bias_{which}"))


def _parts(x: Any, count: int) -> list[Any]:
    """The gates, which stand side by side on the last axis."""
    n = x.shape[-1] // count
    return [x[..., k * n : (k + 1) * n] for k in range(count)]


class Kind:
    """What tells the three apart: gates, values in the state, the step."""

    def __init__(self, gates: int, states: int, step: Callable[..., State]) -> None:
        self.gates = gates
        self.states = states
        self.step = step


RNN_STEP, LSTM_STEP, GRU_STEP = Kind(1, 1, _rnn_step), Kind(4, 2, _lstm_step), Kind(3, 1, _gru_step)


def check_positive(name: str, **sizes: int) -> None:
    """Refuse sizes below one."""
    for k, n in sizes.items():
        if n < 1:
            raise ArgumentError(f"{name}: {k} must be positive, got {n}")


def check_nonlinearity(name: str, given: str) -> str:
    """The name of a nonlinearity, if there is one of that name."""
    if given not in _NONLINEARITIES:
        raise ArgumentError(f"{name}: nonlinearity must be 'tanh' or 'relu', got {given!r}")
    return given


def initial(
    key: Any, gates: int, sizes: tuple[int, int], inputs: int, bias: bool, dtype: Any
) -> Weights:
    """The weights of one layer in one direction, torch's: uniform on ±1 / sqrt(hidden size)."""
    hidden, out = sizes
    shapes: dict[str, tuple[int, ...]] = {
        "weight_ih": (gates * hidden, inputs), "weight_hh": (gates * hidden, out),
    }  # fmt: skip
    if bias:
        shapes |= {"bias_ih": (gates * hidden,), "bias_hh": (gates * hidden,)}
    if out != hidden:
        shapes["weight_hr"] = (out, hidden)
    bound = 1.0 / math.sqrt(hidden)
    keys = random.split(key, len(shapes))
    return {
        n: init.uniform(k, s, -bound, bound, dtype=dtype)
        for k, (n, s) in zip(keys, shapes.items(), strict=True)
    }


def pair(hx: Any) -> State:
    """The state (h, c) of a layer that has two."""
    try:
        h, c = hx
    except (TypeError, ValueError):
        got = type(hx).__name__
        raise UnsupportedOperandError(f"hx must be a pair (h, c), got {got}") from None
    return h, c


class _Cell(Module):
    """One step of a recurrent layer."""

    kind: ClassVar[Kind]

    input_size: int = static()
    hidden_size: int = static()
    nonlinearity: str = static()
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, key: Any,
        dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        self._start(input_size, hidden_size, bias, "tanh", key, dtype)

    def _start(self, inputs: int, hidden: int, bias: bool, name: str, key: Any, dtype: Any) -> None:
        check_positive(type(self).__name__, input_size=inputs, hidden_size=hidden)
        w = initial(key, self.kind.gates, (hidden, hidden), inputs, bias, dtype)
        self.__attrs_init__(
            inputs, hidden, name, w["weight_ih"], w["weight_hh"], w.get("bias_ih"),
            w.get("bias_hh"),
        )  # fmt: skip

    def _next(self, x: Any, state: State | None) -> State:
        name, shape = type(self).__name__, shape_of(x)
        if not 1 <= len(shape) <= 2 or shape[-1] != self.input_size:
            raise ShapeError(
                f"{name}: x must have shape (N, {self.input_size}) or ({self.input_size},), "
                f"got {shape}"
            )
        shape = (*shape[:-1], self.hidden_size)
        if state is None:
            state = (xp.zeros(shape, dtype=x.dtype),) * self.kind.states
        for h in state:
            if tuple(shape_of(h, "hx")) != shape:
                raise ShapeError(f"{name}: the state must have shape {shape}, got {h.shape}")
        w: Weights = {n: getattr(self, n) for n in ("weight_hh", "bias_hh")}
        given = functional.linear(x, self.weight_ih, self.bias_ih)
        return self.kind.step(self.nonlinearity, state, given, w)


class RNNCell(_Cell):
    """One step: h' = tanh(W_ih x + b_ih + W_hh h + b_hh).

    Args: input_size, hidden_size: I and H. bias: False leaves both biases out. nonlinearity: "tanh"
    or "relu". key: a random key for the initial values, uniform on ±1 / sqrt(H) as in torch. dtype:
    of the parameters.
    Raises: ArgumentError: when a size is not positive or the nonlinearity is unknown.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> cell = nn.RNNCell(3, 4, key=ft.random.key(0))
        >>> cell(xp.ones((2, 3), dtype=xp.float32)).shape
        (2, 4)

    Source: torch.nn.RNNCell.
    """

    kind = RNN_STEP

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", *,
        key: Any, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        name = check_nonlinearity("RNNCell", nonlinearity)
        self._start(input_size, hidden_size, bias, name, key, dtype)

    def __call__(self, x: Any, hx: Any = None) -> Any:
        """The next state, from x (N, I) or (I,), and the state, 0 if none is given."""
        return self._next(x, None if hx is None else (hx,))[0]


class LSTMCell(_Cell):
    """One step of long short-term memory, with gates i, f, g, o.

    Maths: c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c').
    Args: input_size, hidden_size, bias, key, dtype: as `RNNCell`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> cell = nn.LSTMCell(3, 5, key=ft.random.key(0))
        >>> h, c = cell(xp.ones((2, 3), dtype=xp.float32))  # from zeros
        >>> h.shape, c.shape
        ((2, 5), (2, 5))

    Source: Hochreiter and Schmidhuber 1997; torch.nn.LSTMCell.
    """

    kind = LSTM_STEP

    def __call__(self, x: Any, hx: Any = None) -> tuple[Any, Any]:
        """(h, c) after the step, from x (N, I) or (I,), and (h, c), 0 if none is given."""
        h, c = self._next(x, None if hx is None else pair(hx))
        return h, c


class GRUCell(_Cell):
    """One step of a gated recurrent unit, with gates r, z, n.

    Maths: n = tanh(W_in x + b_in + σ(r) (W_hn h + b_hn)), h' = (1 - σ(z)) n + σ(z) h.
    Args: input_size, hidden_size, bias, key, dtype: as `RNNCell`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> cell = nn.GRUCell(3, 5, key=ft.random.key(0))
        >>> cell(xp.ones((2, 3), dtype=xp.float32)).shape  # the new h, from zeros
        (2, 5)

    Source: Cho et al. 2014, arXiv:1406.1078; torch.nn.GRUCell.
    """

    kind = GRU_STEP

    def __call__(self, x: Any, hx: Any = None) -> Any:
        """The next state, from x (N, I) or (I,), and the state, 0 if none is given."""
        return self._next(x, None if hx is None else (hx,))[0]
