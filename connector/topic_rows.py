"""The rows of the SQL table functions: topics, offsets, counts and commits of a root.

The rule: names and meaning are those of `--json` of the verbs. A broker's directory has no commits
and no configs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from klog.connector.commit_log.commit_summary import commit_fields
from klog.connector.commit_log.committed_snapshot import CommittedSnapshot
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.limit_offsets import list_log_offsets
from klog.connector.open_root import open_klog_root, open_root
from klog.connector.options.consumer_strategy import Subscribe
from klog.connector.options.offset_spec import parse_offset_spec
from klog.connector.options.read_options import parse_read_options
from klog.connector.options.storage_options import StorageOptions
from klog.connector.snapshot import Snapshot
from klog.connector.source import scan_planner
from klog.connector.source.subscription import describe_topics
from klog.connector.source.task_reader import make_reader
from klog.connector.system_clock import now_ms
from klog.errors import KlogError, OptionError
from klog.logformat.broker_files.file_names import INTERNAL_TOPICS
from klog.logformat.topic_partition import TopicPartition

Row: TypeAlias = tuple[Any, ...]


def topic_rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield topic, id, partitions, whether it is internal, configs, and why it cannot be read.

    Args:
        snapshot: The root.
    """
    for topic in sorted(snapshot.topics):
        is_internal = topic in INTERNAL_TOPICS
        try:
            if topic not in snapshot.topics:
                continue  # It was deleted.
            topic_id = snapshot.topic_ids([topic]).get(topic)
            partitions = list(snapshot.topics[topic])
        except KlogError as exc:
            yield topic, None, None, is_internal, None, str(exc)
            continue
        config = None
        if isinstance(snapshot, CommittedSnapshot):
            config = dict(snapshot.state(topic).config)
        yield topic, topic_id, partitions, is_internal, config, None


def offset_rows(take_snapshot: Callable[[], Snapshot], topic: str, at: str) -> list[Row]:
    """Return of each partition the offset asked for, its bounds, segments and bytes.

    Args:
        take_snapshot: Returns a snapshot of the root as of now.
        topic: The topic.
        at: Which offset, as for `klog.open(root).offsets`.

    Raises:
        OptionError: There is no such topic, or `at` is wrong.
    """
    limit, now = parse_offset_spec("at", at), now_ms()

    def find() -> list[Row]:
        snapshot = take_snapshot()
        logs = snapshot.open(_partitions_of(snapshot, topic))
        offsets = list_log_offsets(logs, limit, now)
        return [
            (
                topic,
                name.partition,
                offsets[name],
                log.log_start,
                log.log_end,
                log.last_stable_offset(),
                log.segment_count,
                log.size_bytes,
            )
            for name, log in logs.items()
        ]

    return retry_stale_listing(find)


def count_rows(
    directories: Sequence[str], storage: StorageOptions, topic: str, options: Mapping[str, str]
) -> list[Row]:
    """Return of each partition how many records a read with some options returns.

    Args:
        directories: The root.
        storage: Options of its store.
        topic: The topic.
        options: Options of a batch read.

    Raises:
        OptionError: There is no such topic, or an option is wrong.
        OffsetOutOfRangeError: A bound is not within the log.
    """
    read_options = replace(
        parse_read_options({"subscribe": topic, **options}),
        consumer_strategy=Subscribe((topic,)),
        storage=storage,
    )
    root = open_root(directories, storage)
    reader = make_reader(directories, read_options)

    def count() -> list[Row]:
        snapshot = root.snapshot()
        names = _partitions_of(snapshot, topic)
        counts = scan_planner.count_snapshot(snapshot, read_options, reader)
        return [(topic, name.partition, counts.get(name, 0)) for name in names]

    return retry_stale_listing(count)


def history_rows(
    directories: Sequence[str], storage: StorageOptions, topic: str
) -> Iterator[dict[str, Any]]:
    """Yield the fields of a topic's commits, newest first.

    Args:
        directories: The klog root, alone.
        storage: Options of its store.
        topic: The topic.

    Raises:
        OptionError: It is not a klog root, or the topic never existed.
    """
    if len(directories) > 1:
        raise OptionError(
            f"a history is of one klog root, and these are {len(directories)} directories: "
            f"{', '.join(directories)}. Give one"
        )
    commits = TopicAdmin(open_klog_root(directories[0], storage)).history(topic)
    return map(commit_fields, commits)


def _partitions_of(snapshot: Snapshot, topic: str) -> list[TopicPartition]:
    if topic not in snapshot.topics:
        raise OptionError(
            f"topic: {snapshot.missing_topic_reason(topic)}; {describe_topics(snapshot)}"
        )
    return [TopicPartition(topic, number) for number in snapshot.topics[topic]]
