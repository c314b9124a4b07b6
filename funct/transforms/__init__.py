"""Function transforms, one file each. They compose in any order."""

from funct.transforms.abstract import eval_shape as eval_shape
from funct.transforms.abstract import make_graph as make_graph
from funct.transforms.abstract import stop_gradient as stop_gradient
from funct.transforms.custom import custom_jvp as custom_jvp
from funct.transforms.custom import custom_vjp as custom_vjp
from funct.transforms.forward import jvp as jvp
from funct.transforms.forward import linearize as linearize
from funct.transforms.grad import Zero as Zero
from funct.transforms.grad import grad as grad
from funct.transforms.grad import hessian as hessian
from funct.transforms.grad import hvp as hvp
from funct.transforms.grad import jacfwd as jacfwd
from funct.transforms.grad import jacrev as jacrev
from funct.transforms.grad import linear_transpose as linear_transpose
from funct.transforms.grad import value_and_grad as value_and_grad
from funct.transforms.grad import vjp as vjp
from funct.transforms.jit import jit as jit
from funct.transforms.vmap import vmap as vmap

__all__ = [
    "Zero", "custom_jvp", "custom_vjp", "eval_shape", "grad", "hessian", "hvp", "jacfwd", "jacrev",
    "jit", "jvp", "linear_transpose", "linearize", "make_graph", "stop_gradient", "value_and_grad",
    "vjp", "vmap",
]  # fmt: skip
