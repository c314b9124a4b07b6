"""Calls of nn.functional that torch answers too: name, inputs, keywords.

`python -m tests.nn.cases` writes what torch says (2.13.0, CPU, float64) to
tests/golden/functional.json; the tests compare with that file, and with torch itself where it is
installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import funct as ft
import funct.array as xp
from funct import nn

GOLDEN = Path(__file__).parent.parent / "golden" / "functional.json"


def wave(shape: tuple[int, ...], phase: float = 0.0) -> np.ndarray[Any, Any]:
    """Numbers in (-2, 2) without ties or zeros, the same everywhere."""
    n = int(np.prod(shape))
    return 2.0 * np.sin(1.3 * np.arange(n) + 0.2 + phase).reshape(shape)


@attrs.frozen
class Case:
    """One call: inputs are shapes (filled by `wave`) or lists (taken as they are)."""

    name: str
    label: str
    inputs: dict[str, Any]
    keywords: dict[str, Any] = attrs.field(factory=dict)

    @property
    def id(self) -> str:
        """Name in test reports and in the golden file."""
        return f"{self.name}-{self.label}"

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The inputs by name."""
        filled = enumerate(self.inputs.items())
        return {
            k: wave(v, 0.7 * i) if isinstance(v, tuple) else np.asarray(v) for i, (k, v) in filled
        }


def _conv(name: str, label: str, x: Any, w: Any, **keywords: Any) -> Case:
    return Case(name, label, {"input": x, "weight": w, "bias": (w[0],)}, keywords)


def _on(name: str, label: str, x: Any, **keywords: Any) -> Case:
    return Case(name, label, {"input": x}, keywords)


def _loss(name: str, label: str, x: Any, target: Any, weight: Any = None, **keywords: Any) -> Case:
    inputs = {"input": x, "target": target} | ({} if weight is None else {"weight": weight})
    return Case(name, label, inputs, keywords)


_W3, _W4 = [0.5, 1.0, 2.0], [0.5, 1.0, 2.0, 0.25]
_W23 = [[1.0, 2.0, 0.5], [0.1, 1.0, 3.0]]
_GRID = [[1, -100], [2, 0]]  # one label of four is ignored
_MIXED = [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]  # probabilities
_CEIL: dict[str, Any] = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}
_SKEW: dict[str, Any] = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}
_WIDE: dict[str, Any] = {"stride": (1, 2), "padding": (1, 1), "dilation": (2, 1)}

CASES = [
    Case("linear", "batch", {"input": (2, 3), "weight": (4, 3), "bias": (4,)}),
    Case("linear", "vector", {"input": (3,), "weight": (4, 3)}),
    Case("linear", "leading", {"input": (2, 2, 3), "weight": (2, 3)}),
    _conv("conv1d", "default", (2, 2, 6), (3, 2, 3)),
    _conv("conv1d", "groups", (1, 4, 7), (4, 2, 2), stride=2, padding=1, dilation=3, groups=2),
    _conv("conv1d", "same", (1, 1, 5), (2, 1, 4), padding="same"),
    _conv("conv1d", "unbatched", (2, 5), (2, 2, 3), padding=1),
    _conv("conv2d", "default", (1, 2, 4, 5), (2, 2, 3, 3)),
    _conv("conv2d", "skew", (1, 2, 6, 5), (2, 1, 3, 2), **_SKEW),
    _conv("conv2d", "same", (1, 1, 4, 4), (1, 1, 3, 2), padding="same", dilation=2),
    _conv("conv2d", "valid", (1, 1, 4, 4), (1, 1, 3, 2), padding="valid"),
    _conv("conv2d", "unbatched", (1, 4, 4), (2, 1, 2, 2)),
    _on("max_pool1d", "default", (1, 2, 7), kernel_size=3),
    _on("max_pool1d", "ceil", (1, 2, 8), kernel_size=3, stride=3, padding=1, ceil_mode=True),
    _on("max_pool2d", "default", (1, 2, 5, 4), kernel_size=2),
    _on("max_pool2d", "wide", (2, 6, 7), kernel_size=(2, 3), **_WIDE),
    _on("max_pool2d", "ceil", (1, 1, 5, 6), kernel_size=2, stride=3, padding=1, ceil_mode=True),
    _on("avg_pool1d", "default", (1, 2, 7), kernel_size=3),
    _on("avg_pool1d", "ceil", (1, 2, 8), **_CEIL),
    _on("avg_pool2d", "default", (1, 2, 5, 4), kernel_size=2),
    _on("avg_pool2d", "exclude", (1, 1, 5, 6), **_CEIL, count_include_pad=False),
    _on("avg_pool2d", "divisor", (1, 1, 5, 6), **_CEIL, divisor_override=5),
    _on("relu", "default", (2, 3)),
    _on("gelu", "default", (2, 3)),
    _on("gelu", "tanh", (2, 3), approximate="tanh"),
    _on("softmax", "rows", (2, 3), dim=1),
    _on("softmax", "middle", (2, 3, 2), dim=-2),
    _on("log_softmax", "rows", (2, 3), dim=-1),
    _loss("cross_entropy", "default", (3, 4), [1, 3, 0]),
    _loss("cross_entropy", "vector", (4,), 2),
    _loss("cross_entropy", "weight", (3, 4), [1, 3, 0], _W4),
    _loss("cross_entropy", "ignore", (3, 4), [1, -100, 0], label_smoothing=0.1),
    _loss("cross_entropy", "both", (3, 4), [1, 2, 0], _W4, ignore_index=2, label_smoothing=0.2),
    _loss("cross_entropy", "none", (2, 3, 2), _GRID, reduction="none", label_smoothing=0.1),
    _loss("cross_entropy", "sum", (2, 3, 2), _GRID, reduction="sum"),
    _loss("cross_entropy", "probabilities", (2, 3), _MIXED),
    _loss("cross_entropy", "smoothed", (2, 3), _MIXED, _W3, label_smoothing=0.3),
    _loss("nll_loss", "default", (3, 4), [1, 3, 0]),
    _loss("nll_loss", "weight", (2, 3, 2), [[1, 1], [2, 0]], _W3, ignore_index=0),
    _loss("mse_loss", "default", (2, 3), (2, 3)),
    _loss("mse_loss", "none", (2, 3), (2, 3), reduction="none"),
    _loss("mse_loss", "weight", (2, 3), (2, 3), _W23),
    _on("one_hot", "default", [1, 0, 3]),
]
BY_ID = {c.id: c for c in CASES}

# of losses: torch has no derivative for them, or none that means anything
_NO_GRADIENT = {"weight", "target"}


def differentiable(case: Case) -> list[str]:
    """Names of the inputs whose gradients are compared."""
    shapes = [k for k, v in case.inputs.items() if isinstance(v, tuple)]
    loss = case.name.endswith(("loss", "entropy"))
    return [k for k in shapes if not (loss and k in _NO_GRADIENT)]


def by_funct(case: Case) -> dict[str, Any]:
    """Output and gradients of the output's weighted sum."""
    arrays = {k: xp.asarray(v) for k, v in case.arrays().items()}
    names = differentiable(case)
    fun = getattr(nn.functional, case.name)
    out = fun(**arrays, **case.keywords)

    def total(given: dict[str, Any]) -> Any:
        y = fun(**{**arrays, **given}, **case.keywords)
        return xp.sum(y * xp.asarray(wave(y.shape, 0.3)))

    grads = ft.grad(total)({k: arrays[k] for k in names}) if names else {}
    return {"out": np.asarray(out), **{k: np.asarray(g) for k, g in grads.items()}}


def by_torch(case: Case) -> dict[str, Any]:
    """The same by torch."""
    import torch

    arrays = {k: torch.tensor(v) for k, v in case.arrays().items()}
    names = differentiable(case)
    for k in names:
        arrays[k].requires_grad_()
    out = getattr(torch.nn.functional, case.name)(**arrays, **case.keywords)
    found = {"out": out.detach().numpy()}
    if names:
        (out * torch.tensor(wave(tuple(out.shape), 0.3))).sum().backward()
        found.update({k: arrays[k].grad.numpy() for k in names})
    return found


def stored() -> dict[str, dict[str, Any]]:
    """What torch said."""
    return json.loads(GOLDEN.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def write() -> None:
    """Ask torch again."""
    found = {c.id: {k: v.round(12).tolist() for k, v in by_torch(c).items()} for c in CASES}
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
