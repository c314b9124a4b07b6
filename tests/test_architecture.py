"""The package obeys its own rules: layers, sizes, names, documentation.

Import-linter checks who imports whom; here stands what it cannot see.
"""

import ast
import functools
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from importlinter import configuration
from importlinter.application import use_cases

from tests.syntax import statements

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "funct").rglob("*.py"))
TEXTS = sorted(
    path
    for folder in ("funct", "tests", "examples", "benchmarks", "docs", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix in {"", ".md", ".py", ".toml", ".txt"}
) + sorted([*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml"])

Documented = ast.Module | ast.ClassDef | ast.FunctionDef

MAX_LINES = 500
BANNED_STEMS = re.compile(r"_?(utils?|common|misc|helpers?|base|types|\w*lib)")

# (file, imported module): imports inside functions that cannot stand at the top, and are few.
LATE_IMPORTS: frozenset[tuple[str, str]] = frozenset({
    ("funct/graph/ir.py", "funct.graph.run"),  # Graph.__call__: the runner reads the IR
    ("funct/graph/ir.py", "funct.graph.show"),  # Graph.__str__: so does the printer
    ("funct/graph/ir.py", "funct.graph.draw"),  # Graph.draw: so do pictures
    ("funct/graph/ir.py", "funct.graph.json_form"),  # Graph.to_json: so does the text form
    ("funct/graph/ir.py", "funct.graph.passes"),  # Graph.__reduce__: so do passes
    ("funct/graph/ir.py", "funct.graph.controls"),  # Control.__reduce__: so does what makes it
})  # fmt: skip


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(_text(path), filename=str(path))


def _those(files: Iterable[Path], wrong: Callable[[Path], Any]) -> dict[str, Any]:
    """Return the files with something wrong, and what: one test of a thousand files costs less than
    a thousand tests.
    """
    return {_name(path): found for path in files if (found := wrong(path))}


def test_layers_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """Every contract of [tool.importlinter] in pyproject.toml is kept."""
    told = logging.getLogger("funct.code")
    configuration.configure()  # the command sets up `logging`, which silences all loggers there are
    config = str(ROOT / "pyproject.toml")
    kept = use_cases.lint_imports(config, cache_dir=None, no_logo=True)
    assert kept, capsys.readouterr().out
    assert not told.disabled


def test_files_are_short() -> None:
    """A file has at most 500 lines; one at the limit is split by chapter or family."""
    lengths = {_name(path): len(_text(path).splitlines()) for path in SOURCES}
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_files_have_names_that_say_something() -> None:
    """No file is a drawer for whatever comes along."""
    assert _those(SOURCES, lambda path: BANNED_STEMS.fullmatch(path.stem)) == {}


def test_modules_are_documented() -> None:
    """Every module, public class, function and method says what it is."""

    def missing(path: Path) -> list[str]:
        return [name for name, node in _public(_parse(path)) if not ast.get_docstring(node)]

    assert _those(SOURCES, missing) == {}


def test_imports_of_funct_stand_at_the_top() -> None:
    """No function imports a module of funct: that would hide an upward import."""
    late = {
        (_name(path), module)
        for path in SOURCES
        for function in statements(_parse(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for module in _imported(function)
        if module.split(".")[0] in ("", "funct")
    }
    assert late == LATE_IMPORTS


def test_packages_list_their_names() -> None:
    """Every package that gives names states them in `__all__`."""

    def unlisted(path: Path) -> bool:
        body = _parse(path).body
        assigned = {
            target.id
            for node in body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        only_a_docstring = len(body) == 1
        return not only_a_docstring and "__all__" not in assigned

    assert _those((p for p in SOURCES if p.name == "__init__.py"), unlisted) == {}


def test_source_uses_the_words_of_the_glossary() -> None:
    """No source uses a word that the glossary replaces by another."""
    words = "|".join(map(re.escape, _twins()))
    twin = re.compile(rf"\b({words or '(?!)'})\b", re.IGNORECASE)
    assert _those(SOURCES, lambda path: twin.findall(_text(path))) == {}


def test_floating_dtypes_are_told_by_a_set() -> None:
    """`x.dtype in INEXACT`, not NumPy's kind, which is "V" for bfloat16."""
    kind = re.compile(r'kind (not )?in "(fc|cf)"')
    files = (path for path in SOURCES if path.stem != "dtypes")
    assert _those(files, lambda path: kind.search(_text(path))) == {}


def test_addresses_are_those_of_arrays_that_somebody_holds() -> None:
    """An array without a name dies before machine code reads it, and what another thread makes
    while a call of ctypes lets it run lies in its place."""
    kept = ("tile_table",)  # whose arrays live for ever

    def unheld(path: Path) -> list[str]:
        calls = [n for n in ast.walk(_parse(path)) if isinstance(n, ast.Call)]
        named = [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == "address"]
        given = [n.args[0] for n in named if len(n.args) == 1]
        made = [a for a in given if isinstance(a, ast.Call) and ast.unparse(a.func) not in kept]
        return [ast.unparse(a) for a in made]

    assert _those((path for path in SOURCES if "kernels" in path.parts), unheld) == {}


def test_texts_name_no_folder_of_one_machine() -> None:
    """Nothing depends on where somebody's checkout happens to lie."""
    folder = re.compile(rf"(?<![\w./-])/({'|'.join(('home', 'root', 'work', 'Users'))})/")
    assert _those(TEXTS, lambda path: folder.search(_text(path))) == {}


def _public(module: ast.Module) -> Iterator[tuple[str, Documented]]:
    yield "module", module
    for node in module.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield node.name, node
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    yield f"{node.name}.{method.name}", method
        elif not _is_overload(node):
            yield node.name, node


def _is_overload(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(d).endswith("overload") for d in function.decorator_list)


def _imported(function: ast.AST) -> Iterator[str]:
    """Yield the modules that a function's body imports; relative ones as an empty root."""
    for node in statements(function):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def _twins() -> list[str]:
    """Return the first column of the glossary's last table: words that we do not use."""
    glossary = ROOT / "docs" / "GLOSSARY.md"
    if not glossary.exists():
        return []
    tables = re.findall(r"(?:^\|.*\n?)+", glossary.read_text(encoding="utf-8"), re.MULTILINE)
    rows = tables[-1].splitlines()[2:]
    return [row.split("|")[1].strip().strip("`") for row in rows]
