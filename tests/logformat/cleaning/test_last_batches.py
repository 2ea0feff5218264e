"""The batches by which producers are known, against the producer state of a full replay."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from klog.logformat.cleaning.last_batches import LastBatches
from klog.logformat.producers import ProducerState
from tests.encode import (
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
from tests.logformat.cleaning.drawn import START_MS, cuts, logs
from tests.logformat.cleaning.kafkas_rules import batches
from tests.logformat.cleaning.rounds import scan

NOW_MS = START_MS + 100


def data(offset: int, producer: int, epoch: int = 0, sequence: int = 0, time: int = 1000) -> bytes:
    return batch(
        [Record(offset, time, b"k", b"v")],
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def emptied(offset: int, producer: int, epoch: int, time: int = 0) -> bytes:
    """Write what a cleaning left of a marker."""
    return batch(
        base_offset=offset,
        max_timestamp=time,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer,
        producer_epoch=epoch,
    )


def last_of(*segments: bytes) -> LastBatches:
    """Take segments from the last to the first, as a task that cleans them at once."""
    found = LastBatches()
    for segment in reversed(segments):
        one = LastBatches()
        one.add(scan(segment))
        found.put_before(one)
    return found


def kept(*segments: bytes) -> list[int]:
    found: list[int] = last_of(*segments).kept(0).tolist()
    return found


def by_state(log: bytes, expiration_ms: int) -> list[int]:
    """Say by a full replay which batches stay (`UnifiedLog.lastRecordsOfActiveProducers`)."""
    state = ProducerState()
    state.replay(log, scan(log))
    found = []
    for one in batches(log):
        known = state.producers.get(one.producer_id)
        if known is None or known.is_expired(NOW_MS, expiration_ms):
            continue
        if known.batches:
            stays = one.last_offset == known.batches[-1].last_offset
        else:
            stays = one.has(CONTROL) and one.producer_epoch == known.epoch
        found += [one.last_offset] if stays else []
    return found


@settings(max_examples=80)
@given(st.data())
def test_they_are_those_of_a_full_replay(data: st.DataObject) -> None:
    """However the log is cut, in one look or in parts that are joined."""
    log = data.draw(logs(most=24))
    segments = data.draw(cuts(log))
    expiration_ms = data.draw(st.sampled_from((0, 60, 80, 100, 110, 1 << 60)))
    expected = by_state(b"".join(log), expiration_ms)
    assert last_of(b"".join(log)).kept(NOW_MS, expiration_ms).tolist() == expected
    assert last_of(*segments).kept(NOW_MS, expiration_ms).tolist() == expected
    in_one = LastBatches()
    for segment in segments:
        in_one.add(scan(segment))
    assert in_one.kept(NOW_MS, expiration_ms).tolist() == expected


def test_the_last_of_each_producer() -> None:
    log = data(0, 1) + data(1, 2) + plain(2) + data(3, 1, sequence=1) + data(4, 3)
    assert kept(log) == [1, 3, 4]
    assert kept() == kept(b"") == kept(plain(0)) == []


def test_a_marker_of_the_same_epoch_leaves_the_data() -> None:
    assert kept(data(0, 1) + marker(1, 1, COMMIT)) == [0]
    assert kept(data(0, 1), marker(1, 1, ABORT)) == [0]


def test_a_marker_of_another_epoch_takes_its_place() -> None:
    log = data(0, 1), marker(1, 1, COMMIT, 1), marker(2, 1, ABORT, 1)
    assert kept(b"".join(log)) == kept(*log) == [1, 2]
    assert kept(*log, data(3, 1, 1), marker(4, 1, COMMIT, 1)) == [3]
    assert kept(*log, marker(5, 1, COMMIT, 2)) == [5]


def test_an_emptied_marker_counts() -> None:
    """A broker that runs knows of its epoch still; one that starts anew does not, and may not."""
    log = data(0, 1), emptied(1, 1, 1)
    assert kept(b"".join(log)) == kept(*log) == [1]


def test_an_emptied_batch_of_data_is_the_last() -> None:
    empty = batch(
        base_offset=5,
        last_offset_delta=2,
        max_timestamp=9,
        producer_id=1,
        producer_epoch=0,
        base_sequence=3,
    )
    assert kept(data(0, 1) + empty) == [7]


def test_who_wrote_long_ago_is_forgotten() -> None:
    log = last_of(data(0, 1, time=1000) + data(1, 2, time=1001))
    assert log.kept(1100, 101).tolist() == [0, 1]
    assert log.kept(1100, 100).tolist() == [1]
    assert log.kept(1100, 99).tolist() == []
    assert log.kept(1000 + 86_400_000).tolist() == [1]


def test_the_last_batch_says_the_time_though_an_earlier_one_was_later() -> None:
    log = last_of(data(0, 1, time=5000) + data(1, 1, sequence=1, time=1000))
    assert log.kept(1100, 100).tolist() == []


def test_what_is_put_before_does_not_change() -> None:
    first, found = last_of(marker(0, 1, COMMIT, 1)), last_of()
    for _ in range(2):
        found.put_before(first)
    assert found.kept(0).tolist() == [0, 0]
    assert first.kept(0).tolist() == [0]


def test_some_producers_alone() -> None:
    log = last_of(data(0, 1) + data(1, 2) + data(2, 3))
    assert log.kept(0, among=last_of(data(0, 3) + data(1, 1))).tolist() == [0, 2]


def test_controls_of_no_producer_are_nobodys() -> None:
    assert kept(control(0, 2)) == []
