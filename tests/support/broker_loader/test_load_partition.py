"""Loading and truncating a directory (docs/format.md, 14): what scripts of cases do not ask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.broker_files.file_names import segment_file_name as file_name
from klog.logformat.producers.producer_snapshot import (
    ProducerEntry,
    decode_snapshot,
    encode_snapshot,
)
from tests.conformance.log_files import encoded
from tests.logformat.golden_vectors import DIRECTORY
from tests.logformat.random_batches import logs
from tests.support.batch_bytes import plain, transactional
from tests.support.broker_loader.load_partition import Partition, load, recovery_reason
from tests.support.broker_loader.recover_segment import recover
from tests.support.broker_loader.reload_producers import reload_producers, stray_snapshots
from tests.support.broker_loader.truncate_partition import truncate

GOLDEN = b"".join(DIRECTORY)
ABORTED = bytes.fromhex("0000000000000000000a0000000000000002000000000000000500000000000000030000")


def segmented(batches: list[bytes], cuts: set[int]) -> dict[str, bytes]:
    """Write batches into segments that start at the batches with these numbers."""
    files: dict[str, bytes] = {}
    name = file_name(0, "log")
    files[name] = b""
    for number, batch in enumerate(batches):
        if number in cuts and files[name]:
            name = file_name(int.from_bytes(batch[:8], "big"), "log")
            files[name] = b""
        files[name] += batch
    return files


@given(logs(), st.sets(st.integers(0, 12)))
def test_state_is_independent_of_segments(batches: list[bytes], cuts: set[int]) -> None:
    recovered = recover(b"".join(batches), 0)
    partition = load(segmented(batches, cuts))
    assert (partition.log_start, partition.log_end) == (0, recovered.next_offset)
    assert partition.epochs == recovered.epochs
    assert partition.producers.snapshot() == recovered.producers.snapshot()
    indexes = [files.get("txnindex", b"") for files in partition.segments.values()]
    assert b"".join(indexes) == recovered.transaction_index
    for offset, data in partition.snapshots.items():
        before = [batch for batch in batches if int.from_bytes(batch[:8], "big") < offset]
        assert decode_snapshot(data) == recover(b"".join(before), 0).producers.snapshot()


@given(logs(), st.sets(st.integers(0, 12)))
def test_loaded_partition_loads_unchanged(batches: list[bytes], cuts: set[int]) -> None:
    once = load(segmented(batches, cuts))
    for was_clean in (True, False):
        again = load(encoded(once), was_clean=was_clean)
        assert encoded(again) == encoded(once)


@given(logs(), st.sets(st.integers(0, 12)), st.integers(0, 40))
def test_recovery_from_a_point_equals_full_recovery(
    batches: list[bytes], cuts: set[int], point: int
) -> None:
    once = load(segmented(batches, cuts))
    assert encoded(load(encoded(once), recovery_point=point)) == encoded(once)


@given(logs(), st.sets(st.integers(0, 12)), st.integers(0, 12))
def test_segments_after_a_cut_are_dropped(
    batches: list[bytes], cuts: set[int], number: int
) -> None:
    files = segmented(batches, cuts)
    damaged = sorted(files)[number % len(files)]
    before = {name: data for name, data in files.items() if name <= damaged}
    with_junk = encoded(load(files))
    with_junk[damaged] += b"\xff" * 100
    assert encoded(load(with_junk)) == encoded(load(before))


def test_segment_without_an_index_is_cut_alone() -> None:
    # A broker recovers it alone, before the remaining, and then serves the gap.
    files = {file_name(0, "log"): plain(0) + b"\xff" * 100, file_name(5, "log"): plain(5)}
    partition = load(files)
    assert (sorted(partition.segments), partition.log_end) == ([0, 5], 6)
    assert partition.logs[0] == plain(0)


@given(logs(), st.sets(st.integers(0, 12)), st.integers(0, 45))
def test_truncation_equals_loading_the_log_before_it(
    batches: list[bytes], cuts: set[int], offset: int
) -> None:
    partition = truncate(load(segmented(batches, cuts)), offset)
    ends = [recover(b"".join(batches[: count + 1]), 0).next_offset for count in range(len(batches))]
    before = [batch for batch, end in zip(batches, ends, strict=True) if end <= offset]
    recovered = recover(b"".join(before), 0)
    assert b"".join(partition.logs.values()) == b"".join(before)
    assert partition.log_end == min(offset, max(ends, default=0))
    assert partition.producers.snapshot() == recovered.producers.snapshot()
    assert partition.producers.end_offset == partition.log_end
    assert max(partition.snapshots, default=0) <= partition.log_end


def test_truncation_to_a_negative_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="truncated to offset -1"):
        truncate(load({}), -1)


def test_truncation_below_the_first_segment() -> None:
    partition = truncate(load({file_name(10, "log"): plain(10)}), 4)
    assert (partition.log_start, partition.log_end, sorted(partition.segments)) == (4, 4, [4])
    assert partition.epochs.entries == ()


@pytest.mark.parametrize(
    ("segment", "reason"),
    [
        ({}, "no offset index"),
        ({"index": b"", "txnindex": b"\0\1" + bytes(32)}, "version 1; this klog reads version 0"),
        ({"index": b"", "txnindex": ABORTED[:34]}, "marker below base offset 6"),
        ({"index": b"nonsense"}, None),
        ({"index": b"", "txnindex": b"\1" * 33}, None),
        ({"index": b"", "txnindex": ABORTED[:18] + bytes(7) + b"\6" + ABORTED[26:34]}, None),
    ],
)
def test_reason_for_a_recovery(segment: dict[str, bytes], reason: str | None) -> None:
    actual = recovery_reason(segment, 6)
    assert (actual is None) if reason is None else (actual is not None and reason in actual)


def test_malformed_epoch_checkpoint_is_an_error() -> None:
    with pytest.raises(CorruptRecordError, match="must be numbers"):
        load({"leader-epoch-checkpoint": b"x\n"})


def test_offsets_of_the_next_segment_are_damage_not_overflow() -> None:
    # If split, the second batch would start a segment that exists.
    next_base = (1 << 31) + 5
    files = {
        file_name(0, "log"): plain(0) + plain(next_base),
        file_name(next_base, "log"): plain(next_base),
    }
    files |= {file_name(0, "index"): b"", file_name(next_base, "index"): b""}
    partition = load(files)
    assert sorted(partition.segments) == [0]
    assert partition.log_end == 1


def test_expired_producers_are_dropped() -> None:
    files = {file_name(0, "log"): GOLDEN}
    once = load(files)
    assert sorted(once.producers.producers) == [10, 11, 12, 13]
    late = load(encoded(once), was_clean=True, now_ms=1010 + 86_400_000)
    assert sorted(late.producers.producers) == [13]
    assert load(encoded(once), was_clean=True, now_ms=1007 + 86_400_000 - 1).producers == (
        load(encoded(once), was_clean=True).producers
    )


def test_transaction_open_in_an_older_segment() -> None:
    files = {file_name(0, "log"): transactional(0, 7), file_name(1, "log"): plain(1)}
    assert load(files).producers.open_transactions == {7: 0}
    assert load(files, recovery_point=1).producers.open_transactions == {7: 0}


def test_newest_valid_snapshot_is_loaded() -> None:
    valid = encode_snapshot([ProducerEntry(1, 0, 4, 2, 0, 9, -1, -1)])
    reloaded = reload_producers({}, {3: valid, 5: b"bad", 6: valid[:-1], 9: valid}, 1, 8)
    assert reloaded.producers.producers[1].last_sequence == 4
    assert reloaded.producers.end_offset == 8
    assert sorted(reloaded.snapshots) == [3, 8]
    empty = reload_producers({}, {3: valid}, 3, 8)
    assert (empty.producers.producers, sorted(empty.snapshots)) == ({}, [8])


@given(st.sets(st.integers(0, 20)), st.sets(st.integers(0, 20)))
def test_stray_snapshots_are_at_no_base_offset(offsets: set[int], bases: set[int]) -> None:
    strays = stray_snapshots(offsets, bases)
    assert not strays & bases
    remaining = offsets - strays - bases
    assert len(remaining) <= 1
    assert all(offset > max(bases, default=-1) for offset in remaining)


NAMES = st.one_of(
    st.builds(
        file_name, st.integers(0, 3), st.sampled_from(["log", "index", "txnindex", "snapshot"])
    ),
    st.builds(
        file_name, st.integers(0, 3), st.sampled_from(["log.swap", "log.cleaned", "index.swap"])
    ),
)
BYTES = st.one_of(st.binary(max_size=80), logs(3).map(b"".join))


@given(st.dictionaries(NAMES, BYTES, max_size=6), st.booleans(), st.integers(0, 5))
def test_any_directory_loads_or_is_corrupt(
    files: dict[str, bytes], was_clean: bool, log_start: int
) -> None:
    try:
        partition: Partition = load(files, was_clean=was_clean, log_start=log_start)
    except CorruptRecordError:
        return
    assert partition.log_start <= partition.log_end or was_clean
    assert partition.segments
