"""What a run of pytest does first, wherever it collects."""

import gc
import importlib
import itertools
from pathlib import Path

_ROOT = Path(__file__).parent

# Its functions have the docstrings of `funct.array`: their examples run there, and call Python's
# `round` and `all`, which that file has others of.
collect_ignore = ["funct/interop/rebind.py"]

gc.disable()  # till all are collected: nothing of that is garbage


def pytest_collect_file(file_path: Path) -> None:
    """Import a file of funct by its name before it is collected for its examples.

    pytest imports a file that nothing has imported yet by its path. Of a file that its own package
    imports it so makes a second one, whose classes are not those that arrays have, and whose name
    hides a function of the package that is called like it.
    """
    if file_path.suffix == ".py" and _ROOT / "funct" in file_path.parents:
        parts = file_path.relative_to(_ROOT).with_suffix("").parts
        importlib.import_module(".".join(parts).removesuffix(".__init__"))


def pytest_collection_finish() -> None:
    """Each of the tens of thousands of tests that were collected is some hundred objects."""
    _keep()
    gc.enable()


def pytest_runtest_logfinish() -> None:
    """Reports of tests, and what funct has compiled for them, come to a million objects."""
    if next(_finished) % _OFTEN == 0:
        _keep()


_OFTEN = 500
_finished = itertools.count(1)


def _keep() -> None:
    """What is there now stays: to look at it again and again for garbage takes a tenth of a run and
    more, since tests that count what is left look at everything.
    """
    gc.collect()
    gc.freeze()
