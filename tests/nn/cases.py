"""What a case is: a call of nn.functional that torch answers too; and who answers it.

The cases stand in tables.py. `python -m tests.nn.tables` writes what torch says (2.13.0, CPU,
float64) to tests/golden/functional.json; the tests compare with that file, and with torch itself
where it is installed.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import funct as ft
import funct.array as xp
from funct import nn

GOLDEN = Path(__file__).parent.parent / "golden" / "functional.json"

Raw = np.ndarray[Any, Any]


def wave(shape: tuple[int, ...], phase: float = 0.0) -> Raw:
    """Numbers in (-2, 2) without ties or zeros, the same everywhere."""
    n = int(np.prod(shape))
    return 2.0 * np.sin(1.3 * np.arange(n) + 0.2 + phase).reshape(shape)


# what a function is defined on, made from waves
DOMAINS = {
    "positive": lambda w: np.abs(w) + 0.1,
    "unit": lambda w: 0.5 + 0.2 * w,
    "log": lambda w: w - np.log(np.exp(w).sum(-1, keepdims=True)),
    "sign": np.sign,
    "bit": lambda w: (w > 0) * 1.0,
}


@attrs.frozen
class Case:
    """One call: inputs are shapes (filled by `wave`) or lists (taken as they are).

    domains: input -> what its numbers must be. fixed: inputs without a derivative worth comparing.
    rtol: wider where torch keeps a constant in float32.
    """

    name: str
    label: str
    inputs: dict[str, Any]
    keywords: dict[str, Any] = attrs.field(factory=dict)
    domains: dict[str, str] = attrs.field(factory=dict)
    fixed: tuple[str, ...] = ()
    rtol: float = 1e-10

    @property
    def id(self) -> str:
        """Name in test reports and in the golden file."""
        return f"{self.name}-{self.label}"

    def arrays(self) -> dict[str, Raw]:
        """The inputs by name."""
        return {k: self._filled(i, k, v) for i, (k, v) in enumerate(self.inputs.items())}

    def _filled(self, i: int, name: str, value: Any) -> Raw:
        if not isinstance(value, tuple):
            return np.asarray(value)
        x = wave(value, 0.7 * i)
        return np.asarray(DOMAINS[self.domains[name]](x)) if name in self.domains else x

    def varying(self) -> list[str]:
        """Names of the inputs whose gradients are compared."""
        shapes = [k for k, v in self.inputs.items() if isinstance(v, tuple)]
        discrete = [k for k, d in self.domains.items() if d in ("sign", "bit")]
        return [k for k in shapes if k not in (*self.fixed, *discrete)]


def _outs(out: Any) -> tuple[Any, ...]:
    return out if isinstance(out, tuple) else (out,)


def by_funct(case: Case) -> dict[str, Any]:
    """Outputs and gradients of the first output's weighted sum."""
    arrays = {k: xp.asarray(v) for k, v in case.arrays().items()}
    names = case.varying()
    fun = getattr(nn.functional, case.name)
    outs = _outs(fun(**arrays, **case.keywords))
    found = {f"out{i or ''}": np.asarray(o) for i, o in enumerate(outs)}
    grads = ft.grad(_total(case, fun, arrays))({k: arrays[k] for k in names}) if names else {}
    return found | {k: np.asarray(g) for k, g in grads.items()}


def _total(case: Case, fun: Any, arrays: dict[str, Any]) -> Any:
    def total(given: dict[str, Any]) -> Any:
        y = _outs(fun(**{**arrays, **given}, **case.keywords))[0]
        return xp.sum(y * xp.asarray(wave(y.shape, 0.3)))

    return total


def second_by_funct(case: Case) -> dict[str, Any]:
    """Gradients of a weighted sum of the gradients."""
    arrays = {k: xp.asarray(v) for k, v in case.arrays().items()}
    total = _total(case, getattr(nn.functional, case.name), arrays)

    def slope(given: dict[str, Any]) -> Any:
        grads = ft.grad(total)(given)
        return sum(xp.sum(g * xp.asarray(wave(g.shape, 0.9))) for g in grads.values())

    grads = ft.grad(slope)({k: arrays[k] for k in case.varying()})
    return {k: np.asarray(g) for k, g in grads.items()}


def by_torch(case: Case, second: bool = False) -> dict[str, Any]:
    """The same by torch; the second order of what torch cannot differentiate twice raises."""
    import torch

    arrays = {k: torch.tensor(v) for k, v in case.arrays().items()}
    names = case.varying()
    for k in names:
        arrays[k].requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fun = getattr(torch.nn.functional, case.name, None) or getattr(torch, case.name)
        outs = _outs(fun(**arrays, **case.keywords))
    found = {f"out{i or ''}": o.detach().numpy() for i, o in enumerate(outs)}
    given = [arrays[k] for k in names]
    if not names:
        return found
    total = (outs[0] * torch.tensor(wave(tuple(outs[0].shape), 0.3))).sum()
    grads = torch.autograd.grad(total, given, create_graph=second)
    if second:
        found = {}
        parts = [(g * torch.tensor(wave(tuple(g.shape), 0.9))).sum() for g in grads]
        slope = torch.stack(parts).sum()
        zeros = [torch.zeros_like(x) for x in given]
        if not slope.requires_grad:
            return dict(zip(names, [z.numpy() for z in zeros], strict=True))
        grads = torch.autograd.grad(slope, given, allow_unused=True)
        grads = [z if g is None else g for g, z in zip(grads, zeros, strict=True)]
    return found | {k: g.numpy(force=True) for k, g in zip(names, grads, strict=True)}


def stored() -> dict[str, dict[str, Any]]:
    """What torch said."""
    return json.loads(GOLDEN.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
