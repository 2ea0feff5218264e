"""Brokers' directories to adopt and import: the corpus, the golden ones, and made ones.

The rule: what is compared is what klog reads of the same directory as it lies, raw.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.open_root import open_root
from klog.connector.snapshot import PartitionSnapshot
from klog.connector.store.local_store import LocalStore
from klog.jobs.shared.broker_logs.broker_topics import CONTROLLERS_LOG
from klog.logformat.broker_files.checkpoint_files import encode_offset_checkpoint
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.broker_files.metadata_files import encode_partition_metadata
from klog.logformat.topic_partition import TopicPartition
from tests import golden
from tests.corpus import SCENES, Record, Scene, scene
from tests.support.reader_rows import LEVELS, read_partition

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
SCENE_NAMES = [*(name for name in SCENES if name != "jbod"), *golden.VERSIONS]
BY_SCENE = [
    pytest.param(name, marks=pytest.mark.slow) if name in ("records", "2.8.2") else name
    for name in SCENE_NAMES
]
"""As parameters: those of many partitions take a while."""
ODD_TIMES = (-(1 << 40), -1, 0, 1 << 60)

Read = dict[tuple[TopicPartition, str], list[Record]]


def scene_of(name: str) -> Scene:
    return golden.scene(name) if name in golden.VERSIONS else scene(name)


def copied(name: str, to: Path) -> Path:
    """Copy a scene's one log directory."""
    (log_dir,) = scene_of(name).log_dirs
    shutil.copytree(log_dir, to)
    return to


def names_of(*directories: Path) -> list[TopicPartition]:
    """List the partitions of topics."""
    partitions = RawRoot([str(directory) for directory in directories]).partitions()
    return [name for name in partitions if name.topic != CONTROLLERS_LOG]


def read_all(names: Iterable[TopicPartition], *directories: Path) -> Read:
    """Read partitions at both levels."""
    return {
        (name, level): read_partition(directories, name.topic, name.partition, level)
        for name in names
        for level in LEVELS
    }


def logs_of(
    names: Iterable[TopicPartition], *directories: Path
) -> Mapping[TopicPartition, PartitionSnapshot]:
    return open_root([str(directory) for directory in directories]).snapshot().open(names)


def open_ones(names: Iterable[TopicPartition], *directories: Path) -> dict[TopicPartition, int]:
    """Return the last stable offset of partitions in which a transaction is open."""
    logs = logs_of(names, *directories)
    return {
        name: stable
        for name, log in logs.items()
        if (stable := log.last_stable_offset()) < log.log_end
    }


def offsets_for_times(log: PartitionSnapshot, records: Iterable[Record]) -> dict[int, int | None]:
    """Look up some times: those of records, just before and just after, and odd ones."""
    times = sorted({record.timestamp for record in records})
    sample = times[:: max(1, len(times) // 5)] + times[-1:]
    lookup_times = {time + step for time in sample for step in (-1, 0, 1)} | set(ODD_TIMES)
    return {time: log.offset_for_time(time, log.log_end) for time in sorted(lookup_times)}


def files_of(root: Path) -> dict[str, bytes]:
    """Return the files of a directory, without klog's own."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] != "_klog"
    }


def write_broker_dir(
    root: Path, logs: Mapping[str, Mapping[int, bytes]], starts: Mapping[str, int] | None = None
) -> Path:
    """Make a directory of a broker that was killed: by partition and base offset its segments."""
    for name, segments in logs.items():
        (root / name).mkdir(parents=True)
        (root / name / "partition.metadata").write_bytes(encode_partition_metadata(TOPIC_ID))
        for base, data in segments.items():
            (root / name / segment_file_name(base, "log")).write_bytes(data)
    log_starts = {}
    for name, log_start in (starts or {}).items():
        topic, _, partition = name.rpartition("-")
        log_starts[TopicPartition(topic, int(partition))] = log_start
    (root / "log-start-offset-checkpoint").write_bytes(encode_offset_checkpoint(log_starts))
    (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=of a broker\n")
    return root


class Killed(BaseException):
    """What a process does not survive."""


CALLS = ("entries", "open", "read", "put_if_absent", "put", "delete")


@contextmanager
def killed_at(at: int, *, after: bool) -> Iterator[list[str]]:
    """Let the call `at` of a local store be the last one, before or after its effect.

    Gives the calls that were made, as they come.
    """
    calls: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: LocalStore, *args: Any, **named: Any) -> Any:
            calls.append(f"{name} {args[0]}")
            if len(calls) > at + 1 or (len(calls) == at + 1 and not after):
                raise Killed
            done = real(self, *args, **named)
            if len(calls) == at + 1:
                raise Killed
            return done

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(LocalStore, name, counted(name, getattr(LocalStore, name)))
        yield calls
