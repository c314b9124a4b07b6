"""`import funct` is cheap: heavy libraries load when they are first needed."""

import subprocess
import sys

HEAVY = (
    "cupy",
    "jax",
    "llvmlite",
    "matplotlib",
    "mpi4py",
    "numba",
    "onnx",
    "onnxruntime",
    "scipy",
    "torch",
)


def test_import_loads_no_heavy_library() -> None:
    """A fresh interpreter that imports funct has loaded none of the heavy libraries."""
    program = f"import sys, funct; print(*(set({HEAVY!r}) & set(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    assert loaded.split() == []
