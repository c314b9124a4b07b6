"""jit: what is compiled, for which arguments and paths, and what runs it."""
