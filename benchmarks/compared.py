"""Compare klog with its peers, in wall time and in CPU.

The rule: all do the same with as many records, in turns. A ratio is taken within a round; above 1,
klog is faster, or takes less CPU. CPU is that of Spark, its Python workers and the broker.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median

from benchmarks.cpu import with_cpu
from benchmarks.spark_write import Result
from benchmarks.timing import Spread, Work, interleaved

Action = Callable[[], object]
KLOG = "klog"
"""Names of klog's ways begin with it."""
CLOCK_SECONDS = 0.01
"""The kernel counts CPU time in such steps."""


def compared(
    of: str,
    count: int,
    actions: Mapping[str, Action],
    rounds: int,
    prepare: Action = gc.collect,
) -> Iterator[Result]:
    """Do the same with so many records in turns; compare each way of klog with each peer.

    `prepare` comes before each of them, and does not count.
    """
    cpu: dict[str, list[float]] = {name: [] for name in actions}
    works = {name: with_cpu(_work(action, count), cpu[name]) for name, action in actions.items()}
    times = interleaved(works, rounds, time.perf_counter, prepare)
    for name in actions:
        used = median(cpu[name][1:])
        yield Result(name, of, f"{times.median_seconds(name):.2f} s, CPU {used:.2f} s")
    for name in (name for name in actions if name.startswith(KLOG)):
        for peer in (peer for peer in actions if not peer.startswith(KLOG)):
            shares = zip(cpu[peer][1:], cpu[name][1:], strict=True)
            ratios = Spread.of([theirs / max(mine, CLOCK_SECONDS) for theirs, mine in shares])
            figure = f"{times.ratio(name, peer)}, CPU {ratios}"
            yield Result(f"{peer} / {name}", of, figure)


def _work(action: Action, count: int) -> Work:
    def work() -> int:
        action()
        return count

    return work
