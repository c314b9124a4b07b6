"""What a run of pytest does first, wherever it collects."""

import gc
import importlib
from pathlib import Path

_ROOT = Path(__file__).parent

# Its functions have the docstrings of `funct.array`: their examples run there, and call Python's
# `round` and `all`, which that file has others of.
collect_ignore = ["funct/interop/rebind.py"]


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
    """What was collected stays: looking at it again and again for garbage takes a tenth of a run.

    Each of tens of thousands of tests is some hundred objects.
    """
    gc.collect()
    gc.freeze()
