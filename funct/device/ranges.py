"""How the tasks of a job are taken, as LLVM text, which is a part of the pool's (`pool.py`).

A job is some ranges of tasks, a word each, the job's number above and the next task below: a task
is taken by adding one to the word as it was read, which fails if anything has changed since. Before
anything of the next job is written, the words of the last one are closed: their next task is one
that no job has. So a thread that is late cannot take a task of the wrong job, nor run one with the
wrong function.

Note [Whose tasks]
    A thread takes tasks of its own range first, and then helps others. Ranges are alike from job to
    job, so what a thread has written it reads again, where its tasks lie as they did: cores have
    caches of their own, and the cores of a virtual machine may share none at times.
"""

from __future__ import annotations

__all__ = ["MOST_TASKS", "RANGES", "RANGES_TEXT"]

MOST_TASKS = 1 << 31  # the word has 32 bits for the next task; jobs of more run on one thread
RANGES = 8  # at most; of more threads some share one

RANGES_TEXT = """
@words = internal global [RANGES x [16 x i64]] zeroinitializer, align 128  ; job << 32 | next task
@job_ranges = internal global i64 1, align 8
@job_ends = internal global [RANGES x i64] zeroinitializer, align 64  ; of each range

; No task of the job with this number is taken any more.
define internal void @close(i64 %number) {
entry:
  %above = shl i64 %number, 32
  %closed = or i64 %above, 4294967295
  br label %loop
loop:
  %r = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr [16 x i64], ptr @words, i64 %r
  store atomic i64 %closed, ptr %at monotonic, align 8
  %next = add i64 %r, 1
  %ranges = load atomic i64, ptr @job_ranges monotonic, align 8
  %more = icmp slt i64 %next, %ranges
  br i1 %more, label %loop, label %end
end:
  ret void
}

; Ranges of a job's tasks, from the last one to the first, which threads look at for new ones.
define internal void @open(i64 %number, i64 %tasks, i64 %threads) {
entry:
  %above = shl i64 %number, 32
  %few = icmp slt i64 %threads, RANGES
  %ranges = select i1 %few, i64 %threads, i64 RANGES
  store atomic i64 %ranges, ptr @job_ranges release, align 8
  br label %cut
cut:
  %c = phi i64 [ 0, %entry ], [ %behind, %cut ]
  %behind = add i64 %c, 1
  %to = mul i64 %behind, %tasks
  %stop = udiv i64 %to, %ranges
  %end_at = getelementptr i64, ptr @job_ends, i64 %c
  store atomic i64 %stop, ptr %end_at release, align 8
  %more = icmp slt i64 %behind, %ranges
  br i1 %more, label %cut, label %publish
publish:
  %k = phi i64 [ %ranges, %cut ], [ %r, %publish ]
  %r = sub i64 %k, 1
  %from = mul i64 %r, %tasks
  %start = udiv i64 %from, %ranges
  %word = or i64 %above, %start
  %at = getelementptr [16 x i64], ptr @words, i64 %r
  store atomic i64 %word, ptr %at seq_cst, align 8
  %first = icmp eq i64 %r, 0
  br i1 %first, label %end, label %publish
end:
  ret void
}

; Run tasks of the job that is there until none is left to take; see Note [Whose tasks].
define internal void @take_tasks(i64 %me) {
entry:
  %ranges = load atomic i64, ptr @job_ranges acquire, align 8
  %own = urem i64 %me, %ranges
  br label %range
range:
  %k = phi i64 [ 0, %entry ], [ %k_next, %empty ]
  %ran_before = phi i64 [ 0, %entry ], [ %ran, %empty ]
  %r_from = add i64 %own, %k
  %r = urem i64 %r_from, %ranges
  %at = getelementptr [16 x i64], ptr @words, i64 %r
  %end_at = getelementptr i64, ptr @job_ends, i64 %r
  br label %look
look:
  %ran = phi i64 [ %ran_before, %range ], [ %ran, %take ], [ %ran_next, %run ]
  %word = load atomic i64, ptr %at acquire, align 8
  %task = and i64 %word, 4294967295
  %stop = load atomic i64, ptr %end_at acquire, align 8
  %fn = load atomic ptr, ptr @job_fn acquire, align 8
  %data = load atomic ptr, ptr @job_data acquire, align 8
  %some = icmp slt i64 %task, %stop
  br i1 %some, label %take, label %empty
take:
  %next = add i64 %word, 1
  %was = cmpxchg ptr %at, i64 %word, i64 %next acq_rel monotonic
  %mine = extractvalue { i64, i1 } %was, 1
  br i1 %mine, label %run, label %look
run:
  call void %fn(ptr %data, i64 %task)
  %ran_next = add i64 %ran, 1
  br label %look
empty:
  %k_next = add i64 %k, 1
  %more = icmp slt i64 %k_next, %ranges
  br i1 %more, label %range, label %count
count:
  %any = icmp ne i64 %ran, 0
  br i1 %any, label %report, label %end
report:
  %tasks = load atomic i64, ptr @job_tasks acquire, align 8
  %before = atomicrmw add ptr @done, i64 %ran seq_cst
  %after = add i64 %before, %ran
  %last = icmp eq i64 %after, %tasks
  br i1 %last, label %tell, label %end
tell:
  %asleep = load atomic i32, ptr @owner_sleeps seq_cst, align 4
  %wake = icmp ne i32 %asleep, 0
  br i1 %wake, label %call, label %end
call:
  call void @wake(ptr @work_ends)
  br label %end
end:
  ret void
}
"""
