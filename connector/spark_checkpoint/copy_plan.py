"""What a copy of a Kafka query's checkpoint has, so that klog goes on where the query was.

The rule: the copy has the query's id, all its micro-batches and its state, byte by byte. The last
micro-batch may be unfinished: it runs again under its id, from the end of the one before. If that
is the first one, its end gets where it starts. `sources/`, which is the Kafka source's own, is left
out. Anything that klog could not go on with without a loss is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from klog.connector.source.stream_offsets import StreamOffsets
from klog.connector.spark_checkpoint.checkpoint_directory import (
    COMMITS,
    METADATA,
    OFFSETS,
    SOURCES,
    CheckpointFiles,
    is_hidden,
)
from klog.connector.spark_checkpoint.kafka_offsets import (
    decode_initial_offsets,
    offsets_text,
    parse_offsets,
    with_batch_start,
)
from klog.connector.spark_checkpoint.offset_log_entry import (
    MAX_ENTRY_BYTES,
    NO_OFFSET,
    OffsetLogEntry,
    decode_offset_log_entry,
    invalid_file,
)
from klog.connector.store.readable_store import MAX_SMALL_FILE_BYTES
from klog.errors import KlogError, OptionError

_CHECKSUM = ".crc"
"""What Spark adds to the name of a file for the file with its checksum."""


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """What a copy has.

    Attributes:
        query_id: The id of the query.
        metadata: The bytes of the file with the id.
        last_committed: The last micro-batch that is committed; None if none is.
        unfinished: The micro-batch that runs again; None if all are committed.
        offset_log_version: `v1` or `v2`.
        next_offsets: Where the query goes on, or where the unfinished micro-batch starts, by the
            source's id.
        unchanged: The files to copy as they are, in order.
        rewritten: The bytes of the files that are not.
    """

    query_id: str
    metadata: bytes
    last_committed: int | None
    unfinished: int | None
    offset_log_version: str
    next_offsets: Mapping[str, StreamOffsets]
    unchanged: list[str]
    rewritten: Mapping[str, bytes] = field(default_factory=dict)


def plan_copy(files: CheckpointFiles) -> CopyPlan:
    """Return what the copy of a checkpoint has.

    Args:
        files: The checkpoint of the query.

    Raises:
        OptionError: The directory is not a checkpoint, has no micro-batch, or has a source that is
            not Kafka's.
        KlogError: Two micro-batches or more are unfinished, or where one starts is not known.
        InvalidFileError: A file is damaged.
        UnsupportedFormatError: A later Spark has written it.
    """
    if METADATA not in files.entries:
        raise OptionError(
            f"{files.root} is not a checkpoint of a streaming query: it has no file {METADATA}. "
            "Give the query's checkpointLocation"
        )
    metadata = files.read(METADATA, MAX_SMALL_FILE_BYTES)
    query_id = _query_id(files.path(METADATA), metadata)
    last_committed, last = _last_batches(files)
    entry = _entry(files, last)
    starts = ends = _parsed(files, last, entry)
    rewritten: dict[str, bytes] = {}
    if last_committed is None:
        ends = {source: _with_start(files, source, end) for source, end in ends.items()}
        texts = {source: offsets_text(end) for source, end in ends.items()}
        rewritten[f"{OFFSETS}/{last}"] = entry.with_offsets(texts).encode()
        starts = {source: StreamOffsets(end.batch_start, {}) for source, end in ends.items()}
    elif last_committed < last:
        starts = _parsed(files, last_committed, _entry(files, last_committed))
    return CopyPlan(
        query_id,
        metadata,
        last_committed,
        None if last == last_committed else last,
        entry.version,
        starts,
        _copied_names(files, rewritten),
        rewritten,
    )


def _query_id(path: str, metadata: bytes) -> str:
    try:
        return str(UUID(json.loads(metadata)["id"]))
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as exc:
        raise invalid_file(path, "it has no id of a query, or a copy was interrupted") from exc


def _last_batches(files: CheckpointFiles) -> tuple[int | None, int]:
    """Return the last micro-batch that is committed, if there is one, and the last one."""
    offsets, commits = files.batch_ids(OFFSETS), files.batch_ids(COMMITS)
    if not offsets:
        raise OptionError(f"{files.root}: the query has no micro-batch yet. {_remedy(files)}")
    last_committed = commits[-1] if commits else None
    expected = -1 if last_committed is None else last_committed
    if offsets[-1] > expected + 1:
        raise KlogError(
            f"{files.root}: micro-batches {expected + 1} to {offsets[-1]} are not committed, and "
            "Spark runs only the last one again. The query had asynchronous progress tracking: run "
            "it once without, then copy its checkpoint"
        )
    if expected not in offsets and last_committed is not None:
        raise invalid_file(files.path(f"{OFFSETS}/{expected}"), "the committed batch has no file")
    return last_committed, offsets[-1]


def _remedy(files: CheckpointFiles) -> str:
    """Return what to do about a query that has read nothing."""
    sources = [name for name in files.entries if _is_initial(name)]
    if len(sources) != 1:
        return 'Start format("klog") with a new checkpoint'
    start = decode_initial_offsets(files.path(sources[0]), files.read(sources[0], MAX_ENTRY_BYTES))
    return (
        'Start format("klog") with a new checkpoint, and startingOffsets set to '
        f"{offsets_text(start)}"
    )


def _is_initial(name: str) -> bool:
    parts = name.split("/")
    return len(parts) == 3 and parts[0] == SOURCES and parts[2] == "0"


def _entry(files: CheckpointFiles, batch: int) -> OffsetLogEntry:
    name = f"{OFFSETS}/{batch}"
    return decode_offset_log_entry(files.path(name), files.read(name, MAX_ENTRY_BYTES))


def _parsed(files: CheckpointFiles, batch: int, entry: OffsetLogEntry) -> dict[str, StreamOffsets]:
    path = files.path(f"{OFFSETS}/{batch}")
    for source, text in entry.offsets.items():
        if text == NO_OFFSET:
            raise KlogError(
                f"{path}: source {source} of the query has no offset yet. Run the old query until "
                "a micro-batch has read from it, then copy its checkpoint"
            )
    return {source: parse_offsets(path, source, text) for source, text in entry.offsets.items()}


def _with_start(files: CheckpointFiles, source: str, end: StreamOffsets) -> StreamOffsets:
    """Return the end of the unfinished first micro-batch, with where it starts."""
    if end.batch_start:
        return end
    name = f"{SOURCES}/{source}/0"
    if name not in files.entries:
        raise KlogError(
            f"{files.root}: the first micro-batch is not committed, and {name}, which has where it "
            "starts, is missing. Start the query with a new checkpoint"
        )
    initial = decode_initial_offsets(files.path(name), files.read(name, MAX_ENTRY_BYTES))
    return with_batch_start(end, initial)


def _copied_names(files: CheckpointFiles, rewritten: Mapping[str, bytes]) -> list[str]:
    return sorted(
        name
        for name in files.entries
        if name != METADATA
        and name.removesuffix(_CHECKSUM) not in rewritten
        and not name.startswith(f"{SOURCES}/")
        and not is_hidden(name)
    )
