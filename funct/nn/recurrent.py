"""Recurrent layers: RNN, LSTM, GRU; a layer is a scan of steps over time.

The products with the inputs are taken for all steps at once; the loop has those with the state.
"""

from __future__ import annotations

from typing import Any, ClassVar

import funct.array as xp
from funct import random
from funct.errors import ArgumentError, ShapeError
from funct.nn import functional
from funct.nn.functional.arguments import needed_key, probability, shape_of
from funct.nn.module import Module, layout, static
from funct.nn.recurrent_cell import (
    GRU_STEP,
    LSTM_STEP,
    RNN_STEP,
    Kind,
    State,
    Weights,
    affine,
    check_nonlinearity,
    check_positive,
    initial,
    pair,
)
from funct.transforms import scan

__all__ = ["GRU", "LSTM", "RNN"]


class _Recurrent(Module):
    """Layers of one kind over sequences; its weights have torch's names."""

    kind: ClassVar[Kind]

    input_size: int = static()
    hidden_size: int = static()
    num_layers: int = static()
    bias: bool = static()
    batch_first: bool = static()
    dropout: float = static()
    bidirectional: bool = static()
    proj_size: int = static()
    nonlinearity: str = static()
    training: bool = static()
    weights: Weights

    def _start(
        self, input_size: int, hidden_size: int, num_layers: int, bias: bool, batch_first: bool,
        dropout: float, bidirectional: bool, proj_size: int, name: str, key: Any, dtype: Any,
    ) -> None:  # fmt: skip
        kind = type(self).__name__
        check_positive(kind, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError(
                f"{kind}: proj_size must be from 0 to below hidden_size={hidden_size}, got "
                f"{proj_size}"
            )
        out = proj_size or hidden_size
        ways = 2 if bidirectional else 1
        weights: Weights = {}
        for k, one in enumerate(random.split(key, num_layers * ways)):
            inputs = input_size if k < ways else ways * out
            found = initial(one, self.kind.gates, (hidden_size, out), inputs, bias, dtype)
            weights |= {n + _suffix(k, ways): w for n, w in found.items()}
        self.__attrs_init__(
            input_size, hidden_size, num_layers, bias, batch_first,
            float(probability(kind, dropout)), bidirectional, proj_size, name, True, weights,
        )  # fmt: skip

    def _flatten(self) -> tuple[Any, Any, Any]:
        names = tuple(self.weights)
        static = tuple([(n, v) for n, v in self.__dict__.items() if n != "weights"])
        return tuple(self.weights.values()), (static, names), names

    @classmethod
    def _unflatten(cls, static: Any, children: Any) -> Any:
        fields, names = static
        new = object.__new__(cls)
        new.__dict__.update(fields, weights=dict(zip(names, children, strict=True)))
        return new

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["weights"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}") from None

    def __repr__(self) -> str:
        shown = ("input_size", "hidden_size", "num_layers", "batch_first", "bidirectional")
        return layout(type(self).__name__, [(f"{n}=", getattr(self, n)) for n in shown])

    @property
    def draws(self) -> bool:
        """Whether a call needs `key`."""
        return self.training and self.dropout > 0.0 and self.num_layers > 1

    def _sequence(self, x: Any, state: State | None, key: Any) -> tuple[Any, State]:
        """Outputs of the last layer, and the last states of all layers."""
        name, ways = type(self).__name__, 2 if self.bidirectional else 1
        shape = shape_of(x)
        if not 2 <= len(shape) <= 3 or shape[-1] != self.input_size:
            raise ShapeError(
                f"{name}: x must have 2 or 3 axes and {self.input_size} features on its last, got "
                f"{shape}"
            )
        if self.draws:
            needed_key(name, key)
        single, swap = len(x.shape) == 2, self.batch_first and len(x.shape) == 3
        x = xp.moveaxis(x, 0, 1) if swap else xp.expand_dims(x, 1) if single else x
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)
        shapes = [(self.num_layers * ways, x.shape[1], n) for n in sizes[: self.kind.states]]
        if state is None:
            state = tuple([xp.zeros(s, dtype=x.dtype) for s in shapes])
        elif single:
            state = tuple([xp.expand_dims(h, 1) for h in state])
        for h, s in zip(state, shapes, strict=True):
            if tuple(shape_of(h, "hx")) != s:
                raise ShapeError(f"{name}: a state must have shape {s}, got {tuple(h.shape)}")
        lasts: list[State] = []
        for layer in range(self.num_layers):
            if layer and self.draws:
                x = functional.dropout(x, self.dropout, True, key=random.fold_in(key, layer))
            outs = []
            for way in range(ways):
                k = layer * ways + way
                last, ys = self._run(k, ways, x, tuple([h[k] for h in state]), way == 1)
                lasts.append(last)
                outs.append(ys)
            x = outs[0] if ways == 1 else xp.concat(outs, axis=-1)
        ends = tuple([xp.stack(list(column)) for column in zip(*lasts, strict=True)])
        if single:
            return x[:, 0], tuple([h[:, 0] for h in ends])
        return (xp.moveaxis(x, 0, 1) if swap else x), ends

    def _run(self, k: int, ways: int, x: Any, state: State, back: bool) -> tuple[State, Any]:
        """One layer in one direction."""
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        w = {n: self.weights.get(n + _suffix(k, ways)) for n in parts}

        def step(state: State, given: Any) -> tuple[State, Any]:
            state = self.kind.step(self.nonlinearity, state, given, w)
            return state, state[0]

        return scan(step, state, affine(x, w, "ih"), reverse=back)


def _suffix(k: int, ways: int) -> str:
    return f"_l{k // ways}" + ("_reverse" if k % ways else "")


class RNN(_Recurrent):
    """Layers of h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh).

    Args: input_size, hidden_size: I and H. num_layers: so many, one on the outputs of the other.
    nonlinearity: "tanh" or "relu". bias: False leaves biases out. batch_first: (N, L, I) instead of
    (L, N, I). dropout: of what goes from layer to layer, in training. bidirectional: a second run
    from the end, its outputs beside those of the first. key: a random key for the initial values,
    uniform on ±1 / sqrt(H) as in torch. dtype: of the parameters.
    Raises: ArgumentError: when a size is not positive, or an option unknown.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.RNN(3, 4, num_layers=2, key=ft.random.key(0))
        >>> ys, h = layer(xp.ones((5, 2, 3), dtype=xp.float32))
        >>> ys.shape, h.shape
        ((5, 2, 4), (2, 2, 4))
        >>> list(nn.state_dict(layer))[:4]
        ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']

    Source: Elman 1990; torch.nn.RNN.
    """

    kind = RNN_STEP
    _flatten = _Recurrent._flatten

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
        bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False, *, key: Any, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        self._start(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
            check_nonlinearity("RNN", nonlinearity), key, dtype,
        )  # fmt: skip

    def __call__(self, x: Any, hx: Any = None, *, key: Any = None) -> tuple[Any, Any]:
        """(outputs (L, N, D H), last states (D num_layers, N, H)), D the number of directions.

        x: (L, N, I), or (L, I) for one sequence. hx: the first states, 0 if none is given.
        Raises: ShapeError: when x or hx does not fit. MissingKeyError: when key is missing in
        training and dropout is positive.
        """
        ys, (h,) = self._sequence(x, None if hx is None else (hx,), key)
        return ys, h


class LSTM(_Recurrent):
    """Layers of long short-term memory, see `LSTMCell`.

    Args: proj_size: P, 0 for none: outputs are mapped to so many features. The others: as `RNN`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.LSTM(3, 4, batch_first=True, bidirectional=True, key=ft.random.key(0))
        >>> ys, (h, c) = layer(xp.ones((2, 5, 3), dtype=xp.float32))
        >>> ys.shape, h.shape
        ((2, 5, 8), (2, 2, 4))

    Source: Hochreiter and Schmidhuber 1997; torch.nn.LSTM.
    """

    kind = LSTM_STEP
    _flatten = _Recurrent._flatten

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        proj_size: int = 0, *, key: Any, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        self._start(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            proj_size, "tanh", key, dtype,
        )  # fmt: skip

    def __call__(self, x: Any, hx: Any = None, *, key: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """(outputs, (last h, last c)), as `RNN`; hx: (h, c)."""
        ys, (h, c) = self._sequence(x, None if hx is None else pair(hx), key)
        return ys, (h, c)


class GRU(_Recurrent):
    """Layers of gated recurrent units, see `GRUCell`.

    Args: as `RNN`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.GRU(3, 5, num_layers=2, key=ft.random.key(0))
        >>> y, h = layer(xp.ones((7, 2, 3), dtype=xp.float32))  # (L, N, input_size)
        >>> y.shape, h.shape
        ((7, 2, 5), (2, 2, 5))

    Source: Cho et al. 2014, arXiv:1406.1078; torch.nn.GRU.
    """

    kind = GRU_STEP
    _flatten = _Recurrent._flatten

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, *, key: Any,
        dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        self._start(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
            "tanh", key, dtype,
        )  # fmt: skip

    def __call__(self, x: Any, hx: Any = None, *, key: Any = None) -> tuple[Any, Any]:
        """(outputs, last states), as `RNN`."""
        ys, (h,) = self._sequence(x, None if hx is None else (hx,), key)
        return ys, h
