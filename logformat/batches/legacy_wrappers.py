"""The messages of log entries of formats v0 and v1, also those in wrappers, as columns.

A wrapper's value is complete messages, compressed. Messages in a wrapper of v0 have absolute
offsets; in a wrapper of v1 they count from the first message, and the last one's absolute offset is
the wrapper's, so a wrapper's first offset is not known before it is decompressed. A wrapper of
offset 0 (old librdkafka) has inner offsets that are absolute. Inner messages may have another magic
than the wrapper (KAFKA-4298). A wrapper of v1 with LogAppendTime gives all its messages its own
timestamp. (docs/format.md, 4; Kafka's `AbstractLegacyRecordBatch`.)

Kafka ignores a message that is cut short in a wrapper; klog takes it for damage, because the
offsets of all other messages follow from the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Indices, Longs, Mask, SignedBytes, Structs
from klog.logformat.batches import legacy_messages
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.corrupt_checks import raise_if_corrupt
from klog.logformat.batches.message_bounds import TOO_SHORT, message_starts
from klog.logformat.batches.record_sections import (
    CompressedSections,
    RecordSections,
    decompress_sections,
)
from klog.logformat.codecs.codec_names import ZSTD


@dataclass(frozen=True, slots=True)
class LegacyMessages:
    """Messages in the order of the log, a row each; keys and values lie in `sections.data`.

    The buffer of messages from wrappers is reused: it holds them until the next are read.

    Attributes:
        sections: The buffer, and where each wrapper's messages lie in it.
        offsets: The absolute offsets.
        timestamps: In ms; -1 in v0.
        timestamp_types: 0 CreateTime, 1 LogAppendTime, -1 none (v0).
        keys: Where the keys lie.
        values: Where the values lie.
    """

    sections: RecordSections
    offsets: Longs
    timestamps: Longs
    timestamp_types: SignedBytes
    keys: legacy_messages.FieldBounds
    values: legacy_messages.FieldBounds

    @property
    def checksums(self) -> Longs:
        """Return the CRC-32 that each message stores."""
        key_at = np.where(
            self.timestamp_types == legacy_messages.NO_TIMESTAMP_TYPE, *legacy_messages.KEY_AT
        )
        starts = self.keys.starts - legacy_messages.LENGTH_BYTES - key_at
        frames = legacy_messages.decode_frames(self.sections.data, starts)
        return frames["crc"].astype(np.int64)


def decode_messages(
    data: bytes,
    batches: v2.Batches,
    part_bytes: int,
    first_offset: int = 0,
) -> Iterator[LegacyMessages]:
    """Yield the messages of entries in parts, as many as decompress to about `part_bytes`.

    The caller checks the CRCs of the entries; those in wrappers are checked here.

    Args:
        data: The buffer of the entries.
        batches: The entries, all of formats v0 and v1.
        part_bytes: The decompressed bytes of a part.
        first_offset: The offset after the entries before them; no message may lie below it.

    Raises:
        CorruptRecordError: A message is damaged; its position is that of the entry, or of the first
            entry in a run of plain ones.
    """
    if not _is_wrapper(batches).any():
        yield _decode_plain(data, batches)
        return
    min_offset = first_offset
    for sections, entries in _decompress_wrappers(data, batches, part_bytes):
        try:
            messages = _decode_section(sections, batches, entries, min_offset)
        except CorruptRecordError as exc:
            raise CorruptRecordError(exc.reason, sections.origin_of(exc.position)) from exc
        min_offset = int(messages.offsets[-1]) + 1
        yield messages


def _is_wrapper(batches: v2.Batches) -> Mask:
    mask: Mask = (batches.attributes & v2.CODEC_MASK) != 0
    return mask


def _decode_plain(data: bytes, batches: v2.Batches) -> LegacyMessages:
    """Return entries that are one message each, from where they lie."""
    sections = RecordSections(data, batches.starts, batches.ends, batches.starts)
    magics = batches.headers["magic"]
    with _at_entry_start(batches.starts):
        keys, values = legacy_messages.find_keys_and_values(
            data, batches.starts, batches.ends, magics
        )
    types = ((batches.attributes & v2.LOG_APPEND_TIME) != 0).astype(np.int8)
    return LegacyMessages(
        sections,
        batches.base_offsets,
        batches.headers["max_timestamp"].astype(np.int64),
        np.where(magics == 0, legacy_messages.NO_TIMESTAMP_TYPE, types).astype(np.int8),
        keys,
        values,
    )


@contextmanager
def _at_entry_start(starts: Longs) -> Iterator[None]:
    """Replace the position of an error by the start of the entry it lies in."""
    try:
        yield
    except CorruptRecordError as exc:
        entry = int(np.searchsorted(starts, exc.position, "right")) - 1
        raise CorruptRecordError(exc.reason, int(starts[entry])) from exc


def _decompress_wrappers(
    data: bytes, batches: v2.Batches, part_bytes: int
) -> Iterator[tuple[RecordSections, Indices]]:
    """Yield what wrappers hold, and what lies between them, uncompressed in one buffer.

    A section is one wrapper's messages or a run of adjacent plain messages; with it comes the
    number of its first entry in `batches`.
    """
    is_wrapper = _is_wrapper(batches)
    starts_run = is_wrapper.copy()
    starts_run[0] = True
    starts_run[1:] |= is_wrapper[:-1] | (batches.starts[1:] != batches.ends[:-1])
    runs = np.flatnonzero(starts_run)
    origins, is_wrapper = batches.starts[runs], is_wrapper[runs]
    starts, ends = origins.copy(), batches.ends[np.append(runs[1:], len(batches)) - 1]
    wrappers = batches.where(_is_wrapper(batches))
    starts[is_wrapper], ends[is_wrapper] = _wrapper_values(data, wrappers)
    codecs, magics = (batches.attributes & v2.CODEC_MASK)[runs], batches.headers["magic"][runs]
    compressed = CompressedSections(codecs, starts, ends, magics, origins)
    for first, sections in decompress_sections(data, compressed, part_bytes):
        is_empty = sections.starts == sections.ends
        raise_if_corrupt(is_empty, sections.origins, "a wrapper without messages")
        yield sections, runs[first : first + len(sections.starts)]


def _wrapper_values(data: bytes, wrappers: v2.Batches) -> tuple[Longs, Longs]:
    """Return where the values of wrappers, which hold their messages, start and end."""
    codecs, magics = wrappers.attributes & v2.CODEC_MASK, wrappers.headers["magic"]
    reason = "message formats v0 and v1 do not have the codec zstd"
    raise_if_corrupt(codecs == ZSTD, wrappers.starts, reason)
    with _at_entry_start(wrappers.starts):
        _, values = legacy_messages.find_keys_and_values(
            data, wrappers.starts, wrappers.ends, magics
        )
    raise_if_corrupt(values.is_null, wrappers.starts, "a compressed message without a value")
    return values.starts, values.ends


def _decode_section(
    sections: RecordSections, batches: v2.Batches, entries: Indices, min_offset: int
) -> LegacyMessages:
    """Return the messages of sections, whose offsets rise from `min_offset` on."""
    starts, counts = message_starts(sections)
    ends = np.append(starts[1:], sections.ends[-1])
    frames = legacy_messages.decode_frames(sections.data, starts)
    magics, section = frames["magic"], np.repeat(np.arange(len(counts)), counts)
    is_wrapper = _is_wrapper(batches)[entries]
    _check_frames(sections.data, starts, ends, frames, is_wrapper[section])
    headers = batches.headers[entries]
    inner_offsets = frames["offset"].astype(np.int64)
    offsets = _absolute_offsets(inner_offsets, counts, headers, is_wrapper, starts)
    is_wrong = offsets < np.append(min_offset, offsets[:-1] + 1)
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise CorruptRecordError(f"offset {offsets[row]} does not rise", int(starts[row]))
    timestamps, types = _timestamps(frames, section, headers, is_wrapper)
    keys, values = legacy_messages.find_keys_and_values(sections.data, starts, ends, magics)
    return LegacyMessages(sections, offsets, timestamps, types, keys, values)


def _check_frames(
    data: bytes | bytearray,
    starts: Longs,
    ends: Longs,
    frames: legacy_messages.Frames,
    is_inner: Mask,
) -> None:
    """Refuse what no message of v0 or v1 can be; check the CRCs of messages in wrappers."""
    magics, sizes = frames["magic"], ends - starts
    is_unknown = (magics < 0) | (magics > 1)
    min_bytes = v2.FRAME_BYTES + np.where(magics == 1, *reversed(legacy_messages.MIN_LENGTHS))
    is_nested = is_inner & ((frames["attributes"] & v2.CODEC_MASK) != 0)
    for is_wrong, reason in (
        (is_unknown, "a message of another format inside a wrapper"),
        (sizes < min_bytes, TOO_SHORT),
        (is_nested, "a compressed message inside another"),
    ):
        raise_if_corrupt(is_wrong, starts, reason)
    stored_crcs = frames["crc"][is_inner].astype(np.int64)
    legacy_messages.check_message_crcs(data, starts[is_inner], ends[is_inner], stored_crcs)


def _absolute_offsets(
    inner: Longs, counts: Longs, headers: v2.Headers, is_wrapper: Mask, starts: Longs
) -> Longs:
    """Return absolute offsets; `headers` are those of the sections' entries."""
    last_rows = np.cumsum(counts) - 1
    outer = headers["base_offset"].astype(np.int64)
    max_offsets = np.where(is_wrapper & (outer != 0), outer, v2.MAX_OFFSET)
    is_wrong = (inner < 0) | (inner > np.repeat(max_offsets, counts))
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise CorruptRecordError(
            f"inner offset {inner[row]} in a wrapper of offset "
            f"{outer[int(np.searchsorted(last_rows, row))]}",
            int(starts[row]),
        )
    is_relative = is_wrapper & (outer != 0) & (headers["magic"] == 1)
    base: Longs = np.where(is_relative, outer - inner[last_rows], 0)
    return inner + np.repeat(base, counts)


def _timestamps(
    frames: legacy_messages.Frames, section: Indices, headers: v2.Headers, is_wrapper: Mask
) -> tuple[Longs, SignedBytes]:
    """Return the timestamps and their types: the wrapper's type counts, v0 has neither."""
    has_timestamp, is_inner = frames["magic"] == 1, is_wrapper[section]
    outer_types = np.where(
        headers["magic"] == 0, legacy_messages.NO_TIMESTAMP_TYPE, _timestamp_types(headers)
    )
    types = np.where(is_inner, outer_types[section], _timestamp_types(frames))
    has_outer_timestamp = is_inner & (outer_types == 1)[section]
    outer = headers["max_timestamp"].astype(np.int64)[section]
    timestamps = np.where(has_outer_timestamp, outer, frames["timestamp"].astype(np.int64))
    return (
        np.where(has_timestamp, timestamps, v2.NO_TIMESTAMP),
        np.where(has_timestamp, types, legacy_messages.NO_TIMESTAMP_TYPE).astype(np.int8),
    )


def _timestamp_types(rows: Structs) -> SignedBytes:
    types: SignedBytes = ((rows["attributes"] & v2.LOG_APPEND_TIME) != 0).astype(np.int8)
    return types
