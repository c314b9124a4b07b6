"""Passes: Graph to Graph, one verb per file."""

from funct.graph.passes.eliminate_dead import eliminate_dead as eliminate_dead
from funct.graph.passes.fold_constants import fold_constants as fold_constants
from funct.graph.passes.inline_calls import inline_calls as inline_calls
from funct.graph.passes.share_common import exact as exact
from funct.graph.passes.share_common import share_common as share_common

__all__ = ["eliminate_dead", "exact", "fold_constants", "inline_calls", "share_common"]
