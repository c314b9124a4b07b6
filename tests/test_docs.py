"""The documentation is true: its examples run, its paths exist, no package is left out."""

import doctest
import pkgutil
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


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
    assert len(text.splitlines()) <= 300


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
