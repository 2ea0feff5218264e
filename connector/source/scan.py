"""A batch read from options to Arrow, without Spark: pin the offsets, plan the slices, read them.

Spark's batch source, the command line and tests are thin over this.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from klog.connector.log.partition import Look, PartitionLog, Root, TopicPartition
from klog.connector.log.raw import retrying
from klog.connector.log.roots import open_root
from klog.connector.options import ReadOptions, paths, read_options
from klog.connector.source.loss import loss_of, step_of_a_stream
from klog.connector.source.plan import plan
from klog.connector.source.ranges import OffsetRange, batch_ranges
from klog.connector.source.read import READ_AGAIN, Reader
from klog.connector.source.slices import Slice, Task, expanded
from klog.connector.source.subscription import subscribed
from klog.connector.store.storage import Storage
from klog.errors import DataLossError, KlogError, OptionError

_log = logging.getLogger(__name__)

Pinned: TypeAlias = list[tuple[str, int, str, int, int]]
"""Topic, partition, topic id, start and end of each range: what is kept of a `load()`."""


def log_directories(given: Mapping[str, str]) -> list[str]:
    """Give the directories that `load` named. Raises `OptionError` for `memory:`."""
    found = paths(given, lambda path: Path(path).is_dir())
    for number, path in enumerate(found):
        if path.startswith("memory:"):
            raise OptionError(f"path: {path} lives in one process; Spark's tasks are others")
        if ":" not in path:
            found[number] = str(Path(path).absolute())
    return found


def pin(root: Root, options: ReadOptions) -> Pinned:
    """Resolve the options to offset ranges as of now."""
    ranges = retrying(lambda: _ranges(root.look(), options))
    return [
        (r.log.name.topic, r.log.name.partition, r.log.topic_id, r.start, r.end) for r in ranges
    ]


def tasks(look: Look, options: ReadOptions) -> list[Task]:
    """Plan a read of what a look saw."""
    return plan(_ranges(look, options), options.min_partitions)


def _ranges(look: Look, options: ReadOptions) -> list[OffsetRange]:
    return batch_ranges(look.open(subscribed(options, look)), options)


def try_pin(given: Mapping[str, str], shared: ReadOptions) -> Pinned | None:
    """Pin the offsets at `load()`, where a batch and a stream cannot yet be told apart.

    `shared` are the options that mean the same for both. What is wrong for both (no such directory,
    no such topic) is raised as `OptionError`; what only a batch would mind is left for its reader,
    and None given.
    """
    root = open_root(log_directories(given), shared.storage)
    subscribed(shared, root.look())
    try:
        return pin(root, read_options(given))
    except (KlogError, OSError):
        return None


def slices(root: Root, pinned: Pinned, options: ReadOptions) -> list[Task]:
    """Plan pinned ranges: a list of slices for each task.

    Raises `DataLossError` if a partition has gone, or its start was deleted, since they were
    pinned; where `failOnDataLoss` is false, what is left is planned.
    """

    def planned() -> list[Task]:
        look = root.look()
        names = [TopicPartition(topic, partition) for topic, partition, *_ in pinned]
        logs = look.open([name for name in names if name in look])
        ranges = [
            _range(name, logs.get(name), row, options)
            for name, row in zip(names, pinned, strict=True)
        ]
        return plan([r for r in ranges if r is not None], options.min_partitions)

    return retrying(planned)


def _range(
    name: TopicPartition,
    log: PartitionLog | None,
    row: tuple[str, int, str, int, int],
    options: ReadOptions,
) -> OffsetRange | None:
    _, _, topic_id, start, end = row
    loss = loss_of(log, topic_id, start, end)
    if loss is not None:
        said = f"{name}: {loss.of_a_stream() if options.streaming else loss.of_a_batch()}"
        if options.fail_on_data_loss:
            step = loss.step_of_a_stream() if options.streaming else loss.step_of_a_batch()
            raise DataLossError(f"{said}; {step}")
        _log.warning("%s; failOnDataLoss=false, going on with %s", said, loss.rest)
    if log is None or (topic_id and log.topic_id != topic_id):
        return None
    start, end = max(start, log.log_start), min(end, log.readable_end)
    return OffsetRange(log, start, end, options.committed_only) if start < end else None


@dataclass(frozen=True, slots=True)
class Replanner:
    """Plans a slice anew in the task that finds its file changed; pickles with its reader."""

    directories: tuple[str, ...]
    storage: Storage

    def __call__(self, piece: Slice) -> tuple[int, list[Slice]]:
        """Give the log start now, and slices for the offsets that are left."""
        root = open_root(self.directories, self.storage)
        name = TopicPartition(piece["topic"], piece["partition"])

        def planned() -> tuple[int, list[Slice]]:
            look = root.look()
            log = look.open([name])[name] if name in look else None
            if log is None or log.topic_id != piece["topic_id"]:
                return piece["end_offset"], []
            start, end = max(piece["start_offset"], log.log_start), piece["end_offset"]
            if start >= end:
                return log.log_start, []
            left = OffsetRange(log, start, end, piece["committed_only"])
            again = plan([left], by_index=False)
            return log.log_start, [one for task in again for one in expanded(task)]

        return retrying(planned)


def reader(directories: list[str], options: ReadOptions) -> Reader:
    """Make the reader that tasks use."""
    replan = Replanner(tuple(directories), options.storage)
    return Reader(
        options.columns,
        replan,
        options.fail_on_data_loss,
        options.storage,
        step_of_a_stream("what is left") if options.streaming else READ_AGAIN,
    )
