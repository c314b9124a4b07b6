"""Branches, loops and solvers as single nodes: their faces, and what their rules do."""
