"""Benchmarks: funct and its peers in turn in one run; ratios of minima are what to quote.

    python -m benchmarks            every family
    python -m benchmarks eager      one family

Peers (torch, autograd, jax) are measured where they are installed and left out where they are not.
Unset OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE first: `make bench` does.
"""
