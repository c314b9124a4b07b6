"""Products of matrices: BLAS on the thread that calls it, our own tiles, few rows, narrow types."""
