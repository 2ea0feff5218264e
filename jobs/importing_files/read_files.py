"""The records of files of any format, with errors that name the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from klog.connector.store.readable_store import ReadableStore
from klog.errors import KlogError, OptionError, with_context
from klog.jobs.importing_files.chosen_fields import RecordFields
from klog.jobs.importing_files.file_streams import open_file, open_text
from klog.jobs.importing_files.json_lines import read_json_lines
from klog.jobs.importing_files.range_merge import RangeFile, read_range
from klog.jobs.importing_files.source_files import CSV, JSON, SourceFile, codec_of
from klog.jobs.importing_files.table_files import csv_columns, read_csv, read_parquet


@dataclass(frozen=True, slots=True)
class SourceReader:
    """Reads the files of one source.

    Attributes:
        store: The store of the source.
        source: The path of the source, as the store spells it.
        file_format: `json`, `csv` or `parquet`.
        fields: What becomes what of a record.
    """

    store: ReadableStore
    source: str
    file_format: str
    fields: RecordFields

    def read(self, groups: Iterable[list[SourceFile]]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the records of files, each batch with the path of its file.

        Args:
            groups: The files, in order, by groups that have one order of records.

        Raises:
            KlogError: A file cannot be read as what it shall be; the message names it.
        """
        for group in groups:
            path = group[0].path
            try:
                for batch in self._batches(group):
                    yield path, batch
            except (pa.ArrowException, OSError) as exc:
                # Stores raise a KlogError: an OSError is one of Arrow's, of damaged bytes.
                form = codec_of(path) or self.file_format
                raise KlogError(
                    f"{self.source}/{path}: it cannot be read as {form}: {exc}. Restore the file "
                    "from a copy, or move it away"
                ) from exc

    def _batches(self, group: Sequence[SourceFile]) -> Iterator[pa.RecordBatch]:
        first = group[0]
        try:
            yield from self._records(group)
        except (KlogError, OptionError) as exc:
            if str(exc).startswith(self.source):
                raise
            raise with_context(exc, f"{self.source}/{first.path}: {exc}") from exc

    def _records(self, group: Sequence[SourceFile]) -> Iterator[pa.RecordBatch]:
        first = group[0]
        if not first.size_bytes:
            return
        if self.file_format == JSON:
            with open_text(self.store, self.source, first) as stream:
                yield from read_json_lines(stream, self.fields)
        elif self.file_format == CSV:
            with open_text(self.store, self.source, first) as stream:
                names = csv_columns(stream, first.path)
            if not names:
                return
            with open_text(self.store, self.source, first) as stream:
                yield from read_csv(stream, first.path, names, self.fields)
        elif len(group) == 1:
            with open_file(self.store, self.source, first) as file:
                yield from read_parquet(file, self.fields)
        else:
            yield from read_range([self._range_file(file) for file in group], self.fields)

    def _range_file(self, file: SourceFile) -> RangeFile:
        return RangeFile(
            f"{self.source}/{file.path}",
            lambda: open_file(self.store, self.source, file),
            file.start_offset,
        )
