"""The pool of threads as LLVM text; `threads.py` makes it known to all assembled text.

One job runs at a time. Whoever finds the pool taken – a call inside of a task, or another Python
thread's – runs its own tasks one after the other, so nothing ever waits for a thread that waits
for it. How its tasks are taken is said in `ranges.py`.

Threads spin for a while and then sleep, which is what the lock and the two conditions are for.
They are started when a job first needs them, with all signals blocked, and never end.
"""

from __future__ import annotations

import platform
import signal

from funct.device.one_thread import ONE_THREAD_TEXT
from funct.device.ranges import MOST_TASKS, RANGES, RANGES_TEXT

__all__ = ["alone_text", "pool_text"]


_PAUSES = {
    "x86_64": "llvm.x86.sse2.pause()",
    "aarch64": "llvm.aarch64.hint(i32 1)",
    "arm64": "llvm.aarch64.hint(i32 1)",
}

_TEXT = """
; what a job is; each on cache lines of its own
@job_fn = internal global ptr null, align 128
@job_data = internal global ptr null, align 8
@job_tasks = internal global i64 0, align 8
@job_limit = internal global i64 0, align 8       ; threads that may take part
@done = internal global i64 0, align 128          ; tasks that have returned
@taken = internal global i32 0, align 128         ; 1 while somebody's job runs
@sleepers = internal global i32 0, align 128
@owner_sleeps = internal global i32 0, align 4
@started = internal global i64 0, align 8         ; threads beside the callers
; what is set from outside
@default_limit = global i64 1, align 128
@key = global i32 0, align 4                      ; pthread key of this thread's limit
@spins = global i64 2000, align 8
; how to sleep; larger than any system's
@lock = internal global [128 x i8] zeroinitializer, align 64
@work_comes = internal global [128 x i8] zeroinitializer, align 64
@work_ends = internal global [128 x i8] zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
DECLARE_PAUSE

; As new: nobody works, nothing is locked. Also what a forked child calls.
define void @reset() {
  store i64 0, ptr @started
  store i32 0, ptr @taken
  store i32 0, ptr @sleepers
  store i32 0, ptr @owner_sleeps
  store i64 RANGES, ptr @job_ranges  ; none of them may stand open when a job first has so many
  call void @close(i64 0)
  call void @blas_reset()
  %a = call i32 @pthread_mutex_init(ptr @lock, ptr null)
  %b = call i32 @pthread_cond_init(ptr @work_comes, ptr null)
  %c = call i32 @pthread_cond_init(ptr @work_ends, ptr null)
  ret void
}

; This thread's own limit, or the default.
define i64 @limit() {
  %key = load i32, ptr @key
  %held = call ptr @pthread_getspecific(i32 %key)
  %own = ptrtoint ptr %held to i64
  %default = load atomic i64, ptr @default_limit monotonic, align 8
  %none = icmp eq i64 %own, 0
  %limit = select i1 %none, i64 %default, i64 %own
  ret i64 %limit
}

SERIALLY
define void @funct_parallel(ptr %fn, ptr %data, i64 %tasks) {
entry:
  %limit = call i64 @limit()
  %fewer = icmp slt i64 %tasks, %limit
  %threads = select i1 %fewer, i64 %tasks, i64 %limit
  %several = icmp sgt i64 %threads, 1
  %counts = icmp slt i64 %tasks, MOST_TASKS
  %worth = and i1 %several, %counts
  br i1 %worth, label %try, label %alone
alone:
  call void @run_serially(ptr %fn, ptr %data, i64 %tasks)
  ret void
try:
  %was = cmpxchg ptr @taken, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %was, 1
  br i1 %mine, label %publish, label %beside
beside:  ; the job that has the pool may end before this one
  call void @funct_blas_alone()
  call void @run_serially(ptr %fn, ptr %data, i64 %tasks)
  call void @funct_blas_again()
  ret void
publish:
  call void @start_threads(i64 %threads)
  call void @funct_blas_alone()
  %before = load atomic i64, ptr @words monotonic, align 8
  %number = lshr i64 %before, 32
  call void @close(i64 %number)
  store atomic ptr %fn, ptr @job_fn release, align 8
  store atomic ptr %data, ptr @job_data release, align 8
  store atomic i64 %tasks, ptr @job_tasks release, align 8
  store atomic i64 %threads, ptr @job_limit monotonic, align 8
  store atomic i64 0, ptr @done monotonic, align 8
  store atomic i32 0, ptr @owner_sleeps monotonic, align 4
  %following = add i64 %number, 1
  call void @open(i64 %following, i64 %tasks, i64 %threads)
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %wake = icmp ne i32 %asleep, 0
  br i1 %wake, label %call, label %work
call:
  call void @wake(ptr @work_comes)
  br label %work
work:
  call void @take_tasks(i64 0)
  %spins = load i64, ptr @spins
  br label %wait
wait:
  %left = phi i64 [ %spins, %work ], [ %fewer_left, %again ]
  %d = load atomic i64, ptr @done acquire, align 8
  %over = icmp eq i64 %d, %tasks
  br i1 %over, label %finish, label %still
still:
  %tired = icmp eq i64 %left, 0
  br i1 %tired, label %sleep, label %again
again:
  PAUSE
  %fewer_left = sub i64 %left, 1
  br label %wait
sleep:
  %s1 = call i32 @pthread_mutex_lock(ptr @lock)
  store atomic i32 1, ptr @owner_sleeps seq_cst, align 4
  br label %look
look:
  %e = load atomic i64, ptr @done seq_cst, align 8
  %ended = icmp eq i64 %e, %tasks
  br i1 %ended, label %awake, label %doze
doze:
  %s2 = call i32 @pthread_cond_wait(ptr @work_ends, ptr @lock)
  br label %look
awake:
  %s3 = call i32 @pthread_mutex_unlock(ptr @lock)
  br label %finish
finish:
  call void @funct_blas_again()
  store atomic i32 0, ptr @taken release, align 4
  ret void
}

; Whoever waits for this condition looks again.
define internal void @wake(ptr %condition) {
  %l1 = call i32 @pthread_mutex_lock(ptr @lock)
  %l2 = call i32 @pthread_cond_broadcast(ptr %condition)
  %l3 = call i32 @pthread_mutex_unlock(ptr @lock)
  ret void
}

RANGES_TEXT
; A thread of the pool; its argument is its number, from 1.
define internal ptr @live(ptr %argument) {
entry:
  %me = ptrtoint ptr %argument to i64
  br label %rest
rest:
  %seen = phi i64 [ 0, %entry ], [ %now, %met ], [ %now, %part ]
  %spins = load i64, ptr @spins
  br label %watch
watch:
  %left = phi i64 [ %spins, %rest ], [ %fewer, %again ]
  %w = load atomic i64, ptr @words acquire, align 8
  %n = lshr i64 %w, 32
  %same = icmp eq i64 %n, %seen
  br i1 %same, label %still, label %met
still:
  %tired = icmp eq i64 %left, 0
  br i1 %tired, label %sleep, label %again
again:
  PAUSE
  %fewer = sub i64 %left, 1
  br label %watch
sleep:
  %s1 = call i32 @pthread_mutex_lock(ptr @lock)
  %one_more = atomicrmw add ptr @sleepers, i32 1 seq_cst
  br label %look
look:
  %x = load atomic i64, ptr @words seq_cst, align 8
  %m = lshr i64 %x, 32
  %nothing = icmp eq i64 %m, %seen
  br i1 %nothing, label %doze, label %awake
doze:
  %s2 = call i32 @pthread_cond_wait(ptr @work_comes, ptr @lock)
  br label %look
awake:
  %one_less = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  %s3 = call i32 @pthread_mutex_unlock(ptr @lock)
  br label %met
met:
  %now = phi i64 [ %n, %watch ], [ %m, %awake ]
  %limit = load atomic i64, ptr @job_limit monotonic, align 8
  %in = icmp slt i64 %me, %limit
  br i1 %in, label %part, label %rest
part:
  call void @take_tasks(i64 %me)
  br label %rest
}

; So many threads as the job needs, or as the system gives.
define internal void @start_threads(i64 %threads) {
entry:
  %all = alloca [128 x i8], align 16
  %mask = alloca [128 x i8], align 16
  %thread = alloca ptr, align 8
  %there = load i64, ptr @started
  %wanted = sub i64 %threads, 1
  %enough = icmp sge i64 %there, %wanted
  br i1 %enough, label %end, label %first
first:
  %a = call i32 @sigfillset(ptr %all)
  %b = call i32 @pthread_sigmask(i32 SIG_SETMASK, ptr %all, ptr %mask)
  br label %start
start:
  %k = phi i64 [ %there, %first ], [ %number, %good ]
  %number = add i64 %k, 1
  %argument = inttoptr i64 %number to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @live, ptr %argument)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %last, label %good
good:
  %handle = load ptr, ptr %thread
  %c = call i32 @pthread_detach(ptr %handle)
  store i64 %number, ptr @started
  %more = icmp slt i64 %number, %wanted
  br i1 %more, label %start, label %last
last:
  %d = call i32 @pthread_sigmask(i32 SIG_SETMASK, ptr %mask, ptr null)
  br label %end
end:
  ret void
}
ONE_THREAD_TEXT
"""

_SERIALLY = """
define void @run_serially(ptr %fn, ptr %data, i64 %tasks) {
entry:
  %some = icmp sgt i64 %tasks, 0
  br i1 %some, label %loop, label %end
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void %fn(ptr %data, i64 %k)
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %tasks
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""

_ALONE = """
define i64 @limit() {
  ret i64 1
}
SERIALLY
define void @funct_parallel(ptr %fn, ptr %data, i64 %tasks) {
  call void @run_serially(ptr %fn, ptr %data, i64 %tasks)
  ret void
}
define void @funct_blas_alone() {
  ret void
}
define void @funct_blas_again() {
  ret void
}
"""


def pool_text() -> str:
    """The pool, for systems with POSIX threads."""
    pause = _PAUSES.get(platform.machine(), "")
    name = pause.partition("(")[0]
    arguments = "i32" if "hint" in pause else ""
    return (
        _TEXT.replace("SERIALLY", _SERIALLY)
        .replace("ONE_THREAD_TEXT", ONE_THREAD_TEXT)
        .replace("RANGES_TEXT", RANGES_TEXT)
        .replace("MOST_TASKS", str(MOST_TASKS))
        .replace("RANGES", str(RANGES))
        .replace("SIG_SETMASK", str(int(signal.SIG_SETMASK)))
        .replace("DECLARE_PAUSE", f"declare void @{name}({arguments})" if pause else "")
        .replace("PAUSE", f"call void @{pause}" if pause else "")
    )


def alone_text() -> str:
    """Where there are none: every task on the thread that calls."""
    return _ALONE.replace("SERIALLY", _SERIALLY)
