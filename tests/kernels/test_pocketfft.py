"""SciPy's transforms by its loops alone: the bits of the package, which nobody need import."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.fft

from funct.kernels import pocketfft


def given(kind: str, shape: tuple[int, ...]) -> Any:
    rng = np.random.default_rng(0)
    x = 9 * rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if kind in "FD" else x).astype(kind)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("kind", ["f", "d", "F", "D", "i"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_along_an_axis(name: str, kind: str, norm: str) -> None:
    """Cut, as it is, and with zeros behind; forwards and backwards in memory."""
    if name in ("rfft", "ihfft") and kind in "FD":
        return
    for shape, axis in (((40, 33), 0), ((40, 33), -1), ((7, 5, 64), 1), ((2048,), 0)):
        x = given(kind, shape)
        for n in (None, 1 if name[-4:] != "rfft" else 2, 16, 77):
            for y in (x, x[::-1]):
                found = pocketfft.along(name, y, (n,), (axis,), norm, 1)
                expected = getattr(scipy.fft, name)(y, n, axis, norm)
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["f", "d", "F", "D"])
@pytest.mark.parametrize("name", ["fft", "ifft"])
@pytest.mark.parametrize("axes", [(0, 1), (2, 0), (-1, 1, 0)], ids=str)
def test_along_several(axes: tuple[int, ...], name: str, kind: str) -> None:
    x = given(kind, (9, 20, 14))
    for lengths in ([x.shape[a] for a in axes], [6, 30, 14][: len(axes)]):
        found = pocketfft.along(name, x, lengths, axes, "ortho", 2)
        expected = getattr(scipy.fft, f"{name}n")(x, lengths, axes, "ortho", workers=2)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("there", [True, False], ids=["loops", "package"])
@pytest.mark.parametrize("name", ["fft", "irfft"])
def test_nothing_is_no_transform(name: str, there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not there:
        monkeypatch.setattr(pocketfft, "_loops", lambda: None)
    with pytest.raises(ValueError, match="no elements"):
        pocketfft.along(name, np.zeros((3, 0)), (None,), (1,), "backward", 1)


@pytest.mark.parametrize("name", ["rfft", "irfft"])
def test_by_the_package(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = given("f", (40, 30))
    expected = pocketfft.along(name, x, (None,), (0,), "forward", 1)
    monkeypatch.setattr(pocketfft, "_loops", lambda: None)
    np.testing.assert_array_equal(pocketfft.along(name, x, (None,), (0,), "forward", 1), expected)
    both = pocketfft.along("fft", x, (40, 30), (0, 1), "forward", 1)
    np.testing.assert_array_equal(both, scipy.fft.fftn(x, norm="forward"))


@pytest.mark.parametrize("name", ["c2c", "r2c", "c2r"])
def test_loops_that_take_other_arguments_are_not_called(name: str) -> None:
    known = pocketfft._loops()
    if known is None:
        pytest.skip("this SciPy has no such loops: the package is called")
    assert pocketfft._is_known(known)
    parts = {n: getattr(known, n) for n in ("c2c", "r2c", "c2r")}
    for other in (None, lambda a, axes, out: a):
        assert not pocketfft._is_known(SimpleNamespace(**{**parts, name: other}))


CODE = """
import sys
import numpy as np
import funct as ft, funct.array as xp
x = xp.ones((64, 64), dtype="float32")
y = np.asarray(xp.fft.rfft(x))
assert "scipy" not in sys.modules, "the package was imported"
import scipy.fft
np.testing.assert_array_equal(y, scipy.fft.rfft(np.asarray(x)))
np.testing.assert_array_equal(y, np.asarray(xp.fft.rfft(x)))
"""


def test_the_package_is_not_imported_and_can_be() -> None:
    if pocketfft._loops() is None:
        pytest.skip("this SciPy has no such loops: the package is called")
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
