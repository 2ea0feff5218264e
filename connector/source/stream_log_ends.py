"""Where the logs of a stream end, compared with where the stream is: what is gone is data loss.

The rule: a stream never goes back. The log that a stream has read to is still there if the bytes
are, whatever the high watermark or the last stable offset: both may be below what another reader
of the same checkpoint has read. A topic with another id is a new one, which is read from its start.
So is one whose log ends before the stream, if the checkpoint has no id to compare, as that of
Spark's Kafka source: the log of the same topic would have to be cut.

A partition that appears while a stream runs should begin at offset 0: what is gone of it is data
loss. A restore that has changed the log below the offset where the stream is, is data loss too: the
stream has read records that are no longer there, or a hole where records are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from klog.connector.options.consumer_strategy import ConsumerStrategy
from klog.connector.snapshot import Logs, PartitionSnapshot
from klog.connector.source.data_loss import restored_from
from klog.connector.source.stream_losses import StreamLoss, find_new_partition_loss
from klog.connector.source.stream_offsets import StreamOffsets
from klog.connector.source.subscription import takes_partition
from klog.logformat.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Where the logs end, and the partitions that were opened to see it."""

    offsets: StreamOffsets
    logs: Logs

    def after(self, start: StreamOffsets) -> StreamOffsets:
        """Return how far the stream can read, at least to where it is.

        Args:
            start: Where the stream is.

        Returns:
            The offsets; `batch_start` has the partitions of topics that were created again.
        """
        ends = dict(self.offsets.next_offsets)
        new_topics = self._new_topics(start)
        for name, offset in start.next_offsets.items():
            if name.topic not in new_topics:
                ends[name] = max(ends.get(name, 0), offset)
        ids = {**start.topic_ids, **self.offsets.topic_ids}
        return StreamOffsets(ends, ids, self._starts(new_topics), self._restores(start))

    def losses(self, start: StreamOffsets, strategy: ConsumerStrategy) -> Iterator[StreamLoss]:
        """Yield what is gone of what the stream has counted on.

        Args:
            start: Where the stream is.
            strategy: What the stream subscribes to.
        """
        new_topics = self._new_topics(start)
        yield from new_topics.values()
        starts = self._starts(new_topics)
        for name, offset in start.next_offsets.items():
            if name.topic in new_topics:
                loss = find_new_partition_loss(name, starts.get(name, 0))
            elif name not in self.logs:
                loss = _missing_partition(name, offset, strategy)
            elif self._is_cut(name, offset):
                loss = StreamLoss(
                    ("cut", name, offset),
                    f"{name}: the log ends at {self.offsets.next_offsets[name]}, the stream was at "
                    f"{offset}",
                    f"offset {offset}, which leaves out what is written before it",
                )
            else:
                loss = self._restored(name, offset, start)
            if loss is not None:
                yield loss

    def warn_of_unknown_restores(self, start: StreamOffsets, warn: Callable[[str], None]) -> None:
        """Warn of restores that the checkpoint of an older klog or of Spark's source cannot know.

        Args:
            start: Where the stream is.
            warn: Called with each warning.
        """
        new_topics = self._new_topics(start)
        for name in start.next_offsets:
            log = self.logs.get(name)
            if log is None or name.topic in new_topics:
                continue
            if log.last_restore and start.seen_restore(name.topic) is None:
                warn(
                    f"topic {name.topic}: commit {log.last_restore} restored an earlier version, "
                    "and the checkpoint of this stream does not say whether the stream has read "
                    "what was taken back; going on at its offsets"
                )

    def _starts(self, new_topics: Mapping[str, StreamLoss]) -> dict[TopicPartition, int]:
        return {name: log.log_start for name, log in self.logs.items() if name.topic in new_topics}

    def _restores(self, start: StreamOffsets) -> Mapping[str, int] | None:
        """Return the last restores, of a topic that is gone as the stream knew it."""
        if self.offsets.restores is None:
            return start.restores
        present = {name.topic for name in self.logs}
        earlier = (start.restores or {}).items()
        gone = {topic: version for topic, version in earlier if topic not in present}
        return {**gone, **self.offsets.restores}

    def _restored(
        self, name: TopicPartition, offset: int, start: StreamOffsets
    ) -> StreamLoss | None:
        """Return that a restore has changed the log below the offset where the stream is."""
        log = self.logs[name]
        changed = restored_from(log, start.seen_restore(name.topic))
        if changed is None or changed >= offset:
            return None
        return StreamLoss(
            ("restored", name, log.last_restore or 0),
            f"{name}: commit {log.last_restore} restored an earlier version of the topic. From "
            f"offset {changed} on the log is not what the stream has read, and the stream was "
            f"at {offset}",
            f"offset {offset}: nothing that the stream has written is taken back, and records "
            "that came back before that offset are not read",
        )

    def _new_topics(self, start: StreamOffsets) -> dict[str, StreamLoss]:
        """Return the topics that were created again: by their ids, or as their logs end earlier."""
        new_topics: dict[str, StreamLoss] = {}
        for topic in sorted(start.topic_ids):
            if self.offsets.is_another_topic(topic, start):
                new_topics[topic] = StreamLoss(
                    ("created again", topic, self.offsets.topic_ids[topic]),
                    f"{topic}: the topic was deleted and created again (its id has changed)",
                    "the new topic, from its start",
                )
        have_only_new_ids = self.offsets.topic_ids.keys() - start.topic_ids.keys()
        for name, offset in start.next_offsets.items():
            is_unknown = name.topic in have_only_new_ids and name.topic not in new_topics
            if is_unknown and self._is_cut(name, offset):
                new_topics[name.topic] = StreamLoss(
                    ("created again", name.topic, self.offsets.topic_ids[name.topic]),
                    f"{name}: the log ends at {self.offsets.next_offsets[name]}, the stream was at "
                    f"{offset}: the topic was deleted and created again, or its log was cut (the "
                    "checkpoint has no topic id that would tell)",
                    f"topic {name.topic}, from its start",
                )
        return new_topics

    def _is_cut(self, name: TopicPartition, offset: int) -> bool:
        """Return whether a log has lost bytes below an offset; False for one that is gone."""
        log = self.logs.get(name)
        return log is not None and max(log.log_end, log.readable_end) < offset


def _missing_partition(name: TopicPartition, offset: int, strategy: ConsumerStrategy) -> StreamLoss:
    """Return that a partition of the stream is deleted, or not subscribed to any more."""
    if takes_partition(strategy, name):
        message = f"{name}: the partition was deleted while the stream was at {offset}"
    else:
        message = (
            f"{name}: the query does not subscribe to the partition any more, and the stream was "
            f"at {offset}"
        )
    return StreamLoss(("missing", name, offset), message, "the other partitions")


def first_offset(
    name: TopicPartition, log: PartitionSnapshot | None, end: StreamOffsets
) -> int | None:
    """Return where a partition that is new to a stream starts; None if nothing says it any more.

    Args:
        name: The partition.
        log: The partition, open; None if it is gone.
        end: Where the micro-batch ends.
    """
    if name in end.batch_start:
        return end.batch_start[name]
    return None if log is None else log.log_start
