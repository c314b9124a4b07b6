"""Graphs into graphs that loops and BLAS do well: the same numbers by other ops."""
