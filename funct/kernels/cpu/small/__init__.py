"""Stacks of small matrices: every loop within a matrix is written out, for its sizes are known."""
