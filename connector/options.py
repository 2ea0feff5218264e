"""The options of a read, parsed in one place; what klog does not know is an error with a hint.

Names and meaning are those of Spark's Kafka connector. Keys arrive lower-cased from Spark and are
compared so; a `kafka.` prefix is accepted where users write it. Options that only a broker's client
understands are accepted with one warning, so that a job moves from `kafka` to `klog` by its format
and path.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from klog.connector.option_words import boolean, choice, integer, nearest
from klog.connector.store.storage import NOTHING_GIVEN, Storage, storage_of
from klog.connector.store.storage import PREFIX as STORAGE_PREFIX
from klog.errors import OptionError

EARLIEST, LATEST = -2, -1

READ_COMMITTED = "read_committed"
READ_UNCOMMITTED = "read_uncommitted"

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")

KNOWN = (
    "subscribe", "subscribePattern", "assign",
    "startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "isolationLevel", "includeHeaders", "failOnDataLoss", "minPartitions", "columns",
)  # fmt: skip
LATER = (
    "startingOffsetsByTimestamp", "endingOffsetsByTimestamp",
    "maxRecordsPerPartition", "maxBytesPerPartition", "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger", "groupId", "groupRoot",
    "asOfVersion", "asOfTimestamp", "engine",
)  # fmt: skip
_SPARKS_OWN = {"path", "paths", "owner", "provider", "location", "checkpointlocation"}
_BROKER_ONLY = re.compile(
    r"kafka\.(?!isolation\.level$).+|kafkaconsumer\..+|fetchoffset\..+|groupidprefix"
)

_BY_LOWER = {name.lower(): name for name in KNOWN + LATER}

Offsets = dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """A read's options, checked.

    `topics`, `pattern` and `assigned`: exactly one is set. `starting` and `ending` are `EARLIEST`,
    `LATEST` or offsets by topic and partition; timestamps are in ms and win over them.
    `latest_if_no_match` says what a `starting_timestamp_ms` behind every record means.
    `streaming` tells the options of a stream, whose errors say another next step.
    `storage` is what the clients of the stores are told.
    """

    topics: tuple[str, ...] | None = None
    pattern: re.Pattern[str] | None = None
    assigned: tuple[tuple[str, int], ...] | None = None
    starting: int | Offsets = EARLIEST
    ending: int | Offsets = LATEST
    starting_timestamp_ms: int | None = None
    ending_timestamp_ms: int | None = None
    latest_if_no_match: bool = False
    committed_only: bool = True
    include_headers: bool = False
    fail_on_data_loss: bool = True
    min_partitions: int = 0
    streaming: bool = False
    storage: Storage = NOTHING_GIVEN
    columns: tuple[str, ...] = field(default=COLUMNS[:-1])


def read_options(given: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """Parse and check the options of a read. Raises `OptionError` that names the option.

    A stream starts at `latest` unless told otherwise and has no end, as with Spark's connector.
    """
    options = _known_only({key.lower(): value for key, value in given.items()})
    shared = _shared(given, options)
    return _of_stream(shared, options) if streaming else _of_batch(shared, options)


def shared_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse and check the options that mean the same for a batch and for a stream.

    Raises `OptionError` only for what is wrong for both; where a read ends is not looked at.
    """
    return _shared(given, _known_only({key.lower(): value for key, value in given.items()}))


def paths(given: Mapping[str, str], exists: Any) -> list[str]:
    """Give the log directories that `load` was called with: one, a list, or one with commas.

    `exists` tells whether a path is a directory; a path with commas that exists is one path.
    """
    options = {key.lower(): value for key, value in given.items()}
    if options.get("paths"):
        found = json.loads(options["paths"])
        return [str(path) for path in found]
    path = options.get("path", "")
    if not path:
        raise OptionError("path: give the log directory to load(), as in .load('/var/lib/kafka')")
    if "," in path and not exists(path):
        return [part.strip() for part in path.split(",") if part.strip()]
    return [path]


def _known_only(options: dict[str, str]) -> dict[str, str]:
    """Give the options by their proper names; refuse what nobody knows."""
    known: dict[str, str] = {}
    ignored = []
    for key, value in options.items():
        if key in _SPARKS_OWN or key.startswith(("option.", STORAGE_PREFIX)):
            continue
        if key == "kafka.isolation.level":
            known[key] = value
        elif _BROKER_ONLY.fullmatch(key):
            ignored.append(key)
        elif key not in _BY_LOWER:
            raise OptionError(
                f"{key}: klog has no such option; {nearest(key, KNOWN + LATER, KNOWN)}"
            )
        elif _BY_LOWER[key] in LATER:
            raise OptionError(f"{_BY_LOWER[key]}: this klog does not have it yet; leave it out")
        else:
            known[_BY_LOWER[key]] = value
    if ignored:
        warnings.warn(
            f"klog reads files, not brokers: {', '.join(sorted(ignored))} have no effect",
            stacklevel=2,
        )
    return known


def _shared(given: Mapping[str, str], options: Mapping[str, str]) -> ReadOptions:
    headers = boolean(options, "includeHeaders", default=False)
    topics, pattern, assigned = _subscription(options)
    minimum = integer(options, "minPartitions")
    if minimum is not None and minimum < 1:
        raise OptionError(f"minPartitions: {minimum} is not a positive number")
    return ReadOptions(
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        starting=_offsets(options, "startingOffsets", EARLIEST),
        starting_timestamp_ms=integer(options, "startingTimestamp"),
        latest_if_no_match=choice(
            options, "startingOffsetsByTimestampStrategy", ("error", "latest")
        )
        == "latest",
        committed_only=_isolation(options) == READ_COMMITTED,
        include_headers=headers,
        fail_on_data_loss=boolean(options, "failOnDataLoss", default=True),
        min_partitions=minimum or 0,
        storage=storage_of(given),
        columns=_columns(options, headers),
    )


def _of_batch(shared: ReadOptions, options: Mapping[str, str]) -> ReadOptions:
    """Add where a batch ends; refuse what would make every batch empty."""
    ending = _offsets(options, "endingOffsets", LATEST)
    ending_timestamp = integer(options, "endingTimestamp")
    if shared.starting_timestamp_ms is None:
        _refuse(shared.starting, LATEST, "startingOffsets", "latest (-1)", "a batch would be empty")
    if ending_timestamp is None:
        _refuse(ending, EARLIEST, "endingOffsets", "earliest (-2)", "a batch would be empty")
    return replace(shared, ending=ending, ending_timestamp_ms=ending_timestamp)


def _of_stream(shared: ReadOptions, options: Mapping[str, str]) -> ReadOptions:
    """Start at the latest offsets by default; refuse an end."""
    for name in ("endingOffsets", "endingTimestamp"):
        if name in options:
            raise OptionError(f"{name}: a stream has no end; use spark.read for a range")
    starting = shared.starting if "startingOffsets" in options else LATEST
    return replace(shared, starting=starting, streaming=True)


def _subscription(
    options: Mapping[str, str],
) -> tuple[tuple[str, ...] | None, re.Pattern[str] | None, tuple[tuple[str, int], ...] | None]:
    given = [name for name in ("subscribe", "subscribePattern", "assign") if name in options]
    if len(given) != 1:
        raise OptionError(
            "subscribe, subscribePattern, assign: give exactly one"
            + (f", not {' and '.join(given)}" if given else "")
        )
    value = options[given[0]]
    if given[0] == "assign":
        return None, None, _assignment(value)
    if given[0] == "subscribePattern":
        try:
            return None, re.compile(value), None
        except re.error as exc:
            raise OptionError(
                f"subscribePattern: {value!r} is no regular expression: {exc}"
            ) from exc
    topics = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
    if not topics:
        raise OptionError("subscribe: names no topic; give one or several, separated by commas")
    return topics, None, None


def _assignment(value: str) -> tuple[tuple[str, int], ...]:
    example = '{"orders": [0, 1]}'
    parsed = _json(value, "assign", example)
    found: dict[tuple[str, int], None] = {}
    for topic, partitions in parsed.items():
        if not isinstance(partitions, list) or not all(_is_integer(p) for p in partitions):
            raise OptionError(f"assign: {topic} needs a list of partitions, as in {example}")
        found.update({(topic, int(partition)): None for partition in partitions})
    if not found:
        raise OptionError(f"assign: names no partition, as in {example}")
    return tuple(found)


def _offsets(options: Mapping[str, str], name: str, default: int) -> int | Offsets:
    value = options.get(name, "").strip()
    if not value:
        if name in options:
            raise OptionError(f"{name}: is empty; give earliest, latest or JSON")
        return default
    if value.lower() in ("earliest", "latest"):
        return EARLIEST if value.lower() == "earliest" else LATEST
    example = '{"orders": {"0": 23, "1": -2}}'
    if not value.startswith("{"):
        raise OptionError(
            f"{name}: {value!r} is neither earliest nor latest nor JSON like {example}"
        )
    found: Offsets = {}
    for topic, by_partition in _json(value, name, example).items():
        if not isinstance(by_partition, dict):
            raise OptionError(f"{name}: {topic} needs offsets by partition, as in {example}")
        for partition, offset in by_partition.items():
            if not partition.isdecimal() or not _is_integer(offset) or offset < EARLIEST:
                raise OptionError(
                    f"{name}: {topic} partition {partition} has {offset!r}; an offset is a number, "
                    "-1 for latest or -2 for earliest"
                )
            found[topic, int(partition)] = int(offset)
    return found


def _refuse(value: int | Offsets, what: int, name: str, word: str, why: str) -> None:
    if value == what or (isinstance(value, dict) and what in value.values()):
        raise OptionError(f"{name}: {word} has no meaning here, {why}")


def _json(value: str, name: str, example: str) -> dict[str, Any]:
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as exc:
        raise OptionError(f"{name}: not JSON ({exc}); write it like {example}") from exc
    if not isinstance(parsed, dict):
        raise OptionError(f"{name}: not a JSON object; write it like {example}")
    return parsed


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _isolation(options: Mapping[str, str]) -> str:
    plain, prefixed = options.get("isolationLevel"), options.get("kafka.isolation.level")
    if plain is not None and prefixed is not None and plain != prefixed:
        raise OptionError(
            f"isolationLevel: {plain} and kafka.isolation.level {prefixed} disagree; give one"
        )
    value = plain if plain is not None else prefixed
    if value is None:
        return READ_COMMITTED
    if value not in (READ_COMMITTED, READ_UNCOMMITTED):
        raise OptionError(
            f"isolationLevel: {value!r} is neither read_committed nor read_uncommitted"
        )
    return value


def _columns(options: Mapping[str, str], headers: bool) -> tuple[str, ...]:
    allowed = COLUMNS if headers else COLUMNS[:-1]
    if "columns" not in options:
        return allowed
    by_lower = {name.lower(): name for name in COLUMNS}
    wanted = []
    for part in options["columns"].split(","):
        name = by_lower.get(part.strip().lower())
        if name is None:
            raise OptionError(f"columns: {part.strip()!r} is none of {', '.join(allowed)}")
        if name not in allowed:
            raise OptionError("columns: headers come with includeHeaders=true")
        wanted.append(name)
    return tuple(name for name in allowed if name in wanted)
