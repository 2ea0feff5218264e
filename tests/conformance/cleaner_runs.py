"""Run scripts on a log that is cleaned: steps in, what is left after each cleaning out.

A step appends a batch at the log's end, begins a segment, or cleans all closed segments. It names
the answers that a cleaning returns (`ANSWERS`); times are ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from klog.connector.commit_log import segment_entries
from klog.jobs.compacting import rewrite_segments
from klog.jobs.compacting.dirty_ratio import CleaningLimits, cleanable_range
from klog.jobs.shared.segment_grouping import SegmentLimits
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.cleaning.batch_retention import CleaningContext
from klog.logformat.cleaning.clean_batches import SegmentCleaner
from klog.logformat.cleaning.offset_map import OffsetMap
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap
from klog.logformat.producers.producer_batch import ProducerBatch
from klog.logformat.topic_config import parse_topic_config
from tests.conformance.case import Case
from tests.logformat.cleaning.cleaning_rounds import Round, cleaned, marked, next_offset, scan
from tests.support.batch_bytes import ABORT, COMMIT, TRANSACTIONAL, Record, batch, marker
from tests.support.broker_loader.producer_state_manager import ProducerStateManager
from tests.support.segment_entry import entry_of

Step = tuple[Any, ...]
ROLL: Step = ("roll",)
DAY_MS = 86_400_000
LONG_MAX = (1 << 63) - 1
LARGE = LONG_MAX - DAY_MS - 1
"""A time that leaves room for a delete horizon a day later."""


class _Script:
    """A log that steps act on; its last segment is the one that is written to."""

    def __init__(self) -> None:
        self.segments = [b""]
        self.end = 0
        self._sequences: dict[int, int] = {}
        self._clean_to = 0

    def put(self, data: bytes) -> None:
        self.segments[-1] += data
        self.end = next_offset(data)

    def roll(self) -> None:
        self.segments.append(b"")

    def skip(self, to: int) -> None:
        """Leave offsets out, as a cleaning before did."""
        self.end = to

    def plain(self, *keys: int | None, **more: Any) -> None:
        self.put(batch(self._records(keys, **more)))

    def idempotent(self, producer: int, *keys: int, **more: Any) -> None:
        self._append(producer, keys, 0, more)

    def transactional(self, producer: int, *keys: int, **more: Any) -> None:
        self._append(producer, keys, TRANSACTIONAL, more)

    def commit(self, producer: int) -> None:
        self.put(marker(self.end, producer, COMMIT))

    def abort(self, producer: int) -> None:
        self.put(marker(self.end, producer, ABORT))

    def raw(self, make: Callable[[int], bytes]) -> None:
        """Append the bytes that a function makes for an offset."""
        self.put(make(self.end))

    def clean(self, *questions: str, now: int = LARGE, dirty_from: int | None = None) -> Any:
        """Clean the closed segments from where the last cleaning ended."""
        begin = self._clean_to if dirty_from is None else dirty_from
        count = len(self.segments) - 1
        cleaning = Round(begin, count, now, DAY_MS, expiration_ms=1 << 64)
        ends = [next_offset(segment) for segment in self.segments[:count] if segment]
        self.segments = cleaned(self.segments, cleaning)
        self._clean_to = max([begin, *ends])
        answers = [ANSWERS[name](self) for name in questions]
        return answers[0] if len(answers) == 1 else answers

    def two_pass(self, *questions: str, now: int = LARGE) -> Any:
        """Clean, and clean again after the delete horizons of the first cleaning."""
        self.clean(now=now)
        return self.clean(*questions, now=now + DAY_MS + 1)

    def duplicate(self, producer: int, first: int, last: int) -> Any:
        """Return the offsets of a batch that a broker takes for a duplicate, or None."""
        state = ProducerStateManager()
        log = b"".join(self.segments)
        state.replay(log, scan(log))
        same_batch = state.duplicate_of(ProducerBatch(producer, 0, first, 0, last - first, 0))
        return None if same_batch is None else (same_batch.first_offset, same_batch.last_offset)

    def _append(self, producer: int, keys: tuple[int, ...], flags: int, more: Any) -> None:
        sequence = more.pop("sequence", self._sequences.get(producer, 0))
        self._sequences[producer] = sequence + len(keys)
        self.put(
            batch(
                self._records(keys, **more),
                attributes=flags,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=sequence,
            )
        )

    def _records(
        self, keys: tuple[int | None, ...], value: bytes | None = b"v", time: int = 0
    ) -> list[Record]:
        named = [None if key is None else b"%d" % key for key in keys]
        return [Record(self.end + n, time, key, value) for n, key in enumerate(named)]

    def batches(self) -> list[tuple[bytes, v2.Batches]]:
        return [
            (segment, scan(segment).slice(n, n + 1))
            for segment in self.segments
            for n in range(len(scan(segment)))
        ]


def _is_control(batches: v2.Batches) -> bool:
    return bool(batches.attributes[0] & v2.CONTROL)


def _offsets(script: _Script) -> list[int]:
    offsets: list[int] = []
    for data, batches in script.batches():
        offsets += (
            decode_records(data, batches, ()).offset.tolist() if batches.headers["count"][0] else []
        )
    return offsets


def _keys(script: _Script) -> list[int]:
    keys: list[int] = []
    for data, batches in script.batches():
        if batches.headers["count"][0] and not _is_control(batches):
            column = decode_records(data, batches, ("key",)).key
            assert column is not None
            keys += [int(key) for key in column.to_pylist()]
    return keys


def _sequences(script: _Script) -> dict[int, int]:
    log = b"".join(script.segments)
    state = ProducerStateManager()
    state.replay(log, scan(log))
    return {producer_id: known.last_sequence for producer_id, known in state.producers.items()}


ANSWERS: dict[str, Callable[[_Script], Any]] = {
    "offsets": _offsets,
    "keys": _keys,
    "lasts": lambda script: [int(batches.next_offsets[0]) - 1 for _, batches in script.batches()],
    "sequences": _sequences,
    "per segment": lambda script: [len(scan(segment)) for segment in script.segments],
    "count": lambda script: len(_offsets(script)),
    "magics": lambda script: [int(batches.headers["magic"][0]) for _, batches in script.batches()],
}


def cleaning_case(name: str, expect: list[object], *steps: Step, label: str = "") -> Case:
    """Return a case of Kafka's tests of its cleaner: a script on one log, and its answers."""
    return Case(f"21 {name}", log, steps, expect, label)


def log(*steps: Step) -> list[Any]:
    """Return the answers to each cleaning and each question."""
    script, answers = _Script(), []
    for step in steps:
        *words, more = step if isinstance(step[-1], dict) else (*step, {})
        answer = getattr(script, words[0])(*words[1:], **more)
        if step[0] == "duplicate" or (answer is not None and answer != []):
            answers.append(answer)
    return answers


def kept_of(dirty_from: int, *keys: int | None) -> tuple[int, int]:
    """Return how many records a cleaning reads and retains; each record is a batch."""
    records = [
        Record(n, 0, None if key is None else b"%d" % key, b"v") for n, key in enumerate(keys)
    ]
    segment = b"".join(batch([row]) for row in records)
    (marks,), _ = marked([segment], (), Round(dirty_from))
    return marks.count, marks.retained_count


def filtered(
    data: bytes,
    kept: str,
    fields: tuple[str, ...],
    needed: tuple[int, ...] = (),
    horizon_ms: int = DAY_MS,
) -> list[tuple[Any, ...]]:
    """Rewrite batches, retaining the records marked `x` (value) and `t` (tombstone).

    Return the fields of each batch that remains. A batch whose last offset is in `needed` stays
    even without records.
    """
    stay, tombstones = (
        np.packbits(np.array([sign in signs for sign in kept], np.bool_)).tobytes()
        for signs in ("xt", "t")
    )
    marks = RetainedBitmap(len(kept), stay, tombstones if "t" in kept else b"")
    rewrite = SegmentCleaner(marks, CleaningContext(0, horizon_ms, np.array(needed, np.int64)))
    left = b"".join(run.data for run in rewrite.clean(data, scan(data)))
    rewrite.close()
    batches = scan(left)
    return [
        tuple(_FIELDS[name](left, batches.slice(n, n + 1)) for name in fields)
        for n in range(len(batches))
    ]


def _header(name: str) -> Callable[[bytes, v2.Batches], int]:
    return lambda _, batches: int(batches.headers[name][0])


def _times(data: bytes, batches: v2.Batches) -> list[int]:
    column = decode_records(data, batches, ("timestamp_ms",)).timestamp_ms
    assert column is not None
    return [int(time) for time in column]


_FIELDS: dict[str, Callable[[bytes, v2.Batches], Any]] = {
    **{name: _header(name) for name in v2.HEADER.names or ()},
    "last": lambda _, batches: int(batches.next_offsets[0]) - 1,
    "size": lambda _, batches: int(batches.ends[0] - batches.starts[0]),
    "offsets": lambda data, batches: decode_records(data, batches, ()).offset.tolist(),
    "times": _times,
    "horizon": lambda _, batches: bool(batches.attributes[0] & v2.DELETE_HORIZON),
}


def placed(keys: int, records: int, max_bytes: int) -> tuple[int, bool]:
    """Put records into a map; return its size, and whether each offset is right."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(1, 1 << 64, (2, keys + 1), np.uint64, endpoint=False)
    numbers = np.append(np.arange(keys), rng.integers(0, keys, records - keys))
    offset_map = OffsetMap(max_bytes)
    offset_map.put(first[numbers], second[numbers], np.arange(records))
    last_numbers = dict(zip(numbers.tolist(), range(records), strict=True))
    inside = offset_map.keys.contains(first)
    known = np.ones(keys + 1, np.bool_) if inside is None else inside
    expected = [last_numbers.get(n, -1) if known[n] else -1 for n in range(keys + 1)]
    return len(offset_map), offset_map.find(first, second).tolist() == expected


def table(segments: list[tuple[int, int, int]]) -> pa.Table:
    """Make segments of (base offset, size in bytes, largest time); each ends where the next begins.

    The last one has ten offsets.
    """
    ends = [base for base, _, _ in segments[1:]] + [segments[-1][0] + 10 if segments else 0]
    return segment_entries.to_table(
        {
            **entry_of(f"t-0/{base:020}.log", 0, base, end),
            "size_bytes": size,
            "min_timestamp_ms": latest,
            "max_timestamp_ms": latest,
        }
        for (base, size, latest), end in zip(segments, ends, strict=True)
    )


def bounds(
    segments: list[tuple[int, int, int]],
    log_start: int,
    last_stable: int,
    cleaned_to: int,
    min_lag_ms: int = 0,
    now_ms: int = 0,
) -> tuple[int, int]:
    """Return the first dirty offset and the end of the range to clean."""
    lags = CleaningLimits(0.5, min_lag_ms, LONG_MAX)
    cleanable = cleanable_range(table(segments), log_start, last_stable, cleaned_to, lags, now_ms)
    return cleanable.first_dirty_offset, cleanable.end_offset


def shares(
    segments: list[tuple[int, int, int]], last_stable: int, cleaned_to: int
) -> tuple[int, int, float]:
    """Return clean bytes, dirty bytes and their ratio."""
    lags = CleaningLimits(0.5, 0, LONG_MAX)
    cleanable = cleanable_range(table(segments), 0, last_stable, cleaned_to, lags, 0)
    return cleanable.clean_bytes, cleanable.dirty_bytes, cleanable.dirty_ratio


def stable_end(*steps: Step) -> int:
    """Return the last stable offset of a log, which is its end for klog."""
    script = _Script()
    for step in steps:
        getattr(script, step[0])(*step[1:])
    state, data = ProducerStateManager(), b"".join(script.segments)
    state.replay(data, scan(data))
    state.raise_high_watermark(script.end)
    return state.last_stable_offset(script.end)


def groups(segments: list[tuple[int, int, int]], segment_bytes: int) -> list[tuple[int, int]]:
    """Group segments of (base offset, next offset, size in bytes) that all lose records."""
    entries = [
        {
            "base_offset": base,
            "next_offset": end,
            "size_bytes": size,
            "index_bytes": 0,
            "time_index_bytes": 0,
            "producer_ids": [],
            "min_timestamp_ms": 0,
            "max_timestamp_ms": 0,
        }
        for base, end, size in segments
    ]
    marks = [RetainedBitmap(2, b"\x80") for _ in segments]
    return [
        (group.start, group.stop)
        for group in rewrite_segments.groups_to_rewrite(
            entries, marks, SegmentLimits(segment_bytes, 0)
        )
    ]


def policies(policy: str) -> tuple[bool, bool]:
    """Return whether a policy compacts and whether it deletes."""
    config = parse_topic_config({"cleanup.policy": policy})
    return config.has_compact_policy, config.has_delete_policy
