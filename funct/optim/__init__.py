"""Optimizers as pairs of pure functions, with torch.optim's names, defaults and arithmetic.

    opt = optim.adamw(1e-3)
    state = opt.init(params)
    params, state, info = opt.step(params, grads, state)

Reads best: `optimizer.py` (what an optimizer is), `sgd.py` (the shortest one), `schedule.py`.
"""

from funct.array.direct import entrances as _entrances
from funct.optim import schedule as schedule
from funct.optim.adam import AdamState as AdamState
from funct.optim.adam import adam as adam
from funct.optim.adam import adamw as adamw
from funct.optim.chain import ClipState as ClipState
from funct.optim.chain import GradientTransform as GradientTransform
from funct.optim.chain import chain as chain
from funct.optim.chain import clip_by_global_norm as clip_by_global_norm
from funct.optim.optimizer import Info as Info
from funct.optim.optimizer import Optimizer as Optimizer
from funct.optim.optimizer import global_norm as global_norm
from funct.optim.sgd import SGDState as SGDState
from funct.optim.sgd import sgd as sgd

__all__ = [
    "AdamState", "ClipState", "GradientTransform", "Info", "Optimizer", "SGDState", "adam", "adamw",
    "chain", "clip_by_global_norm", "global_norm", "schedule", "sgd",
]  # fmt: skip

_entrances(globals())
