"""Passes: Graph to Graph, one verb per file."""

from funct.graph.passes.approximate import approximate as approximate
from funct.graph.passes.compose_views import compose_views as compose_views
from funct.graph.passes.compose_views import sink_views as sink_views
from funct.graph.passes.eliminate_dead import eliminate_dead as eliminate_dead
from funct.graph.passes.fold_constants import fold_constants as fold_constants
from funct.graph.passes.inline_calls import inline_calls as inline_calls
from funct.graph.passes.inline_calls import own_rules as own_rules
from funct.graph.passes.lay_out import lay_out as lay_out
from funct.graph.passes.optimize import optimize as optimize
from funct.graph.passes.peephole import fresh_names as fresh_names
from funct.graph.passes.peephole import peephole as peephole
from funct.graph.passes.peephole import same_type as same_type
from funct.graph.passes.share_common import exact as exact
from funct.graph.passes.share_common import share_common as share_common
from funct.graph.passes.simplify import simplify as simplify
from funct.graph.passes.then import then as then
from funct.graph.renaming import resolved as resolved
from funct.graph.renaming import substituted as substituted

__all__ = [
    "approximate", "compose_views", "eliminate_dead", "exact", "fold_constants", "fresh_names",
    "inline_calls", "lay_out", "optimize", "own_rules", "peephole", "resolved", "same_type",
    "share_common", "simplify", "sink_views", "substituted", "then",
]  # fmt: skip
