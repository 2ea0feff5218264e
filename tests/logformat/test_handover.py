"""A partition's files made of its batches, held to what a broker's loading makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from klog.errors import UnsupportedFormatError
from klog.logformat import batch as v2
from klog.logformat.checkpoint import decode_epoch_checkpoint, encode_epoch_checkpoint
from klog.logformat.epochs import EpochEntry
from klog.logformat.handover import Handover, Piece
from klog.logformat.index import MAX_RELATIVE_OFFSET
from klog.logformat.metadata import decode_partition_metadata
from klog.logformat.names import segment_name
from klog.logformat.partition import load
from klog.logformat.producer import EXPIRATION_MS
from klog.logformat.restamp import restamp
from klog.logformat.snapshot import decode_snapshot
from tests.encode import Record, batch, marker, plain, transactional
from tests.encode_legacy import plain as legacy
from tests.kafka.written_topics import write_all

TOPIC_ID = "ASNFZ4mrze_-3LqYdlQyEA"
NOW_MS = 1_700_000_000_000
WRITTEN = write_all(NOW_MS)
BESIDE = {"leader-epoch-checkpoint", "partition.metadata"}


def handed(
    segments: Mapping[int, bytes | Sequence[bytes]],
    log_end: int,
    *,
    log_start: int = 0,
    shift: int = 0,
    **limits: int,
) -> dict[str, bytes]:
    """Hand over segments by base offset, each in one piece or in several; gives the files."""
    handover = Handover(log_start, NOW_MS, **limits)
    pieces: list[Piece] = []
    for base, chunks in segments.items():
        pieces += handover.begin(base)
        for chunk in [chunks] if isinstance(chunks, bytes) else chunks:
            pieces += handover.add(chunk, v2.scan(chunk, 0, len(chunk)), shift)
    pieces += handover.finish(log_end, TOPIC_ID)
    made: dict[str, bytes] = {}
    for number, piece in enumerate(pieces):
        assert piece.name not in made or pieces[number - 1].name == piece.name, "not in turn"
        made[piece.name] = made.get(piece.name, b"") + bytes(piece.data)
    return made


def stamped(data: bytes, epoch: int) -> bytes:
    made = bytearray(data)
    restamp(made, v2.scan(data, 0, len(data)), leader_epoch=epoch)
    return bytes(made)


def epochs_of(data: bytes) -> list[int]:
    found: list[int] = v2.scan(data, 0, len(data)).headers["leader_epoch"].tolist()
    return found


def logs_of(files: Mapping[str, bytes]) -> dict[int, bytes]:
    return {int(name[:20]): files[name] for name in sorted(files) if name.endswith(".log")}


@pytest.mark.parametrize("where", WRITTEN, ids=lambda where: f"{where[0]}-{where[1]}")
def test_it_is_what_a_broker_would_have_written(where: tuple[str, int]) -> None:
    """The files of partitions that real brokers take, made anew of their logs alone."""
    log = WRITTEN[where]
    wanted = log.files()
    for name in wanted:
        if name.endswith(".log"):
            wanted[name] = stamped(wanted[name], 0)
    wanted["leader-epoch-checkpoint"] = encode_epoch_checkpoint([EpochEntry(0, 0)])
    last = f"{log.next_offset:020}.snapshot"
    made = handed(
        logs_of(wanted),
        log.next_offset,
        segment_index_bytes=log.limits.segment_index_bytes,
        index_interval_bytes=log.limits.index_interval_bytes,
    )
    assert decode_partition_metadata(made.pop("partition.metadata")) == TOPIC_ID
    kept = {name for name in wanted if ".snapshot" not in name or name == last}
    assert set(made) == kept
    if all(len(append) == 1 for append in log.appends):
        assert made == {name: wanted[name] for name in kept}


@pytest.mark.parametrize("where", [("written.codecs", 2), ("written.txn", 0)])
def test_the_pieces_that_batches_come_in_make_no_difference(where: tuple[str, int]) -> None:
    log = WRITTEN[where]
    whole = logs_of(log.files())
    cut = {}
    for base, data in whole.items():
        batches = v2.scan(data, 0, len(data))
        cut[base] = [
            data[begin:end]
            for begin, end in zip(batches.starts.tolist(), batches.ends.tolist(), strict=True)
        ]
    assert handed(cut, log.next_offset) == handed(whole, log.next_offset)


def test_shifted_batches_are_those_that_were_written_there() -> None:
    told = {0: plain(0, [b"a", b"b"]), 2: plain(0, [b"c"]) + plain(1, [b"d", b"e"])}
    handover = Handover(0, NOW_MS)
    pieces = [*handover.begin(0), *handover.add(told[0], v2.scan(told[0], 0, len(told[0])))]
    pieces += handover.begin(2)
    pieces += handover.add(told[2], v2.scan(told[2], 0, len(told[2])), 2)
    made = {one.name: bytes(one.data) for one in pieces}
    assert made[segment_name(2, "log")] == stamped(plain(2, [b"c"]) + plain(3, [b"d", b"e"]), 0)
    assert handover.next_offset == 5
    assert told[2] == plain(0, [b"c"]) + plain(1, [b"d", b"e"]), "what was given is as it was"


def test_the_leader_epochs_of_another_cluster_are_not_kept() -> None:
    said = (-1, 3, 0, -1, 7)
    log = b"".join(stamped(plain(offset), epoch) for offset, epoch in enumerate(said))
    made = handed({0: log}, 5)
    assert epochs_of(made[segment_name(0, "log")]) == [0] * 5
    epochs = decode_epoch_checkpoint(made["leader-epoch-checkpoint"]).entries
    assert [(one.epoch, one.start_offset) for one in epochs] == [(0, 0)]


def test_epochs_begin_at_the_log_start() -> None:
    log = b"".join(stamped(plain(offset), 0) for offset in range(3))
    made = handed({0: log}, 3, log_start=2)
    epochs = decode_epoch_checkpoint(made["leader-epoch-checkpoint"]).entries
    assert [(one.epoch, one.start_offset) for one in epochs] == [(0, 2)]
    assert made[segment_name(0, "log")] == log, "a segment is kept whole"


@pytest.mark.parametrize("far", [MAX_RELATIVE_OFFSET, MAX_RELATIVE_OFFSET + 1])
def test_a_gap_that_no_segment_can_hold_rolls(far: int) -> None:
    log = stamped(plain(10) + plain(10 + far) + plain(11 + far), 0)
    made = logs_of(handed({10: log}, 12 + far))
    size = len(log) // 3
    at = 2 if far == MAX_RELATIVE_OFFSET else 1
    assert made == {10: log[: at * size], 9 + at + far: log[at * size :]}
    loaded = load(handed({10: log}, 12 + far))
    assert loaded.logs == made
    assert loaded.log_end == 12 + far


def test_a_gap_before_the_first_batch_rolls_too() -> None:
    far = MAX_RELATIVE_OFFSET + 6
    log = stamped(plain(far), 0)
    assert logs_of(handed({5: log}, far + 1)) == {5: b"", far: log}


def test_a_full_index_rolls() -> None:
    log = b"".join(stamped(plain(offset), 0) for offset in range(9))
    made = handed({0: log}, 9, segment_index_bytes=36, index_interval_bytes=0)
    assert len(logs_of(made)) > 1
    assert b"".join(logs_of(made).values()) == log
    assert all(len(made[name]) <= 36 for name in made if name.endswith("index"))


@pytest.mark.parametrize(("log_start", "log_end"), [(0, 0), (50, 50)])
def test_a_log_without_records_is_an_empty_segment_at_its_end(log_start: int, log_end: int) -> None:
    made = handed({}, log_end, log_start=log_start)
    empty = {segment_name(log_end, suffix) for suffix in ("log", "index", "timeindex")}
    assert set(made) == empty | BESIDE
    assert all(made[name] == b"" for name in empty)
    loaded = load(made, log_start=log_start, was_clean=True)
    assert (loaded.log_start, loaded.log_end) == (log_start, log_end)


def test_last_offsets_without_a_batch_are_kept_by_an_empty_segment() -> None:
    """A cleaner may have taken them; the log must not give them out again."""
    log = stamped(plain(0), 0)
    made = handed({0: log}, 40)
    assert logs_of(made) == {0: log, 40: b""}
    assert load(made, was_clean=True).log_end == 40


def test_messages_of_old_formats_stay_as_they_are_and_cannot_be_shifted() -> None:
    old = legacy([Record(0, 1000, None, b"v")], 1) + stamped(plain(1), 0)
    assert logs_of(handed({0: old}, 2)) == {0: old}
    with pytest.raises(UnsupportedFormatError, match="cannot be given other offsets"):
        handed({5: old}, 7, shift=5)


def test_aborted_transactions_are_in_the_index_of_their_marker() -> None:
    first = stamped(transactional(0, 7) + transactional(1, 8), 0)
    second = stamped(marker(2, 7, 0) + marker(3, 8, 1), 0)
    made = handed({0: first, 2: second}, 4)
    assert [name for name in made if "txnindex" in name] == [segment_name(2, "txnindex")]
    assert load(made).segments[2]["txnindex"] == made[segment_name(2, "txnindex")]


def test_open_transactions_are_told() -> None:
    handover = Handover(0, NOW_MS)
    log = transactional(4, 7)
    for _ in (*handover.begin(4), *handover.add(log, v2.scan(log, 0, len(log)))):
        pass
    assert handover.open_transactions == {7: 4}


def test_the_snapshot_has_the_producers_that_a_broker_would_still_know() -> None:
    def of(producer_id: int, offset: int, timestamp_ms: int) -> bytes:
        row = Record(offset, timestamp_ms, None, b"v")
        return stamped(batch([row], producer_id=producer_id, producer_epoch=2, base_sequence=9), 0)

    log = of(1, 0, NOW_MS - EXPIRATION_MS) + of(2, 1, NOW_MS - EXPIRATION_MS + 1)
    (found,) = decode_snapshot(handed({0: log}, 2)[segment_name(2, "snapshot")])
    assert (found.producer_id, found.epoch, found.last_sequence, found.last_offset) == (2, 2, 9, 1)


def test_misuse_is_refused() -> None:
    log = plain(5)
    batches = v2.scan(log, 0, len(log))
    with pytest.raises(ValueError, match="begin a segment"):
        list(Handover(0, NOW_MS).add(log, batches))
    for base, shift in ((6, 0), (5, -1)):
        handover = Handover(0, NOW_MS)
        list(handover.begin(base))
        with pytest.raises(ValueError, match="below its segment's base"):
            list(handover.add(log, batches, shift))
    handover = Handover(0, NOW_MS)
    list(handover.begin(5))
    list(handover.add(log, batches))
    with pytest.raises(ValueError, match="rise"):
        list(handover.add(log, batches))
    none = batches.where(np.zeros(1, np.bool_))
    assert list(handover.add(log, none)) == []
