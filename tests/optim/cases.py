"""Optimizers and schedules that torch has too, with the same arguments.

`python -m tests.optim.cases` writes what torch says (2.13.0, CPU, float64) to
tests/golden/optim.json; the tests compare with that file, and with torch itself where it is
installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import funct.array as xp
from funct import optim

GOLDEN = Path(__file__).parent.parent / "golden" / "optim.json"
STEPS = 50
KEPT = (0, 1, 9, 49)  # the steps that the golden file keeps

_ADAM: dict[str, Any] = {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.1}
_SGD: dict[str, Any] = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {}),
    "sgd-decay": ("SGD", {"lr": 0.1, "weight_decay": 0.3}),
    "sgd-momentum": ("SGD", {**_SGD, "dampening": 0.5}),
    "sgd-nesterov": ("SGD", {**_SGD, "nesterov": True}),
    "adam": ("Adam", {}),
    "adam-all": ("Adam", _ADAM),
    "adam-amsgrad": ("Adam", {**_ADAM, "amsgrad": True}),
    "adamw": ("AdamW", {}),
    "adamw-all": ("AdamW", _ADAM),
    "adamw-amsgrad": ("AdamW", {**_ADAM, "amsgrad": True}),
}
_CYCLE: dict[str, Any] = {"max_lr": 0.5, "total_steps": 20}
SCHEDULES: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("LinearLR", {}),
    "linear-all": ("LinearLR", {"start_factor": 0.1, "end_factor": 0.7, "total_iters": 9}),
    "cosine": ("CosineAnnealingLR", {"T_max": 12, "eta_min": 0.05}),
    "one_cycle": ("OneCycleLR", _CYCLE),
    "one_cycle-linear": ("OneCycleLR", {**_CYCLE, "anneal_strategy": "linear", "pct_start": 0.4}),
    "one_cycle-three": ("OneCycleLR", {**_CYCLE, "three_phase": True, "div_factor": 10.0}),
}
LR = 0.5


def start() -> np.ndarray[Any, Any]:
    """The first parameters."""
    return 1.5 * np.sin(1.3 * np.arange(5) + 0.2)


def gradient(p: Any, t: int) -> Any:
    """A gradient that depends on the parameters and on the step; NumPy, Tensor or torch."""
    return p * 0.5 + (-1.0) ** t * 0.3 + 0.1


def by_funct(name: str) -> list[Any]:
    """Parameters after each step."""
    kind, keywords = OPTIMIZERS[name]
    opt = getattr(optim, kind.lower())(**keywords)
    params = xp.asarray(start())
    state, path = opt.init(params), []
    for t in range(STEPS):
        params, state, _ = opt.step(params, gradient(params, t), state)
        path.append(np.asarray(params))
    return path


def by_torch(name: str) -> list[Any]:
    """The same by torch."""
    import torch

    kind, keywords = OPTIMIZERS[name]
    p = torch.tensor(start(), requires_grad=True)
    opt, path = getattr(torch.optim, kind)([p], **keywords), []
    for t in range(STEPS):
        p.grad = gradient(p.detach(), t)
        opt.step()
        path.append(p.detach().numpy().copy())
    return path


def rates_by_funct(name: str) -> list[float]:
    """The rates of the first 20 steps."""
    keywords = SCHEDULES[name][1]
    given = keywords if name.startswith("one_cycle") else {"lr": LR, **keywords}
    rate = getattr(optim.schedule, name.split("-")[0])(**given)
    return [float(rate(t)) for t in range(20)]


def rates_by_torch(name: str) -> list[float]:
    """The same by torch: a scheduler is stepped after its optimizer."""
    import torch

    kind, keywords = SCHEDULES[name]
    opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LR)
    scheduler, rates = getattr(torch.optim.lr_scheduler, kind)(opt, **keywords), []
    for t in range(20):
        rates.append(float(opt.param_groups[0]["lr"]))
        opt.step()
        if t < 19:
            scheduler.step()
    return rates


def stored() -> dict[str, Any]:
    """What torch said: parameters at the steps KEPT, and rates."""
    return json.loads(GOLDEN.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def write() -> None:
    """Ask torch again; numbers are written in full."""
    found: dict[str, Any] = {}
    for name in OPTIMIZERS:
        path = by_torch(name)
        found[name] = [path[t].tolist() for t in KEPT]
    found |= {name: rates_by_torch(name) for name in SCHEDULES}
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
