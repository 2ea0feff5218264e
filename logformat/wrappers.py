"""The messages of entries of formats v0 and v1, wrappers opened, as positions and numbers.

A wrapper's value is whole entries, compressed. Those inside have absolute offsets in a wrapper of
v0; in one of v1 they count from the first, and the last one's absolute offset is the wrapper's, so
nothing is known of a wrapper's first offset before it is opened. A wrapper of offset 0 (old
librdkafka) has inner offsets that are meant as they are. The magic inside need not be the wrapper's
(KAFKA-4298). A wrapper of v1 with LogAppendTime gives all its messages its own timestamp.
(docs/format.md, 4; Kafka's `AbstractLegacyRecordBatch`.)

Kafka passes over an entry that is cut short inside a wrapper; here it is damage, because the
offsets of all others follow from the last one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat import legacy
from klog.logformat.codecs import ZSTD
from klog.logformat.compiled.compiling import frozen
from klog.logformat.index import Mask
from klog.logformat.sections import Packed, Sections, unpacked
from klog.logformat.varint import Longs

MAX_MESSAGES = 1 << 22
"""The most messages that one wrapper may hold: where each begins is held for all of them."""

_LANES = 16
"""Walking fewer than this side by side costs more for calling numpy than for walking."""
_LEAST_BYTES = v2.FRAME_BYTES + legacy.MIN_LENGTHS[0]
_TOO_SHORT = "a message shorter than its fields in a wrapper"
_CUT_SHORT = "a message in a wrapper is cut short"

_length = struct.Struct(">i").unpack_from


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages in the order of the log, a row each; keys and values lie in `sections.data`.

    Those of wrappers lie in a buffer that is lent: it holds them until the next are asked for.

    `offsets` int64, `timestamps` ms, -1 in v0; `timestamp_types` 0 CreateTime, 1 LogAppendTime,
    -1 none (v0).
    """

    sections: Sections
    offsets: Longs
    timestamps: Longs
    timestamp_types: npt.NDArray[np.int8]
    keys: legacy.Fields
    values: legacy.Fields

    @property
    def checksums(self) -> Longs:
        """Give the CRC-32 that each message says of itself."""
        key_at = np.where(self.timestamp_types == legacy.NO_TIMESTAMP_TYPE, *legacy.KEY_AT)
        frames = legacy.frames(self.sections.data, self.keys.starts - legacy.LENGTH_BYTES - key_at)
        return frames["crc"].astype(np.int64)


def messages(
    data: bytes, batches: v2.Batches, part_bytes: int, first_offset: int = 0
) -> Iterator[Messages]:
    """Find the messages of `batches`, all of formats v0 and v1, which lie in `data`.

    A part is as many entries as decompress to about `part_bytes`; no offset in them is below
    `first_offset`. The CRCs of `batches` are the caller's to check; those inside wrappers are
    checked here. Raises `CorruptRecordError`, its position that of the entry, or of the first in a
    run of plain ones.
    """
    if not _is_wrapper(batches).any():
        yield _plain(data, batches)
        return
    floor = first_offset
    for sections, owners in _sections(data, batches, part_bytes):
        try:
            found = _opened(sections, batches, owners, floor)
        except CorruptRecordError as exc:
            raise CorruptRecordError(exc.reason, sections.origin_of(exc.position)) from exc
        floor = int(found.offsets[-1]) + 1
        yield found


def _is_wrapper(batches: v2.Batches) -> Mask:
    mask: Mask = (batches.attributes & v2.CODEC_MASK) != 0
    return mask


def _plain(data: bytes, batches: v2.Batches) -> Messages:
    """Take entries that are one message each as they lie."""
    sections = Sections(data, batches.starts, batches.ends, batches.starts)
    magics = batches.headers["magic"]
    with _of_entry(batches.starts):
        keys, values = legacy.keys_and_values(data, batches.starts, batches.ends, magics)
    types = ((batches.attributes & v2.LOG_APPEND_TIME) != 0).astype(np.int8)
    return Messages(
        sections,
        batches.base_offsets,
        batches.headers["max_timestamp"].astype(np.int64),
        np.where(magics == 0, legacy.NO_TIMESTAMP_TYPE, types).astype(np.int8),
        keys,
        values,
    )


@contextmanager
def _of_entry(starts: Longs) -> Iterator[None]:
    """Restate what is wrong at a position by where the entry there begins."""
    try:
        yield
    except CorruptRecordError as exc:
        entry = int(np.searchsorted(starts, exc.position, "right")) - 1
        raise CorruptRecordError(exc.reason, int(starts[entry])) from exc


def _sections(
    data: bytes, batches: v2.Batches, part_bytes: int
) -> Iterator[tuple[Sections, npt.NDArray[np.intp]]]:
    """Lay what wrappers hold, and what lies between them, after another in one buffer.

    A section is one wrapper's messages or a run of neighbours that are none; with it comes the
    number of its first entry in `batches`.
    """
    wrapped = _is_wrapper(batches)
    begins = wrapped.copy()
    begins[0] = True
    begins[1:] |= wrapped[:-1] | (batches.starts[1:] != batches.ends[:-1])
    runs = np.flatnonzero(begins)
    origins, wrapped = batches.starts[runs], wrapped[runs]
    starts, ends = origins.copy(), batches.ends[np.append(runs[1:], len(batches)) - 1]
    starts[wrapped], ends[wrapped] = _values(data, batches.where(_is_wrapper(batches)))
    codecs, magics = (batches.attributes & v2.CODEC_MASK)[runs], batches.headers["magic"][runs]
    packed = Packed(codecs, starts, ends, magics, origins)
    for first, sections in unpacked(data, packed, part_bytes):
        empty = sections.starts == sections.ends
        _check(empty, sections.origins, "a wrapper without messages")
        yield sections, runs[first : first + len(sections.starts)]


def _values(data: bytes, wrappers: v2.Batches) -> tuple[Longs, Longs]:
    """Find the values of wrappers, which hold their messages: (starts, ends)."""
    codecs, magics = wrappers.attributes & v2.CODEC_MASK, wrappers.headers["magic"]
    _check(codecs == ZSTD, wrappers.starts, "zstd is no codec of message formats v0 and v1")
    with _of_entry(wrappers.starts):
        _, values = legacy.keys_and_values(data, wrappers.starts, wrappers.ends, magics)
    _check(values.null, wrappers.starts, "a compressed message without a value")
    return values.starts, values.ends


def _starts(sections: Sections) -> tuple[Longs, Longs]:
    """Find where each entry begins, and how many each section holds."""
    if (loops := legacy.READING.given(0)) is not None:
        size = int((sections.ends - sections.starts).sum())
        starts, counts = np.empty(size // loops.LEAST_BYTES, np.int64), np.zeros_like(sections.ends)
        given = frozen(np.frombuffer(sections.data, np.uint8))
        total = loops.walk(given, frozen(sections.starts), frozen(sections.ends), starts, counts)
        if total >= 0 and counts.max() <= MAX_MESSAGES:
            return starts[:total], counts
    return _starts_side_by_side(sections)


def _starts_side_by_side(sections: Sections) -> tuple[Longs, Longs]:
    """Walk sections an entry of each in a step, as long as there are enough."""
    found: list[Longs] = []
    here, ends = sections.starts, sections.ends
    view = np.ndarray((len(sections.data) - 3,), ">i4", sections.data, 0, (1,))
    while len(here) >= _LANES:
        found.append(here)
        _check(ends - here < _LEAST_BYTES, here, _TOO_SHORT)
        lengths = view[here + 8].astype(np.int64)
        _check(lengths < legacy.MIN_LENGTHS[0], here, _TOO_SHORT)
        here = here + v2.FRAME_BYTES + lengths
        inside = here < ends
        if np.count_nonzero(inside) < len(inside):
            _check(here > ends, ends - 1, _CUT_SHORT)
            here, ends = here[inside], ends[inside]
    for position, end in zip(here.tolist(), ends.tolist(), strict=True):
        found.append(_walk(sections.data, position, end))
    starts = np.sort(np.concatenate(found))
    counts = np.diff(np.searchsorted(starts, np.append(sections.starts, sections.ends[-1])))
    many = f"a wrapper of more than {MAX_MESSAGES} messages is refused"
    _check(counts > MAX_MESSAGES, sections.starts, many)
    return starts, counts


def _walk(data: bytes | bytearray, position: int, end: int) -> Longs:
    """Find where the entries between two positions begin, one after the other."""
    starts: list[int] = []
    add, least = starts.append, legacy.MIN_LENGTHS[0]
    while position < end:
        (length,) = _length(data, position + 8)
        if length < least or end - position < _LEAST_BYTES:
            raise CorruptRecordError(_TOO_SHORT, position)
        add(position)
        position += v2.FRAME_BYTES + length
    if position > end:
        raise CorruptRecordError(_CUT_SHORT, end - 1)
    return np.array(starts, np.int64)


def _check(wrong: Mask, at: Longs, reason: str) -> None:
    if np.count_nonzero(wrong):
        raise CorruptRecordError(reason, int(at[int(np.argmax(wrong))]))


def _opened(
    sections: Sections, batches: v2.Batches, owners: npt.NDArray[np.intp], floor: int
) -> Messages:
    """Decode the fields of the messages in these sections; offsets begin at `floor` or beyond."""
    starts, counts = _starts(sections)
    ends = np.append(starts[1:], sections.ends[-1])
    frames = legacy.frames(sections.data, starts)
    magics, section = frames["magic"], np.repeat(np.arange(len(counts)), counts)
    wrapped = _is_wrapper(batches)[owners]
    _check_frames(sections.data, starts, ends, frames, wrapped[section])
    own = batches.headers[owners]
    offsets = _offsets(frames["offset"].astype(np.int64), counts, own, wrapped, starts)
    wrong = offsets < np.append(floor, offsets[:-1] + 1)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise CorruptRecordError(f"offset {offsets[at]} does not rise", int(starts[at]))
    timestamps, types = _times(frames, section, own, wrapped)
    keys, values = legacy.keys_and_values(sections.data, starts, ends, magics)
    return Messages(sections, offsets, timestamps, types, keys, values)


def _check_frames(
    data: bytes | bytearray, starts: Longs, ends: Longs, frames: legacy.Frames, wrapped: Mask
) -> None:
    """Refuse what no message of v0 or v1 can be, and inside wrappers what fails its CRC."""
    magics, sizes = frames["magic"], ends - starts
    unknown = (magics < 0) | (magics > 1)
    least = v2.FRAME_BYTES + np.where(magics == 1, *reversed(legacy.MIN_LENGTHS))
    nested = wrapped & ((frames["attributes"] & v2.CODEC_MASK) != 0)
    for wrong, reason in (
        (unknown, "a message of another format inside a wrapper"),
        (sizes < least, _TOO_SHORT),
        (nested, "a compressed message inside another"),
    ):
        _check(wrong, starts, reason)
    legacy.check_crcs(data, starts[wrapped], ends[wrapped], frames["crc"][wrapped].astype(np.int64))


def _offsets(inner: Longs, counts: Longs, own: v2.Headers, wrapped: Mask, starts: Longs) -> Longs:
    """Turn inner offsets into absolute ones; `own` are the headers of the sections' entries."""
    last = np.cumsum(counts) - 1
    outer = own["base_offset"].astype(np.int64)
    bound = np.where(wrapped & (outer != 0), outer, v2.MAX_OFFSET)
    wrong = (inner < 0) | (inner > np.repeat(bound, counts))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise CorruptRecordError(
            f"inner offset {inner[at]} in a wrapper of offset "
            f"{outer[int(np.searchsorted(last, at))]}",
            int(starts[at]),
        )
    relative = wrapped & (outer != 0) & (own["magic"] == 1)
    base: Longs = np.where(relative, outer - inner[last], 0)
    return inner + np.repeat(base, counts)


def _times(
    frames: legacy.Frames, section: npt.NDArray[np.intp], own: v2.Headers, wrapped: Mask
) -> tuple[Longs, npt.NDArray[np.int8]]:
    """Give the timestamps and their types: a wrapper's type counts, a v0 message has neither."""
    has_time, inside = frames["magic"] == 1, wrapped[section]
    own_type = np.where(own["magic"] == 0, legacy.NO_TIMESTAMP_TYPE, _append_time(own))
    types = np.where(inside, own_type[section], _append_time(frames))
    overruled = inside & (own_type == 1)[section]
    outer = own["max_timestamp"].astype(np.int64)[section]
    timestamps = np.where(overruled, outer, frames["timestamp"].astype(np.int64))
    return (
        np.where(has_time, timestamps, v2.NO_TIMESTAMP),
        np.where(has_time, types, legacy.NO_TIMESTAMP_TYPE).astype(np.int8),
    )


def _append_time(rows: npt.NDArray[np.void]) -> npt.NDArray[np.int8]:
    flags: npt.NDArray[np.int8] = ((rows["attributes"] & v2.LOG_APPEND_TIME) != 0).astype(np.int8)
    return flags
