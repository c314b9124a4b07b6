"""What the machine offers: its instruction set, code made for it at run time, and threads.

Array-free: nothing here knows what an array is. Above it stand the kernels and the compiler.
"""

from funct.device.host import Host as Host
from funct.device.host import host as host
from funct.device.machine_code import Code as Code
from funct.device.machine_code import assemble as assemble
from funct.device.threads import PARALLEL as PARALLEL

__all__ = ["PARALLEL", "Code", "Host", "assemble", "host"]
