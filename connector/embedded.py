"""A log in this process, as Arrow and without Spark: `klog.open`.

The rule: nothing is decided here. Reading is the plan and the reader of Spark's source; writing is
Spark's sink with one task (`embedded_append.py`). The first topic that is created in a directory
makes it a klog root. The log directory of a broker can be read, and is never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from klog.connector.commit_log.background_checkpointer import CHECKPOINTER
from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.topic_admin import (
    NO_CONFIG,
    TopicAdmin,
    TopicDescription,
    check_new_topic,
)
from klog.connector.commit_log.topic_restore import RestoreReport, restore_topic
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.embedded_append import AppendResult, append
from klog.connector.embedded_lookups import (
    committed_only,
    counts_of,
    offsets_of,
    read_options_of,
    snapshot_as_of,
)
from klog.connector.embedded_root import EmbeddedRoot
from klog.connector.embedded_values import columns_to_read, decode_scan
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.options.as_of import parse_as_of
from klog.connector.options.offset_spec import OffsetSpec, parse_offset_spec
from klog.connector.options.option import option_texts
from klog.connector.options.option_defaults import READ_COMMITTED
from klog.connector.options.python_arguments import whole_argument
from klog.connector.options.read_columns import COLUMNS, DEFAULT_COLUMNS, known_columns
from klog.connector.options.read_options import ReadOptions
from klog.connector.options.storage_options import StorageOptions, storage_of_keywords
from klog.connector.root_urls import absolute_root
from klog.connector.scan_bounds import Bound
from klog.connector.sink.task_writer import InputRows
from klog.connector.source import scan_planner
from klog.connector.source.row_schema import arrow_schema
from klog.connector.source.slice_contract import TaskDict
from klog.connector.source.subscription import topic_exists
from klog.connector.source.task_reader import make_reader
from klog.errors import OptionError


class Log:
    """The topics of one root. Not safe to share between threads: open one in each."""

    def __init__(self, root: str, storage: StorageOptions) -> None:
        """Take the path or URL of the root; nothing is read yet."""
        self._root = EmbeddedRoot(root, storage)
        self._states: dict[str, TopicState] = {}

    def topics(self) -> list[str]:
        """Return the names of all topics, also those of Kafka itself in a broker's directory.

        They include a topic that this klog cannot read, because a newer klog created it or its log
        is damaged; its readers get the error.
        """
        topics = self._root.snapshot().topics
        return sorted(name for name in topics if topic_exists(name, topics))

    def describe(self, topic: str) -> TopicDescription:
        """Return a topic's id, configs and partitions.

        Args:
            topic: The name of the topic.

        Raises:
            OptionError: There is no such topic.
        """
        return self._topics().describe(topic)

    def create_topic(
        self, topic: str, partitions: int | None = None, config: Mapping[str, str] = NO_CONFIG
    ) -> TopicDescription:
        """Create a topic, and the root with it if this is its first topic.

        Args:
            topic: The name of the topic.
            partitions: The number of partitions; None for the default of the root.
            config: Kafka's topic configs.

        Raises:
            OptionError: The topic exists, a name or a config is invalid, or klog cannot write to
                the root.
        """
        if partitions is not None:
            partitions = whole_argument("partitions", partitions, 1)
        config = option_texts(config)
        check_new_topic(topic, partitions, config)  # Before a root is made for it.
        TopicAdmin(self._root.find_or_create()).create(topic, partitions, config)
        return self.describe(topic)

    def alter_config(
        self, topic: str, change: Mapping[str, str] = NO_CONFIG, unset: Iterable[str] = ()
    ) -> TopicDescription:
        """Change a topic's configs.

        Args:
            topic: The name of the topic.
            change: The configs to set.
            unset: The configs to reset to their defaults.

        Raises:
            OptionError: There is no such topic, or a config is invalid.
        """
        self._topics().alter_config(topic, option_texts(change), unset)
        return self.describe(topic)

    def add_partitions(self, topic: str, partitions: int) -> TopicDescription:
        """Raise the number of a topic's partitions.

        Args:
            topic: The name of the topic.
            partitions: The new number of partitions.

        Raises:
            OptionError: There is no such topic, or it has as many partitions already.
        """
        self._topics().add_partitions(topic, whole_argument("partitions", partitions, 1))
        return self.describe(topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic; vacuum removes its files later.

        Args:
            topic: The name of the topic.

        Raises:
            OptionError: There is no such topic.
        """
        self._topics().delete(topic)

    def undelete_topic(self, topic: str) -> TopicDescription:
        """Bring a deleted topic back, if vacuum has not deleted its files (docs/restore.md).

        Args:
            topic: The name of the topic.

        Returns:
            Its description. It has the id, offsets and configs that it had.

        Raises:
            OptionError: The topic exists, never existed, or its deletion has expired.
            CommitConflictError: Vacuum has deleted a file of the topic, which the message names.
        """
        self._topics().undelete(topic)
        return self.describe(topic)

    def history(self, topic: str, limit: int | None = None) -> list[Commit]:
        """Return a topic's commits, newest first.

        Args:
            topic: The name of the topic.
            limit: The largest number of commits; None for all.

        Raises:
            OptionError: There is no such topic, or the limit is negative.
        """
        if limit is not None:
            limit = whole_argument("limit", limit)
        return list(islice(self._topics().history(topic), limit))

    def restore(self, topic: str, version: int, *, dry_run: bool = False) -> RestoreReport:
        """Set a topic back to an earlier version, in one commit; log ends stay (docs/restore.md).

        Args:
            topic: The name of the topic.
            version: The version, as `history` has it.
            dry_run: Only plan; write nothing.

        Returns:
            What changed, or would change.

        Raises:
            OptionError: There is no such topic or version, or the version has expired.
            CommitConflictError: The topic was created again since, or vacuum has deleted a file of
                the version, which the message names.
        """
        version = whole_argument("version", version)
        return restore_topic(self._root.klog_root(), topic, version, dry_run=dry_run)

    def append(
        self,
        topic: str,
        rows: InputRows,
        *,
        transactional_id: str | None = None,
        transaction_version: int | None = None,
        options: Mapping[str, str] = NO_CONFIG,
    ) -> AppendResult:
        """Write rows to a topic in one commit.

        Args:
            topic: The name of the topic.
            rows: A table, a record batch, record batches one after another, or any object with
                Arrow's C stream interface, such as a frame of polars or pandas. Columns are `value`
                (string or binary; null is a tombstone) and optionally `key`, `headers`,
                `partition` and `timestamp`, in any case.
            transactional_id: The writer's name. With it, a version at or below the last committed
                one writes nothing.
            transaction_version: The number of the writer's batch.
            options: Options of a write, such as `compression.type`.

        Raises:
            OptionError: There is no such topic, or a column or an option is wrong.
            KlogError: A row cannot be written; the message names it.
            CommitConflictError: The topic has changed, and the rows were not written.
            ProducerFencedError: Another writer has taken over the transactional id.
            CommitStateUnknownError: The store did not say whether the rows are in the topic. With a
                transactional id, repeat the same call.
        """
        root = self._root.klog_root()
        log = root.log_to_write(topic)
        state = root.load_to_commit(log, self._states.get(topic))
        commit_info = CommitInfo(random_uuid(), "append", this_engine())
        result = append(
            log,
            state,
            rows,
            commit_info,
            option_texts(options),
            transactional_id,
            transaction_version,
        )
        state = result.state
        self._states[topic] = CHECKPOINTER.offer(log, state) if result.is_new else state
        return result

    def scan(
        self,
        topic: str,
        start: Bound = None,
        end: Bound = None,
        columns: Sequence[str] | None = None,
        *,
        as_of_version: int | None = None,
        as_of_timestamp: datetime | int | str | None = None,
        **values: Any,
    ) -> pa.RecordBatchReader:
        """Read a topic, as of now or of an earlier version, partition by partition by offset.

        Args:
            topic: The name of the topic.
            start: An offset, a time with a time zone, or one of these by partition; None for the
                log start.
            end: The same, exclusive; None for the log end.
            columns: Columns of Spark's Kafka source; None for all but `headers`.
            as_of_version: The version that is read, such as one that `history` returns.
            as_of_timestamp: A time instead: the version of the last commit at or before it.
            **values: How keys and values are decoded: the arguments of
                `klog.values.decode_batches`, such as `key="string", value="avro", registry=...`.

        Returns:
            A reader that reads a batch when it is asked for it. Reading raises
            `CorruptRecordError` for damaged data, and `UndecodableError` for values of another
            format.

        Raises:
            OptionError: There is no such topic, column or version, or a bound is neither an offset
                nor a time.
            OffsetOutOfRangeError: A bound is not within the log.
            RegistryError: The schema registry does not have a subject, or does not answer.
            SchemaError: A schema is not one, or has no type in Arrow.
        """
        as_of = parse_as_of(as_of_version, as_of_timestamp, ("as_of_version", "as_of_timestamp"))
        if columns is None:
            columns = DEFAULT_COLUMNS
        try:
            names = known_columns([columns] if isinstance(columns, str) else columns)
        except ValueError as exc:
            raise OptionError(f"columns: {exc}. Choose from {', '.join(COLUMNS)}") from None
        read_names = columns_to_read(names, values)

        def plan() -> tuple[ReadOptions, list[TaskDict]]:
            now = self._root.snapshot_with(topic)
            snapshot, version = snapshot_as_of(now, self._root.read_root, topic, as_of)
            options = read_options_of(
                snapshot,
                topic,
                start,
                end,
                storage=self._root.storage,
                columns=read_names,
                as_of=version,
            )
            return options, scan_planner.plan_snapshot(snapshot, options)

        options, tasks = retry_stale_listing(plan)
        reader = make_reader([self._root.path], options)

        def batches() -> Iterator[pa.RecordBatch]:
            for task in tasks:
                yield from reader.read(task)

        scan = pa.RecordBatchReader.from_batches(arrow_schema(read_names), batches())
        return decode_scan(scan, names, topic, values) if values else scan

    def offsets(self, topic: str, at: OffsetSpec = "latest") -> dict[int, int | None]:
        """Return an offset of each partition, as kafka-get-offsets does.

        Args:
            topic: The name of the topic.
            at: `earliest` for the log start, `latest` for the log end, `max-timestamp` for the
                first record with the largest timestamp, or a time for the first record at or after
                it: a datetime with its zone, ms since 1970, or a text as in `startingTimestamp`.

        Returns:
            By partition its offset; None if it has no such record.

        Raises:
            OptionError: There is no such topic, or `at` is something else.
        """
        limit = parse_offset_spec("at", at)
        return retry_stale_listing(
            lambda: offsets_of(self._root.snapshot_with(topic), topic, limit)
        )

    def count(
        self,
        topic: str,
        start: Bound = None,
        end: Bound = None,
        isolation_level: str = READ_COMMITTED,
    ) -> dict[int, int]:
        """Return how many records of each partition a reader gets, mostly without reading them.

        Commits say it, or the headers of batches. Records that a compaction removed do not count,
        nor do transaction markers and, for read_committed, records of aborted and open
        transactions.

        Args:
            topic: The name of the topic.
            start: Where to start, as for `scan`.
            end: Where to end, as for `scan`.
            isolation_level: `read_committed` or `read_uncommitted`.

        Raises:
            OptionError: There is no such topic, or an argument is wrong.
            OffsetOutOfRangeError: A bound is not within the log.
        """
        is_committed_only = committed_only(isolation_level)

        def count() -> dict[int, int]:
            snapshot = self._root.snapshot_with(topic)
            options = read_options_of(
                snapshot,
                topic,
                start,
                end,
                storage=self._root.storage,
                committed_only=is_committed_only,
            )
            return counts_of(self._root.path, snapshot, topic, options)

        return retry_stale_listing(count)

    def _topics(self) -> TopicAdmin:
        return TopicAdmin(self._root.klog_root())


def open_log(root: str | PathLike[str], storage: Mapping[str, str]) -> Log:
    """Open a root.

    Args:
        root: The path or URL of the root.
        storage: The `storage.*` options, without that prefix.

    Raises:
        OptionError: The path is not one, or a storage option is unknown.
    """
    return Log(_absolute(root), storage_of_keywords(storage))


def _absolute(root: str | PathLike[str]) -> str:
    """Return a URL, or an absolute path, which stays the same when the process changes folders."""
    try:
        path = fspath(root)
    except TypeError:
        path = ""
    if not isinstance(path, str) or not path:
        raise OptionError(f"root: must be a path or a URL, such as s3://bucket/path, got {root!r}")
    return absolute_root(path)
