"""Committed segments as jobs read them: whole, with the offsets that they have in the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from klog.connector.log.entries import Entry
from klog.connector.log.lookup import file_partition, path_of
from klog.connector.log.root import KlogRoot
from klog.connector.log.segment import located
from klog.connector.log.whole import whole_segment
from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat import batch as v2
from klog.logformat.restamp import moved


def read_segment(root: KlogRoot, entry: Entry, take: Callable[[bytes, v2.Batches], object]) -> None:
    """Read a segment in chunks of whole batches, which have their offsets in the log.

    What `take` raises of a position in a chunk is told with the file, its position there and the
    partition.
    """
    for chunk in whole_segment(root, entry):
        with in_segment(root, entry, chunk.position):
            take(chunk.data, moved(chunk.batches, entry["offset_shift"]))


@contextmanager
def in_segment(root: KlogRoot, entry: Entry, position: int) -> Iterator[None]:
    """Restate what is wrong in a chunk that begins at `position` of a segment by file and place."""
    try:
        with located(position):
            yield
    except (CorruptRecordError, UnsupportedFormatError) as exc:
        raise exc.in_file(path_of(root, entry), file_partition(entry)) from exc
