"""Who comes from NumPy may name an argument as NumPy names it.

The standard alone makes arguments positional; the first array is so everywhere.
"""

import inspect
from types import ModuleType

import numpy as np

import funct.array as xp

OF_THE_STANDARD = frozenset({
    "can_cast", "linspace", "matrix_power", "moveaxis", "repeat", "take", "take_along_axis",
})  # fmt: skip
PACKAGES: tuple[tuple[ModuleType, ModuleType], ...] = (
    (xp, np), (xp.linalg, np.linalg), (xp.fft, np.fft),
)  # fmt: skip


def _by_position(ours: object, numpys: object) -> list[str]:
    """Arguments behind the first that NumPy takes by name, and we by position alone."""
    try:
        theirs = inspect.signature(numpys).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):  # a builtin function that does not tell
        return []
    mine = list(inspect.signature(ours).parameters.values())[1:]  # type: ignore[arg-type]
    return [
        p.name for p in mine
        if p.kind is p.POSITIONAL_ONLY
        and p.name in theirs and theirs[p.name].kind is not p.POSITIONAL_ONLY
    ]  # fmt: skip


def test_what_numpy_takes_by_name_is_taken_by_name() -> None:
    found = {
        name: names
        for ours, numpys in PACKAGES
        for name in ours.__all__
        if callable(getattr(numpys, name, None)) and inspect.isroutine(getattr(ours, name))
        if (names := _by_position(getattr(ours, name), getattr(numpys, name)))
        if name not in OF_THE_STANDARD
    }
    assert found == {}


def test_names_reach_their_arguments() -> None:
    x = xp.asarray([[0.0, 1.0, 2.0], [3.0, 5.0, 4.0]])
    n, edges = np.asarray(x), xp.asarray([1.0, 3.0])
    pairs = {
        "pad": (xp.pad(x, pad_width=1), np.pad(n, pad_width=1)),
        "digitize": (xp.digitize(x, bins=edges), np.digitize(n, bins=[1.0, 3.0])),
        "interp": (xp.interp(x, xp=edges, fp=edges + 1), np.interp(n, [1.0, 3.0], [2.0, 4.0])),
        "ravel": (xp.ravel_multi_index((xp.asarray([1]), xp.asarray([2])), dims=(2, 3)), [5]),
        "unravel": (xp.unravel_index(xp.asarray([5]), shape=(2, 3))[1], [2]),
        "select": (xp.select([x > 2], [x], default=7.0), np.select([n > 2], [n], default=7.0)),
        "cov": (xp.cov(x[0], y=x[1]), np.cov(n[0], y=n[1])),
        "corrcoef": (xp.corrcoef(x[0], y=x[1]), np.corrcoef(n[0], y=n[1])),
        "polyval": (xp.polyval(edges, x=x), np.polyval([1.0, 3.0], x=n)),
        "polyfit": (xp.polyfit(x[0], y=x[1], deg=1), np.polyfit(n[0], y=n[1], deg=1)),
        "geomspace": (xp.geomspace(start=1.0, stop=8.0, num=4), [1.0, 2.0, 4.0, 8.0]),
        "logspace": (xp.logspace(start=0.0, stop=2.0, num=3), [1.0, 10.0, 100.0]),
    }
    for name, (ours, numpys) in pairs.items():
        np.testing.assert_allclose(np.asarray(ours), numpys, rtol=1e-12, err_msg=name)
