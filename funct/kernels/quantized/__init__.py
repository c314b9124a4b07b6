"""Codes of few bits: affine ones, and weights with a scale for each group."""
