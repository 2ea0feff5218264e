"""Import the new files of a source into a topic, one transaction after the other.

The rule: the ledger lists the files of a transaction before they are written, and the topic's log
says whether they are in it. So a run that was killed is continued by the next one, under the same
version, and two runs at once write each file once. The next files are listed only when the
transaction before them is decided: committed, or abandoned because a file has changed or has gone.
A file that is wrong stays listed until then, so a run that fails again leaves nothing more. A file
that changes while this run reads it is left out of the rest of the run, which so has an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from klog.connector.append_tasks import AppendPlan, commit_rows, plan_append_tasks
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.embedded_append import append
from klog.errors import KlogError, OptionError
from klog.jobs.importing_files.import_ledger import (
    ABANDONED,
    ImportLedger,
    ImportState,
    is_abandoned,
    is_committed,
)
from klog.jobs.importing_files.import_plan import (
    ImportPlan,
    ImportResult,
    LeftFile,
    changed_files,
    next_files,
    plan_import,
    total_bytes,
)
from klog.jobs.importing_files.import_task import (
    ImportedFile,
    ImportTask,
    Source,
    StagedFiles,
    stage_files,
)
from klog.jobs.importing_files.source_files import SourceFile, groups_of
from klog.jobs.shared.job_tasks import run_tasks
from klog.jobs.shared.waves import waves

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_BATCH_BYTES = 1 << 30
MAX_SPARK_BATCH_BYTES = 16 << 30
TASK_BYTES = 64 << 20
"""The files of a task on Spark; in one process a transaction is one task."""
_NO_ROWS = pa.table({"value": pa.array([], pa.binary())})

ListFiles = Callable[[], list[SourceFile]]


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
        self._max_bytes = MAX_BATCH_BYTES if spark is None else MAX_SPARK_BATCH_BYTES
        self._ledgers: dict[str, ImportLedger] = {}
        self._files: list[SourceFile] = []
        self._state: TopicState | None = None

    def plan(self) -> ImportPlan:
        """Return what would be imported now."""
        state, known = self._load()
        return plan_import(self._list_files(), self._settled(known, state))

    def run(self) -> ImportResult:
        """Import all new files.

        Raises:
            KlogError: A file cannot be imported; the message names it. The files of transactions
                before are in the topic, and none of this one.
        """
        imported: list[ImportedFile] = []
        left: dict[str, LeftFile] = {}
        self._files = self._list_files()
        first = None
        while True:
            state, known = self._load()
            first = known.number if first is None else first
            if known.number >= 0 and not is_committed(state, self._id, known.number):
                staged, changed = self._finish(state, known)
                imported += staged
                if known.number > first:  # Else an earlier run listed them, maybe long ago.
                    left |= {file.path: file for file in changed}
                continue
            known = self._settled(known, state)
            plan = plan_import(self._files, known, left)
            if not plan.new:
                still_left = [file for file in left.values() if file.path not in known.imported]
                return ImportResult(tuple(imported), plan.changed, tuple(still_left))
            is_imported = known.number >= 0 and not is_abandoned(state, self._id)
            ledger = self._ledger(state.topic_id)
            ledger.put(
                next_files(plan.new, self._source.file_format, self._max_bytes),
                is_previous_imported=is_imported,
            )

    def _load(self) -> tuple[TopicState, ImportState]:
        """Return the topic and what its ledger has; refuse an id that others use.

        The state is loaded before the ledger, so it knows no version that the ledger has not.
        """
        state = self._state = self._root.load_to_commit(self._log, self._state)
        known = self._ledger(state.topic_id).load()
        if is_committed(state, self._id, known.number + 1):
            raise OptionError(
                f"transactionalId: {self._id!r} has written version "
                f"{state.writer_transactions[self._id].batch_id} to the topic, and the list of "
                f"this import ends at {known.number}. Another writer uses the id, or files under "
                "_klog/imports were lost. Restore them, or give the import another id by the "
                "option transactionalId=NAME: it then imports all files again"
            )
        return state, known

    def _ledger(self, topic_id: str) -> ImportLedger:
        """Return the ledger of a topic, which keeps what it has read."""
        if topic_id not in self._ledgers:
            self._ledgers[topic_id] = self._make_ledger(topic_id)
        return self._ledgers[topic_id]

    def _settled(self, known: ImportState, state: TopicState) -> ImportState:
        """Return what is known when the files of the newest entry count, if they are imported."""
        if not is_committed(state, self._id, known.number) or is_abandoned(state, self._id):
            return known
        return replace(known, imported=known.with_newest())

    def _finish(
        self, state: TopicState, known: ImportState
    ) -> tuple[Sequence[ImportedFile], list[LeftFile]]:
        """Import the files of the newest entry, or abandon it; return which have changed."""
        changed = changed_files(known.files, self._files)
        if changed:  # Or they came after the listing.
            changed = self._list_again(known)
        if not changed:
            commit_info = CommitInfo(random_uuid(), "append", this_engine())
            transaction = (self._id, known.number)
            plan = plan_append_tasks(
                self._log, state, self._source.storage, self._options, transaction, commit_info
            )
            try:
                results = self._stage(plan, known)
            except KlogError:
                changed = self._list_again(known)
                if not changed:
                    raise
            else:
                segments = [segment for result in results for segment in result.segments]
                self._state, is_new = commit_rows(self._log, state, plan, segments, commit_info)
                return [file for result in results for file in result.files if is_new], []
        self._abandon(state, known)
        return [], changed

    def _list_again(self, known: ImportState) -> list[LeftFile]:
        """List the source again; return the files of the newest entry that have changed."""
        self._files = self._list_files()
        return changed_files(known.files, self._files)

    def _stage(self, plan: AppendPlan, known: ImportState) -> list[StagedFiles]:
        listed = {file: file for file in self._files}
        files = [listed[file] for file in known.files]
        tasks = [
            ImportTask(index, self._source, files, plan, has_progress_bar=self._spark is None)
            for index, files in enumerate(self._task_files(files))
        ]
        if self._spark is None:
            return [stage_files(task) for task in tasks]
        return list(run_tasks(self._spark, stage_files, tasks, "import"))

    def _task_files(self, files: Sequence[SourceFile]) -> Iterator[tuple[SourceFile, ...]]:
        """Yield the files of each task; those of one range of offsets have one task."""
        if self._spark is None:
            yield tuple(files)
            return
        groups = groups_of(files, self._source.file_format)
        for wave in waves(groups, total_bytes, TASK_BYTES):
            yield tuple(file for group in wave for file in group)

    def _abandon(self, state: TopicState, known: ImportState) -> None:
        """Commit the newest entry's transaction without records, unless it has been committed."""
        commit_info = CommitInfo(f"{ABANDONED}{random_uuid()}", "append", this_engine())
        result = append(self._log, state, _NO_ROWS, commit_info, {}, self._id, known.number)
        self._state = result.state


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
