"""Put a commit on HDFS with Hadoop's own client: how much of klog's time is HDFS's.

The rule: the same calls in the same order on the same servers, in turns with klog's, each as often
first and each warmed up as long: check that the name is free; create, write, sync and close a
temporary file; rename it without overwriting. klog's turns also build the commit, replay it and
look for the last expired version. Hadoop's only put bytes, by about eight py4j calls of 0.1 ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.support.kafka_classes import java_process

COMPILED = ("-Xmx384m",)
"""Both of Java's compilers are on, as in long-running processes."""
COMMIT_BYTES = 700
"""About the size of a commit of one segment."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Commits a second of each turn, by klog and by Hadoop's client."""

    klog: list[float]
    hadoop: list[float]

    @property
    def ratios(self) -> list[float]:
        """Return klog's rate divided by that of Hadoop's client, by turn."""
        return [klog / hadoop for klog, hadoop in zip(self.klog, self.hadoop, strict=True)]


def in_turns(
    url: str, replicas: int, commit: Callable[[], object], turns: int, each: int, warm_up: int
) -> Turns:
    """Time `each` commits of klog and of Hadoop's client on `url`, in turns.

    Before the first turn, both commit `warm_up` times.
    """
    result = Turns([], [])
    with java_process("hadoop", COMPILED) as gateway:
        put = _putter(gateway, url, replicas)
        both = [(commit, result.klog), (put, result.hadoop)]
        for work, _ in both:
            _rate(work, warm_up)
        for _ in range(turns):
            for work, rates in both:
                rates.append(_rate(work, each))
            both.reverse()
    return result


def _rate(work: Callable[[], object], times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        work()
    return times / (time.perf_counter() - began)


def _putter(gateway: Any, url: str, replicas: int) -> Callable[[], None]:
    hadoop = gateway.jvm.org.apache.hadoop
    conf = hadoop.conf.Configuration()
    conf.set("fs.defaultFS", url)
    conf.set("dfs.replication", str(replicas))
    fs, path_of = hadoop.fs.FileSystem.newInstance(conf), hadoop.fs.Path
    numbers, data = count(), bytes(COMMIT_BYTES)

    def put() -> None:
        number = next(numbers)
        temporary, final = path_of(f"/hadoop/{number}.tmp"), path_of(f"/hadoop/{number}")
        if fs.exists(final):
            raise FileExistsError(f"{url}/hadoop/{number}")
        file = fs.create(temporary, False)
        file.write(data)
        file.hsync()
        file.close()
        if not fs.rename(temporary, final):
            raise FileExistsError(f"{url}/hadoop/{number}")

    return put
