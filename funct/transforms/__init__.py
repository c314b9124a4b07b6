"""Function transforms, one file each. They compose in any order.

What stands behind several of them lies in folders: `tape`, `control`, `compiled`, `watching`,
`sparsity`.
"""

from typing import TYPE_CHECKING

from funct.graph.controls import remakes_are_in
from funct.importing import when_asked
from funct.transforms import checkpoint_policies as checkpoint_policies
from funct.transforms.abstract import eval_shape as eval_shape
from funct.transforms.abstract import make_graph as make_graph
from funct.transforms.abstract import stop_gradient as stop_gradient
from funct.transforms.callback import io_callback as io_callback
from funct.transforms.callback import pure_callback as pure_callback
from funct.transforms.collectives import all_gather as all_gather
from funct.transforms.collectives import all_to_all as all_to_all
from funct.transforms.collectives import axis_index as axis_index
from funct.transforms.collectives import axis_size as axis_size
from funct.transforms.collectives import pmax as pmax
from funct.transforms.collectives import pmean as pmean
from funct.transforms.collectives import pmin as pmin
from funct.transforms.collectives import ppermute as ppermute
from funct.transforms.collectives import psum as psum
from funct.transforms.collectives import psum_scatter as psum_scatter
from funct.transforms.custom import custom_jvp as custom_jvp
from funct.transforms.custom import custom_vjp as custom_vjp
from funct.transforms.custom import custom_vmap as custom_vmap
from funct.transforms.forward import jvp as jvp
from funct.transforms.forward import linearize as linearize
from funct.transforms.grad import grad as grad
from funct.transforms.grad import value_and_grad as value_and_grad
from funct.transforms.jacobians import hessian as hessian
from funct.transforms.jacobians import hvp as hvp
from funct.transforms.jacobians import jacfwd as jacfwd
from funct.transforms.jacobians import jacrev as jacrev
from funct.transforms.jet import jet as jet
from funct.transforms.register import Op as Op
from funct.transforms.register import find_primitive as find_primitive
from funct.transforms.register import primitive as primitive
from funct.transforms.vjp import Pullback as Pullback
from funct.transforms.vjp import Zero as Zero
from funct.transforms.vjp import linear_transpose as linear_transpose
from funct.transforms.vjp import vjp as vjp
from funct.transforms.vmap import vmap as vmap
from funct.transforms.watching.anomaly import detect_anomaly as detect_anomaly
from funct.transforms.watching.draw import draw_graph as draw_graph
from funct.transforms.watching.hooks import hook as hook
from funct.transforms.watching.hooks import node_hook as node_hook
from funct.transforms.watching.hooks import once_differentiable as once_differentiable
from funct.transforms.watching.intercept import DispatchTrace as DispatchTrace
from funct.transforms.watching.intercept import intercept as intercept
from funct.transforms.watching.intercept import trace_dispatch as trace_dispatch

if TYPE_CHECKING:
    from funct.transforms.compiled.jit import jit as jit
    from funct.transforms.control.associative_scan import associative_scan as associative_scan
    from funct.transforms.control.cond import cond as cond
    from funct.transforms.control.cond import switch as switch
    from funct.transforms.control.implicit import closure_convert as closure_convert
    from funct.transforms.control.implicit import custom_linear_solve as custom_linear_solve
    from funct.transforms.control.implicit import custom_root as custom_root
    from funct.transforms.control.loops import fori_loop as fori_loop
    from funct.transforms.control.loops import map as map
    from funct.transforms.control.scan import scan as scan
    from funct.transforms.control.while_loop import while_loop as while_loop
    from funct.transforms.remat import checkpoint as checkpoint
    from funct.transforms.remat import checkpoint_name as checkpoint_name
    from funct.transforms.sparsity.sparse import sparse_hessian as sparse_hessian
    from funct.transforms.sparsity.sparse import sparse_jacobian as sparse_jacobian
    from funct.transforms.watching.saved import offload as offload
    from funct.transforms.watching.saved import saved_hooks as saved_hooks

__all__ = [
    "DispatchTrace", "Op", "Pullback", "Zero", "all_gather",
    "all_to_all", "associative_scan", "axis_index", "axis_size", "checkpoint", "checkpoint_name",
    "checkpoint_policies", "closure_convert", "cond", "custom_jvp", "custom_linear_solve",
    "custom_root", "custom_vjp", "custom_vmap", "detect_anomaly", "draw_graph", "eval_shape",
    "find_primitive", "fori_loop", "grad", "hessian", "hook", "hvp", "intercept", "io_callback",
    "jacfwd", "jacrev", "jet", "jit", "jvp", "linear_transpose", "linearize", "make_graph", "map",
    "node_hook", "offload", "once_differentiable", "pmax", "pmean", "pmin", "ppermute", "primitive",
    "psum", "psum_scatter", "pure_callback", "saved_hooks", "scan", "sparse_hessian",
    "sparse_jacobian", "stop_gradient", "switch", "trace_dispatch", "value_and_grad", "vjp", "vmap",
    "while_loop",
]  # fmt: skip

WHEN_ASKED = {  # what brings the compiler along, by where it stands
    "associative_scan": "control.associative_scan",
    "checkpoint": "remat",
    "checkpoint_name": "remat",
    "closure_convert": "control.implicit",
    "cond": "control.cond",
    "custom_linear_solve": "control.implicit",
    "custom_root": "control.implicit",
    "fori_loop": "control.loops",
    "jit": "compiled.jit",
    "map": "control.loops",
    "offload": "watching.saved",
    "saved_hooks": "watching.saved",
    "scan": "control.scan",
    "sparse_hessian": "sparsity.sparse",
    "sparse_jacobian": "sparsity.sparse",
    "switch": "control.cond",
    "while_loop": "control.while_loop",
}

__getattr__, __dir__ = when_asked(
    __name__, {name: f"{__name__}.{place}:{name}" for name, place in WHEN_ASKED.items()}
)

_CONTROLS = {
    "checkpoint": "remat",
    "cond": "control.cond",
    "scan": "control.scan_loop",
    "while_loop": "control.sweeps",
}
remakes_are_in({kind: f"{__name__}.{place}" for kind, place in _CONTROLS.items()})
