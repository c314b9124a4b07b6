"""Images whose channels lie last: compiled code reads them so, and gives such images."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import build, whole_of
from funct.errors import FunctError
from funct.kernels.channels import channels_first, channels_last, lie_last
from funct.nn import functional as F  # noqa: N812
from tests import laws

RNG = np.random.default_rng(3)
SHAPE = (3, 8, 14, 15)
W = xp.asarray(RNG.normal(size=(8, 8, 3, 3)).astype("f") / 8)


def image() -> Any:
    """Numbers in C order."""
    return RNG.normal(size=SHAPE).astype("f")


def last(x: Any) -> Any:
    """The same numbers with their channels last in memory."""
    return channels_first(channels_last(x).copy())


PROGRAMS: dict[str, Any] = {
    "elements": lambda x, y: xp.exp(x) * y + 1.0,
    "norm": lambda x, y: F.batch_norm(x, None, None, training=True) + y,
    "groups": lambda x, y: F.group_norm(x * y, 4),
    "softmax": lambda x, y: F.softmax(x + y, dim=1),
    "convolution": lambda x, y: F.relu(F.conv2d(x, W, padding=1)) * y,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_number_depends_on_the_layout(name: str) -> None:
    """Of each argument by itself, of results and gradients; a result lies as all images do."""
    f = PROGRAMS[name]
    run = ft.jit(f)
    slope = ft.jit(ft.grad(lambda x, y: xp.sum(xp.sin(f(x, y))), argnums=(0, 1)))
    x, y = image(), image()
    expected = f(xp.asarray(x), xp.asarray(y))
    slopes = slope(xp.asarray(x), xp.asarray(y))
    for turned in product((False, True), repeat=2):
        given = [xp.asarray(last(v) if t else v) for v, t in zip((x, y), turned, strict=True)]
        for _ in range(4):  # the first calls go other ways than those to come
            found = run(*given)
            laws.close(found, expected, 1e-5, 1e-5)
        assert lie_last(found.data) is all(turned) or turned[0] != turned[1]
        laws.close(slope(*given), slopes, 1e-4, 1e-4)


def test_what_decides_decides_in_each_layout() -> None:
    """Guards, errors and what is returned as it came."""

    def f(x: Any, i: Any) -> Any:
        return (x, xp.take(x, i, axis=1)) if x[0, 0, 0, 0] > 0 else (x, -x)

    run = ft.jit(f)
    x = np.abs(image())
    for sign in (1, -1):
        for v in (x * np.float32(sign), last(x * np.float32(sign))):
            given = xp.asarray(v), xp.asarray([1, 0])
            laws.same(run(*given), f(*given))
    with pytest.raises((FunctError, IndexError)):
        run(xp.asarray(last(x)), xp.asarray([1, 8]))


def test_images_in_c_order_are_asked_nothing() -> None:
    """A function of one program is one for them; few elements and other ranks are no images."""
    for shape, asks in ((SHAPE, True), (SHAPE[1:], False), ((2, 3, 4, 5), False)):
        x = RNG.normal(size=shape).astype("f")
        graph = ft.make_graph(lambda x: xp.exp(x) + 1.0)(xp.asarray(x))
        made = build(graph, mode="reduce-overhead")
        assert whole_of(made) is not None
        assert (made.__name__ == "chosen") is asks
        np.testing.assert_allclose(made(x)[0], np.exp(x) + 1.0, rtol=1e-6)


TURNED: dict[str, Any] = {
    "elements": lambda x, y: xp.exp(x) * 2.0,
    "sums": lambda x, y: (xp.sum(x, axis=1), xp.max(x * y, axis=(0, 2)), xp.mean(x)),
    "products": lambda x, y: x @ xp.matrix_transpose(y),
    "softmax": lambda x, y: F.softmax(x + y, dim=0),
}


@pytest.mark.parametrize("name", TURNED)
def test_no_number_depends_on_the_order_of_axes(name: str) -> None:
    """Nor on which argument is a transpose; what is elementwise lies as its argument does."""
    run = ft.jit(TURNED[name])
    x, y = (RNG.normal(size=(32, 34, 36)).astype("f") for _ in range(2))
    expected = run(xp.asarray(x), xp.asarray(y))
    for order, both in (((2, 1, 0), True), ((2, 1, 0), False), ((1, 0, 2), True)):
        back = np.argsort(order)
        turned = x.transpose(order).copy().transpose(back)
        other = y.transpose(order).copy().transpose(back) if both else y
        for _ in range(3):  # the first calls go other ways than those to come
            found = run(xp.asarray(turned), xp.asarray(other))
            laws.close(found, expected, 1e-4, 1e-5)
        assert name != "elements" or found.data.strides == turned.strides
