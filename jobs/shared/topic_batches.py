"""What a copy of a topic reads next: from the positions that its target has to the end of the log.

The rule: a copy is a stream whose positions are kept in its target, so the rules are those of a
stream (`source/stream_log_ends.py`): a topic that was created again, offsets that retention has
deleted and a restore are data loss, which is an error or, with `failOnDataLoss=false`, a warning.
A topic that the target does not have begins at `startingOffsets`. Limits of a batch are those of a
trigger.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.open_root import open_root
from klog.connector.options.consumer_strategy import ConsumerStrategy, Subscribe
from klog.connector.options.read_options import ReadOptions, parse_read_options
from klog.connector.options.storage_options import STORAGE_PREFIX
from klog.connector.snapshot import Logs, Root
from klog.connector.source.data_loss import DataLoss, Remedy, find_loss, raise_or_warn
from klog.connector.source.load_plan import ResolvedRange
from klog.connector.source.offset_ranges import latest_offsets, starting_offsets
from klog.connector.source.rate_limits import RateLimiter
from klog.connector.source.stream_log_ends import LogEnds
from klog.connector.source.stream_losses import find_new_partition_loss
from klog.connector.source.stream_offsets import StreamOffsets, offsets_to_json
from klog.connector.source.subscription import subscribed_partitions
from klog.connector.system_clock import now_ms
from klog.errors import OptionError
from klog.logformat.topic_partition import TopicPartition

_BATCH_OPTIONS = frozenset(
    {"isolationlevel", "kafka.isolation.level", "failondataloss", "engine", "minpartitions"}
    | {"maxrecordsperpartition", "maxbytesperpartition"}
)
"""Options of the stream that the read of a batch has too, in lower case as Spark has options."""
_STARTS = frozenset({"startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp"})
_ANY = "any"
"""A name in the place of a topic's, while options are parsed."""
_UNUSED = frozenset({"minoffsetspertrigger", "maxtriggerdelay"})


@dataclass(frozen=True, slots=True)
class CopiedOffsets:
    """Where a target is in one topic.

    Attributes:
        offsets: The next offset of each partition, with what is known of the topic.
        has_all_partitions: Whether a partition that is not among them was never seen; else it may
            have been copied when it had no records.
    """

    offsets: StreamOffsets
    has_all_partitions: bool = True


@dataclass(frozen=True, slots=True)
class TopicBatch:
    """The records of one topic that are copied at a time.

    Attributes:
        topic: The topic.
        starts: The first offset of each partition.
        end: The offset after the last one of each partition, as the target keeps it.
        logs: The partitions as the batch was planned on them.
    """

    topic: str
    starts: Mapping[TopicPartition, int]
    end: StreamOffsets
    logs: Logs = field(repr=False)

    @property
    def topic_id(self) -> str | None:
        """Return the id of the topic; None if its log has none."""
        return self.end.topic_ids.get(self.topic)

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to copy."""
        return not any(self.ranges())

    def has_reached(self, until: StreamOffsets) -> bool:
        """Return whether nothing is left before a fixed end.

        Args:
            until: The end.
        """
        ends = self.end.next_offsets
        return all(ends.get(name, 0) >= end for name, end in until.next_offsets.items())

    def ranges(self) -> Iterator[tuple[TopicPartition, int, int]]:
        """Yield partition, first offset and end offset of each range that is not empty."""
        for name, end in sorted(self.end.next_offsets.items()):
            if self.starts[name] < end:
                yield name, self.starts[name], end

    def read_options(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options of the read that has just these records.

        Args:
            options: The options of the copy; only those that a read of offsets may have are used.
        """
        kept = {
            name: text
            for name, text in options.items()
            if name.lower() in _BATCH_OPTIONS or name.lower().startswith(STORAGE_PREFIX)
        }
        starts = {name: start for name, start, _ in self.ranges()}
        ends = {name: end for name, _, end in self.ranges()}
        partitions = {self.topic: sorted(name.partition for name in starts)}
        return kept | {
            "assign": json.dumps(partitions),
            "startingOffsets": json.dumps(offsets_to_json(starts)),
            "endingOffsets": json.dumps(offsets_to_json(ends)),
        }


class TopicReader:
    """The topics of one root, as copies of them read it."""

    def __init__(self, paths: Sequence[str], options: Mapping[str, str], remedy: str) -> None:
        """Take the paths of a root and the options of a stream that reads it.

        Args:
            paths: A klog root, or the log directories of one broker.
            options: Options of a read, without those that name the topics.
            remedy: What an error about data loss tells the user to do.
        """
        self._paths = paths
        self._remedy = remedy
        names = {name.lower() for name in options}
        for name in sorted(names & _UNUSED):
            raise OptionError(f"{name}: a copy waits for nothing. Leave it out")
        earliest = {} if names & _STARTS else {"startingOffsets": "earliest"}
        self._options = parse_read_options(
            {**earliest, **options, "subscribe": _ANY}, is_streaming=True
        )
        self._root: Root | None = None

    def topics(self, strategy: ConsumerStrategy) -> list[str]:
        """Return the names of the topics that are meant, sorted.

        Args:
            strategy: Named topics, or a pattern.

        Raises:
            OptionError: A named topic does not exist.
        """
        partitions = retry_stale_listing(
            lambda: subscribed_partitions(strategy, self._open_root().snapshot())
        )
        return sorted({name.topic for name in partitions})

    def log_ends(self, topic: str) -> LogEnds:
        """Return where the partitions of a topic end now.

        Args:
            topic: The name of the topic.
        """
        options = self.options_of(topic)

        def ends() -> LogEnds:
            snapshot = self._open_root().snapshot()
            logs = snapshot.open(subscribed_partitions(options.consumer_strategy, snapshot))
            return LogEnds(StreamOffsets.from_logs(latest_offsets(logs, options), logs), logs)

        return retry_stale_listing(ends)

    def next_batch(
        self,
        topic: str,
        copied: CopiedOffsets | None,
        until: StreamOffsets | None = None,
        *,
        is_limited: bool = True,
    ) -> TopicBatch:
        """Return what to copy next.

        Args:
            topic: The name of the topic.
            copied: Where the target is; None if it has nothing of the topic.
            until: The offsets after which nothing is copied; None for no such end.
            is_limited: Whether the limits of a trigger count.

        Raises:
            DataLossError: Records that the target has not copied are gone.
        """
        options = self.options_of(topic)
        latest = self.log_ends(topic)
        if copied is None:
            starts = starting_offsets(latest.logs, latest.offsets.next_offsets, options, now_ms())
            end = latest.offsets
        else:
            end = latest.after(copied.offsets)
            starts = self._starts(topic, copied, latest, end)
            end = replace(end, batch_start={})
        ends = _not_after(end.next_offsets, until, starts)
        if is_limited:
            limits = RateLimiter(options.trigger_limits, now_ms)
            ends = limits.end_offsets(starts, ends, latest.logs)
        return TopicBatch(topic, starts, replace(end, next_offsets=ends), latest.logs)

    def options_of(self, topic: str) -> ReadOptions:
        """Return the options of a stream that reads one topic.

        Args:
            topic: The name of the topic.

        """
        return replace(self._options, consumer_strategy=Subscribe((topic,)))

    def report_loss(self, name: TopicPartition, loss: DataLoss) -> None:
        """Raise the loss of planned offsets as an error, or log it as a warning.

        Args:
            name: The partition.
            loss: What is gone.

        Raises:
            DataLossError: `failOnDataLoss` is set.
        """
        message = f"{name}: {loss.description}: {loss.count:,} that were not copied"
        self._report(message, loss.remainder)

    def _open_root(self) -> Root:
        if self._root is None:
            self._root = open_root(self._paths, self._options.storage)
        return self._root

    def _starts(
        self, topic: str, copied: CopiedOffsets, latest: LogEnds, end: StreamOffsets
    ) -> dict[TopicPartition, int]:
        """Return where each partition goes on; a loss is reported."""
        for loss in latest.losses(copied.offsets, Subscribe((topic,))):
            self._report(loss.message, loss.remainder)
        starts = {}
        for name, end_offset in end.next_offsets.items():
            start = self._start(name, copied, latest.logs, end)
            planned = ResolvedRange(name, "", start, end_offset)
            log = latest.logs.get(name)
            gone = find_loss(log, planned) if start < end_offset else None
            if gone is not None:
                self.report_loss(name, gone)
                start = end_offset if log is None else min(max(start, log.log_start), end_offset)
            starts[name] = start
        return starts

    def _start(
        self, name: TopicPartition, copied: CopiedOffsets, logs: Logs, end: StreamOffsets
    ) -> int:
        if name in end.batch_start:
            return end.batch_start[name]
        offset = copied.offsets.next_offsets.get(name)
        if offset is not None:
            return offset
        log_start = logs[name].log_start
        loss = find_new_partition_loss(name, log_start) if copied.has_all_partitions else None
        if loss is not None:
            self._report(loss.message, loss.remainder)
        return log_start

    def _report(self, message: str, remainder: str) -> None:
        fail = self._options.fail_on_data_loss
        raise_or_warn(message, Remedy(self._remedy), remainder, fail_on_data_loss=fail)


def _not_after(
    ends: Mapping[TopicPartition, int],
    until: StreamOffsets | None,
    starts: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return ends that are not after a fixed one, and not before the starts."""
    if until is None:
        return {name: max(end, starts[name]) for name, end in ends.items()}
    fixed = until.next_offsets
    return {name: max(min(end, fixed.get(name, 0)), starts[name]) for name, end in ends.items()}
