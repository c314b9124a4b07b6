"""Entropies, losses and their kin: SciPy's values, at all ends and signs too."""

import numpy as np
import pytest
import scipy.special

from funct.kernels.llvm.entropies import ENTROPIES

from .apply import apply
from .test_functions import TARGETS, edges

F32, F64 = np.float32, np.float64
TWO = (
    "boxcox", "boxcox1p", "huber", "inv_boxcox", "inv_boxcox1p", "kl_div", "rel_entr",
    "xlog1py", "xlogy",
)  # fmt: skip


def given(name, dtype):
    """All pairs of edges; numbers of usual and of any sizes, near each other and not."""
    rng = np.random.default_rng(5)
    ends = [v.ravel() for v in np.meshgrid(edges(dtype), edges(dtype))]
    x, y = rng.uniform(-4, 4, (2, 20000))
    far = 10.0 ** rng.uniform(-30, 30, (2, 5000))
    near = rng.uniform(0.5, 2, 5000)
    close = near * (1 + rng.uniform(-1e-3, 1e-3, 5000))
    parts = (ends, (x, y), far, (near, close))
    found = [np.concatenate(p).astype(dtype) for p in zip(*parts, strict=True)]
    if name == "radian":
        return [*found, found[0][::-1].copy()]
    return found if name in TWO else found[:1]


@pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", ENTROPIES)
def test_values_are_scipys(name, dtype, target):
    args = given(name, dtype)
    found = apply(ENTROPIES[name], *args, target=TARGETS[target])
    told = getattr(scipy.special, name)(*args)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(told))
    usual = np.isfinite(told)
    np.testing.assert_array_equal(found[~usual], told[~usual])
    scale = np.abs(told[usual])
    if name == "kl_div":  # x log(x / y) - x + y cancels
        scale = np.maximum(scale, np.maximum(*args)[usual])
    if name == "radian":  # a sum that may cancel
        scale = np.maximum(scale, np.max([np.abs(a[usual]) for a in args], axis=0) * 0.02)
    if name == "sinc":  # π x is rounded, and NumPy's sine of it another
        scale = np.maximum(scale, np.minimum(1, 1 / np.abs(args[0][usual] * np.pi)))
    if name == "cosm1":  # by 1 less than the cosine
        scale = np.maximum(scale, np.abs(args[0][usual]) > np.pi / 4)
    steps = np.spacing(np.maximum(scale, np.finfo(dtype).tiny))
    if "boxcox" in name:  # what is raised has an error of its own
        steps *= 1 + np.abs(np.log(np.maximum(scale, np.finfo(dtype).tiny)))
    away = np.abs(found[usual].astype(F64) - told[usual]) / steps
    k = away.argmax()
    assert away[k] <= 6, (*[a[usual][k] for a in args], found[usual][k], told[usual][k])
