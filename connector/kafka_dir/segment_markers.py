"""Whether the markers that decide about a segment lie in it, and what those after it say.

The rule: a producer snapshot at the base offset of the next segment has the transactions that are
open there. Without any, all markers of the segment's transactions lie in it. Each open one ends
with the first marker of its producer id after that offset, if one lies in the next 1 MiB of the
log. Whatever this does not decide at that cost stays undecided. (docs/format.md, 10 and 11.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.kafka_dir.partition_directory import Segment
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.segment_chunks import Chunk, at_file_position, read_chunks
from klog.errors import CorruptRecordError
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.producers.control_records import ABORT
from klog.logformat.producers.producer_snapshot import parse_open_transactions
from klog.logformat.producers.transaction_outcomes import TransactionMarker, transaction_markers

MAX_SCANNED_BYTES = 1 << 20
"""How much of the log is read for the markers of open transactions."""


def aborted_after(log: RawPartition, segment: Segment, end_offset: int) -> list[list[int]] | None:
    """Return the transactions that begin up to the end of a segment and are aborted after it.

    Args:
        log: The partition.
        segment: One of its segments.
        end_offset: Transactions that begin here or later do not matter.

    Returns:
        Producer id, first offset and offset of the marker of each. None if that is not decided: the
        outcome of a transaction may lie anywhere after the segment.
    """
    if log.is_active(segment):
        return []
    later_segments = log.segments[log.segments.index(segment) + 1 :]
    open_transactions = _open_transactions(log, later_segments[0].base_offset)
    if open_transactions is None:
        return None
    open_transactions = {
        producer_id: first_offset
        for producer_id, first_offset in open_transactions.items()
        if first_offset < end_offset
    }
    markers = _first_markers(log, later_segments, set(open_transactions))
    if markers is None or markers.keys() != open_transactions.keys():
        return None
    return [
        [producer_id, open_transactions[producer_id], marker.base_offset]
        for producer_id, marker in markers.items()
        if marker.kind == ABORT
    ]


def _open_transactions(log: RawPartition, offset: int) -> dict[int, int] | None:
    """Return the first offsets of the transactions open at an offset, by producer id."""
    entry = log.directory.snapshots.get(offset)
    data = None if entry is None else read_companion_file(log.store, entry.path)
    return None if data is None else parse_open_transactions(data)


def _first_markers(
    log: RawPartition, segments: Sequence[Segment], producer_ids: set[int]
) -> Mapping[int, TransactionMarker] | None:
    """Return the first marker of each producer that has one near; None if bytes are damaged."""
    first_markers: dict[int, TransactionMarker] = {}
    remaining_bytes = MAX_SCANNED_BYTES
    for segment in segments:
        if len(first_markers) == len(producer_ids) or remaining_bytes <= 0:
            break
        reader = log.open(segment)
        try:
            end = min(log.readable_bytes(reader), remaining_bytes)
            remaining_bytes -= end
            for marker in _markers(read_chunks(reader.file, 0, end, segment.base_offset)):
                if marker.producer_id in producer_ids:
                    first_markers.setdefault(marker.producer_id, marker)
        except CorruptRecordError:
            return None
        finally:
            reader.close()
    return first_markers


def _markers(chunks: Iterable[Chunk]) -> Iterator[TransactionMarker]:
    """Yield the transaction markers in chunks, once their CRCs hold."""
    for chunk in chunks:
        control = chunk.batches.where(chunk.batches.is_control)
        with at_file_position(chunk.position):
            check_batch_crcs(chunk.data, control)
        yield from transaction_markers(chunk.data, control)
