"""Kernels: raw ndarrays in, raw ndarrays out. They know no Tensor and no rule.

The files here are plain NumPy: each is the oracle of whatever faster kernel stands beside it in
`table.py`, and what runs where there is none.
"""
