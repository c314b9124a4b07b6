"""The graph IR: what it is (`ir`), where it comes from (`capture`), how it runs (`run`)."""

from funct.graph.capture import Capture as Capture
from funct.graph.capture import GraphTracer as GraphTracer
from funct.graph.capture import capture as capture
from funct.graph.check import check as check
from funct.graph.ir import Call as Call
from funct.graph.ir import Control as Control
from funct.graph.ir import Entry as Entry
from funct.graph.ir import Graph as Graph
from funct.graph.ir import Guard as Guard
from funct.graph.ir import Node as Node
from funct.graph.ir import Symbol as Symbol
from funct.graph.ir import Var as Var
from funct.graph.passes import eliminate_dead as eliminate_dead
from funct.graph.passes import exact as exact
from funct.graph.passes import inline_calls as inline_calls
from funct.graph.passes import share_common as share_common
from funct.graph.run import Interpreter as Interpreter
from funct.graph.run import Transformer as Transformer
from funct.graph.run import holds as holds
from funct.graph.show import show as show

__all__ = [
    "Call", "Capture", "Control", "Entry", "Graph", "GraphTracer", "Guard", "Interpreter", "Node",
    "Symbol", "Transformer", "Var", "capture", "check", "eliminate_dead", "exact", "holds",
    "inline_calls", "share_common", "show",
]  # fmt: skip
