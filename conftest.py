"""What a run of pytest does first, wherever it collects."""

import importlib


def pytest_collection() -> None:
    """Import funct as a package before files of it are collected for their examples.

    A file that is collected alone would else be made a second time when the package imports it, and
    its classes would not be those that arrays have. Not at the top: `tests/conftest.py` is to set
    what SciPy and BLAS read when they are first imported.
    """
    importlib.import_module("funct")
