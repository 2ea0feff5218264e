"""Loading and truncating a directory (docs/format.md, 14): what scripts of cases do not ask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.names import segment_name as n
from klog.logformat.partition import Partition, load, recovery_reason
from klog.logformat.replay import reload_producers, stray_snapshots
from klog.logformat.segment_recovery import recover
from klog.logformat.snapshot import SnapshotEntry, decode_snapshot, encode_snapshot
from klog.logformat.truncation import truncate
from tests.conformance.log_files import encoded
from tests.encode import plain, transactional
from tests.logformat.golden import DIRECTORY
from tests.logformat.logs import logs

GOLDEN = b"".join(DIRECTORY)
ABORTED = bytes.fromhex("0000000000000000000a0000000000000002000000000000000500000000000000030000")


def segmented(batches: list[bytes], cuts: set[int]) -> dict[str, bytes]:
    """Write batches into segments that begin at the batches with these numbers."""
    files: dict[str, bytes] = {}
    name = n(0, "log")
    files[name] = b""
    for number, one in enumerate(batches):
        if number in cuts and files[name]:
            name = n(int.from_bytes(one[:8], "big"), "log")
            files[name] = b""
        files[name] += one
    return files


@given(logs(), st.sets(st.integers(0, 12)))
def test_however_it_is_cut_into_segments(batches: list[bytes], cuts: set[int]) -> None:
    whole = recover(b"".join(batches), 0)
    found = load(segmented(batches, cuts))
    assert (found.log_start, found.log_end) == (0, whole.next_offset)
    assert found.epochs == whole.epochs
    assert found.producers.snapshot() == whole.producers.snapshot()
    indexes = [files.get("txnindex", b"") for files in found.segments.values()]
    assert b"".join(indexes) == whole.transaction_index
    for offset, data in found.snapshots.items():
        before = [one for one in batches if int.from_bytes(one[:8], "big") < offset]
        assert decode_snapshot(data) == recover(b"".join(before), 0).producers.snapshot()


@given(logs(), st.sets(st.integers(0, 12)))
def test_what_was_loaded_loads_as_it_is(batches: list[bytes], cuts: set[int]) -> None:
    once = load(segmented(batches, cuts))
    for was_clean in (True, False):
        again = load(encoded(once), was_clean=was_clean)
        assert encoded(again) == encoded(once)


@given(logs(), st.sets(st.integers(0, 12)), st.integers(0, 40))
def test_recovery_from_a_point_gives_what_recovery_of_all_gives(
    batches: list[bytes], cuts: set[int], point: int
) -> None:
    once = load(segmented(batches, cuts))
    assert encoded(load(encoded(once), recovery_point=point)) == encoded(once)


@given(logs(), st.sets(st.integers(0, 12)), st.integers(0, 12))
def test_what_lies_behind_a_cut_is_dropped(
    batches: list[bytes], cuts: set[int], number: int
) -> None:
    files = segmented(batches, cuts)
    damaged = sorted(files)[number % len(files)]
    before = {name: data for name, data in files.items() if name <= damaged}
    spoilt = encoded(load(files))
    spoilt[damaged] += b"\xff" * 100
    assert encoded(load(spoilt)) == encoded(load(before))


def test_a_segment_without_an_index_is_cut_alone() -> None:
    # It is recovered on its own, before the others; a broker then serves the gap.
    files = {n(0, "log"): plain(0) + b"\xff" * 100, n(5, "log"): plain(5)}
    found = load(files)
    assert (sorted(found.segments), found.log_end) == ([0, 5], 6)
    assert found.logs[0] == plain(0)


@given(logs(), st.sets(st.integers(0, 12)), st.integers(0, 45))
def test_truncation_leaves_what_the_log_before_it_gives(
    batches: list[bytes], cuts: set[int], offset: int
) -> None:
    found = truncate(load(segmented(batches, cuts)), offset)
    ends = [recover(b"".join(batches[: at + 1]), 0).next_offset for at in range(len(batches))]
    kept = [one for one, end in zip(batches, ends, strict=True) if end <= offset]
    whole = recover(b"".join(kept), 0)
    assert b"".join(found.logs.values()) == b"".join(kept)
    assert found.log_end == min(offset, max(ends, default=0))
    assert found.producers.snapshot() == whole.producers.snapshot()
    assert found.producers.end_offset == found.log_end
    assert max(found.snapshots, default=0) <= found.log_end


def test_a_negative_offset_is_no_truncation() -> None:
    with pytest.raises(ValueError, match="truncated to offset -1"):
        truncate(load({}), -1)


def test_truncation_below_the_first_segment_begins_there() -> None:
    found = truncate(load({n(10, "log"): plain(10)}), 4)
    assert (found.log_start, found.log_end, sorted(found.segments)) == (4, 4, [4])
    assert found.epochs.entries == ()


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
def test_what_makes_a_broker_recover(segment: dict[str, bytes], reason: str | None) -> None:
    found = recovery_reason(segment, 6)
    assert (found is None) if reason is None else (found is not None and reason in found)


def test_a_malformed_epoch_checkpoint_is_an_error() -> None:
    with pytest.raises(CorruptRecordError, match="not a number"):
        load({"leader-epoch-checkpoint": b"x\n"})


def test_offsets_of_the_next_segment_are_damage_and_no_overflow() -> None:
    # Split, the second batch would begin a segment that is there already.
    beyond = (1 << 31) + 5
    files = {n(0, "log"): plain(0) + plain(beyond), n(beyond, "log"): plain(beyond)}
    files |= {n(0, "index"): b"", n(beyond, "index"): b""}
    found = load(files)
    assert sorted(found.segments) == [0]
    assert found.log_end == 1


def test_expired_producers_are_forgotten() -> None:
    files = {n(0, "log"): GOLDEN}
    once = load(files)
    assert sorted(once.producers.producers) == [10, 11, 12, 13]
    late = load(encoded(once), was_clean=True, now_ms=1010 + 86_400_000)
    assert sorted(late.producers.producers) == [13]
    assert load(encoded(once), was_clean=True, now_ms=1007 + 86_400_000 - 1).producers == (
        load(encoded(once), was_clean=True).producers
    )


def test_a_transaction_open_in_an_older_segment() -> None:
    files = {n(0, "log"): transactional(0, 7), n(1, "log"): plain(1)}
    assert load(files).producers.open_transactions == {7: 0}
    assert load(files, recovery_point=1).producers.open_transactions == {7: 0}


def test_the_newest_whole_snapshot_is_loaded() -> None:
    good = encode_snapshot([SnapshotEntry(1, 0, 4, 2, 0, 9, -1, -1)])
    found = reload_producers({}, {3: good, 5: b"bad", 6: good[:-1], 9: good}, 1, 8)
    assert found.producers.producers[1].last_sequence == 4
    assert found.producers.end_offset == 8
    assert sorted(found.snapshots) == [3, 8]
    none = reload_producers({}, {3: good}, 3, 8)
    assert (none.producers.producers, sorted(none.snapshots)) == ({}, [8])


@given(st.sets(st.integers(0, 20)), st.sets(st.integers(0, 20)))
def test_strays_are_never_at_a_base(offsets: set[int], bases: set[int]) -> None:
    strays = stray_snapshots(offsets, bases)
    assert not strays & bases
    kept = offsets - strays - bases
    assert len(kept) <= 1
    assert all(one > max(bases, default=-1) for one in kept)


NAMES = st.one_of(
    st.builds(n, st.integers(0, 3), st.sampled_from(["log", "index", "txnindex", "snapshot"])),
    st.builds(n, st.integers(0, 3), st.sampled_from(["log.swap", "log.cleaned", "index.swap"])),
)
BYTES = st.one_of(st.binary(max_size=80), logs(3).map(b"".join))


@given(st.dictionaries(NAMES, BYTES, max_size=6), st.booleans(), st.integers(0, 5))
def test_any_directory_loads_or_is_corrupt(
    files: dict[str, bytes], was_clean: bool, log_start: int
) -> None:
    try:
        found: Partition = load(files, was_clean=was_clean, log_start=log_start)
    except CorruptRecordError:
        return
    assert found.log_start <= found.log_end or was_clean
    assert found.segments
