"""Sparse Jacobians: which element depends on which, and what that saves."""
