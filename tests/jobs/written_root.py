"""A klog root for jobs to work on, by the steps of its writers: contended, named, adopted.

The rule: a step is one commit. What a writer sees is given to it, so one that saw an older version
than the last is a writer that lost a race, whose files say other offsets than the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import google_crc32c
import pyarrow as pa

from klog.connector.commit_log import commit_builders
from klog.connector.commit_log.commit import Actions
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.root_discovery import find_or_create_root
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.segment_entry_builder import build_segment_entry
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.embedded_append import append
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.logformat.batches.record_counts import data_record_counts
from klog.logformat.batches.record_headers import HEADERS_TYPE
from klog.logformat.batches.scan_batches import scan_batches
from tests.corpus.clients import Sent

CONFIG = {"segment.bytes": "20000", "index.interval.bytes": "300"}
BATCHES = {"batch.size": "600"}


class WrittenRoot:
    """A klog root that a test writes."""

    def __init__(self, location: str, storage: StorageOptions = NO_STORAGE_OPTIONS) -> None:
        self.location = location
        self.root = find_or_create_root(location, "AAAAAAAAAAAAAAAAAAAAAA", storage)
        self._ids = count()

    def create(self, topic: str, partitions: int, config: Mapping[str, str] = CONFIG) -> TopicState:
        """Make a topic."""
        TopicAdmin(self.root).create(topic, partitions, config)
        return self.state(topic)

    def state(self, topic: str) -> TopicState:
        """Load a topic."""
        return self._log(topic).load()

    def append(
        self,
        topic: str,
        rows: Sequence[Sent],
        partition: int = 0,
        *,
        seen: TopicState | None = None,
        name: str | None = None,
        number: int | None = None,
        **options: str,
    ) -> TopicState:
        """Write records, by a writer that saw a state, the last one by default."""
        log = self._log(topic)
        writer_options = BATCHES | {key.replace("_", "."): value for key, value in options.items()}
        state = seen or log.load()
        return append(
            log,
            state,
            table(rows, partition),
            self._attempt("append"),
            writer_options,
            name,
            number,
        ).state

    def delete_records(self, topic: str, starts: Mapping[int, int]) -> TopicState:
        """Move log starts."""
        topic_id = self.state(topic).topic_id
        return self._commit(
            topic, commit_builders.delete_records(topic_id, starts), "delete-records"
        )

    def delete(self, topic: str) -> TopicState:
        """Delete a topic."""
        topic_id = self.state(topic).topic_id
        return self._commit(topic, commit_builders.delete_topic(topic_id), "delete-topic")

    def adopt(self, topic: str, partition: int, logs: Mapping[int, bytes]) -> TopicState:
        """Adopt a broker's segments unchanged, by base offset."""
        added = [self._adopted(topic, partition, base, logs[base]) for base in sorted(logs)]
        ends = {partition: added[-1]["next_offset"]}
        actions = Actions(add=tuple(added), asserted_log_end=ends)
        return self._commit(topic, lambda state: actions, "adopt")

    def files(self, topic: str) -> list[str]:
        """Return the paths of a topic's live segments, relative to the root, in order."""
        files: list[str] = self.state(topic).segments["file"].to_pylist()
        return files

    def path(self, file: str) -> str:
        """Return the path of a file as the store spells it."""
        return f"{self.root.path}/{file}"

    def _adopted(self, topic: str, partition: int, base: int, log: bytes) -> SegmentEntry:
        batches = scan_batches(log, 0, len(log))
        file = f"{topic}-{partition}/{base:020}.log"
        self.root.store.put(self.path(file), [log])
        headers = batches.headers
        return build_segment_entry(
            file=file,
            partition=partition,
            base_offset=base,
            next_offset=int(batches.next_offsets[-1]),
            size_bytes=len(log),
            crc32c=google_crc32c.value(log),
            record_count=int(data_record_counts(log, batches).sum()),
            batch_count=len(batches),
            min_timestamp_ms=int(headers["base_timestamp"].min()),
            max_timestamp_ms=int(headers["max_timestamp"].max()),
            leader_epoch=int(headers["leader_epoch"].max()),
            codec="none",
            producer_ids=sorted({int(number) for number in headers["producer_id"] if number >= 0}),
            origin="adopt",
        )

    def _commit(self, topic: str, build: CommitBuilder, operation: str) -> TopicState:
        log = self._log(topic)
        return log.commit(log.load(), build, self._attempt(operation))

    def _log(self, topic: str) -> CommitLog:
        return self.root.log_to_write(topic)

    def _attempt(self, operation: str) -> CommitInfo:
        return CommitInfo(f"write {next(self._ids)}", operation, "a test")


def table(rows: Iterable[Sent], partition: int) -> pa.Table:
    """Return records as a table to append."""
    rows = list(rows)
    headers = [
        [{"key": name, "value": value} for name, value in record.headers] or None for record in rows
    ]
    return pa.table(
        {
            "key": pa.array([record.key for record in rows], pa.binary()),
            "value": pa.array([record.value for record in rows], pa.binary()),
            "headers": pa.array(headers, HEADERS_TYPE),
            "partition": pa.array([partition] * len(rows), pa.int32()),
            "timestamp": pa.array([record.timestamp for record in rows], pa.timestamp("ms", "UTC")),
        }
    )


def numbers(first: int, how_many: int, now: int, size: int = 40) -> list[Sent]:
    """Return records that differ, a ms apart, some without a key, a value or headers."""
    return [
        Sent(
            b"k%d" % number if number % 5 else None,
            (b"v%d-" % number).ljust(size, b".") if number % 7 else None,
            now + number,
            (("one", b"1"), ("none", None)) if number % 11 == 0 else (),
        )
        for number in range(first, first + how_many)
    ]
