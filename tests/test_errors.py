"""Errors: the template, the classes, the user's line and the running transforms."""

import copy
import pickle
from typing import Any

import attrs
import pytest

import funct as ft
import funct.array as xp
from funct import errors, source
from funct.errors import FunctError, ShapeError

KINDS = [c for n in errors.__all__ if isinstance(c := getattr(errors, n), type)]
CLASSES = [c for c in KINDS if not issubclass(c, Warning) and c is not FunctError]


def test_warnings() -> None:
    """They are the user's to filter."""
    assert issubclass(errors.FallbackWarning, UserWarning)
    assert issubclass(errors.ForgottenRulesWarning, UserWarning)
    assert len(CLASSES) == len(KINDS) - 3


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_classes(cls: Any) -> None:
    """Each class is a FunctError and a builtin error, says what it is, and prints the template."""
    assert issubclass(cls, FunctError)
    assert len(cls.__bases__) == 2 or issubclass(cls.__base__, FunctError)
    assert cls.__doc__
    error = cls("op: what went wrong", fix="do this")  # this line
    head, where, fix = str(error).splitlines()
    assert head == "op: what went wrong"
    assert where.startswith("  in test_errors.py:")
    assert where.endswith("# this line")
    assert fix == "  fix: do this"


@attrs.frozen
class _Checked:
    """A record of the user's, whose field funct converts."""

    x: Any = attrs.field(converter=xp.asarray)


def _with_nope() -> None:
    with ft.config.using(nope=1):
        pass


@pytest.mark.parametrize(
    "call",
    [
        lambda: ft.config.using(threads=0).__enter__(),
        lambda: _Checked("text"),
        lambda: attrs.evolve(_Checked(1.0), x="text"),
        _with_nope,
    ],
    ids=["using", "a user's record", "evolving it", "no field"],
)
def test_lines_are_the_users_whatever_stands_between(call: Any) -> None:
    """Code that attrs writes, and the library of `with` blocks, are nobody's."""
    for _ in range(2):
        with pytest.raises(FunctError) as caught:
            call()
        assert caught.value.site is not None
        assert caught.value.site.file == __file__


def test_context_lists_running_transforms() -> None:
    """The transforms that run are listed, innermost first; afterwards none runs."""
    seen: list[Any] = []

    def fun(x: Any) -> Any:
        seen.append(source.active_transforms())
        return xp.sum(x)

    ft.jit(ft.grad(lambda x: xp.sum(ft.vmap(fun)(x))))(xp.ones((2, 2)))
    assert seen == [("vmap", "grad", "jit")]
    assert source.active_transforms() == ()


def test_errors_survive_pickle_and_copy() -> None:
    """An error that crosses a process keeps its text."""
    with pytest.raises(ShapeError) as caught:
        ft.grad(lambda x: xp.sum(xp.reshape(x, (3, 3))))(xp.ones(4))
    error = caught.value
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is ShapeError
        assert str(other) == str(error)
    assert "under grad" in str(error)


def test_user_site() -> None:
    """The innermost line outside the package, also where funct calls back."""
    here = source.user_site()
    assert here is not None
    assert here.text == "here = source.user_site()"
    sites: list[Any] = []
    ft.vmap(lambda x: sites.append(source.user_site()) or x)(xp.ones(2))
    assert sites[0].file == __file__
    assert source.Site("nowhere.py", 3).text == ""
    assert str(source.Site("/a/nowhere.py", 3)) == "nowhere.py:3"
