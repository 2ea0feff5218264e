"""A klog root: a directory whose topics have commit logs. One without `_klog/` is raw Kafka.

    _klog/format.json              who may read and write (description.py), `clusterId`, `config`
    _klog/topics/<topic>/topic.json    who may read and write this topic

The rule: `_klog/format.json` makes a directory a klog root. It is created once, in a directory that
has no broker's files, and never changed; `config` holds the root's `num.partitions`, what a topic
gets that is made without a number. `topic.json` is there before a topic's first commit. A topic is
there if the state of its log says so: a folder under `_klog/topics` may be that of a deleted one.
"""

from __future__ import annotations

import difflib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from klog.connector.log import description
from klog.connector.log.commit import MAX_PARTITIONS
from klog.connector.log.description import Description
from klog.connector.log.max_sizes import SMALL_BYTES
from klog.connector.log.paths import KLOG, TopicPaths
from klog.connector.log.state import State
from klog.connector.log.topic_log import TopicLog
from klog.connector.store.contract import Put, WritableStore
from klog.connector.store.files import small_file_exists
from klog.connector.store.probe import probe
from klog.connector.store.schemes import log_store_for, writable_store_for
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import KlogError, OptionError, UnsupportedFormatError
from klog.logformat.names import is_topic, partition_of_directory

TOPICS = "topics"
"""The folder of `_klog/` that has a folder for each topic."""
ADOPTING = "adopting.json"
"""The name in `_klog/` of what says that the directory is a broker's until it is adopted."""
FORMAT_FILE = f"{KLOG}/format.json"
LONGEST_WAIT_SECONDS = 2.0
_OF_A_BROKER = frozenset(
    {
        "meta.properties", "cleaner-offset-checkpoint", "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
    }
)  # fmt: skip
"""Names that a broker's log directory has besides its partitions."""


@dataclass(frozen=True, slots=True)
class KlogRoot:
    """A root as it was given, its store, and its path as the store spells it."""

    given: str
    store: WritableStore
    path: str
    cluster_id: str
    num_partitions: int
    description: Description

    def topic_names(self) -> list[str]:
        """List the topics that have a log, deleted ones too: one listing.

        A file that a desktop or a copy left among them is no topic, whatever its name.
        """
        try:
            entries = self.store.entries(f"{self.path}/{KLOG}/{TOPICS}")
        except FileNotFoundError:
            return []
        return sorted(
            entry.name for entry in entries if entry.is_directory and is_topic(entry.name)
        )

    def log(self, topic: str) -> TopicLog:
        """Return the log of a topic, which need not be there; nobody has looked for `topic.json`.

        Raises `OptionError` for a bad name.
        """
        check_topic_name(topic)
        paths = TopicPaths(self.path, topic)
        return TopicLog(self.store, paths, now_ms, back_off, is_described=False)

    def log_to_read(self, topic: str) -> TopicLog:
        """Give the log of a topic that this klog may read: one read.

        Raises `UnsupportedFormatError` where `topic.json` asks for a newer klog.
        """
        log = self.log(topic)
        return replace(log, is_described=self._described(log) is not None)

    def log_to_write(self, topic: str) -> TopicLog:
        """Give the log of a topic that this klog may write: one read. Raises as `log_to_read`."""
        self.description.check_writer()
        log = self.log(topic)
        found = self._described(log)
        if found is not None:
            found.check_writer()
        return replace(log, is_described=found is not None)

    def new_log(self, topic: str) -> TopicLog:
        """Give the log of a topic that is about to be made: `topic.json` is there then.

        One request where the topic is new. Raises as `log_to_read`.
        """
        self.description.check_writer()
        log = self.log(topic)
        path = log.paths.description
        if self.store.put_if_absent(path, description.encode({})) is not Put.CREATED:
            found = self._described(log)
            if found is None:
                raise KlogError(f"{path}: the store did not say whether it was made; try again")
            found.check_writer()
        return replace(log, is_described=True)

    def load(self, log: TopicLog, cached: State | None = None) -> State:
        """Load the state of a topic that has to be there.

        Raises `OptionError` that tells one that was deleted from one that never was.
        """
        return self._existing(log.paths.topic, log.load(cached))

    def load_to_commit(self, log: TopicLog, cached: State | None) -> State:
        """Load the state of a topic for a commit that follows at once. Raises as `load` does."""
        return self._existing(log.paths.topic, log.load_to_commit(cached))

    def _existing(self, topic: str, state: State) -> State:
        """Return the state of a topic that exists. Raises as `load` does."""
        if state.topic_id:
            return state
        if state.version >= 0:
            raise OptionError(
                f"topic {topic} of {self.given} was deleted; `klog history --topic {topic}` says "
                "when and by whom. A topic made anew under its name has another id"
            )
        others = [name for name in self.topic_names() if name != topic]
        if not others:
            raise OptionError(
                f"there is no topic {topic}: {self.given} has no topics; `klog topics create` "
                "makes one, and so does a write"
            )
        close = self._close_topic(topic, others)
        raise OptionError(
            f"there is no topic {topic} in {self.given}; "
            + (f"did you mean {close}?" if close else "`klog topics list` names those there are")
        )

    def _close_topic(self, topic: str, others: Sequence[str]) -> str:
        """Return the topic that is there with the most similar name; "" if there is none."""
        for name in difflib.get_close_matches(topic, others):
            try:
                if self.log(name).load().topic_id:
                    return name
            except (KlogError, OSError):
                return name  # A topic that cannot be read is there.
        return ""

    def _described(self, log: TopicLog) -> Description | None:
        path = log.paths.description
        try:
            return description.decode(path, self.store.read(path, SMALL_BYTES))
        except FileNotFoundError:
            return None
        except NotADirectoryError as exc:
            raise OptionError(
                f"there is no topic {log.paths.topic} in {self.given}: {log.paths.directory} is a "
                "file, which is none of klog's; `klog topics list` names the topics"
            ) from exc


def find_root(given: str, storage: Storage = NOTHING_GIVEN) -> KlogRoot | None:
    """Find the klog root at a path or URL; None where a directory is raw Kafka: one read.

    Raises `UnsupportedFormatError` for a root of a newer klog.
    """
    return _read_root(given, *log_store_for(given, storage))


def find_root_to_repair(
    given: str, cluster_id: Callable[[WritableStore, str], str], storage: Storage = NOTHING_GIVEN
) -> tuple[KlogRoot, bytes] | None:
    """Find the klog root at a path or URL, also one that has lost its `format.json`.

    Returns with it the bytes of that file if it is lost, with the cluster id that the function
    makes; None where a directory is raw Kafka. Writes nothing.
    """
    store, path = log_store_for(given, storage)
    if not _has_lost_format(store, path):
        found = _read_root(given, store, path)
        return None if found is None else (found, b"")
    data = description.encode(_first_description(cluster_id(store, path), 1))
    file = f"{path}/{FORMAT_FILE}"
    return _root_of(given, store, path, description.decode(file, data)), data


def _first_description(cluster_id: str, num_partitions: int) -> dict[str, Any]:
    return {"clusterId": cluster_id, "config": {"num.partitions": str(num_partitions)}}


def make_root(
    given: str,
    new_id: str,
    storage: Storage = NOTHING_GIVEN,
    num_partitions: int = 1,
) -> KlogRoot:
    """Find the klog root at a path or URL, or make it, with a cluster id if it is new.

    The store is probed first: a root is made only where of several writers one wins. Raises
    `OptionError` for a store that klog does not write to, and for a broker's log directory.
    """
    store, path = writable_store_for(given, storage)
    found = _read_root(given, store, path)
    if found is not None:
        return found
    _refuse_raw(given, store, path)
    probe(store, f"{path}/{KLOG}")
    said = _first_description(new_id, num_partitions)
    store.put_if_absent(f"{path}/{FORMAT_FILE}", description.encode(said))
    # Read back: another may have been first, and what is used is what is there.
    found = _read_root(given, store, path)
    if found is None:
        raise KlogError(f"{path}/{FORMAT_FILE}: the store did not say whether it was made; again")
    return found


def check_topic_name(topic: str) -> None:
    """Raise `OptionError` for a name that Kafka allows no topic."""
    if not is_topic(topic):
        raise OptionError(
            f"{topic!r} is no topic name: letters, digits, '.', '_' and '-', at most 249, and "
            "neither '.' nor '..'"
        )


def _refuse_raw(given: str, store: WritableStore, path: str) -> None:
    """Raise `OptionError` for a broker's log directory: nothing is ever written there."""
    try:
        entries = store.entries(path)
    except FileNotFoundError:
        return
    except NotADirectoryError as exc:
        raise OptionError(f"{given} is a file; give a directory, where klog makes a root") from exc
    for entry in entries:
        if entry.name in _OF_A_BROKER or (
            entry.is_directory and partition_of_directory(entry.name) is not None
        ):
            raise OptionError(
                f"{given} has a broker's files ({entry.name}): klog reads such a directory and "
                "writes nothing there. Give a directory of its own, where klog makes a root"
            )


def _read_root(given: str, store: WritableStore, path: str) -> KlogRoot | None:
    file = f"{path}/{FORMAT_FILE}"
    try:
        data = store.read(file, SMALL_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        if _has_lost_format(store, path):
            raise KlogError(
                f"{file}: this file is lost: {path}/{KLOG}/{TOPICS} is there, so the directory is "
                "a klog root. Restore it from a copy, or run `klog repair`"
            ) from None
        return None
    return _root_of(given, store, path, description.decode(file, data))


def _root_of(given: str, store: WritableStore, path: str, found: Description) -> KlogRoot:
    file = found.path
    cluster_id, config = found.others.get("clusterId"), found.others.get("config")
    if not isinstance(cluster_id, str):
        raise UnsupportedFormatError(f"{file}: its clusterId is {str(cluster_id)[:100]!r}")
    return KlogRoot(given, store, path, cluster_id, _num_partitions(file, config), found)


def _has_lost_format(store: WritableStore, path: str) -> bool:
    """Tell topics of klog's whose root has lost its format: one listing.

    A directory that is being adopted has no format yet, and says so.
    """
    try:
        names = {entry.name for entry in store.entries(f"{path}/{KLOG}")}
    except (FileNotFoundError, NotADirectoryError):
        return False
    if TOPICS not in names or ADOPTING in names:
        return False
    return not small_file_exists(store, f"{path}/{FORMAT_FILE}")


def _num_partitions(file: str, config: object) -> int:
    said = config.get("num.partitions", "1") if isinstance(config, Mapping) else "1"
    if isinstance(said, str) and said.isascii() and said.isdecimal() and len(said) < 10:
        number = int(said)
        if 1 <= number <= MAX_PARTITIONS:
            return number
    raise UnsupportedFormatError(
        f"{file}: its num.partitions is {str(said)[:100]!r}, not a number from 1 to "
        f"{MAX_PARTITIONS}"
    )


def now_ms() -> int:
    """Give the time of this machine, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def back_off(tries: int) -> None:
    """Sleep before the next try: longer each time, and never as long as another writer does."""
    longest = min(LONGEST_WAIT_SECONDS, 0.005 * 2 ** min(tries, 12))
    time.sleep(random.uniform(0, longest))  # noqa: S311 - it keeps writers apart, nothing more
