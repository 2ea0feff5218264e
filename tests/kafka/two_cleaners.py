"""The same logs cleaned by a broker and by klog, round by round, each on its own result.

The rule: a `cleanup.policy` of delete holds the broker's cleaner back while a round is appended to
its logs; the policy of the round starts it. The files are put in place while the broker is stopped,
without the clean-shutdown marker, so that it rebuilds indexes and producers; an empty segment at
the log's end makes the one before it inactive, because klog has no active segment.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic

from klog.connector.commit_log import commit_builders
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_or_create_root
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.jobs import compact, export_log, retain
from klog.jobs.compacting.compact_report import CompactedPartition
from klog.jobs.shared.marking import compiled_kernels
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.checkpoint_files import (
    decode_offset_checkpoint,
    encode_offset_checkpoint,
)
from klog.logformat.topic_partition import TopicPartition
from tests.corpus.clients import Client
from tests.kafka.adopted_segments import adopt
from tests.kafka.cleaned_batches import Batch, Window, batches, broker_logs, klog_logs
from tests.kafka.cleaning_workloads import Config, Round
from tests.support.kafka_broker import Broker
from tests.support.kernel_choices import CLEANING_FROM_THE_START, NEVER_KERNELS
from tests.support.waiting import TIMEOUT_SECONDS

PROPERTIES = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "300",
    "log.retention.ms": "-1",
    "log.segment.delete.delay.ms": "0",
    "producer.id.expiration.check.interval.ms": "300",
}
SEGMENT_BYTES = 3000
SETTLED_SECONDS = 3.0
"""Time for several of the broker's checks for expired producers, segments and dirty logs, also on a
busy machine."""
PARTITION_METADATA = "partition.metadata"
CLEANER, STARTS = "cleaner-offset-checkpoint", "log-start-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What remains of a topic's partition after a cleaning, on both sides."""

    broker: list[Batch]
    klog: list[Batch]
    broker_cleaned_to: int
    klog_cleaned_to: int
    broker_start: int
    klog_start: int
    report: CompactedPartition


@dataclass(slots=True)
class TwoCleaners:
    """A broker and a klog root with the same topics of one partition each."""

    broker: Broker
    client: Client
    root: KlogRoot
    rounds: Mapping[str, Sequence[Round]]
    windows: dict[str, list[Window]] = field(default_factory=dict)
    cleaned: list[dict[str, Cleaned]] = field(default_factory=list)

    @property
    def log_dir(self) -> Path:
        """Return the broker's log dir."""
        return self.broker.log_dirs[0]

    def log_end(self, topic: str) -> int:
        """Return the log end offset of partition 0."""
        return self.root.log_to_read(topic).load().log_end[0]

    def create(self) -> None:
        """Make the topics on both sides; on the broker nothing is cleaned yet."""
        held = {"cleanup.policy": "delete", "internal.segment.bytes": str(SEGMENT_BYTES)}
        news = [NewTopic(topic, 1, 1, config=held) for topic in self.rounds]
        news += [NewTopic(exported(topic), 1, 1) for topic in self.rounds]
        for future in self.client.admin.create_topics(news).values():
            future.result(TIMEOUT_SECONDS)
        for topic in self.rounds:
            TopicAdmin(self.root).create(topic, 1, {"segment.bytes": str(SEGMENT_BYTES)})

    def clean(self, number: int) -> None:
        """Append a round to the logs of the stopped broker, let both clean, and stop it again.

        A round without logs is what producers have written since the last one.
        """
        now = self._round(number)
        for topic, round_ in now.items():
            self._mount(topic, round_)
        self._move_starts(number)
        (self.log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
        self.broker.start()
        self.client.reconnect()
        time.sleep(SETTLED_SECONDS)
        begin = _now_ms()
        self._configure({topic: round_.config for topic, round_ in now.items()})
        reports = self._compact(number, _now_ms())
        cleaned = {topic: partition for topic, partition in reports.items() if not partition.left}
        self._wait(
            {
                topic: partition.cleaned_to
                for topic, partition in cleaned.items()
                if not now[topic].is_left
            }
        )
        end = _now_ms()
        self._configure({topic: {"cleanup.policy": "delete"} for topic in self.rounds})
        for topic, round_ in now.items():
            delay_ms = int(round_.config["delete.retention.ms"])
            self.windows.setdefault(topic, []).append(Window(begin, end, delay_ms))
        self.broker.stop()
        self.cleaned.append({topic: self._cleaned(topic, reports[topic]) for topic in now})

    def export(self, work: Path) -> Path:
        """Export klog's logs into the stopped broker, under other topic names.

        Return a copy of the log dir before the broker starts.
        """
        export_log.run(None, self.root.location, None, str(work / "export"))
        for topic in self.rounds:
            directory = self.log_dir / f"{exported(topic)}-0"
            metadata = (directory / PARTITION_METADATA).read_bytes()
            shutil.rmtree(directory)
            shutil.copytree(work / "export" / f"{topic}-0", directory)
            (directory / PARTITION_METADATA).write_bytes(metadata)
        starts = decode_offset_checkpoint((self.log_dir / STARTS).read_bytes())
        of_export = decode_offset_checkpoint((work / "export" / STARTS).read_bytes())
        starts |= {
            TopicPartition(exported(name.topic), 0): start for name, start in of_export.items()
        }
        (self.log_dir / STARTS).write_bytes(encode_offset_checkpoint(starts))
        return Path(shutil.copytree(self.log_dir, work / "mounted"))

    def _round(self, number: int) -> dict[str, Round]:
        return {
            topic: rounds[number] for topic, rounds in self.rounds.items() if number < len(rounds)
        }

    def _mount(self, topic: str, round_: Round) -> None:
        directory = self.log_dir / f"{topic}-0"
        log_end = self.log_end(topic)
        if not round_.logs:
            logs = {base: log for base, log in broker_logs(directory).items() if base >= log_end}
            last = logs[max(logs)]
            round_ = Round(
                logs, int(scan_batches(last, 0, len(last)).next_offsets[-1]), round_.config
            )
        else:
            for suffix in ("log", "index", "timeindex"):
                (directory / f"{log_end:020}.{suffix}").unlink(missing_ok=True)
            for base, log in round_.logs.items():
                (directory / f"{base:020}.log").write_bytes(log)
        (directory / f"{round_.log_end:020}.log").write_bytes(b"")
        adopt(self.root, topic, round_.logs, round_.log_end)

    def _move_starts(self, number: int) -> None:
        """Delete the first records on both sides if the round has a log start."""
        starts = {topic: round_.log_start for topic, round_ in self._round(number).items()}
        moved = {topic: start for topic, start in starts.items() if start is not None}
        path = self.log_dir / STARTS
        known = decode_offset_checkpoint(path.read_bytes())
        known |= {TopicPartition(topic, 0): start for topic, start in moved.items()}
        path.write_bytes(encode_offset_checkpoint(known))
        for topic, start in moved.items():
            log = self.root.log_to_write(topic)
            state = log.load()
            attempt = CommitInfo(f"delete {topic} {number}", "delete-records", "a test")
            log.commit(state, commit_builders.delete_records(state.topic_id, {0: start}), attempt)

    def _configure(self, configs: Mapping[str, Config]) -> None:
        resources = []
        for topic, config in configs.items():
            entries = [
                ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                for name, value in config.items()
            ]
            resources.append(ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries))
        for future in self.client.admin.incremental_alter_configs(resources).values():
            future.result(TIMEOUT_SECONDS)

    def _compact(self, number: int, clock_ms: int) -> dict[str, CompactedPartition]:
        for topic, round_ in self._round(number).items():
            TopicAdmin(self.root).alter_config(topic, round_.config)
        clock: Callable[[], int] = lambda: clock_ms  # noqa: E731
        retain.run(None, self.root.location, clock_ms=clock)
        with pytest.MonkeyPatch.context() as patched:
            # Use the compiled kernels every other time, though so few records do not need them.
            kernels = CLEANING_FROM_THE_START if number % 2 else NEVER_KERNELS
            patched.setattr(compiled_kernels, "CLEANING", kernels)
            report = compact.run(None, self.root.location, clock_ms=clock)
        return {partition.topic: partition for partition in report.partitions}

    def _wait(self, end_offsets: Mapping[str, int]) -> None:
        """Wait until the broker has cleaned as far as klog and is idle."""
        deadline, since = time.monotonic() + TIMEOUT_SECONDS, 0.0
        last: dict[str, int] = {}
        while time.monotonic() < deadline:
            now = self._checkpoint(CLEANER)
            if now != last:
                last, since = now, time.monotonic()
            is_there = all(now.get(topic, 0) >= offset for topic, offset in end_offsets.items())
            if is_there and time.monotonic() - since > SETTLED_SECONDS:
                return
            time.sleep(0.1)

    def _checkpoint(self, name: str) -> dict[str, int]:
        path = self.log_dir / name
        if not path.exists():
            return {}
        offsets = decode_offset_checkpoint(path.read_bytes())
        return {topic: offset for (topic, _), offset in offsets.items()}

    def _cleaned(self, topic: str, report: CompactedPartition) -> Cleaned:
        directory, windows = self.log_dir / f"{topic}-0", self.windows[topic]
        state = self.root.log_to_read(topic).load()
        first = min(int(path.stem) for path in directory.glob("*.log"))
        start = max(first, self._checkpoint(STARTS).get(topic, 0))
        return Cleaned(
            _from(start, batches(broker_logs(directory).values(), windows)),
            _from(start, batches(klog_logs(self.root, topic).values(), windows)),
            self._checkpoint(CLEANER).get(topic, 0),
            state.cleaned_to.get(0, 0),
            start,
            state.log_start[0],
            report,
        )


def exported(topic: str) -> str:
    """Return the name of the broker's topic for klog's export of a topic."""
    return f"exported.{topic}"


def create_two_cleaners(
    broker: Broker, work: Path, rounds: Mapping[str, Sequence[Round]]
) -> TwoCleaners:
    """Create the topics of the rounds on a running broker and in a new klog root."""
    root = find_or_create_root(str(work / "root"), "AAAAAAAAAAAAAAAAAAAAAA")
    comparison = TwoCleaners(broker, Client(broker), root, rounds)
    comparison.create()
    return comparison


def _from(log_start: int, batches_left: list[Batch]) -> list[Batch]:
    """Drop batches below the log start; a broker drops their transactions when it starts."""
    return [batch for batch in batches_left if batch.last_offset >= log_start]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
