"""A log in this process, as Arrow and without Spark: `klog.open`.

The rule: nothing is decided here. Reading is the plan and the reader of Spark's source; writing is
Spark's sink with one task (`embedded_append.py`). The first topic that is created in a directory
makes it a klog root. The log directory of a broker can be read, and is never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from os import PathLike
from typing import Any

import pyarrow as pa

from klog.connector.commit_log.background_checkpointer import CHECKPOINTER
from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.topic_admin import (
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
)
from klog.connector.embedded_root import EmbeddedRoot, absolute_path
from klog.connector.embedded_scan import scan
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.options.as_of import parse_as_of
from klog.connector.options.offset_spec import OffsetSpec, parse_offset_spec
from klog.connector.options.option import option_texts
from klog.connector.options.option_defaults import READ_COMMITTED
from klog.connector.options.python_arguments import whole_argument
from klog.connector.options.storage_options import StorageOptions, storage_of_keywords
from klog.connector.scan_bounds import Bound
from klog.connector.sink.task_writer import InputRows
from klog.connector.source.subscription import topic_exists


class Log:
    """The topics of one root, without Spark; `klog.open` returns it.

    A `Log` is not safe to share between threads: open one in each thread.
    """

    def __init__(self, root: str, storage: StorageOptions) -> None:
        """Take the path or URL of the root; nothing is read yet."""
        self._root = EmbeddedRoot(root, storage)
        self._states: dict[str, TopicState] = {}

    def topics(self) -> list[str]:
        """Return the names of the topics, sorted.

        In the log directory of a broker, Kafka's internal topics are among them. A topic that klog
        cannot read is also among them: it is damaged, or a newer klog created it. Calls that read
        such a topic raise an error.
        """
        topics = self._root.snapshot().topics
        return sorted(name for name in topics if topic_exists(name, topics))

    def describe(self, topic: str) -> TopicDescription:
        """Return the id, the configs and the partitions of a topic of a klog root.

        Args:
            topic: The name of the topic.

        Returns:
            The description, as of the topic's last commit.

        Raises:
            klog.OptionError: There is no such topic, or the root is not a klog root.
        """
        return self._topics().describe(topic)

    def create_topic(
        self, topic: str, partitions: int | None = None, config: Mapping[str, str] | None = None
    ) -> TopicDescription:
        """Create a topic. If the root does not exist, this call creates it too.

        Args:
            topic: The name of the topic.
            partitions: The number of partitions, from 1; None for the root's `num.partitions`,
                which is 1 in a new root.
            config: The configs of the topic, such as `{"retention.ms": "86400000"}`
                (docs/topic-configs.md).

        Returns:
            The description of the new topic.

        Raises:
            klog.OptionError: The topic exists, the name or a config is invalid, or the directory
                is the log directory of a broker, which klog does not write to.
        """
        if partitions is not None:
            partitions = whole_argument("partitions", partitions, 1)
        configs = _texts(config)
        check_new_topic(topic, partitions, configs)  # Before a root is made for it.
        TopicAdmin(self._root.find_or_create()).create(topic, partitions, configs)
        return self.describe(topic)

    def alter_config(
        self, topic: str, change: Mapping[str, str] | None = None, unset: Iterable[str] = ()
    ) -> TopicDescription:
        """Set configs of a topic, and reset others to their defaults.

        Args:
            topic: The name of the topic.
            change: The configs to set, such as `{"retention.ms": "86400000"}`.
            unset: The names of the configs to reset.

        Returns:
            The description of the topic after the change.

        Raises:
            klog.OptionError: There is no such topic, or a config is invalid.
            klog.CommitConflictError: A concurrent commit changed one of these configs.
        """
        self._topics().alter_config(topic, _texts(change), unset)
        return self.describe(topic)

    def add_partitions(self, topic: str, partitions: int) -> TopicDescription:
        """Raise the number of partitions of a topic.

        As in Kafka, new records of a key can go to another partition than the key's old records.

        Args:
            topic: The name of the topic.
            partitions: The new number of partitions.

        Returns:
            The description of the topic after the change.

        Raises:
            klog.OptionError: There is no such topic, or it has at least as many partitions already.
            klog.CommitConflictError: A concurrent commit added partitions or deleted the topic.
        """
        self._topics().add_partitions(topic, whole_argument("partitions", partitions, 1))
        return self.describe(topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic. `klog vacuum` later deletes its files.

        Args:
            topic: The name of the topic.

        Raises:
            klog.OptionError: There is no such topic.
            klog.CommitConflictError: Another process deleted the topic and created it again.
        """
        self._topics().delete(topic)

    def undelete_topic(self, topic: str) -> TopicDescription:
        """Restore a deleted topic (docs/restore.md).

        Args:
            topic: The name of the topic.

        Returns:
            The description of the topic. Its id, offsets and configs are those before the deletion.

        Raises:
            klog.OptionError: The topic exists, it never existed, or the commit that deleted it has
                expired.
            klog.RestoreRefusedError: Vacuum has deleted a file of the topic. The message names it.
        """
        self._topics().undelete(topic)
        return self.describe(topic)

    def history(self, topic: str, limit: int | None = None) -> list[Commit]:
        """Return the commits of a topic, newest first.

        The commits of deleted topics with the same name are among them. Expired commits are not.

        Args:
            topic: The name of the topic.
            limit: The maximum number of commits; None for all.

        Returns:
            The commits.

        Raises:
            klog.OptionError: The topic never existed, or the limit is negative.
        """
        if limit is not None:
            limit = whole_argument("limit", limit)
        return list(islice(self._topics().history(topic), limit))

    def restore(self, topic: str, version: int, *, dry_run: bool = False) -> RestoreReport:
        """Set a topic back to an earlier version, in one commit (docs/restore.md).

        Log end offsets, configs and the number of partitions do not change.

        Args:
            topic: The name of the topic.
            version: The version, such as the `version` of a commit that `history` returns.
            dry_run: Whether to plan the restore only, and to write nothing.

        Returns:
            The changes; for a dry run, the changes that a restore would make.

        Raises:
            klog.OptionError: There is no such topic or version, or the version has expired.
            klog.RestoreRefusedError: The topic was deleted and created again after the version, or
                vacuum has deleted a file of the version. The message names the file.
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
        options: Mapping[str, str] | None = None,
    ) -> AppendResult:
        """Append rows to a topic, all in one commit.

        Args:
            topic: The name of the topic.
            rows: A table, a record batch, several record batches, or any object with Arrow's C
                stream interface, such as a DataFrame of polars or pandas. The columns are `value`
                (string or binary; null is a tombstone) and, optionally, `key`, `headers`,
                `partition` and `timestamp`. Column names match in upper and lower case.
            transactional_id: The name of the writer, for writes that happen exactly once: a
                `transaction_version` that is not above the writer's last one writes nothing
                (docs/exactly-once.md).
            transaction_version: The number of the writer's batch, from 0. Set it if, and only if,
                you set `transactional_id`.
            options: The options of a write, such as `{"compression.type": "lz4"}`
                (docs/options.md).

        Returns:
            The version of the commit, and the offsets of the rows.

        Raises:
            klog.OptionError: There is no such topic, or a column or an option is wrong.
            klog.KlogError: klog cannot write a row. The message names the row.
            klog.CommitConflictError: The topic has changed so that the rows do not fit any more,
                for example because it was deleted. klog did not append the rows.
            klog.ProducerFencedError: Another run of the writer has taken over the transactional id.
            klog.CommitStateUnknownError: The store did not confirm the commit, so the topic may or
                may not have the rows. If you set a transactional id, repeat the same call.
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
            _texts(options),
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
        """Read a topic in Arrow batches: partition by partition, each in the order of its offsets.

        Args:
            topic: The name of the topic.
            start: Where to start: an offset for every partition, a datetime with a time zone, or a
                dict of these by partition. None for the log start.
            end: Where to stop: the same. The end is exclusive. None for the log end.
            columns: The names of the columns, those of Spark's Kafka source: `key`, `value`,
                `topic`, `partition`, `offset`, `timestamp`, `timestampType` and `headers`. None
                for all except `headers`.
            as_of_version: Read the topic as of this version, such as the `version` of a commit that
                `history` returns. None for the present topic.
            as_of_timestamp: Read the topic as of its last commit at or before this time: a datetime
                with a time zone, milliseconds since 1970, or a text such as `now-1d`. Set only one
                of `as_of_version` and `as_of_timestamp`.
            **values: How to decode keys and values: the arguments of `klog.values.decode_batches`,
                such as `key="string", value="avro", registry=...` (docs/values.md).

        Returns:
            A reader. It reads a batch from the store when you ask for the batch. Reading then
            raises `klog.CorruptFileError` for damaged data, and `klog.UndecodableError` for a key
            or a value that is not in its format.

        Raises:
            klog.OptionError: There is no such topic, column or version, or a bound is neither an
                offset nor a time.
            klog.OffsetOutOfRangeError: The log does not have the offset of a bound.
            klog.RegistryError: The registry does not answer, or refuses (RegistryRefusedError).
            klog.SchemaNotFoundError: The schema registry does not have the schema.
            klog.SchemaError: A schema is invalid, or has no type in Arrow.
        """
        as_of = parse_as_of(as_of_version, as_of_timestamp, ("as_of_version", "as_of_timestamp"))
        return scan(self._root, topic, start, end, columns, as_of, values)

    def offsets(self, topic: str, at: OffsetSpec = "latest") -> dict[int, int | None]:
        """Return one offset of each partition, as kafka-get-offsets does.

        Args:
            topic: The name of the topic.
            at: Which offset: `earliest` for the log start, `latest` for the log end,
                `max-timestamp` for the first record with the largest timestamp, or a time for the
                first record at or after it. A time is a datetime with a time zone, milliseconds
                since 1970, or a text as in the option `startingTimestamp` (docs/options.md).

        Returns:
            The offset by partition. None if the partition has no such record.

        Raises:
            klog.OptionError: There is no such topic, or `at` is invalid.
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
        """Return the number of records of each partition that a reader gets.

        klog takes the numbers from commits and from the headers of batches, and reads records only
        if these do not have the number. Records that a compaction removed and transaction markers
        do not count. With `read_committed`, records of aborted and open transactions do not count
        either.

        Args:
            topic: The name of the topic.
            start: Where to start, as for `scan`.
            end: Where to stop (exclusive), as for `scan`.
            isolation_level: `read_committed` or `read_uncommitted`.

        Returns:
            The number of records by partition.

        Raises:
            klog.OptionError: There is no such topic, or an argument is invalid.
            klog.OffsetOutOfRangeError: The log does not have the offset of a bound.
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
    return Log(absolute_path(root), storage_of_keywords(storage))


def _texts(options: Mapping[str, object] | None) -> dict[str, str]:
    """Return options as texts; None is no option."""
    return {} if options is None else option_texts(options)
