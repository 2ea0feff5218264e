"""Import the new files of a source into a topic, one transaction after the other.

The rule: the ledger lists the files of a transaction before they are written, and the topic's log
says whether they are in it. So a run that was killed is continued by the next one, under the same
version, and two runs at once write each file once. The next files are listed only when the
transaction before them is decided: committed, or abandoned because a file has changed or has gone.
A file that is wrong stays listed until then, so a run that fails again leaves nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from klog.connector.append_tasks import commit_rows, plan_append_tasks
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.embedded_append import append
from klog.errors import OptionError
from klog.jobs.importing_files.import_ledger import (
    ABANDONED,
    ImportLedger,
    ImportState,
    is_abandoned,
    is_committed,
)
from klog.jobs.importing_files.import_task import ImportedFile, ImportTask, Source, stage_files
from klog.jobs.importing_files.source_files import SourceFile, groups_of
from klog.jobs.shared.job_tasks import run_tasks
from klog.jobs.shared.waves import waves

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_BATCH_BYTES = 1 << 30
MAX_SPARK_BATCH_BYTES = 16 << 30
MAX_BATCH_FILES = 10_000
TASK_BYTES = 64 << 20
"""The files of a task on Spark; in one process a transaction is one task."""
_NO_ROWS = pa.table({"value": pa.array([], pa.binary())})

ListFiles = Callable[[], list[SourceFile]]


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
        spark: SparkSession | None,
        root: KlogRoot,
        log: CommitLog,
        transactional_id: str,
        options: Mapping[str, str],
        source: Source,
        make_ledger: Callable[[str], ImportLedger],
        list_files: ListFiles,
    ) -> None:
        """Take the topic, the name of the import, and the source."""
        self._spark, self._root, self._log, self._id = spark, root, log, transactional_id
        self._options, self._source = options, source
        self._make_ledger, self._list_files = make_ledger, list_files
        self._state: TopicState | None = None

    def plan(self) -> ImportPlan:
        """Return what would be imported now."""
        state = self._load()
        known = self._known(self._make_ledger(state.topic_id), state)
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
            known = self._known(ledger, state)
            if known.number >= 0 and not is_committed(state, self._id, known.number):
                files = self._list_files()
                imported += self._finish(state, known, files)
                continue
            known = self._settled(known, state)
            plan = _plan(files, known)
            if not plan.new:
                return imported, plan.changed
            is_imported = known.number >= 0 and not is_abandoned(state, self._id)
            ledger.put(known, self._next_files(plan.new), is_previous_imported=is_imported)

    def _load(self) -> TopicState:
        self._state = self._root.load_to_commit(self._log, self._state)
        return self._state

    def _known(self, ledger: ImportLedger, state: TopicState) -> ImportState:
        """Return what the ledger has; refuse an id whose last version is not of the ledger.

        The state was loaded before the ledger, so it knows no version that the ledger has not.
        """
        known = ledger.load()
        if is_committed(state, self._id, known.number + 1):
            raise OptionError(
                f"transactionalId: {self._id!r} has written version "
                f"{state.writer_transactions[self._id].batch_id} to the topic, and the list of "
                f"this import ends at {known.number}. Another writer uses the id, or files under "
                "_klog/imports were lost. Give the import another id, or restore the files"
            )
        return known

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
        commit_info = CommitInfo(random_uuid(), "append", this_engine())
        transaction = (self._id, known.number)
        plan = plan_append_tasks(
            self._log, state, self._source.storage, self._options, transaction, commit_info
        )
        tasks = [
            ImportTask(index, self._source, files, plan, has_progress_bar=self._spark is None)
            for index, files in enumerate(self._task_files(known.files))
        ]
        if self._spark is None:
            results = [stage_files(task) for task in tasks]
        else:
            results = list(run_tasks(self._spark, stage_files, tasks, "import"))
        segments = [segment for result in results for segment in result.segments]
        self._state, is_new = commit_rows(self._log, state, plan, segments, commit_info)
        return [file for result in results for file in result.files] if is_new else []

    def _task_files(self, files: Sequence[SourceFile]) -> Iterator[tuple[SourceFile, ...]]:
        """Yield the files of each task; those of one range of offsets have one task."""
        if self._spark is None:
            yield tuple(files)
            return
        groups = groups_of(files, self._source.file_format)
        for wave in waves(groups, _size_bytes, TASK_BYTES):
            yield tuple(file for group in wave for file in group)

    def _next_files(self, files: Sequence[SourceFile]) -> list[SourceFile]:
        """Return the first files, as many as belong to a transaction."""
        max_bytes = MAX_BATCH_BYTES if self._spark is None else MAX_SPARK_BATCH_BYTES
        batch: list[SourceFile] = []
        size_bytes = 0
        for group in groups_of(files, self._source.file_format):
            size_bytes += _size_bytes(group)
            if batch and (size_bytes > max_bytes or len(batch) + len(group) > MAX_BATCH_FILES):
                break
            batch += group
        return batch

    def _abandon(self, state: TopicState, known: ImportState) -> None:
        """Commit the newest entry's transaction without records, unless it has been committed."""
        commit_info = CommitInfo(f"{ABANDONED}{random_uuid()}", "append", this_engine())
        result = append(self._log, state, _NO_ROWS, commit_info, {}, self._id, known.number)
        self._state = result.state


def _plan(files: Sequence[SourceFile], known: ImportState) -> ImportPlan:
    imported = known.imported
    return ImportPlan(
        tuple(file for file in files if file.path not in imported),
        tuple(
            file for file in files if imported.get(file.path, file.size_bytes) != file.size_bytes
        ),
    )


def _size_bytes(files: Sequence[SourceFile]) -> int:
    return sum(file.size_bytes for file in files)


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
