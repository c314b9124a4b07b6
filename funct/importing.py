"""How packages of funct are imported: some names when somebody asks for them, and all of it without
passes of the collector.
"""

import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = ["uncollected", "when_asked"]


@contextmanager
def uncollected() -> Iterator[None]:
    """A block of imports. What they make stays, so to look for garbage in it is in vain, and would
    take a sixth of their time; it counts as old afterwards.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if gc.get_freeze_count() == 0:  # else they are not ours to thaw
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def when_asked(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that imports these names at their first use (PEP
    562).

    places: by name, "module:attribute", or a module.
    Example:
        >>> from funct.importing import when_asked
        >>> find, _ = when_asked("funct", {"half": "fractions:Fraction"})
        >>> find("nowhere")
        Traceback (most recent call last):
        ...
        AttributeError: module 'funct' has no attribute 'nowhere'
    """

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = places[name].partition(":")
        with uncollected():
            found = importlib.import_module(module)
        if attribute:
            found = getattr(found, attribute)
        setattr(sys.modules[package], name, found)  # the next one finds it without us
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return find, names
