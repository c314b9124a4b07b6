"""`host()`: the processor this process runs on, as far as code made for it must know."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os

from msgspec import Struct

from funct.device import disk_cache
from funct.device.llvm import loaded, processor, version
from funct.settings import cores

__all__ = ["Host", "host", "told"]

_USUAL_CACHE = 1 << 25
_CHANGING = ("cpu mhz", "bogomips", "processor", "core id", "apicid", "initial apicid", "physical")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Host(Struct, frozen=True):
    """A processor.

    name: LLVM's name of it. features: LLVM's names of what it has, such as "avx2". vector_bytes:
    width of its widest vector registers, in bytes. cores: those this process may use. cache_bytes:
    the size of the last of its caches.
    Example:
        >>> from funct import device
        >>> device.host().cores >= 1, device.host().vector_bytes >= 16
        (True, True)
    """

    name: str
    features: frozenset[str]
    vector_bytes: int
    cores: int
    cache_bytes: int = _USUAL_CACHE

    def has(self, *features: str) -> bool:
        """Whether it has all of these."""
        return self.features.issuperset(features)

    def overflows(self, touched: int) -> bool:
        """Whether what a pass over so many bytes writes is better written past the caches:
        measured, that pays from half of what they hold on, also where the next pass reads it.
        """
        return 2 * touched >= self.cache_bytes

    @property
    def operations_at_once(self) -> int:
        """Vectors that it computes with while it waits for one result: four cycles, with one or two
        operations in each. Zen 4 computes vectors of 64 bytes in two halves.
        """
        return 4 if self.name == "znver4" and self.vector_bytes == 64 else 8

    @property
    def loads_keep_pace(self) -> bool:
        """Whether vectors and weights are loaded as quickly as they are multiplied, so that what
        reads one of each for a product need not spare loads.
        """
        return self.operations_at_once < 8

    @property
    def flags(self) -> str:
        """The features as LLVM's command line takes them."""
        return ",".join([f"+{f}" for f in sorted(self.features)])


def vector_bytes(features: frozenset[str]) -> int:
    """Width of the widest vectors: 64 with AVX-512, 32 with AVX2, else 16 (SSE2, NEON)."""
    if {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= features:
        return 64
    return 32 if {"avx2", "fma"} <= features else 16


def _cache_bytes() -> int:
    """The size of the largest cache that Linux lists for the first core, or a usual one."""
    folder = "/sys/devices/system/cpu/cpu0/cache"
    caches = os.listdir(folder) if os.path.isdir(folder) else []
    sizes = []
    for file in [f"{folder}/{cache}/size" for cache in caches if cache.startswith("index")]:
        if os.path.exists(file):
            with open(file, encoding="ascii") as f:
                sizes.append(f.read().strip())
    found = [int(s[:-1]) * _UNITS[s[-1]] for s in sizes if s[-1:] in _UNITS]
    return max(found, default=_USUAL_CACHE)


@functools.cache
def host() -> Host:
    """The processor of this machine, as LLVM calls it; what it said is kept on disk.

    Example:
        >>> from funct import device
        >>> device.host() is device.host()
        True
    """
    name, features = _named()
    return Host(name, features, vector_bytes(features), cores(), _cache_bytes())


def told() -> bool:
    """Whether `host` can say it without loading LLVM."""
    if host.cache_info().currsize:  # it has said it
        return True
    key = _key()
    return key is not None and disk_cache.read(key) is not None


def _named() -> tuple[str, frozenset[str]]:
    """LLVM's names of the processor and of what it has, kept since to load LLVM takes 0.1 s."""
    key = _key()
    kept = None if key is None or loaded() else disk_cache.read(key)
    words = [] if kept is None else kept.decode(errors="replace").split()
    if words:
        return words[0], frozenset(words[1:])
    name, features = processor()
    if key is not None:
        disk_cache.write(key, " ".join([name, *sorted(features)]).encode())
    return name, frozenset(features)


def _key() -> str | None:
    """Under what LLVM's answer is kept: all that Linux says of the first processor and that stays
    the same. None where it says nothing.
    """
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = itertools.takewhile(str.strip, file)
            said = [line for line in lines if not line.lower().startswith(_CHANGING)]
    except OSError:
        return None
    text = "".join([os.uname().release, version(), *said])
    return f"host-{hashlib.sha256(text.encode()).hexdigest()}" if said else None
