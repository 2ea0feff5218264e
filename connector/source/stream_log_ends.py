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

import functools
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from klog.connector.snapshot import Logs, PartitionSnapshot
from klog.connector.source.data_loss import raise_or_warn, restored_from, stream_remedy
from klog.connector.source.stream_offsets import StreamOffsets
from klog.logformat.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

_NEW_TOPIC = "the new topic, from its start"


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Where the logs end, and the partitions that were opened to see it."""

    offsets: StreamOffsets
    logs: Logs

    def after(self, start: StreamOffsets, *, fail_on_data_loss: bool) -> StreamOffsets:
        """Return how far the stream can read, at least to where it is.

        Args:
            start: Where the stream is.
            fail_on_data_loss: Whether records that are gone are an error, else a warning.

        Returns:
            The offsets; `batch_start` has the partitions of topics that were created again.

        Raises:
            DataLossError: `fail_on_data_loss` is true, and something is gone of what the stream
                has counted on.
        """
        ends = dict(self.offsets.next_offsets)
        unnamed = self._created_again_without_id(start)
        for topic in sorted(topic for topic in start.topic_ids if self._has_other_id(topic, start)):
            message = f"{topic}: the topic was deleted and created again (its id has changed)"
            _report(message, _NEW_TOPIC, fail_on_data_loss)
        for topic, description in unnamed.items():
            _report(description, f"topic {topic}, from its start", fail_on_data_loss)
        batch_start = {
            name: log.log_start
            for name, log in self.logs.items()
            if name.topic in unnamed or self._has_other_id(name.topic, start)
        }
        for name, offset in start.next_offsets.items():
            if name.topic in unnamed or self._has_other_id(name.topic, start):
                start_offset = batch_start.get(name, 0)
                report_new_partition(name, start_offset, fail_on_data_loss=fail_on_data_loss)
                continue
            if name not in ends:
                _report(
                    f"{name}: the partition was deleted while the stream was at {offset}",
                    "the other partitions",
                    fail_on_data_loss,
                )
            elif self._is_cut(name, offset):
                _report(
                    f"{name}: the log ends at {ends[name]}, the stream was at {offset}",
                    f"offset {offset}, which leaves out what is written before it",
                    fail_on_data_loss,
                )
            else:
                self._report_restore(name, offset, start, fail_on_data_loss)
            ends[name] = max(ends.get(name, 0), offset)
        ids = {**start.topic_ids, **self.offsets.topic_ids}
        return StreamOffsets(ends, ids, batch_start, self._restores(start))

    def _restores(self, start: StreamOffsets) -> Mapping[str, int] | None:
        """Return the last restores, of a topic that is gone as the stream knew it."""
        if self.offsets.restores is None:
            return start.restores
        present = {name.topic for name in self.logs}
        earlier = (start.restores or {}).items()
        gone = {topic: version for topic, version in earlier if topic not in present}
        return {**gone, **self.offsets.restores}

    def _report_restore(
        self, name: TopicPartition, offset: int, start: StreamOffsets, fail_on_data_loss: bool
    ) -> None:
        """Report a restore that has changed the log below the offset where the stream is."""
        log, seen_restore = self.logs[name], start.seen_restore(name.topic)
        if seen_restore is None and log.last_restore:
            _warn_of_unknown_restores(name.topic, log.last_restore)
        changed = restored_from(log, seen_restore)
        if changed is not None and changed < offset:
            _report(
                f"{name}: commit {log.last_restore} restored an earlier version of the topic. From "
                f"offset {changed} on the log is not what the stream has read, and the stream was "
                f"at {offset}",
                f"offset {offset}: nothing that the stream has written is taken back, and records "
                "that came back before that offset are not read",
                fail_on_data_loss,
            )

    def _has_other_id(self, topic: str, start: StreamOffsets) -> bool:
        return self.offsets.is_another_topic(topic, start)

    def _created_again_without_id(self, start: StreamOffsets) -> dict[str, str]:
        """Return the topics that the stream knew without their ids and whose logs end earlier."""
        topics: dict[str, str] = {}
        for name, offset in start.next_offsets.items():
            has_only_new_id = name.topic in self.offsets.topic_ids.keys() - start.topic_ids.keys()
            if has_only_new_id and self._is_cut(name, offset):
                topics.setdefault(
                    name.topic,
                    f"{name}: the log ends at {self.offsets.next_offsets[name]}, the stream was at "
                    f"{offset}: the topic was deleted and created again, or its log was cut (the "
                    "checkpoint has no topic id that would tell)",
                )
        return topics

    def _is_cut(self, name: TopicPartition, offset: int) -> bool:
        """Return whether a log has lost bytes below an offset; False for one that is gone."""
        log = self.logs.get(name)
        return log is not None and max(log.log_end, log.readable_end) < offset


@functools.cache
def _warn_of_unknown_restores(topic: str, restore: int) -> None:
    """Log one warning of a process about the checkpoint of an older klog or of Spark's source."""
    _log.warning(
        "topic %s: commit %s restored an earlier version, and the checkpoint of this stream does "
        "not say whether the stream has read what was taken back; going on at its offsets",
        topic,
        restore,
    )


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


def report_new_partition(
    name: TopicPartition, start_offset: int | None, *, fail_on_data_loss: bool
) -> None:
    """Report what is gone of a partition that is new to a running stream, or of a new topic.

    Args:
        name: The partition.
        start_offset: What `first_offset` returned for it.
        fail_on_data_loss: Whether records that are gone are an error, else a warning.

    Raises:
        DataLossError: `fail_on_data_loss` is true, and the partition does not start at offset 0.
    """
    if start_offset is None:
        _report(
            f"{name}: the partition is new to the stream, and was deleted before the stream could "
            "read it",
            "the other partitions",
            fail_on_data_loss,
        )
    elif start_offset > 0:
        _report(
            f"{name}: the partition is new to the stream, and offsets 0 to {start_offset - 1} were "
            "deleted before the stream could read them",
            f"the log start, offset {start_offset}",
            fail_on_data_loss,
        )


def _report(message: str, remainder: str, fail_on_data_loss: bool) -> None:
    raise_or_warn(message, stream_remedy(remainder), remainder, fail_on_data_loss=fail_on_data_loss)
