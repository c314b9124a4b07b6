"""Graph to executable: NumPy calls with reused buffers, or fused loops in machine code."""

from funct.compile.executable import MISS as MISS
from funct.compile.executable import build as build
from funct.compile.executable import source as source
from funct.compile.plan import Plan as Plan
from funct.compile.plan import Step as Step
from funct.compile.plan import plan as plan
from funct.compile.repeat import loop as loop
from funct.compile.repeat import worth_looping as worth_looping

__all__ = ["MISS", "Plan", "Step", "build", "loop", "plan", "source", "worth_looping"]
