"""Python's syntax trees, for laws of all sources."""

import ast
from collections.abc import Iterator


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it but expressions, which are most of a tree and import nothing."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr | ast.expr_context | ast.arguments):
            yield from statements(child)
