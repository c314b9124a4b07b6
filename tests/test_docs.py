"""The documentation is true: its examples run, its paths exist, no package is left out."""

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_readme_examples_run() -> None:
    """Every example of the README gives what it says."""
    found = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert found.attempted > 10
    assert found.failed == 0


def test_readme_begins_with_the_two_commands() -> None:
    """The first thing in the README are the two commands."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert [line.split()[:2] for line in lines[3:5]] == [["make", "demo"], ["make", "test"]]


def test_architecture_names_what_exists() -> None:
    """Every path in ARCHITECTURE.md exists."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:funct|tests|docs|examples|benchmarks)/[\w/.]+)`", text)
    assert len(paths) > 30
    assert [p for p in paths if not (ROOT / p).exists()] == []


def test_architecture_leaves_no_package_out() -> None:
    """Every package of funct stands in ARCHITECTURE.md, which stays short."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = [p.parent.name for p in (ROOT / "funct").glob("*/__init__.py")]
    assert [p for p in packages if f"funct/{p}" not in text] == []
    assert len(text.splitlines()) <= 300


def test_links_lead_somewhere() -> None:
    """Every relative link in the documents names a file."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)


def test_every_primitive_field_is_explained() -> None:
    """The record's docstring names every field."""
    import attrs

    from funct.core import Primitive

    for field in attrs.fields(Primitive):
        assert re.search(rf"\b{field.name}\b", Primitive.__doc__ or ""), field.name
