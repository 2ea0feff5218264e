"""Import the new files of a source into a topic, one transaction after the other.

The rule: the ledger lists the files of a transaction before they are written, and the topic's log
says whether they are in it. So a run that was killed is continued by the next one, under the same
version, and two runs at once write each file once. The next files are listed only when the
transaction before them is decided: committed, or abandoned because a file is wrong or has changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.embedded_append import append
from klog.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    KlogError,
    OptionError,
    ProducerFencedError,
    with_context,
)
from klog.jobs.importing_files.import_ledger import (
    ABANDONED,
    ImportLedger,
    ImportState,
    is_abandoned,
    is_committed,
)
from klog.jobs.importing_files.source_files import SourceFile

MAX_BATCH_BYTES = 1 << 30
MAX_BATCH_FILES = 10_000
_ROW = re.compile(r"^[^:]*: row (\d+)")
_OUTCOME_IS_OPEN = (CommitConflictError, CommitStateUnknownError, ProducerFencedError)
_NO_ROWS = pa.table({"value": pa.array([], pa.binary())})

ListFiles = Callable[[], list[SourceFile]]
ReadFiles = Callable[[Sequence[SourceFile]], Iterator[tuple[str, pa.RecordBatch]]]
"""Yields the records of files, in their order, each batch with the path of its file."""


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that this run has imported, or would import."""

    path: str
    size_bytes: int
    records: int | None


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What there is to import.

    Attributes:
        new: The files that were not imported, in order.
        changed: Files that were imported, and have another size now.
    """

    new: tuple[SourceFile, ...]
    changed: tuple[SourceFile, ...]


class FilesImport:
    """The import of one source into one topic."""

    def __init__(
        self,
        root: KlogRoot,
        log: CommitLog,
        transactional_id: str,
        options: Mapping[str, str],
        make_ledger: Callable[[str], ImportLedger],
        list_files: ListFiles,
        read_files: ReadFiles,
    ) -> None:
        """Take the topic, the name of the import, and what lists and reads files."""
        self._root, self._log, self._id, self._options = root, log, transactional_id, options
        self._make_ledger = make_ledger
        self._list_files, self._read_files = list_files, read_files
        self._state: TopicState | None = None

    def plan(self) -> ImportPlan:
        """Return what would be imported now."""
        state = self._load()
        known = self._make_ledger(state.topic_id).load()
        return _plan(self._list_files(), self._settled(known, state))

    def run(self) -> tuple[list[ImportedFile], tuple[SourceFile, ...]]:
        """Import all new files; return them, and files that have changed since their import.

        Raises:
            KlogError: A file cannot be imported; the message names it. The files of transactions
                before are in the topic, and none of this one.
        """
        imported: list[ImportedFile] = []
        files = self._list_files()
        while True:
            state = self._load()
            ledger = self._make_ledger(state.topic_id)
            known = ledger.load()
            if known.number >= 0 and not is_committed(state, self._id, known.number):
                files = self._list_files()
                imported += self._finish(state, known, files)
                continue
            known = self._settled(known, state)
            plan = _plan(files, known)
            if not plan.new:
                return imported, plan.changed
            is_imported = known.number >= 0 and not is_abandoned(state, self._id)
            ledger.put(known, _batch_of(plan.new), is_previous_imported=is_imported)

    def _load(self) -> TopicState:
        self._state = self._root.load_to_commit(self._log, self._state)
        return self._state

    def _settled(self, known: ImportState, state: TopicState) -> ImportState:
        """Return what is known when the files of the newest entry count, if they are imported."""
        if not is_committed(state, self._id, known.number) or is_abandoned(state, self._id):
            return known
        newest = {file.path: file.size_bytes for file in known.files}
        return replace(known, imported={**known.imported, **newest})

    def _finish(
        self, state: TopicState, known: ImportState, files: Sequence[SourceFile]
    ) -> list[ImportedFile]:
        """Import the files of the newest entry, or abandon it if they are others now."""
        if not set(known.files) <= set(files):
            self._abandon(state, known)
            return []
        counted = _CountedFiles(known.files)
        rows = counted.count(self._read_files(known.files))
        commit_info = CommitInfo(random_uuid(), "append", this_engine())
        try:
            result = append(
                self._log, state, rows, commit_info, self._options, self._id, known.number
            )
        except _OUTCOME_IS_OPEN:
            raise
        except KlogError as exc:
            self._abandon(state, known)
            raise counted.explained(exc) from exc
        self._state = result.state
        return counted.files() if result.is_new else []

    def _abandon(self, state: TopicState, known: ImportState) -> None:
        """Commit the newest entry's transaction without records, unless it has been committed."""
        commit_info = CommitInfo(f"{ABANDONED}{random_uuid()}", "append", this_engine())
        result = append(self._log, state, _NO_ROWS, commit_info, {}, self._id, known.number)
        self._state = result.state


class _CountedFiles:
    """How many records each file has, as they are read."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self._files = files
        self._records = dict.fromkeys((file.path for file in files), 0)
        self._path = files[0].path if files else ""

    def count(self, batches: Iterable[tuple[str, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """Yield the records."""
        for path, batch in batches:
            self._path = path
            self._records[path] += len(batch)
            yield batch

    def files(self) -> list[ImportedFile]:
        """Return the files with their numbers of records."""
        return [
            ImportedFile(file.path, file.size_bytes, self._records[file.path])
            for file in self._files
        ]

    def explained(self, exc: KlogError) -> KlogError:
        """Return an error of a row with the file and the record that it is of."""
        match = _ROW.match(str(exc))
        if match is None:
            return exc
        row = int(match[1])
        for path, records in self._records.items():
            if row < records:
                reason = str(exc)[match.end() :].removeprefix(": ")
                return with_context(exc, f"{path}, record {row + 1}: {reason}")
            row -= records
        return exc


def _plan(files: Sequence[SourceFile], known: ImportState) -> ImportPlan:
    imported = known.imported
    return ImportPlan(
        tuple(file for file in files if file.path not in imported),
        tuple(
            file for file in files if imported.get(file.path, file.size_bytes) != file.size_bytes
        ),
    )


def _batch_of(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Return the first files, as many as belong to a transaction."""
    batch: list[SourceFile] = []
    size_bytes = 0
    for file in files[:MAX_BATCH_FILES]:
        size_bytes += file.size_bytes
        if batch and size_bytes > MAX_BATCH_BYTES:
            break
        batch.append(file)
    return batch


def check_import_options(options: Mapping[str, str]) -> None:
    """Refuse options of a write that an import sets itself.

    Args:
        options: The options of the write, in lower case.

    Raises:
        OptionError: One of them is set.
    """
    if "transactionversion" in options:
        raise OptionError(
            "transactionVersion: an import numbers its transactions itself. Leave it out; "
            "transactionalId names the import"
        )
