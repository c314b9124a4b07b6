"""Many Python threads begin with the dense kernels at once, in a process that has made none."""

import subprocess
import sys

import pytest

from funct.kernels import table

PROGRAM = """
import threading
import numpy as np
from funct.kernels.windows import convolution as c
from funct.kernels.windows import products as plain
from funct.kernels.quantized import affine as q
from funct.kernels.windows.views import Sliding

rng = np.random.default_rng(0)
cases = []
for channels, outputs, groups in ((16, 32, 1), (24, 24, 24), (12, 24, 3)):
    x = rng.integers(-5, 5, (2, channels, 20, 20)).astype(np.float32)
    w = rng.integers(-5, 5, (outputs, channels // groups, 3, 3)).astype(np.float32)
    static = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), groups)
    g = rng.integers(-5, 5, (2, outputs, 20, 20)).astype(np.float32)
    cases.append((x, w, g, static, (
        plain.convolution(x, w, static),
        plain.convolution_input(g, w, static, (20, 20)),
        plain.convolution_weight(x, g, static, (3, 3)),
    )))
codes = rng.integers(0, 255, (64, 128)).astype(np.uint8)
weights = rng.integers(-99, 99, (96, 128)).astype(np.int8)
rest = np.zeros(96, np.int32), q.Codes(np.float32(1e-3), 0, -128, 127, np.int8)
expected = q.plain_linear(codes, 3, weights, *rest)
wrong = []
barrier = threading.Barrier(12)

def run(k):
    barrier.wait()
    for i in range(12):
        x, w, g, static, (y, dx, dw) = cases[(i + k) % 3]
        wrong.append(not (
            np.array_equal(c.convolution(x, w, *static), y)
            and np.array_equal(c.convolution_input(g, w, *static, (20, 20)), dx)
            and np.array_equal(c.convolution_weight(x, g, *static, (3, 3)), dw)
            and np.array_equal(q.linear(codes, 3, weights, *rest), expected)
        ))

threads = [threading.Thread(target=run, args=(k,)) for k in range(12)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(wrong), sum(wrong))
"""


@pytest.mark.skipif("llvm" not in table.available(), reason="llvmlite is absent")
def test_threads_may_begin_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout.split() == ["144", "0"]
