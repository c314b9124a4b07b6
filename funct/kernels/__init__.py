"""Plain NumPy kernels: raw ndarrays in, raw ndarrays out. They know no Tensor and no rule.

Each is the oracle of whatever faster kernel stands beside it, and what runs where there is none.
"""
