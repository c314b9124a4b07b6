"""The package obeys its own rules: layers, sizes, names, documentation.

Import-linter checks who imports whom; here stands what it cannot see.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

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


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


each_source = pytest.mark.parametrize("path", SOURCES, ids=_name)


def test_layers_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """Every contract of [tool.importlinter] in pyproject.toml is kept."""
    config = str(ROOT / "pyproject.toml")
    kept = lint_imports(config, no_cache=True, no_logo=True) == 0
    assert kept, capsys.readouterr().out


@each_source
def test_file_is_short(path: Path) -> None:
    """A file has at most 500 lines; one at the limit is split by chapter or family."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@each_source
def test_file_has_a_name_that_says_something(path: Path) -> None:
    """No file is a drawer for whatever comes along."""
    assert not BANNED_STEMS.fullmatch(path.stem)


@each_source
def test_module_is_documented(path: Path) -> None:
    """Every module, public class, function and method says what it is."""
    missing = [name for name, node in _public(_parse(path)) if not ast.get_docstring(node)]
    assert missing == []


@each_source
def test_imports_of_funct_stand_at_the_top(path: Path) -> None:
    """No function imports a module of funct: that would hide an upward import."""
    late = {
        (_name(path), module)
        for function in ast.walk(_parse(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for module in _imported(function)
        if module.split(".")[0] in ("", "funct")
    }
    assert late - LATE_IMPORTS == set()


@pytest.mark.parametrize("path", [p for p in SOURCES if p.name == "__init__.py"], ids=_name)
def test_package_lists_its_names(path: Path) -> None:
    """Every package that gives names states them in `__all__`."""
    body = _parse(path).body
    assigned = {
        target.id
        for node in body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    only_a_docstring = len(body) == 1
    assert only_a_docstring or "__all__" in assigned


@each_source
def test_source_uses_the_words_of_the_glossary(path: Path) -> None:
    """No source uses a word that the glossary replaces by another."""
    text = path.read_text(encoding="utf-8")
    used = [word for word in _twins() if re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)]
    assert used == []


@each_source
def test_floating_dtypes_are_told_by_a_set(path: Path) -> None:
    """`x.dtype in INEXACT`, not NumPy's kind, which is "V" for bfloat16."""
    text = path.read_text(encoding="utf-8")
    assert path.stem == "dtypes" or not re.search(r'kind (not )?in "(fc|cf)"', text)


@pytest.mark.parametrize("path", TEXTS, ids=_name)
def test_text_names_no_folder_of_one_machine(path: Path) -> None:
    """Nothing depends on where somebody's checkout happens to lie."""
    folders = "|".join(("home", "root", "work", "Users"))
    assert not re.search(rf"(?<![\w./-])/({folders})/", path.read_text(encoding="utf-8"))


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
    for node in ast.walk(function):
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
