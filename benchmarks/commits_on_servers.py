"""Measure commits a second on an S3 server and on HDFS, which run on this machine too.

The rule: on HDFS in turns with Hadoop's own client, which makes the same calls; and again on a
NameNode that closes files before their blocks are reported (docs/durability.md).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks import hadoop_client
from benchmarks.commit_histories import append, create, log_at
from benchmarks.commits import RATE_TARGETS, Result, Sizes, rate, rates
from klog.connector.options.storage_options import StorageOptions, parse_storage_options
from klog.connector.store.store_for_url import writable_store_for
from tests.support.store_servers import BUCKET, CLOSED_EARLY, Hdfs, S3Server

DATA_NODES = 3
"""As many as HDFS keeps replicas: a file with one replica is closed half a second late."""
HDFS_WARM_UP, HDFS_TURNS = 4, 6
"""Warm-up commits as a multiple of the timed ones: four servers in Java warm up slowly."""


def run(sizes: Sizes) -> Iterator[Result]:
    """Measure commits a second on real servers, which run on this machine too."""
    sizes = replace(sizes, commits=min(sizes.commits, 300))
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="klog-benchmark-")))
        server = stack.enter_context(S3Server(work / "s3"))
        yield from rates(
            "s3", f"s3://{BUCKET}/benchmark", parse_storage_options(server.options()), sizes
        )
    yield from _on_hdfs(sizes)


def _on_hdfs(sizes: Sizes) -> Iterator[Result]:
    """Measure on HDFS, in turns with Hadoop's own client; then with files that close early."""
    with _warm_hdfs({}) as url:
        store, path = writable_store_for(f"{url}/turns")
        log = log_at(store, path)
        states = [create(log)]

        def commit() -> None:
            states[0] = append(log, states[0])

        each, warm_up = sizes.commits // 2, HDFS_WARM_UP * sizes.commits
        turns = hadoop_client.in_turns(url, DATA_NODES, commit, HDFS_TURNS, each, warm_up)
        size = f"hdfs, 1 writer, in {HDFS_TURNS} turns"
        yield Result("commits of Hadoop's client", size, median(turns.hadoop), "a second")
        ratios = sorted(turns.ratios)
        yield Result("commits / those of Hadoop's client", size, median(ratios), "")
        yield Result("its minimum", size, ratios[0], "")
        yield Result("its maximum", size, ratios[-1], "")
        yield from rates("hdfs", f"{url}/benchmark", StorageOptions(), sizes)
    with _warm_hdfs(CLOSED_EARLY) as url:
        store, path = writable_store_for(f"{url}/early")
        log = log_at(store, path)
        state = create(log)
        for _ in range(warm_up):
            state = append(log, state)
        hdfs_rates = sorted(rate(log, 1, each) for _ in range(HDFS_TURNS))
        size = f"hdfs where files close early, 1 writer, {HDFS_TURNS} turns"
        yield Result(
            "commits", size, median(hdfs_rates), "a second", f"at least {RATE_TARGETS['hdfs']}"
        )
        yield Result("its minimum", size, hdfs_rates[0], "a second")
        yield Result("its maximum", size, hdfs_rates[-1], "a second")


@contextmanager
def _warm_hdfs(settings: Mapping[str, str]) -> Iterator[str]:
    """Start servers with both of Java's compilers; yield their URL."""

    class Compiled(Hdfs):
        java_options = hadoop_client.COMPILED

    with (
        tempfile.TemporaryDirectory(prefix="klog-benchmark-") as folder,
        Compiled(Path(folder), settings, datanodes=DATA_NODES) as hdfs,
    ):
        yield hdfs.url
