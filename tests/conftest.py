"""What every test may rely on: hypothesis profiles, a seeded generator and a folder of code."""

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
_CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("dev", _CALM, max_examples=20, derandomize=True)
settings.register_profile("ci", _CALM, max_examples=25, derandomize=True, print_blob=True)
settings.register_profile("nightly", _CALM, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("FUNCT_HYPOTHESIS_PROFILE", "dev"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of families marked `pairwise` what is no case is left out, and what is slow is marked."""
    families: dict[str, dict[tuple[int, ...], pytest.Item]] = defaultdict(dict)
    none = set()
    for item in items:
        if marker := item.get_closest_marker("pairwise"):
            given: dict[str, Any] = item.callspec.params  # type: ignore[attr-defined]
            where = marker.kwargs.get("where")
            if where is None or where(**given):
                families[item.nodeid.partition("[")[0]][tuple(map(id, given.values()))] = item
            else:
                none.add(item)
    items[:] = [item for item in items if item not in none]
    for cases in families.values():
        for case in cases.keys() - covering(list(cases)):
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
