"""A klog root: a directory whose topics have commit logs. One without `_klog/` is raw Kafka.

    _klog/format.json      format, the klog that reads it, and the cluster's id

The rule: `_klog/format.json` makes a directory a klog root. It is created once and never changed;
a newer format is refused with the klog that can read it. A topic is there if the state of its log
says so: a folder under `_klog/topics` may be that of a deleted one.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass

from klog.connector.log.commit import FORMAT, SINCE, check_format
from klog.connector.log.paths import KLOG, TopicPaths
from klog.connector.log.topic_log import TopicLog
from klog.connector.store.contract import Put, WritableStore
from klog.connector.store.probe import probe
from klog.connector.store.schemes import log_store_for, writable_store_for
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import KlogError, OptionError, UnsupportedFormatError
from klog.logformat.names import is_topic

FORMAT_FILE = f"{KLOG}/format.json"
LONGEST_WAIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class KlogRoot:
    """A root as it was given, its store, and its path as the store spells it."""

    given: str
    store: WritableStore
    path: str
    cluster_id: str

    def topic_names(self) -> list[str]:
        """List the topics that have a log, deleted ones too: one listing."""
        try:
            entries = self.store.entries(f"{self.path}/{KLOG}/topics")
        except FileNotFoundError:
            return []
        return sorted(entry.name for entry in entries if is_topic(entry.name))

    def log(self, topic: str) -> TopicLog:
        """Give the log of a topic, which need not be there. Raises `OptionError` for a bad name."""
        if not is_topic(topic):
            raise OptionError(
                f"{topic!r} is no topic name: letters, digits, '.', '_' and '-', at most 249"
            )
        return TopicLog(self.store, TopicPaths(self.path, topic), now_ms, back_off)


def find_root(given: str, storage: Storage = NOTHING_GIVEN) -> KlogRoot | None:
    """Find the klog root at a path or URL; None where a directory is raw Kafka: one read.

    Raises `UnsupportedFormatError` for a root of a newer klog.
    """
    return _read_root(given, *log_store_for(given, storage))


def make_root(given: str, new_id: str, storage: Storage = NOTHING_GIVEN) -> KlogRoot:
    """Find the klog root at a path or URL, or make it, with a cluster id if it is new.

    The store is probed first: a root is made only where of several writers one wins. Raises
    `OptionError` for a store that klog does not write to.
    """
    store, path = writable_store_for(given, storage)
    found = _read_root(given, store, path)
    if found is not None:
        return found
    probe(store, f"{path}/{KLOG}")
    said = {"format": FORMAT, "since": SINCE, "clusterId": new_id}
    if store.put_if_absent(f"{path}/{FORMAT_FILE}", json.dumps(said).encode()) is Put.CREATED:
        return KlogRoot(given, store, path, new_id)
    found = _read_root(given, store, path)
    if found is None:
        raise KlogError(f"{path}/{FORMAT_FILE}: the store did not say whether it was made; again")
    return found


def _read_root(given: str, store: WritableStore, path: str) -> KlogRoot | None:
    try:
        data = store.read(f"{path}/{FORMAT_FILE}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        said = json.loads(data)
        check_format(said)
        cluster_id = said["clusterId"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise UnsupportedFormatError(f"{path}/{FORMAT_FILE}: it is no format file: {exc}") from exc
    except UnsupportedFormatError as exc:
        raise UnsupportedFormatError(f"{path}/{FORMAT_FILE}: {exc.reason}") from exc
    return KlogRoot(given, store, path, str(cluster_id))


def now_ms() -> int:
    """Give the time of this machine, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def back_off(tries: int) -> None:
    """Sleep before the next try: longer each time, and never as long as another writer does."""
    longest = min(LONGEST_WAIT_SECONDS, 0.005 * 2 ** min(tries, 12))
    time.sleep(random.uniform(0, longest))  # noqa: S311 - it keeps writers apart, nothing more
