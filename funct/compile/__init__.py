"""Graph to executable: NumPy calls with reused buffers, or fused loops in machine code."""

from funct.compile.control import made as made
from funct.compile.entry import Reuse as Reuse
from funct.compile.entry import Whole as Whole
from funct.compile.entry import at_hand as at_hand
from funct.compile.entry import calls_of as calls_of
from funct.compile.entry import faster as faster
from funct.compile.entry import has_faster as has_faster
from funct.compile.entry import serving as serving
from funct.compile.entry import unwrapping as unwrapping
from funct.compile.entry import whole_of as whole_of
from funct.compile.executable import MISS as MISS
from funct.compile.executable import build as build
from funct.compile.executable import expect as expect
from funct.compile.executable import is_numpy_calls as is_numpy_calls
from funct.compile.executable import source as source
from funct.compile.explain import show_assembly as show_assembly
from funct.compile.explain import show_llvm as show_llvm
from funct.compile.explain import show_loops as show_loops
from funct.compile.explain import why_not_fused as why_not_fused
from funct.compile.few import Few as Few
from funct.compile.foreseen import foreseen as foreseen
from funct.compile.foreseen import returns as returns
from funct.compile.forms import Choice as Choice
from funct.compile.forms import Refused as Refused
from funct.compile.forms import Repeat as Repeat
from funct.compile.fusion.worth import worth_looping as worth_looping
from funct.compile.loops.warned import may_warn as may_warn
from funct.compile.numbers import Place as Place
from funct.compile.numbers import can_be_handed as can_be_handed
from funct.compile.numbers import handed_over as handed_over
from funct.compile.numbers import numbers as numbers
from funct.compile.plan import Plan as Plan
from funct.compile.plan import Step as Step
from funct.compile.plan import plan as plan
from funct.compile.rehearsal import run_at_once as run_at_once
from funct.compile.repeat import Loop as Loop
from funct.compile.steps.walker import begin_walker as begin_walker

__all__ = [
    "Choice", "Few", "Loop", "MISS", "Place", "Plan", "Refused", "Repeat", "Reuse", "Step", "Whole",
    "at_hand", "begin_walker", "build", "calls_of", "can_be_handed", "expect", "faster", "foreseen",
    "handed_over", "has_faster", "is_numpy_calls", "made", "may_warn", "numbers", "plan",
    "returns", "run_at_once", "serving", "show_assembly", "show_llvm", "show_loops", "source",
    "unwrapping", "whole_of", "why_not_fused", "worth_looping",
]  # fmt: skip
