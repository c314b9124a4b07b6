"""The same call by torch: values, first gradients, for arguments that hypothesis makes."""

import warnings
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.nn import functional as F  # noqa: N812
from tests.nn.cases import wave


def agree_with_torch(
    name: str,
    inputs: dict[str, Any],
    rtol: float = 1e-9,
    fixed: tuple[str, ...] = (),
    **keywords: Any,
) -> None:
    """Value and gradients of the first output's weighted sum are torch's.

    inputs: shapes (waves, differentiated) or arrays (as they are; floating ones are differentiated
    if they are not among the fixed; with nothing to differentiate, only values are compared).
    """
    torch = pytest.importorskip("torch", reason="the golden cases stand in for it")
    filled = enumerate(inputs.items())
    arrays = {k: wave(v, 0.7 * i) if isinstance(v, tuple) else v for i, (k, v) in filled}
    given = {k: torch.tensor(v) for k, v in arrays.items()}
    names = [k for k, v in arrays.items() if v.dtype.kind == "f" and k not in fixed]
    for k in names:
        given[k].requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(torch.nn.functional, name)(**given, **keywords)
    theirs = theirs if isinstance(theirs, tuple) else (theirs,)
    weights = wave(tuple(theirs[0].shape), 0.3)
    weighted = (theirs[0] * torch.tensor(weights)).sum()
    expected = torch.autograd.grad(weighted, [given[k] for k in names]) if names else ()

    whole = {k: xp.asarray(v) for k, v in arrays.items()}

    def total(free: dict[str, Any]) -> Any:
        ys = getattr(F, name)(**{**whole, **free}, **keywords)
        ys = ys if isinstance(ys, tuple) else (ys,)
        return xp.sum(ys[0] * xp.asarray(weights)), ys

    grads, ours = ft.grad(total, has_aux=True)({k: whole[k] for k in names})
    for a, e in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(a), e.detach().numpy(), rtol=rtol, atol=1e-11)
    for k, e in zip(names, expected, strict=True):
        found = np.asarray(grads[k])
        np.testing.assert_allclose(found, e.numpy(), rtol=rtol, atol=1e-10, err_msg=k)
