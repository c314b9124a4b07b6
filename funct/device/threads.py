"""One pool of threads for everything that funct compiles.

Assembled text declares `funct_parallel(fn, data, tasks)` and calls it: fn, `void (ptr data, i64
task)`, runs once for each task, on as many threads as the settings allow, and the call returns when
all are done. What a task computes depends on its number alone, never on the thread it runs on.
"""

from __future__ import annotations

import functools

from funct.device.llvm import binding
from funct.device.machine_code import Code, assemble

__all__ = ["PARALLEL", "provide"]

PARALLEL = "declare void @funct_parallel(ptr, ptr, i64)"

_SERIAL = """
define void @serial(ptr %fn, ptr %data, i64 %tasks) {
entry:
  %some = icmp sgt i64 %tasks, 0
  br i1 %some, label %loop, label %done
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void %fn(ptr %data, i64 %k)
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %tasks
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


@functools.cache
def provide() -> Code:
    """Make `funct_parallel` known to all text that is assembled afterwards."""
    code = assemble(_SERIAL)
    binding().add_symbol("funct_parallel", code.address("serial"))
    return code
