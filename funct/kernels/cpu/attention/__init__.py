"""Attention without the matrix of weights: its strips, its loops as text, and both directions."""
