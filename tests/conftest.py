"""What every test may rely on: hypothesis profiles, a seeded generator and a folder of code."""

import itertools
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when SciPy is first imported
# Small matrices on a busy machine: threads of BLAS and torch mostly wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# One run compiles more than a cache holds: in the user's it would drive out what her programs need,
# and then its own code before the next run comes for it.
os.environ.setdefault("FUNCT_CACHE_DIR", os.path.abspath(f"{__file__}/../../.pytest_cache/funct"))

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from funct.device import disk_cache
from tests.pairwise import covering

disk_cache.BOUND = 1 << 30  # bytes

# A shared machine stalls now and then: no deadlines, and slow data generation is not an error.
# A test that wants more examples than others says how many times as many.
_CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("dev", _CALM, max_examples=10, derandomize=True)
settings.register_profile("ci", _CALM, max_examples=12, derandomize=True, print_blob=True)
settings.register_profile("nightly", _CALM, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("FUNCT_HYPOTHESIS_PROFILE", "dev"))


def _values(item: pytest.Item, given: dict[str, Any]) -> tuple[Any, ...]:
    """Which value of each list a case has: parameters of one list go together."""
    lists = [mark.args[0] for mark in item.iter_markers("parametrize")]
    names = [tuple(n.replace(",", " ").split() if isinstance(n, str) else n) for n in lists]
    names += [(n,) for n in given if n not in itertools.chain(*names)]  # of fixtures
    return tuple([tuple([id(given[n]) for n in some]) for some in names])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of families that run in turn, marked so, or pairwise, marked so or of three lists of values
    and more, what is no case is left out, and what is slow is marked.
    """
    families: dict[tuple[str, int], dict[tuple[Any, ...], pytest.Item]] = defaultdict(dict)
    none = set()
    for item in items:
        in_turn, pairwise = map(item.get_closest_marker, ("in_turn", "pairwise"))
        if in_turn or pairwise or len(list(item.iter_markers("parametrize"))) > 2:
            given: dict[str, Any] = item.callspec.params  # type: ignore[attr-defined]
            where = pairwise and pairwise.kwargs.get("where")
            if where is not None and not where(**given):
                none.add(item)
            elif not item.get_closest_marker("slow"):
                family = item.nodeid.partition("[")[0], 1 if in_turn else 2
                families[family][_values(item, given)] = item
    items[:] = [item for item in items if item not in none]
    for (_, together), cases in families.items():
        for case in cases.keys() - covering(list(cases), together):
            cases[case].add_marker(pytest.mark.slow)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where code is kept: empty."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator that starts from the same seed in every test."""
    return np.random.default_rng(0)
