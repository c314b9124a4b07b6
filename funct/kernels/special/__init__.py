"""Special functions: SciPy's, and the derivatives in their parameters that nobody has."""
