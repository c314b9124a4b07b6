"""Time callables in turn, so that drift of the machine falls on all of them."""

import timeit
from collections.abc import Callable, Mapping

ROUNDS = 25
ROUND_S = 0.01
BEFORE_S = 0.3  # most that calls ahead of the rounds may take
LONG_S = 0.5  # what takes longer is timed once, after a first call


def minima(
    calls: Mapping[str, Callable[[], object]], rounds: int = ROUNDS, round_s: float = ROUND_S,
    before: int = 0,
) -> dict[str, float]:  # fmt: skip
    """Microseconds per call of each: the minimum over rounds that visit all of them in turn, there
    and back: who comes behind another's threads finds the caches theirs.

    before: calls ahead of all rounds, where so many take no time; what comes often may be compiled.
    """
    counts: dict[str, int] = {}
    best = dict.fromkeys(calls, float("inf"))
    for name, call in calls.items():
        call()
        once = timeit.timeit(call, number=1)
        if once * before < BEFORE_S:
            once = min(once, timeit.timeit(call, number=max(before, 1)) / max(before, 1))
        if once > LONG_S:
            best[name] = once * 1e6
            continue
        if once >= round_s:  # code of its own may have been made for it, now that it came again
            once = min(once, timeit.timeit(call, number=1))
        if once < round_s:
            once = min(timeit.repeat(call, number=5, repeat=3)) / 5
        counts[name] = max(3, int(round_s / max(once, 1e-8))) if once < round_s else 1
    for k in range(rounds):
        for name, count in list(counts.items())[:: -1 if k % 2 else 1]:
            best[name] = min(best[name], timeit.timeit(calls[name], number=count) / count * 1e6)
    return best


def table(title: str, rows: Mapping[str, Mapping[str, float]], unit: str = "us") -> str:
    """Rows of funct and peers, with the ratio of funct to the best peer."""
    peers = list(dict.fromkeys(name for row in rows.values() for name in row if name != "funct"))
    head = f"{title + ' [' + unit + ']':44s}" + "".join(f"{n:>12s}" for n in ["funct", *peers])
    lines = [head + f"{'funct/best':>12s}", "-" * (len(head) + 12)]
    for label, row in rows.items():
        cells = "".join(f"{row[n]:12.2f}" if n in row else f"{'':12s}" for n in ["funct", *peers])
        rivals = [row[n] for n in peers if n in row and n != "numpy"]
        ratio = f"{row['funct'] / min(rivals):12.2f}" if rivals else ""
        lines.append(f"{label:44s}{cells}{ratio}")
    return "\n".join(lines)
