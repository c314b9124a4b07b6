"""The graph IR: what it is (`ir`), where it comes from (`capture`), how it runs (`run`)."""

from funct.graph.capture import Capture as Capture
from funct.graph.capture import GraphTracer as GraphTracer
from funct.graph.capture import acting as acting
from funct.graph.capture import capture as capture
from funct.graph.capture import writing as writing
from funct.graph.capture import written as written
from funct.graph.check import check as check
from funct.graph.decompose import decompose as decompose
from funct.graph.dependence import dependent as dependent
from funct.graph.dependence import depending as depending
from funct.graph.digest import digest as digest
from funct.graph.draw import Drawing as Drawing
from funct.graph.edit import extract as extract
from funct.graph.edit import insert_after as insert_after
from funct.graph.edit import replace as replace
from funct.graph.ir import Call as Call
from funct.graph.ir import Control as Control
from funct.graph.ir import Entry as Entry
from funct.graph.ir import Graph as Graph
from funct.graph.ir import Guard as Guard
from funct.graph.ir import Node as Node
from funct.graph.ir import Symbol as Symbol
from funct.graph.ir import Var as Var
from funct.graph.ir import acts as acts
from funct.graph.leaf import leaf as leaf
from funct.graph.passes import approximate as approximate
from funct.graph.passes import compose_views as compose_views
from funct.graph.passes import eliminate_dead as eliminate_dead
from funct.graph.passes import exact as exact
from funct.graph.passes import fold_constants as fold_constants
from funct.graph.passes import inline_calls as inline_calls
from funct.graph.passes import lay_out as lay_out
from funct.graph.passes import optimize as optimize
from funct.graph.passes import share_common as share_common
from funct.graph.passes import simplify as simplify
from funct.graph.passes import sink_views as sink_views
from funct.graph.passes import then as then
from funct.graph.rewrite import Match as Match
from funct.graph.rewrite import find as find
from funct.graph.rewrite import rewrite as rewrite
from funct.graph.run import Interpreter as Interpreter
from funct.graph.run import Transformer as Transformer
from funct.graph.run import holds as holds
from funct.graph.run import propagate as propagate
from funct.graph.run import same as same
from funct.graph.show import show as show

__all__ = [
    "Call", "Capture", "Control", "Drawing", "Entry", "Graph", "GraphTracer", "Guard",
    "Interpreter", "Match", "Node", "Symbol", "Transformer", "Var", "acting", "acts",
    "approximate", "capture", "check", "compose_views", "decompose", "dependent", "digest",
    "eliminate_dead", "exact", "extract", "find", "fold_constants", "holds", "inline_calls",
    "insert_after", "lay_out", "leaf", "optimize", "propagate", "replace", "rewrite", "same",
    "share_common", "show", "simplify", "sink_views", "then", "writing", "written",
]  # fmt: skip
