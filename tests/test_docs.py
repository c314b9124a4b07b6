"""The documentation is true: its examples run, its paths exist, no package is left out."""

import ast
import doctest
import functools
import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.syntax import statements

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]

PACKAGES = (
    "funct", "funct.array", "funct.array.fft", "funct.array.lib.stride_tricks",
    "funct.array.linalg", "funct.array.special", "funct.check", "funct.debug", "funct.device",
    "funct.export", "funct.interop", "funct.nn", "funct.nn.functional", "funct.nn.init",
    "funct.optim", "funct.optim.schedule", "funct.quant", "funct.random", "funct.serialize",
    "funct.transforms.checkpoint_policies", "funct.tree",
)  # fmt: skip

# Public names that may lack an example, and why.
WITHOUT_EXAMPLE = {
    "funct.array.Ground": "the level of concrete arrays: nobody calls it",
    "funct.device.Allocator": "a protocol: its implementations are private",
    "funct.device.MemoryScope": "numbers that `memory_scope`, which has an example, gives",
    **dict.fromkeys(
        (
            "funct.device.configure_memory", "funct.device.empty_cache",
            "funct.device.memory_snapshot", "funct.device.memory_summary",
            "funct.device.record_memory", "funct.device.reset_peak", "funct.device.set_limit",
        ),
        "acts on the memory of the whole process, other tests' too",
    ),
}  # fmt: skip


def test_readme_examples_run() -> None:
    """Every example of the README gives what it says."""
    found = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert found.attempted > 10
    assert found.failed == 0


def test_readme_begins_with_the_two_commands() -> None:
    """The first thing in the README are the two commands."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert [line.split()[:2] for line in lines[3:5]] == [["make", "demo"], ["make", "test"]]


def test_documents_name_paths_that_exist() -> None:
    """Every path in a document exists; ARCHITECTURE.md has many."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        paths = re.findall(r"`((?:funct|tests|docs|examples|benchmarks)/[\w/.]+)`", text)
        assert [p for p in paths if not (ROOT / p).exists()] == [], page.name
        assert page.name != "ARCHITECTURE.md" or len(paths) > 30


def test_documents_name_modules_and_objects_that_exist() -> None:
    """Every `funct.a.b` in a document, called or not, is a module or in one."""
    for page in PAGES:
        for name in re.findall(r"`(funct(?:\.\w+)+)", page.read_text(encoding="utf-8")):
            assert pkgutil.resolve_name(name) is not None, (page.name, name)


def test_architecture_leaves_no_package_out() -> None:
    """Every package of funct stands in ARCHITECTURE.md, which stays short."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = [p.parent.name for p in (ROOT / "funct").glob("*/__init__.py")]
    assert [p for p in packages if f"funct/{p}" not in text] == []
    assert len(text.split()) <= 5200
    assert [x for x in text.splitlines() if len(x) > 200 and not x.startswith("|")] == []


def test_links_lead_somewhere() -> None:
    """Every relative link in the documents names a file."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)


def test_every_primitive_field_is_explained() -> None:
    """The record's docstring names every field."""
    import attrs

    from funct.core import Primitive

    for field in attrs.fields(Primitive):
        assert re.search(rf"\b{field.name}\b", Primitive.__doc__ or ""), field.name


@pytest.mark.parametrize("package", PACKAGES)
def test_public_functions_and_classes_have_examples(package: str) -> None:
    """Every one that is not excepted has an example, and pytest finds it where it is defined."""
    lacking = [
        name
        for name in importlib.import_module(package).__all__
        if f"{package}.{name}" not in WITHOUT_EXAMPLE
        and _is_ours(found := pkgutil.resolve_name(f"{package}:{name}"))
        and not _has_example(found)
    ]
    assert lacking == []


SECTIONS = ("Maths", "Args", "Returns", "Raises", "Notes", "Example", "Source")  # CONTRIBUTING.md


def test_docstrings_have_their_parts_in_one_order() -> None:
    """That in which CONTRIBUTING.md lists them."""
    listed = re.findall(r"^([A-Z]\w+):", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M)
    assert tuple(listed) == SECTIONS
    heading = re.compile(rf"^\s*({'|'.join(SECTIONS)}):", re.M)
    wrong = []
    for path in (ROOT / "funct").rglob("*.py"):
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                found = heading.findall(ast.get_docstring(node) or "")
                if found != sorted(found, key=SECTIONS.index):
                    wrong.append((path.name, getattr(node, "name", ""), found))
    assert wrong == []


def test_names_without_an_example_exist() -> None:
    """No exception outlives what it was made for."""
    for name in WITHOUT_EXAMPLE:
        package, _, last = name.rpartition(".")
        assert last in importlib.import_module(package).__all__


def _is_ours(found: Any) -> bool:
    """Whether it is a function or a class of this package: dtypes are NumPy's and ml_dtypes'."""
    module = getattr(inspect.unwrap(found), "__module__", None) or ""
    return callable(found) and module.split(".")[0] == "funct"


def _has_example(found: Any) -> bool:
    written = inspect.unwrap(found)
    return f"{written.__module__}.{written.__qualname__}" in _collected(written.__module__)


@functools.cache
def _collected(module: str) -> frozenset[str]:
    """What doctest finds in a module, by name."""
    found = doctest.DocTestFinder().find(sys.modules[module])
    return frozenset([test.name for test in found if test.examples])
