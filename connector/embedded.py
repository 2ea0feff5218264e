"""A whole log in this process, as Arrow and without Spark: what `klog.open` gives.

The rule: nothing is decided here. Reading is the plan and the reader that Spark's source uses;
writing is staging and a commit, both made for many tasks, with one. A root is made by the first
topic that is created in it; a broker's log directory can be read, and is never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike, fspath
from pathlib import Path

import pyarrow as pa

from klog.connector.bounds import Bound, bounded
from klog.connector.log.author import random_uuid, this_engine
from klog.connector.log.checkpointing import CHECKPOINTER
from klog.connector.log.commit import Commit
from klog.connector.log.committed import CommittedRoot
from klog.connector.log.partition import Look, Root
from klog.connector.log.raw import retrying
from klog.connector.log.root import KlogRoot, find_root, make_root
from klog.connector.log.roots import open_root
from klog.connector.log.state import State
from klog.connector.log.topic_log import Attempt
from klog.connector.log.topics import NO_CONFIG, TopicDescription, Topics, check_new_topic
from klog.connector.options import COLUMNS, ReadOptions
from klog.connector.sink.append import Appended, append
from klog.connector.sink.stage import Given
from klog.connector.source import scan
from klog.connector.source.rows import schema
from klog.connector.source.slices import Task
from klog.connector.source.subscription import is_there
from klog.connector.store.schemes import scheme_of
from klog.connector.store.storage import PREFIX, Storage, storage_of
from klog.errors import OptionError


class Log:
    """The topics of one root. Not safe to share between threads; open one a thread."""

    def __init__(self, root: str, storage: Storage) -> None:
        """Take the path or URL; nothing is read yet."""
        self._given, self._storage = root, storage
        self._reading: Root | None = None
        self._writing: KlogRoot | None = None
        self._known: dict[str, State] = {}

    def topics(self) -> list[str]:
        """List the topics, Kafka's own in a broker's directory too.

        One that this klog cannot read, as a newer one made it or its log is damaged, is there too:
        what asks for it says why.
        """
        topics = self._look().topics
        return sorted(name for name in topics if is_there(name, topics))

    def describe(self, topic: str) -> TopicDescription:
        """Tell a topic's id, configs and partitions. Raises `OptionError` if it is not there."""
        return self._topics().describe(topic)

    def create_topic(
        self, topic: str, partitions: int | None = None, config: Mapping[str, str] = NO_CONFIG
    ) -> TopicDescription:
        """Make a topic with Kafka's topic configs, and the root with it if it is the first.

        Raises `OptionError` for a topic that is there, a name or config that is refused, and a
        place that cannot be written.
        """
        config = _texts(config)
        check_new_topic(topic, partitions, config)  # Before a root is made for it.
        root = make_root(self._given, random_uuid(), self._storage)
        self._reading = None
        Topics(root).create(topic, partitions, config)
        return self.describe(topic)

    def alter_config(
        self, topic: str, change: Mapping[str, str] = NO_CONFIG, unset: Iterable[str] = ()
    ) -> TopicDescription:
        """Set configs and give others back to their defaults."""
        self._topics().alter_config(topic, _texts(change), unset)
        return self.describe(topic)

    def add_partitions(self, topic: str, partitions: int) -> TopicDescription:
        """Give a topic more partitions, so many in all."""
        self._topics().add_partitions(topic, partitions)
        return self.describe(topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic; vacuum removes its files, later."""
        self._topics().delete(topic)

    def history(self, topic: str, limit: int | None = None) -> list[Commit]:
        """Give a topic's commits, newest first: at most `limit` of them.

        Raises `OptionError` for a limit below 0.
        """
        if limit is not None and limit < 0:
            raise OptionError(f"limit is {limit}; give a number from 0, or leave it out for all")
        return list(islice(self._topics().history(topic), limit))

    def append(
        self,
        topic: str,
        rows: Given,
        *,
        transactional_id: str | None = None,
        transaction_version: int | None = None,
        options: Mapping[str, str] = NO_CONFIG,
    ) -> Appended:
        """Write rows in one commit: a table, a batch, or batches one after another.

        Columns are `value` (string or binary; null is a tombstone) and, if wanted, `key`,
        `headers`, `partition`, `timestamp`; `options` are those of a write, such as
        `compression.type`. With a transactional id a version that is there already, or an older
        one, writes nothing. Raises `KlogError` that names a row that cannot be written,
        `CommitConflictError`, `ProducerFencedError`, and `CommitStateUnknownError` where the store
        did not say whether it landed: then the same call with a transactional id settles it.
        """
        root = self._klog_root()
        log = root.log_to_write(topic)
        state = root.load_to_commit(log, self._known.get(topic))
        attempt = Attempt(random_uuid(), "append", this_engine())
        done = append(
            log, state, rows, attempt, _texts(options), transactional_id, transaction_version
        )
        self._known[topic] = CHECKPOINTER.offer(log, done.state) if done.is_new else done.state
        return done

    def scan(
        self,
        topic: str,
        start: Bound = None,
        end: Bound = None,
        columns: Sequence[str] | None = None,
    ) -> pa.RecordBatchReader:
        """Read a topic, partition by partition in order of offset, as of now.

        Columns are Spark's of Kafka; all but `headers` unless named. Batches are read as they are
        asked for. Raises `OptionError` for a topic or a column that is not there, and
        `OffsetOutOfRangeError` for an offset that is not; reading them raises `CorruptRecordError`.
        """
        names = tuple(COLUMNS[:-1] if columns is None else columns)
        unknown = [name for name in names if name not in COLUMNS]
        if unknown:
            raise OptionError(f"columns: {', '.join(unknown)} is none of {', '.join(COLUMNS)}")

        def planned() -> tuple[ReadOptions, list[Task]]:
            look = self._look()
            if topic not in look.topics:
                raise self._no_topic(topic)
            starting, ending = bounded(look, topic, start, end)
            options = ReadOptions(
                topics=(topic,),
                starting=starting,
                ending=ending,
                storage=self._storage,
                columns=names,
            )
            return options, scan.tasks(look, options)

        options, tasks = retrying(planned)
        reader = scan.reader([self._given], options)

        def batches() -> Iterator[pa.RecordBatch]:
            for task in tasks:
                yield from reader.read(task)

        return pa.RecordBatchReader.from_batches(schema(names), batches())

    def _look(self) -> Look:
        """Look at what is there now, from what earlier looks remember.

        A place that holds nothing yet may become a klog root: it is asked what it is each time.
        """
        root = self._reading
        if root is None:
            root = open_root([self._given], self._storage)
        look = root.look()
        if isinstance(root, CommittedRoot) or look.topics:
            self._reading = root
        return look

    def _no_topic(self, topic: str) -> OptionError:
        """Say that a topic is not there; of a klog root `load` knows more, and says it."""
        root = find_root(self._given, self._storage)
        if root is not None:
            root.load(root.log_to_read(topic))
        return OptionError(
            f"there is no topic {topic} in {self._given}; topics() names those there"
        )

    def _topics(self) -> Topics:
        return Topics(self._klog_root())

    def _klog_root(self) -> KlogRoot:
        """Find the root, once: what `format.json` says never changes."""
        self._writing = self._writing or find_root(self._given, self._storage)
        if self._writing is None:
            raise OptionError(
                f"{self._given} is no klog root; create_topic makes one, in a place that holds no "
                "broker's files"
            )
        return self._writing


def open_log(root: str | PathLike[str], storage: Mapping[str, str]) -> Log:
    """Open a root by path or URL, with the words of `storage.*`. Raises `OptionError`."""
    words = {f"{PREFIX}{word}": text for word, text in _texts(storage).items()}
    return Log(_absolute(root), storage_of(words))


def _absolute(root: str | PathLike[str]) -> str:
    """Give a local path from the top, so that it stays the same one when the process moves."""
    try:
        given = fspath(root)
    except TypeError:
        given = ""
    if not isinstance(given, str) or not given:
        raise OptionError(f"root is {root!r}; give a path or a URL, such as s3://bucket/path")
    return given if scheme_of(given) else str(Path(given).absolute())


def _texts(given: Mapping[str, object]) -> dict[str, str]:
    """Give options as they are written: 1000 as "1000", True as "true"."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
    }
