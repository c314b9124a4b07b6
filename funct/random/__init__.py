"""Random numbers from splittable keys: pure functions of key and position.

A key is a uint32 array of shape (..., 2) that can be indexed, iterated, stacked and split, under
vmap and jit too. The same key gives the same bits on every device, in every batch. Parameters of a
distribution, `shape` and `dtype` may be given by position, in JAX's order, or by name.
"""

from funct.array.direct import entrances as _entrances
from funct.random.draws import bernoulli as bernoulli
from funct.random.draws import exponential as exponential
from funct.random.draws import gumbel as gumbel
from funct.random.draws import laplace as laplace
from funct.random.draws import normal as normal
from funct.random.draws import randint as randint
from funct.random.draws import uniform as uniform
from funct.random.keys import bits as bits
from funct.random.keys import fold_in as fold_in
from funct.random.keys import key as key
from funct.random.keys import split as split
from funct.random.parametric import beta as beta
from funct.random.parametric import dirichlet as dirichlet
from funct.random.parametric import gamma as gamma
from funct.random.parametric import multivariate_normal as multivariate_normal
from funct.random.parametric import orthogonal as orthogonal
from funct.random.parametric import poisson as poisson
from funct.random.parametric import truncated_normal as truncated_normal
from funct.random.selections import categorical as categorical
from funct.random.selections import choice as choice
from funct.random.selections import permutation as permutation

__all__ = [
    "bernoulli", "beta", "bits", "categorical", "choice", "dirichlet", "exponential", "fold_in",
    "gamma", "gumbel", "key", "laplace", "multivariate_normal", "normal", "orthogonal",
    "permutation", "poisson", "randint", "split", "truncated_normal", "uniform",
]  # fmt: skip

_entrances(globals())
