"""A commit as Hadoop's own client would put it on HDFS: what of klog's time there is HDFS's.

The rule: the same calls in the same order on the same servers, in turns with klog's, each as often
the first, and each warmed up as long: is the name free, a temporary file made, written, synced and
closed, and renamed without overwrite. klog's turns make the commit too, fold it and look for a
boundary; Hadoop's only put bytes, but are asked to by py4j, some eight calls of 0.1 ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.support.kafka_classes import java_process

COMPILED = ("-Xmx384m",)
"""With both of Java's compilers, as processes that live long have them."""
COMMIT_BYTES = 700
"""About what a commit of one segment has."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Commits a second of each turn, klog's and Hadoop's client's."""

    klog: list[float]
    hadoop: list[float]

    @property
    def ratios(self) -> list[float]:
        """Give how many times Hadoop's client's rate klog's is, by turn."""
        return [klog / hadoop for klog, hadoop in zip(self.klog, self.hadoop, strict=True)]


def in_turns(
    url: str, replicas: int, commit: Callable[[], object], turns: int, each: int, warm_up: int
) -> Turns:
    """Time `each` commits of klog and as many of Hadoop's client on `url`, so many times.

    Before, both commit `warm_up` times.
    """
    told = Turns([], [])
    with java_process("hadoop", COMPILED) as gateway:
        put = _putter(gateway, url, replicas)
        both = [(commit, told.klog), (put, told.hadoop)]
        for work, _ in both:
            _rate(work, warm_up)
        for _ in range(turns):
            for work, rates in both:
                rates.append(_rate(work, each))
            both.reverse()
    return told


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
