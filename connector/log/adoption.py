"""How a broker's log directory becomes a klog root: `_klog/` grows in it, and counts in the end.

    _klog/adopting.json    the directory is being adopted, and is a broker's until that is done

The rule: `_klog/adopting.json` is there before anything else of `_klog/`, each topic gets its whole
log in one commit, and `_klog/format.json` comes last. Until then readers see the broker's directory
as it lies, from then on the adopted topics, and never a part. What is killed is run again: topics
that have their commit are left. `adopting.json` goes when it is done; one that is left behind
`format.json` says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from klog.connector.log import description
from klog.connector.log.commit import Actions, Topic
from klog.connector.log.entries import Entry
from klog.connector.log.operations import check_birth
from klog.connector.log.paths import KLOG
from klog.connector.log.root import ADOPTING, FORMAT_FILE, KlogRoot, find_root
from klog.connector.log.state import Build, State
from klog.connector.store.files import Store, small_file_exists
from klog.connector.store.probe import probe
from klog.connector.store.schemes import log_store_for, writable_store_for
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import CommitConflictError, KlogError

ADOPTING_FILE = f"{KLOG}/{ADOPTING}"


@dataclass(frozen=True, slots=True)
class BrokersPartition:
    """A partition as a broker left it; `segments` have entries of origin `adopt`, in order.

    `cleaned_to` is where its log cleaner would go on.
    """

    partition: int
    log_start: int
    log_end: int
    cleaned_to: int = 0
    segments: Sequence[Entry] = field(default_factory=tuple)


def begin(given: str, cluster_id: str, storage: Storage = NOTHING_GIVEN) -> KlogRoot:
    """Find the klog root at a path or URL, or begin to make one of a broker's directory.

    The store is probed first. Raises `OptionError` for a store that klog does not write to.
    """
    found = find_root(given, storage)
    if found is not None:
        return found
    store, path = writable_store_for(given, storage)
    store.put_if_absent(f"{path}/{ADOPTING_FILE}", json.dumps({"clusterId": cluster_id}).encode())
    probe(store, f"{path}/{KLOG}")
    root = description.Description(f"{path}/{FORMAT_FILE}")
    return KlogRoot(given, store, path, cluster_id, 1, root)


def foresee(given: str, cluster_id: str, storage: Storage = NOTHING_GIVEN) -> KlogRoot:
    """Find the klog root at a path or URL, or give the one that `begin` would make; writes nothing.

    It can be looked at for what an adoption that was killed has done.
    """
    found = find_root(given, storage)
    if found is not None:
        return found
    store, path = log_store_for(given, storage)
    root = description.Description(f"{path}/{FORMAT_FILE}")
    return KlogRoot(given, store, path, cluster_id, 1, root)


def finish(root: KlogRoot, storage: Storage = NOTHING_GIVEN) -> None:
    """Make it a klog root, which it may be already."""
    said = {"clusterId": root.cluster_id, "config": {"num.partitions": "1"}}
    root.store.put_if_absent(f"{root.path}/{FORMAT_FILE}", description.encode(said))
    if find_root(root.given, storage) is None:
        raise KlogError(
            f"{root.path}/{FORMAT_FILE}: the store did not say whether it was made; run it again"
        )
    with suppress(KlogError):  # Who may not delete leaves it, where it says nothing any more.
        root.store.delete(f"{root.path}/{ADOPTING_FILE}")


def is_under_way(store: Store, path: str) -> bool:
    """Tell whether a directory that has `_klog/` is still a broker's.

    Raises `KlogError` for one that has become a klog root just now.
    """
    if small_file_exists(store, f"{path}/{ADOPTING_FILE}"):
        return True
    if not small_file_exists(store, f"{path}/{FORMAT_FILE}"):
        return False
    raise KlogError(
        f"{path} was a broker's directory when it was opened, and has been adopted: it is a klog "
        "root now. Begin to read it again"
    )


def adopt(topic: Topic, config: Mapping[str, str], partitions: Sequence[BrokersPartition]) -> Build:
    """Make a topic of all that a broker left of it; one that is there is a conflict."""

    def build(state: State) -> Actions:
        if state.version >= 0:
            raise CommitConflictError(
                "another made the topic meanwhile; run it again, and see what is there"
            )
        return _actions(topic, config, partitions)

    return build


def take_in(
    topic: Topic, config: Mapping[str, str], birth: int, partition: BrokersPartition
) -> Build:
    """Put a partition that was copied into a topic that has nothing there yet, or make the topic.

    `birth` is that of the copies. Raises `CommitConflictError` where something is there.
    """

    def build(state: State) -> Actions:
        check_birth(state, birth)
        if not state.topic_id:
            return _actions(topic, config, [partition])
        if state.topic_id != topic.topic_id:
            raise CommitConflictError(
                f"the topic is another one: its id is {state.topic_id}, not {topic.topic_id}"
            )
        number = partition.partition
        if number >= state.partitions or state.log_end[number]:
            raise CommitConflictError(
                f"partition {number} was written to meanwhile, or taken in by another: run it "
                "again, and see what is there"
            )
        return _actions(None, {}, [partition])

    return build


def _actions(
    topic: Topic | None, config: Mapping[str, str], partitions: Sequence[BrokersPartition]
) -> Actions:
    ends = {one.partition: one.log_end for one in partitions if one.log_end}
    return Actions(
        add=tuple(entry for one in partitions for entry in one.segments),
        create_topic=topic,
        config=dict(config),
        log_start={one.partition: one.log_start for one in partitions if one.log_start},
        ends_at={
            one.partition: one.log_end for one in partitions if one.log_end and not one.segments
        },
        cleaned_to={one.partition: one.cleaned_to for one in partitions if one.cleaned_to},
        log_end=ends,
    )
