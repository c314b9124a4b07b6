"""Coefficients of minimax polynomials, a family of functions a file; tests fit them."""
