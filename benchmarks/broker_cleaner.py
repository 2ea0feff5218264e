"""Measure a real broker's log cleaner, by the times that it logs itself.

The rule: the stopped broker gets complete logs with a `cleanup.policy` of delete. Then as many logs
as it has cleaner threads are set to compact at once, so all threads work together. The broker's
own lines have the time of each log (`Log cleaner thread ... cleaned log`), the kernel has the CPU
time of the threads, because a machine may be busy. Java runs as in a broker, with its second
compiler.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.corpus.clients import Client
from tests.support.kafka_broker import Broker, die_with_parent
from tests.support.waiting import TIMEOUT_SECONDS
from tools.jars import jars, java

JAVA_OPTIONS = (
    "-Xmx1g",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.storage.internals.log=info",
)
PROPERTIES = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": str(128 << 20),
    "log.cleaner.io.buffer.size": str(512 << 10),
    "log.index.size.max.bytes": str(10 << 20),
    "log.retention.ms": "-1",
}
"""The two buffer sizes are a broker's defaults: the broker of the tests has smaller ones."""
CLEANING_TIMEOUT_SECONDS = 600.0
_THREAD = "kafka-log-cleaner-thread"
_CLEANED_LOG = re.compile(
    r"Log cleaner thread \d+ cleaned log (?P<topic>[\w.]+)-0 "
    r".*?of log processed in (?P<seconds>[\d.,]+) seconds"
    r".*?Start size: [\d.,]+ MB \((?P<start>[\d.,]+) messages\)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Logs cleaned at once: their records, and how fast all threads were together."""

    records: int
    records_a_second: float
    cpu_seconds: float


class _Broker(Broker):
    """A broker with Java's default compilers, and the cleaner's lines in its output."""

    def _spawn(self, *arguments: str) -> subprocess.Popen[bytes]:
        with self.output.open("ab") as output:
            return subprocess.Popen(
                [str(java()), *JAVA_OPTIONS, "-cp", f"{jars(self.component)}/*", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.work,
                preexec_fn=die_with_parent,
            )

    def cleaner_cpu_seconds(self) -> float:
        """Return the CPU time of the cleaner's threads so far; this needs Linux."""
        assert self._process is not None
        ticks: list[int] = []
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            if (task / "comm").read_text().strip() == _THREAD[:15]:
                fields = (task / "stat").read_text().rpartition(")")[2].split()
                ticks.append(int(fields[11]) + int(fields[12]))
        if not ticks:
            raise RuntimeError("the broker has no thread that cleans")
        return sum(ticks) / os.sysconf("SC_CLK_TCK")


@contextmanager
def cleaning_broker(
    work: Path, threads: int, logs: Mapping[str, Mapping[int, Path]]
) -> Iterator[CleaningBroker]:
    """Start a broker with logs to clean: segments by base offset, the last one empty."""
    broker = _Broker(work, PROPERTIES | {"log.cleaner.threads": str(threads)})
    with broker:
        admin = Client(broker).admin
        config = {"cleanup.policy": "delete", "min.cleanable.dirty.ratio": "0.01"}
        news = [NewTopic(topic, 1, 1, config=config) for topic in logs]
        for future in admin.create_topics(news).values():
            future.result(TIMEOUT_SECONDS)
        broker.stop()
        for topic, segments in logs.items():
            for base, log in segments.items():
                target = broker.log_dirs[0] / f"{topic}-0" / f"{base:020}.log"
                target.unlink(missing_ok=True)
                # A cleaner changes no segment that it cleans: it writes others and deletes it.
                place = os.link if log.stat().st_size else shutil.copyfile
                place(log, target)
        (broker.log_dirs[0] / ".kafka_cleanshutdown").unlink()
        broker.start()
        yield CleaningBroker(broker)


class CleaningBroker:
    """A broker with logs to clean."""

    def __init__(self, broker: _Broker) -> None:
        self._broker = broker

    def clean(self, topics: Collection[str]) -> Cleaning:
        """Have the logs of these topics cleaned, and wait until they are."""
        entry = ConfigEntry(
            "cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET
        )
        resources = [
            ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
            for topic in topics
        ]
        before = self._broker.cleaner_cpu_seconds()
        admin = Client(self._broker).admin  # Kept: its requests are cancelled with it.
        for future in admin.incremental_alter_configs(resources).values():
            future.result(TIMEOUT_SECONDS)
        deadline = time.monotonic() + CLEANING_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.2)
            lines = _CLEANED_LOG.finditer(self._broker.output.read_text())
            matches = {match["topic"]: match for match in lines if match["topic"] in topics}
            if len(matches) == len(topics):
                counts = [_number(match["start"]) for match in matches.values()]
                # It logs tenths of a second, which may be 0.0 for a few records.
                seconds = [
                    max(float(match["seconds"].replace(",", "")), 0.1) for match in matches.values()
                ]
                return Cleaning(
                    sum(counts),
                    sum(count / took for count, took in zip(counts, seconds, strict=True)),
                    self._broker.cleaner_cpu_seconds() - before,
                )
        raise RuntimeError(f"the broker has not cleaned {', '.join(topics)}")


def _number(text: str) -> int:
    return int(text.replace(",", "").replace(".", ""))
