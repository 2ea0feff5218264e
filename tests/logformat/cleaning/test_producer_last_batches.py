"""The last batches of producers, compared to the producer state of a full replay."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from klog.logformat.cleaning.producer_last_batches import ProducerLastBatches
from klog.logformat.producers.producer_state import ProducerState, is_expired
from tests.logformat.cleaning.cleaning_rounds import scan
from tests.logformat.cleaning.kafka_cleaner_model import batches
from tests.logformat.cleaning.random_logs import START_MS, cuts, logs
from tests.support.batch_bytes import (
    ABORT,
    COMMIT,
    CONTROL,
    TRANSACTIONAL,
    Record,
    batch,
    control,
    marker,
    plain,
)

NOW_MS = START_MS + 100


def data(
    offset: int, producer_id: int, epoch: int = 0, sequence: int = 0, time: int = 1000
) -> bytes:
    return batch(
        [Record(offset, time, b"k", b"v")],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def emptied(offset: int, producer_id: int, epoch: int, time: int = 0) -> bytes:
    """Write a marker that a cleaning emptied."""
    return batch(
        base_offset=offset,
        max_timestamp=time,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=epoch,
    )


def last_of(*segments: bytes) -> ProducerLastBatches:
    """Read segments from the last to the first, as a cleaning from the newest batch does."""
    last_batches = ProducerLastBatches()
    for segment in reversed(segments):
        earlier = ProducerLastBatches()
        earlier.add(scan(segment))
        last_batches.prepend(earlier)
    return last_batches


def last_offsets(*segments: bytes) -> list[int]:
    offsets: list[int] = last_of(*segments).last_offsets(0).tolist()
    return offsets


def by_producer_state(log: bytes, expiration_ms: int) -> list[int]:
    """Return the last offsets by a full replay (`UnifiedLog.lastRecordsOfActiveProducers`)."""
    state = ProducerState()
    state.replay(log, scan(log))
    offsets = []
    for replayed in batches(log):
        entry = state.producers.get(replayed.producer_id)
        if entry is None or is_expired(entry, NOW_MS, expiration_ms):
            continue
        if entry.last_offset >= 0:
            is_last = replayed.last_offset == entry.last_offset
        else:
            is_last = replayed.has(CONTROL) and replayed.producer_epoch == entry.epoch
        offsets += [replayed.last_offset] if is_last else []
    return offsets


@settings(max_examples=80)
@given(st.data())
def test_last_batches_equal_a_full_replay(data: st.DataObject) -> None:
    """However the log is cut into segments, and in either order."""
    log = data.draw(logs(max_steps=24))
    segments = data.draw(cuts(log))
    expiration_ms = data.draw(st.sampled_from((0, 60, 80, 100, 110, 1 << 60)))
    expected = by_producer_state(b"".join(log), expiration_ms)
    assert last_of(b"".join(log)).last_offsets(NOW_MS, expiration_ms).tolist() == expected
    assert last_of(*segments).last_offsets(NOW_MS, expiration_ms).tolist() == expected
    in_order = ProducerLastBatches()
    for segment in segments:
        in_order.add(scan(segment))
    assert in_order.last_offsets(NOW_MS, expiration_ms).tolist() == expected


def test_last_batch_of_each_producer() -> None:
    log = data(0, 1) + data(1, 2) + plain(2) + data(3, 1, sequence=1) + data(4, 3)
    assert last_offsets(log) == [1, 3, 4]
    assert last_offsets() == last_offsets(b"") == last_offsets(plain(0)) == []


def test_marker_of_the_same_epoch_keeps_the_data() -> None:
    assert last_offsets(data(0, 1) + marker(1, 1, COMMIT)) == [0]
    assert last_offsets(data(0, 1), marker(1, 1, ABORT)) == [0]


def test_marker_of_another_epoch_replaces_the_data() -> None:
    log = data(0, 1), marker(1, 1, COMMIT, 1), marker(2, 1, ABORT, 1)
    assert last_offsets(b"".join(log)) == last_offsets(*log) == [1, 2]
    assert last_offsets(*log, data(3, 1, 1), marker(4, 1, COMMIT, 1)) == [3]
    assert last_offsets(*log, marker(5, 1, COMMIT, 2)) == [5]


def test_emptied_marker_counts() -> None:
    """A running broker still knows its epoch; one that restarts does not."""
    log = data(0, 1), emptied(1, 1, 1)
    assert last_offsets(b"".join(log)) == last_offsets(*log) == [1]


def test_emptied_batch_of_data_counts() -> None:
    empty_batch = batch(
        base_offset=5,
        last_offset_delta=2,
        max_timestamp=9,
        producer_id=1,
        producer_epoch=0,
        base_sequence=3,
    )
    assert last_offsets(data(0, 1) + empty_batch) == [7]


def test_expired_producer_does_not_count() -> None:
    log = last_of(data(0, 1, time=1000) + data(1, 2, time=1001))
    assert log.last_offsets(1100, 101).tolist() == [0, 1]
    assert log.last_offsets(1100, 100).tolist() == [1]
    assert log.last_offsets(1100, 99).tolist() == []
    assert log.last_offsets(1000 + 86_400_000).tolist() == [1]


def test_last_batch_decides_expiry_not_the_latest_timestamp() -> None:
    log = last_of(data(0, 1, time=5000) + data(1, 1, sequence=1, time=1000))
    assert log.last_offsets(1100, 100).tolist() == []


def test_prepend_does_not_change_its_argument() -> None:
    earlier, last_batches = last_of(marker(0, 1, COMMIT, 1)), last_of()
    for _ in range(2):
        last_batches.prepend(earlier)
    assert last_batches.last_offsets(0).tolist() == [0, 0]
    assert earlier.last_offsets(0).tolist() == [0]


def test_last_offsets_among_other_producers() -> None:
    log = last_of(data(0, 1) + data(1, 2) + data(2, 3))
    assert log.last_offsets(0, among=last_of(data(0, 3) + data(1, 1))).tolist() == [0, 2]


def test_control_batch_without_a_producer_does_not_count() -> None:
    assert last_offsets(control(0, 2)) == []
