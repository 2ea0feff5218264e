"""How fast a real broker's log cleaner is, with so many threads, by what it says itself.

The rule: the broker is given whole logs while it is stopped, and a `cleanup.policy` of delete; as
many as it has threads are let go at once, so that each thread works while the others do. The
broker's own lines say how long each log took (`Log cleaner thread ... cleaned log`), the kernel how
much CPU the threads took, for a machine may be busy. Java runs as a broker runs it, with its second
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

from tests.corpus.clients import TIMEOUT_SECONDS, Client
from tests.support.kafka_broker import Broker, die_with_parent
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
"""The first three but the back-off are a broker's defaults: the tests' broker has smaller ones."""
CLEANING_TIMEOUT_SECONDS = 600.0
_THREAD = "kafka-log-cleaner-thread"
_SAID = re.compile(
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
    """A broker with Java as it is by default, and the cleaner's lines in its output."""

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
        """Give the CPU time of the cleaner's threads so far; Linux alone tells it."""
        assert self._process is not None
        found: list[int] = []
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            if (task / "comm").read_text().strip() == _THREAD[:15]:
                fields = (task / "stat").read_text().rpartition(")")[2].split()
                found.append(int(fields[11]) + int(fields[12]))
        if not found:
            raise RuntimeError("the broker has no thread that cleans")
        return sum(found) / os.sysconf("SC_CLK_TCK")


@contextmanager
def cleaning_broker(
    work: Path, threads: int, logs: Mapping[str, Mapping[int, Path]]
) -> Iterator[CleaningBroker]:
    """Start a broker with logs to clean, each its segments by base offset, the last one empty."""
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
    """A broker with logs that are not cleaned yet."""

    def __init__(self, broker: _Broker) -> None:
        self._broker = broker

    def clean(self, topics: Collection[str]) -> Cleaning:
        """Let the logs of these topics be cleaned, and wait for it."""
        entry = ConfigEntry(
            "cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET
        )
        resources = [
            ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
            for topic in topics
        ]
        before = self._broker.cleaner_cpu_seconds()
        admin = Client(self._broker).admin  # Kept, for what was asked goes with it.
        for future in admin.incremental_alter_configs(resources).values():
            future.result(TIMEOUT_SECONDS)
        deadline = time.monotonic() + CLEANING_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.2)
            lines = _SAID.finditer(self._broker.output.read_text())
            said = {one["topic"]: one for one in lines if one["topic"] in topics}
            if len(said) == len(topics):
                counts = [_number(one["start"]) for one in said.values()]
                # It tells tenths: a log of a few records takes none.
                seconds = [
                    max(float(one["seconds"].replace(",", "")), 0.1) for one in said.values()
                ]
                return Cleaning(
                    sum(counts),
                    sum(count / took for count, took in zip(counts, seconds, strict=True)),
                    self._broker.cleaner_cpu_seconds() - before,
                )
        raise RuntimeError(f"the broker has not cleaned {', '.join(topics)}")


def _number(text: str) -> int:
    return int(text.replace(",", "").replace(".", ""))
