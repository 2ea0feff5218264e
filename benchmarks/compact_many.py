"""Compact many partitions of middling size: klog's job, and a broker's log cleaner.

The rule: 4 and 40 partitions with the same records each, ten to a key, uncompressed and in batches
as a producer fills them; not cleaned before. Both get the same bytes: klog adopts
them, the broker mounts them. klog's job runs as the command `klog compact`, whose CPU time
is all of its process's, from the start of Python on, and on Spark with two cores, whose CPU time is
that of Spark and its Python workers in a session that has run it before. The broker's is that of
the cleaner's threads alone, in a Java that has cleaned before. All in turns.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from benchmarks.broker_cleaner import CleaningBroker, cleaning_broker
from benchmarks.cpu import cpu_seconds, since
from benchmarks.logs import SMALL_BATCHES, TOPIC, Shape, batches, write_segment
from benchmarks.records import records
from benchmarks.spark_read import session
from benchmarks.spark_write import Result
from benchmarks.timing import Spread
from klog.jobs import adopt, compact

PARTITIONS = (4, 40)
VALUE_BYTES = 100
RECORDS_A_KEY = 10
CORES = 2
KLOG, SPARK, BROKER = "klog", f"klog on Spark, local[{CORES}]", f"a broker's {CORES} threads"
TARGETS = {(KLOG, 40): "at most 1"}
COMMAND = (sys.executable, "-c", "import sys; from klog.cli import main; sys.exit(main())")
Seconds = Mapping[tuple[str, int], list[float]]
"""The CPU time of each round, by name and number of partitions."""


def run(partition_records: int, rounds: int) -> Iterator[Result]:
    """Measure all three; each partition has `partition_records`."""
    with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path:
        folder = Path(path)
        for count in PARTITIONS:
            make(folder, count, partition_records)
        segment = folder / str(PARTITIONS[0]) / f"{TOPIC}-0" / f"{0:020}.log"
        (folder / "empty").touch()
        log = {0: segment, partition_records: folder / "empty"}
        numbers = range(rounds + 1)
        names = {(number, count): broker_topics(number, count)
                 for number, count in product(numbers, PARTITIONS)}  # fmt: skip
        logs = {topic: log for topics in names.values() for topic in topics}
        with cleaning_broker(folder / "broker", CORES, logs) as broker:
            spark = session()
            try:
                seconds = [
                    measure(folder, spark, broker, count, names[number, count])
                    for number, count in product(numbers, PARTITIONS)
                ]
            finally:
                spark.stop()
    by_name = defaultdict[tuple[str, int], list[float]](list)
    for round_seconds in seconds[len(PARTITIONS) :]:  # The first round warmed Java up.
        for name, taken in round_seconds.items():
            by_name[name].append(taken)
    yield from results(by_name, partition_records)


def make(folder: Path, partitions: int, partition_records: int) -> None:
    """Make a klog root of a broker's directory, each partition the same file."""
    root = folder / str(partitions)
    keys = partition_records // RECORDS_A_KEY
    rows = np.concatenate(list(records(partition_records, VALUE_BYTES, unique_keys=keys)))
    shape = Shape("none", SMALL_BATCHES, VALUE_BYTES, partition_records)
    write_segment(root / f"{TOPIC}-0", batches(shape, rows))
    for partition in range(1, partitions):
        shutil.copytree(root / f"{TOPIC}-0", root / f"{TOPIC}-{partition}", copy_function=os.link)
    adopt.run(None, str(root), TOPIC, config={"cleanup.policy": "compact"})


def broker_topics(number: int, partitions: int) -> list[str]:
    """Return the names of a round's topics, one for each partition."""
    return [f"round{number}.{partitions}.{partition}" for partition in range(partitions)]


def measure(
    folder: Path, spark: SparkSession, broker: CleaningBroker, partitions: int, topics: list[str]
) -> dict[tuple[str, int], float]:
    """Return the CPU seconds of each for this number of partitions."""
    cleaning = broker.clean(topics)
    by_command, left = run_command(copy_of(folder, partitions))
    copied = copy_of(folder, partitions)
    began = cpu_seconds()
    report = compact.run(spark, str(copied), TOPIC)
    on_spark = since(began)
    if left != sum(partition.records_after for partition in report.partitions):
        raise RuntimeError(f"klog left {left} records, and on Spark: {report}")
    return {
        (KLOG, partitions): by_command,
        (SPARK, partitions): on_spark,
        (BROKER, partitions): max(cleaning.cpu_seconds, 1 / os.sysconf("SC_CLK_TCK")),
    }


def copy_of(folder: Path, partitions: int) -> Path:
    """Copy a root by linking its files."""
    copied = folder / "copy"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(folder / str(partitions), copied, copy_function=os.link)
    return copied


def run_command(root: Path) -> tuple[float, int]:
    """Compact a root by `klog compact`; return the CPU seconds of the process, and what is left."""
    report = root.with_name("report.json")
    with report.open("wb") as output:
        process = subprocess.Popen([*COMMAND, "compact", "--root", root, "--json"], stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"klog compact: exit code {process.returncode}")
    fields = json.loads(report.read_text())
    left = sum(partition["recordsAfter"] for partition in fields["partitions"])
    return usage.ru_utime + usage.ru_stime, left


def results(seconds: Seconds, partition_records: int) -> Iterator[Result]:
    """Return the figures of all rounds."""
    keys = partition_records // RECORDS_A_KEY
    for partitions in PARTITIONS:
        of = f"{partitions} partitions of {partition_records:,} records, {keys:,} keys"
        theirs = seconds[BROKER, partitions]
        for name in (KLOG, SPARK):
            mine = seconds[name, partitions]
            ratios = [own / other for own, other in zip(mine, theirs, strict=True)]
            spread = Spread.of(ratios)
            target = TARGETS.get((name, partitions), "")
            yield Result(f"{name} / {BROKER}: CPU", of, str(spread), target)
        for name in (KLOG, SPARK, BROKER):
            records_cpu = [
                spent / partitions / partition_records * 1e6 for spent in seconds[name, partitions]
            ]
            spread = Spread.of(records_cpu)
            yield Result(f"{name}: CPU", of, f"{spread} us a record")
