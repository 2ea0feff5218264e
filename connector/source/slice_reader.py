"""Read the slices of a task as Arrow, whatever happens to their files meanwhile.

The rule: a slice is read from the very file that was planned. If that has changed or gone, the
slice is planned again, by offset, from what the root holds now, and reading goes on where it
stopped. Damage in a broker's file is an error only if a new plan has the same file: an inode number
may belong to another file by now. Records that no file holds any more are data loss: an error, or a
warning with `failOnDataLoss=false`.

What decodes is imported by the first read: planners make readers, which they send to tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from klog.connector.back_off import back_off
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.source.data_loss import BATCH_REMEDY, Remedy, raise_or_warn
from klog.connector.source.slice_contract import expand_task
from klog.connector.source.slices import Slice, SliceChangedError
from klog.errors import CorruptRecordError
from klog.url_secrets import without_passwords

if TYPE_CHECKING:
    import pyarrow as pa

    from klog.connector.store.readable_store import ReadableStore
    from klog.logformat.batches.record_columns import RecordColumns

_log = logging.getLogger(__name__)

Replan: TypeAlias = Callable[[Slice], tuple[int, list[Slice]]]
"""Plans the offsets of a slice again from what its root holds now: (log start, slices)."""

T = TypeVar("T")
SliceRead: TypeAlias = "Callable[[ReadableStore, Slice], Iterator[tuple[T, int]]]"
"""Yields what is read of a slice in parts, each with the offset after it."""

MAX_ROWS = 1 << 20
"""Rows of one Arrow batch: as many topic names stay within Arrow's 32-bit offsets."""
MAX_TRIES = 8
"""A slice may change so often in a row without a record read from it."""


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads slices; pickles with its options.

    Attributes:
        columns: Names of the columns to return, in order.
        replan: Plans a slice again if its file has changed.
        fail_on_data_loss: Whether records that have gone are an error.
        storage: Options of the stores.
        loss_remedy: What to do if records were deleted meanwhile.
    """

    columns: Sequence[str]
    replan: Replan
    fail_on_data_loss: bool = True
    storage: StorageOptions = NO_STORAGE_OPTIONS
    loss_remedy: Remedy = BATCH_REMEDY

    def read(self, task: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task in order.

        Args:
            task: Slices and runs, as docs/slice.md describes them.

        Raises:
            CorruptFileError: If a file is damaged.
            DataLossError: If records have gone.
            UnsupportedFormatError: If the task is of a format that this klog does not read.
        """
        from klog.connector.source.row_schema import (
            arrow_schema,
            decoded_columns,
            to_record_batch,
        )
        from klog.connector.source.slice_decoding import decode_slice

        schema = arrow_schema(self.columns)
        column_names = decoded_columns(self.columns)

        def decode(store: ReadableStore, slice_: Slice) -> Iterator[tuple[RecordColumns, int]]:
            return decode_slice(store, slice_, column_names)

        for slice_ in expand_task(task):
            for columns in self._read_slice(slice_, decode):
                for row in range(0, len(columns.offset), MAX_ROWS):
                    rows = columns.slice(row, row + MAX_ROWS)
                    yield to_record_batch(slice_.topic, slice_.partition, rows, schema)

    def count(self, slice_: Slice) -> int:
        """Return how many records `read` would return of a slice, by the headers of its batches.

        Args:
            slice_: The slice.

        Raises:
            CorruptFileError: As `read`, if a header is damaged.
            DataLossError: As `read`.
        """
        from klog.connector.source.slice_counting import count_slice

        return sum(self._read_slice(slice_, count_slice))

    def _read_slice(self, slice_: Slice, read: SliceRead[T]) -> Iterator[T]:
        """Read a slice; if its file has changed, read on from a new plan."""
        from klog.connector.store.store_for_url import store_for

        pending, tries = [slice_], 0
        while pending:
            current = pending[0]
            next_offset = current.start_offset
            store, _ = store_for(current.root, self.storage)
            try:
                for part, reached in read(store, current):
                    yield part
                    next_offset, tries = reached, 0
                del pending[0]
            except (SliceChangedError, FileNotFoundError, CorruptRecordError) as exc:
                tries += 1
                if isinstance(exc, CorruptRecordError) and self._is_planned_again(current):
                    raise
                if tries == MAX_TRIES:
                    raise _unstable(current, exc) from exc
                self._log_change(slice_, exc)
                if tries > 1:
                    back_off(tries)
                start_offset = max(next_offset, current.start_offset)
                remainder = replace(
                    current, start_offset=start_offset, end_offset=slice_.end_offset
                )
                log_start, pending = self.replan(remainder)
                self._check_loss(remainder, log_start)
                _check_missing(remainder, pending, exc)

    def _log_change(self, slice_: Slice, exc: Exception) -> None:
        message = without_passwords(f"{slice_.path} changed while it was read ({exc})")
        _log.info("%s; planning again", message)

    def _is_planned_again(self, slice_: Slice) -> bool:
        """Return whether a new plan of a slice has the same file."""
        if slice_.is_committed:
            return True
        _, slices = self.replan(slice_)
        return any(
            (again.path, again.identity, again.stamp)
            == (slice_.path, slice_.identity, slice_.stamp)
            for again in slices
        )

    def _check_loss(self, remainder: Slice, log_start: int) -> None:
        """Report the offsets that were deleted before they were read."""
        end_offset = min(log_start, remainder.end_offset)
        if end_offset <= remainder.start_offset:
            return
        offsets = f"{remainder.name}: offsets {remainder.start_offset} to {end_offset - 1}"
        raise_or_warn(
            f"{offsets} were deleted while they were read ({remainder.path})",
            self.loss_remedy,
            "what is left",
            fail_on_data_loss=self.fail_on_data_loss,
        )


def _check_missing(remainder: Slice, pending: list[Slice], exc: Exception) -> None:
    """Raise if a committed file is missing and the newest commit still names it."""
    if not remainder.is_committed or not isinstance(exc, FileNotFoundError):
        return
    if any(slice_.path == remainder.path for slice_ in pending):
        reason = "the file is missing or was replaced, and the topic's log still names it"
        raise CorruptRecordError(reason).in_file(remainder.path, remainder.name) from exc


def _unstable(slice_: Slice, exc: Exception) -> CorruptRecordError:
    reason = f"the bytes are not those that were planned, in {MAX_TRIES} tries ({exc})"
    return CorruptRecordError(reason, slice_.start_position).in_file(slice_.path, slice_.name)
