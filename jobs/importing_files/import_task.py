"""A task of an import: read files, and stage their records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from klog.connector.append_tasks import AppendPlan, stage_rows
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.options.storage_options import StorageOptions
from klog.connector.store.store_for_url import store_for
from klog.errors import KlogError, OptionError, with_context
from klog.jobs.importing_files.chosen_fields import RecordFields
from klog.jobs.importing_files.read_files import SourceReader
from klog.jobs.importing_files.source_files import SourceFile, groups_of
from klog.jobs.shared.progress_bar import with_progress_bar

_ROW = re.compile(r"^[^:]*: row (\d+)(?: of [^:]*)?: ")


@dataclass(frozen=True, slots=True)
class Source:
    """Where files are, and what their records are.

    Attributes:
        location: The directory, absolute or a URL.
        storage: The options of its store.
        file_format: `json`, `csv` or `parquet`.
        fields: What becomes what of a record.
    """

    location: str
    storage: StorageOptions
    file_format: str
    fields: RecordFields


@dataclass(frozen=True, slots=True)
class ImportTask:
    """Files whose records are staged by one task, one after another.

    Attributes:
        index: The number of the task, from 0.
        source: The source.
        files: The files.
        plan: The plan of the write.
        has_progress_bar: Whether a bar shows the files; Spark has a bar of its own.
    """

    index: int
    source: Source
    files: tuple[SourceFile, ...]
    plan: AppendPlan
    has_progress_bar: bool


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that was imported, or would be.

    Attributes:
        path: Its path below the source.
        size_bytes: Its size.
        records: How many records it has; None in a dry run.
    """

    path: str
    size_bytes: int
    records: int | None


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """What a task has staged: segments, and how many records each file has."""

    segments: Sequence[SegmentEntry]
    files: tuple[ImportedFile, ...]


def stage_files(task: ImportTask) -> StagedFiles:
    """Read the files of a task and stage their records.

    Args:
        task: The task.

    Raises:
        KlogError: A file or a record is wrong; the message names the file and the place in it.
    """
    source = task.source
    store, path = store_for(source.location, source.storage)
    reader = SourceReader(store, path, source.file_format, source.fields)
    counted = _CountedFiles(path, task.files)
    groups: Iterable[list[SourceFile]] = groups_of(task.files, source.file_format)
    if task.has_progress_bar:
        groups = list(groups)
        groups = with_progress_bar(groups, len(groups), "import")
    try:
        segments = stage_rows(task.plan, task.index, counted.count(reader.read(groups)))
    except KlogError as exc:
        raise counted.explained(exc) from exc
    return StagedFiles(segments, counted.files())


class _CountedFiles:
    """How many records each file has, as they are read."""

    def __init__(self, source: str, files: Sequence[SourceFile]) -> None:
        self._source, self._files, self._current = source, files, ""
        self._records = dict.fromkeys((file.path for file in files), 0)

    def count(self, batches: Iterable[tuple[str, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """Yield the records."""
        for path, batch in batches:
            self._current = path
            self._records[path] += len(batch)
            yield batch

    def files(self) -> tuple[ImportedFile, ...]:
        """Return the files with their numbers of records."""
        return tuple(
            ImportedFile(file.path, file.size_bytes, self._records[file.path])
            for file in self._files
        )

    def explained(self, exc: KlogError) -> KlogError:
        """Return an error of a row or column with the file and the record that it is of."""
        match = _ROW.match(str(exc))
        is_named = str(exc).startswith(self._source)
        if isinstance(exc, OptionError) and self._current and not is_named:
            return with_context(exc, f"{self._source}/{self._current}: {exc}")
        if match is None:
            return exc
        row = int(match[1])
        for path, records in self._records.items():
            if row < records:
                place = f"{self._source}/{path}: record {row + 1}"
                return with_context(exc, f"{place}: {str(exc)[match.end() :]}")
            row -= records
        return exc
