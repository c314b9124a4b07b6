"""Graph to executable: lifetimes and buffer reuse (`plan`), then one function (`executable`)."""

from funct.compile.executable import MISS as MISS
from funct.compile.executable import build as build
from funct.compile.executable import source as source
from funct.compile.plan import Plan as Plan
from funct.compile.plan import Step as Step
from funct.compile.plan import plan as plan

__all__ = ["MISS", "Plan", "Step", "build", "plan", "source"]
