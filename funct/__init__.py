"""funct: immutable Array-API arrays under function transforms that compose in any order.

import funct as ft
import funct.array as xp

ft.grad(lambda x: xp.sum(x * x))(xp.asarray([1.0, 2.0]))
"""

from typing import TYPE_CHECKING

from funct.importing import uncollected, when_asked

with uncollected():
    from funct import array as array
    from funct import device as device
    from funct import errors as errors
    from funct import random as random
    from funct import tree as tree
    from funct.array import Array as Array
    from funct.array import Tensor as Tensor
    from funct.contraction import einsum as einsum
    from funct.contraction import tensordot as tensordot
    from funct.contraction import transpose as transpose
    from funct.core import Sample as Sample
    from funct.core import ShapeDtype as ShapeDtype
    from funct.errors import FallbackWarning as FallbackWarning
    from funct.graph import Drawing as Drawing
    from funct.graph import Graph as Graph
    from funct.settings import config as config
    from funct.transforms import WHEN_ASKED as _COMPILED
    from funct.transforms import DispatchTrace as DispatchTrace
    from funct.transforms import Op as Op
    from funct.transforms import Pullback as Pullback
    from funct.transforms import Zero as Zero
    from funct.transforms import all_gather as all_gather
    from funct.transforms import all_to_all as all_to_all
    from funct.transforms import axis_index as axis_index
    from funct.transforms import axis_size as axis_size
    from funct.transforms import checkpoint_policies as checkpoint_policies
    from funct.transforms import custom_jvp as custom_jvp
    from funct.transforms import custom_vjp as custom_vjp
    from funct.transforms import custom_vmap as custom_vmap
    from funct.transforms import detect_anomaly as detect_anomaly
    from funct.transforms import draw_graph as draw_graph
    from funct.transforms import eval_shape as eval_shape
    from funct.transforms import find_primitive as find_primitive
    from funct.transforms import grad as grad
    from funct.transforms import hessian as hessian
    from funct.transforms import hook as hook
    from funct.transforms import hvp as hvp
    from funct.transforms import intercept as intercept
    from funct.transforms import io_callback as io_callback
    from funct.transforms import jacfwd as jacfwd
    from funct.transforms import jacrev as jacrev
    from funct.transforms import jet as jet
    from funct.transforms import jvp as jvp
    from funct.transforms import linear_transpose as linear_transpose
    from funct.transforms import linearize as linearize
    from funct.transforms import make_graph as make_graph
    from funct.transforms import node_hook as node_hook
    from funct.transforms import once_differentiable as once_differentiable
    from funct.transforms import pmax as pmax
    from funct.transforms import pmean as pmean
    from funct.transforms import pmin as pmin
    from funct.transforms import ppermute as ppermute
    from funct.transforms import primitive as primitive
    from funct.transforms import psum as psum
    from funct.transforms import psum_scatter as psum_scatter
    from funct.transforms import pure_callback as pure_callback
    from funct.transforms import stop_gradient as stop_gradient
    from funct.transforms import trace_dispatch as trace_dispatch
    from funct.transforms import value_and_grad as value_and_grad
    from funct.transforms import vjp as vjp
    from funct.transforms import vmap as vmap

if TYPE_CHECKING:
    from funct import debug as debug
    from funct import export as export
    from funct import interop as interop
    from funct import nn as nn
    from funct import optim as optim
    from funct import quant as quant
    from funct import serialize as serialize
    from funct.check import check_grads as check_grads
    from funct.check import check_primitive as check_primitive
    from funct.check import check_pure as check_pure
    from funct.transforms import associative_scan as associative_scan
    from funct.transforms import checkpoint as checkpoint
    from funct.transforms import checkpoint_name as checkpoint_name
    from funct.transforms import closure_convert as closure_convert
    from funct.transforms import cond as cond
    from funct.transforms import custom_linear_solve as custom_linear_solve
    from funct.transforms import custom_root as custom_root
    from funct.transforms import fori_loop as fori_loop
    from funct.transforms import jit as jit
    from funct.transforms import map as map
    from funct.transforms import offload as offload
    from funct.transforms import saved_hooks as saved_hooks
    from funct.transforms import scan as scan
    from funct.transforms import sparse_hessian as sparse_hessian
    from funct.transforms import sparse_jacobian as sparse_jacobian
    from funct.transforms import switch as switch
    from funct.transforms import while_loop as while_loop

__version__ = "0.1.0"

__all__ = [
    "Array", "DispatchTrace", "Drawing", "FallbackWarning", "Graph", "Op", "Pullback", "Sample",
    "ShapeDtype", "Tensor", "Zero", "all_gather", "all_to_all", "array", "associative_scan",
    "axis_index", "axis_size", "check_grads", "check_primitive", "check_pure", "checkpoint",
    "checkpoint_name", "checkpoint_policies", "closure_convert", "cond", "config", "custom_jvp",
    "custom_linear_solve", "custom_root", "custom_vjp", "custom_vmap", "debug", "detect_anomaly",
    "device", "draw_graph", "errors", "eval_shape", "find_primitive", "fori_loop", "grad",
    "hessian", "hook",
    "hvp", "intercept", "io_callback", "jacfwd", "jacrev", "jet", "jit", "jvp", "linear_transpose",
    "linearize", "make_graph", "map", "node_hook", "offload", "once_differentiable", "pmax",
    "pmean", "pmin", "ppermute", "primitive", "psum", "psum_scatter", "pure_callback", "random",
    "saved_hooks", "scan", "sparse_hessian", "sparse_jacobian", "stop_gradient", "switch",
    "trace_dispatch", "tree", "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip

_PACKAGES = ("debug", "export", "interop", "nn", "optim", "quant", "serialize")
_CHECKS = ("check_grads", "check_primitive", "check_pure")
__getattr__, __dir__ = when_asked(
    __name__,
    {name: f"funct.{name}" for name in _PACKAGES}
    | {name: f"funct.check:{name}" for name in _CHECKS}
    | {name: f"funct.transforms:{name}" for name in _COMPILED},
)
