"""`import funct` is cheap: heavy libraries load when they are first needed."""

import subprocess
import sys

import pytest

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


def test_import_loads_of_numpy_and_the_standard_library_what_it_uses() -> None:
    """What few calls need waits for the first of them: these cost milliseconds each."""
    program = (
        "import sys, numpy; before = set(sys.modules); import funct, funct.array;"
        "print(*({'numpy.fft', 'pathlib', 'urllib'} & (set(sys.modules) - before)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    assert loaded.split() == []


def test_capturing_a_special_function_loads_no_scipy() -> None:
    """Shapes and dtypes are known without SciPy, which the compiled code may never need."""
    program = (
        "import sys, funct as ft, funct.array as xp\n"
        "graph = ft.make_graph(lambda x: xp.erf(x))(xp.ones((3, 2), dtype=xp.float32))\n"
        "(out,) = graph.outputs\n"
        "assert out.shape == (3, 2) and out.dtype == xp.float32, out\n"
        "assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("name", ["export", "interop", "nn", "optim", "quant", "serialize"])
def test_packages_that_import_leaves_out_are_there_when_they_are_named(name: str) -> None:
    program = (
        "import sys, funct as ft\n"
        f"assert 'funct.{name}' not in sys.modules and '{name}' in dir(ft)\n"
        f"assert ft.{name} is sys.modules['funct.{name}'] and not hasattr(ft, 'nowhere')"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_classes_that_an_import_makes_are_structs_unless_they_need_more() -> None:
    """An attrs class takes Python thirty times as long to make (decision 0023)."""
    program = """
import sys, attrs, funct

def needs(cls):
    fields = attrs.fields(cls)
    return (
        any(not f.init or f.converter or f.validator or f.eq_key for f in fields)
        or any(f.alias != f.name for f in fields)
        or len({f.eq for f in fields}) > 1
        or hasattr(cls, "__getattr__")
    )

found = {
    cls
    for name, module in list(sys.modules.items())
    if name.startswith("funct.") and name not in ("funct.graph.ir", "funct.graph.program")
    for cls in vars(module).values()
    if isinstance(cls, type) and "__attrs_attrs__" in vars(cls) and cls.__module__ == name
}
print(*[f"{cls.__module__}.{cls.__name__}" for cls in found if not needs(cls)])
"""
    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    assert loaded.split() == []
