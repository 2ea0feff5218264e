"""Spark's stream reader: offsets in the checkpoint, and what came between two of them.

The checkpoint holds, as Spark's Kafka connector has it, the next offset of each partition by topic,
keys sorted, and under `#ids`, a name no topic can have, the id of each topic that has one, so that
a topic deleted and made anew is noticed. Offsets without `#ids` are accepted. A partition that
appears while the stream runs is read from its start.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)

from klog.connector.log.partition import PartitionLog, Root, TopicPartition
from klog.connector.log.raw import retrying
from klog.connector.log.roots import open_root
from klog.connector.options import read_options
from klog.connector.source import scan
from klog.connector.source.loss import step_of_a_stream
from klog.connector.source.ranges import latest_offsets, starting_offsets
from klog.connector.source.subscription import subscribed
from klog.errors import DataLossError

if TYPE_CHECKING:
    import pyarrow as pa

IDS = "#ids"
Offsets: TypeAlias = dict[TopicPartition, int]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Latest:
    """Log ends as the checkpoint states them, and the partitions that a broker held then."""

    stated: dict[str, Any]
    held: set[TopicPartition]


class KlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One stream over a root; long-lived in the driver, where it remembers where logs end."""

    def __init__(self, given: Mapping[str, str]) -> None:
        """Check the options; nothing is read yet."""
        self._options = read_options(given, streaming=True)
        self._directories = scan.log_directories(given)
        self._reader = scan.reader(self._directories, self._options)
        self._root: Root | None = None
        self._final: Latest | None = None
        self._seen: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the driver's memory of the logs behind when Spark ships the reader to tasks."""
        return self.__dict__ | {"_root": None}

    def initialOffset(self) -> dict[str, Any]:
        """Resolve `startingOffsets` for a new query."""
        return retrying(self._initial)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Give how far the next micro-batch may read."""
        self._seen = self._beyond(start, self._final or retrying(self._latest))
        return self._seen

    def getDefaultReadLimit(self) -> ReadLimit:
        """Read all there is."""
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Report the log ends, as last seen, to the query's progress."""
        return self._seen

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of an `availableNow` run to what there is now."""
        self._final = retrying(self._latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan what lies between two offsets."""
        begins, ends = _parsed(start), _parsed(end)
        before, ids = start.get(IDS, {}), end.get(IDS, {})
        root = self._the_root()
        logs = retrying(lambda: self._logs(root, ends))
        pinned: scan.Pinned = []
        for name, end_offset in ends.items():
            anew = name.topic in before and ids.get(name.topic) not in (None, before[name.topic])
            begin = None if anew else begins.get(name)
            if begin is None:
                begin = logs[name].log_start if name in logs else end_offset
            if begin < end_offset:
                row = (name.topic, name.partition, ids.get(name.topic, ""), begin, end_offset)
                pinned.append(row)
        return [InputPartition(task) for task in scan.slices(root, pinned, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task's slices."""
        return self._reader.read(partition.value or [])

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: no positions are kept."""

    def stop(self) -> None:
        """Hold nothing between polls."""

    def _the_root(self) -> Root:
        if self._root is None:
            self._root = open_root(self._directories, self._options.storage)
        return self._root

    def _logs(
        self, root: Root, names: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, PartitionLog]:
        look = root.look()
        return look.open([name for name in names if name in look])

    def _initial(self) -> dict[str, Any]:
        look = self._the_root().look()
        logs = look.open(subscribed(self._options, look))
        latest = latest_offsets(logs, self._options)
        starts = starting_offsets(logs, latest, self._options)
        return _stated({name: min(at, logs[name].log_end) for name, at in starts.items()}, logs)

    def _latest(self) -> Latest:
        look = self._the_root().look()
        logs = look.open(subscribed(self._options, look))
        held = {name for name, log in logs.items() if log.held}
        return Latest(_stated(latest_offsets(logs, self._options), logs), held)

    def _beyond(self, start: dict[str, Any], latest: Latest) -> dict[str, Any]:
        """Check that the log still holds what the stream counts on; never go back."""
        before, ids = start.get(IDS, {}), latest.stated.get(IDS, {})
        self._check_ids(before, ids)
        ends = _parsed(latest.stated)
        for name, offset in _parsed(start).items():
            if name.topic in ids and ids[name.topic] != before.get(name.topic, ids[name.topic]):
                continue
            if name not in ends:
                self._lost(
                    f"{name}: the partition was deleted while the stream was at {offset}",
                    "the other partitions",
                )
            elif ends[name] < offset and name not in latest.held:
                self._lost(
                    f"{name}: the log ends at {ends[name]}, the stream was at {offset}",
                    f"offset {offset}, which leaves out what is written before it",
                )
            ends[name] = max(ends.get(name, 0), offset)
        return _joined(ends, {**before, **ids})

    def _check_ids(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        for topic, topic_id in before.items():
            if now.get(topic, topic_id) != topic_id:
                self._lost(
                    f"{topic}: the topic was deleted and made anew (its id is another)",
                    "the new topic, from its start",
                )

    def _lost(self, what: str, rest: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(f"{what}; {step_of_a_stream(rest)}")
        _log.warning("%s; failOnDataLoss=false, going on with %s", what, rest)


def _stated(offsets: Offsets, logs: Mapping[TopicPartition, PartitionLog]) -> dict[str, Any]:
    """Write offsets as the checkpoint holds them."""
    return _joined(offsets, {n.topic: log.topic_id for n, log in logs.items() if log.topic_id})


def _joined(offsets: Offsets, ids: Mapping[str, str]) -> dict[str, Any]:
    topics = {name.topic for name in offsets}
    known = {topic: ids[topic] for topic in sorted(ids) if topic in topics}
    stated: dict[str, Any] = {IDS: known} if known else {}
    for name, offset in sorted(offsets.items()):
        stated.setdefault(name.topic, {})[str(name.partition)] = offset
    return stated


def _parsed(stated: Mapping[str, Any]) -> Offsets:
    """Read offsets as the checkpoint holds them."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, by_partition in stated.items()
        if topic != IDS
        for partition, offset in by_partition.items()
    }
