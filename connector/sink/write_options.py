"""The options of a write from Spark, parsed in one place; what klog does not know is an error.

Names and meaning are those of Spark's Kafka sink where it has them. Keys arrive lower-cased from
Spark. `kafka.compression.type`, `kafka.batch.size` and `kafka.buffer.memory` mean what they do
without `kafka.`; what would change which partition a row goes to, or its bytes, is refused; other
options of a broker's client are accepted with one warning, so that a job moves from `kafka` to
`klog` by its format and path.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from klog.connector.log.commit import MAX_PARTITIONS
from klog.connector.log.root import check_topic_name
from klog.connector.option_words import boolean, integer, nearest
from klog.connector.sink import settings
from klog.connector.sink.append import check_id
from klog.connector.sink.settings import BUFFER_BYTES
from klog.connector.store.storage import NOTHING_GIVEN, Storage, storage_of
from klog.connector.store.storage import PREFIX as STORAGE_PREFIX
from klog.errors import OptionError
from klog.logformat.names import MAX_OFFSET

KNOWN = (
    "topic", "transactionalId", "transactionVersion", "createTopic", "numPartitions",
    "deadLetterTopic", "includeHeaders", *settings.OPTIONS,
)  # fmt: skip
_KAFKAS = ("compression.type", "batch.size", "buffer.memory", *settings.LEVEL_OPTIONS)
_REFUSED = {
    "kafka.partitioner.class": "klog runs no Java partitioner; give the option partitioner "
    f"({', '.join(settings.PARTITIONERS)}), or a column partition",
    "kafka.key.serializer": "keys are written as they are; leave it out",
    "kafka.value.serializer": "values are written as they are; leave it out",
    "kafka.interceptor.classes": "klog runs no interceptors; leave it out",
    "kafka.transactional.id": "give transactionalId, and for a batch write transactionVersion",
}
_SPARKS_OWN = {"path", "owner", "provider", "location", "checkpointlocation", "queryname"}
_BY_LOWER = {name.lower(): name for name in KNOWN}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """A write's options, checked.

    `path` is the root as it was given. `topic` is None where the column decides. `name` and
    `version` are the transactional id and its version. `settings` are options that go over a
    topic's configs; those for dead letters are their topic's own.
    """

    path: str
    topic: str | None = None
    name: str | None = None
    version: int | None = None
    create_topic: bool = True
    num_partitions: int | None = None
    dead_letter_topic: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    buffer_bytes: int = BUFFER_BYTES
    storage: Storage = NOTHING_GIVEN


def write_options(given: Mapping[str, str], *, streaming: bool = False) -> WriteOptions:
    """Parse and check the options of a write. Raises `OptionError` that names the option."""
    lowered = {key.lower(): value for key, value in given.items()}
    options = _known_only(lowered)
    over_configs = {name: options[name] for name in settings.OPTIONS if name in options}
    found = WriteOptions(
        path=_path(lowered.get("path", "")),
        topic=options.get("topic"),
        name=options.get("transactionalId"),
        version=integer(options, "transactionVersion"),
        create_topic=boolean(options, "createTopic", default=True),
        num_partitions=integer(options, "numPartitions"),
        dead_letter_topic=options.get("deadLetterTopic"),
        settings=over_configs,
        buffer_bytes=settings.read_settings({}, over_configs).buffer_bytes,
        storage=storage_of(given),
    )
    for topic in (found.topic, found.dead_letter_topic):
        if topic is not None:
            check_topic_name(topic)
    if found.topic is not None and found.topic == found.dead_letter_topic:
        raise OptionError(f"deadLetterTopic: {found.topic} is the topic itself; give another")
    if found.num_partitions is not None and not 1 <= found.num_partitions <= MAX_PARTITIONS:
        raise OptionError(
            f"numPartitions: {found.num_partitions} is not from 1 to {MAX_PARTITIONS}"
        )
    boolean(options, "includeHeaders", default=False)  # Headers are written where there are any.
    _check_identity(found, streaming)
    return found


def _known_only(options: Mapping[str, str]) -> dict[str, str]:
    """Give the options by their proper names; refuse what nobody knows."""
    known: dict[str, str] = {}
    ignored = []
    for key, value in options.items():
        plain = key.removeprefix("kafka.")
        if key in _SPARKS_OWN or key.startswith(("option.", STORAGE_PREFIX)):
            continue
        if key in _REFUSED:
            raise OptionError(f"{key}: {_REFUSED[key]}")
        if key.startswith("kafka.") and plain not in _KAFKAS:
            ignored.append(key)
        elif plain not in _BY_LOWER:
            raise OptionError(f"{key}: a write has no such option; {nearest(plain, KNOWN)}")
        elif known.setdefault(_BY_LOWER[plain], value) != value:
            raise OptionError(f"{plain} and kafka.{plain} disagree; give one")
    if ignored:
        warnings.warn(
            f"klog writes files, not to brokers: {', '.join(sorted(ignored))} have no effect",
            stacklevel=2,
        )
    return known


def _path(path: str) -> str:
    if not path:
        raise OptionError("path: give the root to save() or start(), as in .save('/data/klog')")
    if path.startswith("memory:"):
        raise OptionError(f"path: {path} lives in one process; Spark's tasks are others")
    return path if ":" in path else str(Path(path).absolute())


def _check_identity(found: WriteOptions, streaming: bool) -> None:
    if found.name is not None:
        check_id(found.name)
    if streaming:
        if found.version is not None:
            raise OptionError(
                "transactionVersion: a stream counts its batches itself; leave it out"
            )
    elif (found.name is None) != (found.version is None):
        raise OptionError(
            "transactionalId and transactionVersion: give both, or neither: the version is by what "
            "a write that is tried again is known. In foreachBatch it is the batch's id"
        )
    if found.version is not None and not 0 <= found.version <= MAX_OFFSET:
        raise OptionError(
            f"transactionVersion: {found.version} does not lie from 0 to {MAX_OFFSET}"
        )
