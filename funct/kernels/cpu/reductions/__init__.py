"""Sums, products, extrema, truth and order along axes, in NumPy's order and with its bits."""
