"""`import funct` is cheap: heavy libraries load when they are first needed."""

import subprocess
import sys

import pytest

import funct as ft
import funct.array as xp

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


@pytest.mark.parametrize(
    "name", ["debug", "export", "interop", "nn", "optim", "quant", "serialize"]
)
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


def test_arrays_and_their_derivatives_do_not_import_the_compiler() -> None:
    """A third of what `import funct` has is for functions that are compiled or staged."""
    program = """
import sys, funct as ft, funct.array as xp
f = lambda x: xp.sum(xp.tanh(x @ x) ** 2)
x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
ft.vmap(ft.grad(f))(xp.stack([x, x])), ft.jvp(f, (x,), (x,)), ft.random.normal(ft.random.key(0))
print(*sorted(n for n in sys.modules if n.startswith(("funct.compile", "funct.check"))))
ft.jit
assert "funct.compile" in sys.modules
"""
    assert _printed(program) == []


def test_every_public_name_is_there_in_a_fresh_interpreter() -> None:
    """Also by a star, and of the transforms' package, whose modules are called as functions are."""
    program = """
import types, funct as ft, funct.transforms as transforms
for package in (transforms, ft):
    given = {}
    exec(f"from {package.__name__} import *", given)
    for name in package.__all__:
        found = getattr(package, name)
        assert given[name] is found and name in dir(package), name
        assert callable(found) or name not in transforms.WHEN_ASKED, name
"""
    assert _printed(program) == []


CONTROLS = {
    "cond": "ft.cond(x[0] > 0, xp.sin, xp.cos, x)",
    "scan": "ft.scan(lambda c, r: (c + r, c * r), x, xp.ones((4, 3)))",
    "while_loop": "ft.while_loop(lambda c: c[0] < 9, lambda c: c * 2, x)",
    "checkpoint": "ft.vjp(ft.checkpoint(lambda x: xp.sin(x * x)), x)[1](x)",
}


@pytest.mark.parametrize("kind", CONTROLS)
def test_graphs_with_control_flow_are_read_where_nothing_else_was_named(kind: str) -> None:
    """What a file holds is known by its name, whatever has been imported."""
    text = ft.make_graph(eval(f"lambda x: {CONTROLS[kind]}", {"ft": ft, "xp": xp}))(
        xp.ones(3)
    ).to_json()
    program = f"""
import sys, funct as ft
assert "funct.transforms.control" not in sys.modules
print(ft.Graph.from_json({text!r}).to_json() == {text!r})
"""
    assert _printed(program) == ["True"]


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_is_as_it_was_after_an_import(collects: bool) -> None:
    """Whether it worked or failed, and what a program froze stays frozen."""
    program = f"""
import gc, sys
gc.{"enable" if collects else "disable"}()
sys.modules["ml_dtypes"] = None
try:
    import funct
except ImportError:
    print(gc.isenabled())
del sys.modules["ml_dtypes"]
for name in [n for n in sys.modules if n.startswith("funct")]:
    del sys.modules[name]
gc.freeze()
frozen = gc.get_freeze_count()
import funct
print(gc.isenabled(), gc.get_freeze_count() > frozen // 2 > 0)
"""
    assert _printed(program) == [str(collects), str(collects), "True"]


def _printed(program: str) -> list[str]:
    """The words that a fresh interpreter prints."""
    return subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True, timeout=60
    ).stdout.split()
