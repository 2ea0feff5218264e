"""A task of a copy: read one range of offsets, and put its files.

The rule: a file is put if absent, so it never changes. If it is there, a run before this one has
put it, with the records that the range had then: a compaction may have removed some since, and
nothing adds any. What the manifest then says of the file is what the file itself says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from klog.connector.back_off import back_off
from klog.connector.options.storage_options import StorageOptions
from klog.connector.source.slice_contract import TaskDict
from klog.connector.source.slice_reader import SliceReader
from klog.connector.store.store_for_url import writable_store_for
from klog.connector.store.writable_store import PutResult, WritableStore
from klog.errors import InvalidFileError, KlogError
from klog.jobs.copying_to_files.bucket_writers import COLUMNS, BucketWriters, EncodedFile
from klog.jobs.shared.files_manifest import FilePlan, FileRange, WrittenFile
from klog.jobs.shared.parquet_paths import file_path

MAX_PUTS = 10
"""Puts of one file while the store does not say whether it landed."""


@dataclass(frozen=True, slots=True)
class RangeTask:
    """A range to be copied.

    Attributes:
        plan: The plan, without its other ranges.
        file_range: The range.
        slices: The slices of the log that have it.
        reader: Reads slices.
        target: The directory of the topic's files, as the user gave it.
        storage: The options of its store.
    """

    plan: FilePlan
    file_range: FileRange
    slices: Sequence[TaskDict]
    reader: SliceReader
    target: str
    storage: StorageOptions


def write_range(task: RangeTask) -> tuple[WrittenFile, ...]:
    """Read a range and put its files; return them.

    Args:
        task: The range.

    Raises:
        CorruptFileError: A segment is damaged.
        DataLossError: Records of the range are gone, with `failOnDataLoss`.
        KlogError: A file cannot be put.
    """
    store, directory = writable_store_for(task.target, task.storage)
    writers = BucketWriters(task.plan.partition_by, task.plan.compression)
    for batch in _batches(task):
        writers.add(batch)
    files = []
    for encoded in writers.finish():
        path = file_path(task.plan, task.file_range, encoded.bucket)
        file = _described(path, task.file_range, encoded)
        if not put_file(store, f"{directory}/{path}", encoded.data):
            file = read_description(store, directory, path, task.file_range)
        files.append(file)
    return tuple(files)


def put_file(
    store: WritableStore, path: str, data: bytes, wait: Callable[[int], None] = back_off
) -> bool:
    """Put a file; return False if it was there already.

    Args:
        store: The store.
        path: The path of the file.
        data: Its bytes.
        wait: Called with the number of tries before each further one.

    Raises:
        KlogError: The store does not say whether it landed.
    """
    for tries in range(MAX_PUTS):
        result = store.put_if_absent(path, data)
        if result is not PutResult.UNKNOWN:
            return result is PutResult.CREATED
        wait(tries + 1)
    raise KlogError(
        f"{path}: the store did not say whether it was written, in {MAX_PUTS} tries. Run the job "
        "again: it goes on from there"
    )


def read_description(
    store: WritableStore, directory: str, path: str, file_range: FileRange
) -> WrittenFile:
    """Return what a file that exists says of itself.

    Args:
        store: The store.
        directory: The directory of the topic's files.
        path: The path of the file below it.
        file_range: The range that it is of.

    Raises:
        InvalidFileError: It is not a file of this job.
    """
    data = store.read(f"{directory}/{path}")
    try:
        metadata = pq.read_metadata(pa.BufferReader(data))
        column = metadata.schema.names.index("offset")
        bounds = [
            metadata.row_group(number).column(column).statistics
            for number in range(metadata.num_row_groups)
        ]
        start_offset = min(group.min for group in bounds)
        end_offset = max(group.max for group in bounds) + 1
    except (pa.ArrowException, ValueError, AttributeError, OSError) as exc:
        raise InvalidFileError(
            f"{directory}/{path}: it is not a file that to-files wrote ({exc}), and has the name "
            "of one. Move it away, then run the job again"
        ) from exc
    return WrittenFile(
        path, file_range.partition, start_offset, end_offset, metadata.num_rows, len(data)
    )


def _batches(task: RangeTask) -> Iterator[pa.RecordBatch]:
    """Yield the records of the range, in the order of their offsets."""
    for slices in task.slices:
        for batch in task.reader.read(slices):
            yield batch.select(COLUMNS)


def _described(path: str, file_range: FileRange, encoded: EncodedFile) -> WrittenFile:
    return WrittenFile(
        path,
        file_range.partition,
        encoded.start_offset,
        encoded.end_offset,
        encoded.records,
        len(encoded.data),
    )
