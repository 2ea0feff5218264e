"""The topics that klog writes and Kafka's tools check: what each shows, and its config.

The rule: one function a topic. Record times are of the last hour, for a broker forgets producers
whose records are older than a day; nothing else depends on the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.segments.segment_rolling import RollLimits
from tests.corpus.clients import CODECS, Sent
from tests.kafka.written_partition import Written

FIRST_PRODUCER_ID = 1 << 62  # a broker gives out ids from 0, and they may not meet
SMALL = RollLimits(segment_bytes=2000, segment_index_bytes=512, index_interval_bytes=300)
HEADERS = (("one", b"1"), ("one", None), ("größe-日本", b""))


def config_of(limits: RollLimits) -> dict[str, str]:
    """Return the topic config of roll limits."""
    return {
        "internal.segment.bytes": str(limits.segment_bytes),
        "segment.index.bytes": str(limits.segment_index_bytes),
        "index.interval.bytes": str(limits.index_interval_bytes),
        "segment.ms": str(limits.segment_ms),
    }


def rows(start: int, count: int, now: int, size: int = 40) -> list[Sent]:
    """Return distinct records, 1 ms apart."""
    return [
        Sent(b"k%d" % i, (b"v%d-" % i).ljust(size, b"."), now + i)
        for i in range(start, start + count)
    ]


def shapes(now: int) -> list[Sent]:
    """Return nulls, tombstones, empty records, headers, and times that are out of order."""
    return [
        Sent(b"key", b"value", now + 5, HEADERS),
        Sent(None, b"no key", now + 9),
        Sent(b"tombstone", None, now + 1, HEADERS[1:2]),
        Sent(b"", b"", now),
        Sent(None, None, now + 9),
    ]


def write_codecs(now: int) -> list[Written]:
    """Write every codec, a partition each; batches of one record and of many."""
    logs = []
    for number in range(len(CODECS)):
        log = Written("written.codecs", SMALL, number)
        for step in range(12):
            log.append(shapes(now + step), BatchAttributes(codec=number, leader_epoch=step // 6))
            log.append(
                rows(step * 20, 1 + step, now),
                BatchAttributes(codec=number, leader_epoch=step // 6),
            )
        logs.append(log)
    return logs


def write_append_time(now: int) -> list[Written]:
    """Write LogAppendTime, plain and compressed."""
    log = Written("written.append", SMALL)
    for step in range(20):
        form = BatchAttributes(
            codec=step % len(CODECS), leader_epoch=0, append_time_ms=now + 1000 * step
        )
        log.append(rows(step * 5, 5, now - 77_000), form)
    return [log]


def write_times(now: int) -> list[Written]:
    """Write records without a time, equal and falling times, and times that roll a segment."""
    limits = replace(SMALL, segment_bytes=1 << 20, segment_ms=60_000)
    log = Written("written.times", limits)
    none = [Sent(b"k", b"no time", -1)] * 3
    for minute in (0, 0, 0, 3, 2, 2, 9, 4, 4, 4, 4, 11):
        log.append([row._replace(timestamp=now + minute * 30_000) for row in rows(0, 4, 0)],
                   BatchAttributes(leader_epoch=0))  # fmt: skip
        log.append(none, BatchAttributes(leader_epoch=0))
        log.append(rows(minute, 2, now + minute * 30_000 - 50), BatchAttributes(leader_epoch=0))
    return [log]


def write_index_full(now: int) -> list[Written]:
    """Roll segments because their indexes are full."""
    limits = replace(SMALL, segment_bytes=1 << 20, segment_index_bytes=48, index_interval_bytes=0)
    log = Written("written.full", limits)
    for step in range(20):
        log.append(rows(step * 3, 3, now), BatchAttributes(leader_epoch=0))
    return [log]


def write_idempotent(now: int) -> list[Written]:
    """Let three producers take turns; one's sequences wrap, one's epoch rises."""
    log = Written("written.idempotent", SMALL)
    sequences = [0, (1 << 31) - 20, 0]
    for step in range(30):
        number = step % 3
        epoch = 32766 if number == 2 and step > 15 else 5
        if number == 2 and step == 17:
            sequences[2] = 0
        form = BatchAttributes(
            codec=(0, 3, 4)[number],
            leader_epoch=0,
            producer_id=FIRST_PRODUCER_ID + number,
            producer_epoch=epoch,
            base_sequence=sequences[number],
        )
        log.append(rows(step * 4, 4, now), form)
        sequences[number] = increment_sequence(sequences[number], 4)
    return [log]


def write_transactions(now: int) -> list[Written]:
    """Interleave three producers' transactions over segments; every other one aborts."""
    log = Written("written.txn", SMALL)
    sequences = {FIRST_PRODUCER_ID + number: 0 for number in range(3)}

    def send(producer_id: int, step: int, codec: int = 0) -> None:
        form = BatchAttributes(
            codec=codec,
            leader_epoch=0,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequences[producer_id],
            is_transactional=True,
        )
        log.append([*rows(step * 10, 2, now), shapes(now)[step % 5]], form)
        sequences[producer_id] += 3

    first, second, long = sequences
    for step in range(16):
        if step % 8 == 1:
            send(long, step, codec=4)  # open over segments, so that stable offsets lie far back
        send(first, step)
        send(second, step, codec=2)
        log.append(rows(step * 10 + 5, 1, now), BatchAttributes(leader_epoch=0))
        log.end(first, 0, now + step, commit=step % 2 == 0)
        send(second, step)
        log.end(second, 0, now + step, commit=step % 3 == 0)
        if step % 8 == 7:
            log.end(long, 0, now + step, commit=step > 8)
    return [log]


def write_gaps(now: int) -> list[Written]:
    """Write what a cleaner leaves: gaps, batches without records, a delete horizon."""
    log = Written("written.gaps", SMALL)
    sequence = 0
    emptied = BatchAttributes(
        leader_epoch=0, producer_id=FIRST_PRODUCER_ID, producer_epoch=0, base_sequence=0
    )
    for step in range(15):
        form = replace(emptied, codec=step % len(CODECS), base_sequence=sequence)
        first, second, third = rows(step * 10, 3, now)
        log.append_with_gaps([(1, first), (4, second), (5, third)], form, 9)
        log.append_empty(replace(emptied, base_sequence=sequence + 9), 6, now + step)
        tombstones = [(0, first._replace(value=None)), (3, second._replace(value=None))]
        horizon = BatchAttributes(leader_epoch=0, delete_horizon_ms=now + 86_400_000)
        log.append_with_gaps(tombstones, horizon, 4)
        sequence += 15
    log.append_empty(replace(emptied, base_sequence=sequence), 2, now)
    return [log]


def write_grouped(now: int) -> list[Written]:
    """Write appends of several batches, which get one index entry each at most."""
    log = Written("written.grouped", SMALL)
    for step in range(20):
        log.append(rows(step * 12, 12, now), BatchAttributes(batch_bytes=250, leader_epoch=0))
    return [log]


TOPICS: tuple[Callable[[int], list[Written]], ...] = (
    write_codecs,
    write_append_time,
    write_times,
    write_index_full,
    write_idempotent,
    write_transactions,
    write_gaps,
    write_grouped,
)


def write_all(now: int) -> dict[tuple[str, int], Written]:
    """Write every partition; `now` is in ms."""
    return {(log.topic, log.partition): log for write in TOPICS for log in write(now - 3_600_000)}
