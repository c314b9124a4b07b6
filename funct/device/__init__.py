"""What the machine offers: its instruction set, code made for it at run time, threads, memory.

Array-free: nothing here knows what an array is. Above it stand the kernels and the compiler.
"""

from funct.device import cuda as _cuda  # noqa: F401
from funct.device.host import Host as Host
from funct.device.host import host as host
from funct.device.machine_code import Code as Code
from funct.device.machine_code import assemble as assemble
from funct.device.machine_code import assemble_all as assemble_all
from funct.device.machine_code import load_object as load_object
from funct.device.memory import Allocator as Allocator
from funct.device.memory import MemoryScope as MemoryScope
from funct.device.memory import PrivatePool as PrivatePool
from funct.device.memory import configure_memory as configure_memory
from funct.device.memory import empty_cache as empty_cache
from funct.device.memory import memory_scope as memory_scope
from funct.device.memory import memory_snapshot as memory_snapshot
from funct.device.memory import memory_stats as memory_stats
from funct.device.memory import memory_summary as memory_summary
from funct.device.memory import record_memory as record_memory
from funct.device.memory import reset_peak as reset_peak
from funct.device.memory import set_limit as set_limit
from funct.device.printed import printed as printed
from funct.device.printed import printed_all as printed_all
from funct.device.threads import PARALLEL as PARALLEL

__all__ = [
    "PARALLEL", "Allocator", "Code", "Host", "MemoryScope", "PrivatePool", "assemble",
    "assemble_all",
    "configure_memory", "empty_cache", "host", "load_object", "memory_scope", "memory_snapshot",
    "memory_stats", "memory_summary", "printed", "printed_all", "record_memory", "reset_peak",
    "set_limit",
]  # fmt: skip
