"""The generator of this folder's tests; each of them finds it at its start."""

import numpy as np

rng = np.random.default_rng(7)
