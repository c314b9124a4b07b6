"""Functions of elements, and casts; `cpu/elementwise` has what is quicker on large arrays."""
