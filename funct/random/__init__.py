"""Random numbers from splittable keys: pure functions of key and position.

A key is a uint32 array of shape (..., 2) that can be indexed, iterated, stacked and split, under
vmap and jit too. The same key gives the same bits on every device, in every batch.
"""

from funct.random.draws import bernoulli as bernoulli
from funct.random.draws import bits as bits
from funct.random.draws import categorical as categorical
from funct.random.draws import choice as choice
from funct.random.draws import exponential as exponential
from funct.random.draws import fold_in as fold_in
from funct.random.draws import gumbel as gumbel
from funct.random.draws import key as key
from funct.random.draws import laplace as laplace
from funct.random.draws import normal as normal
from funct.random.draws import permutation as permutation
from funct.random.draws import randint as randint
from funct.random.draws import split as split
from funct.random.draws import uniform as uniform

__all__ = [
    "bernoulli", "bits", "categorical", "choice", "exponential", "fold_in", "gumbel", "key",
    "laplace", "normal", "permutation", "randint", "split", "uniform",
]  # fmt: skip
