"""Linear algebra: products, stacks of matrices by LAPACK, sparse matrices and their colourings."""
