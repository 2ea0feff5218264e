"""An import of the directory of a test, and what the topic has then."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from klog.connector.back_off import back_off
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS
from klog.connector.store.local_store import LocalStore
from klog.connector.store.writable_store import PutResult
from klog.jobs import import_files
from klog.jobs.importing_files.chosen_fields import RecordFields
from klog.jobs.importing_files.import_batches import FilesImport, ListFiles
from klog.jobs.importing_files.import_ledger import ImportLedger
from klog.jobs.importing_files.import_report import ImportFilesReport
from klog.jobs.importing_files.import_task import Source
from klog.jobs.importing_files.source_files import list_source
from tests.jobs.file_rows import log_rows

Hook = Callable[[], object]


def _nothing() -> None:
    """Do nothing."""


def run(source: Path, **arguments: Any) -> ImportFilesReport:
    return import_files.run(None, str(source.parent / "root"), "t", str(source), **arguments)


class HookedStore(LocalStore):
    """Local disk that calls a test before and after each commit of the topic."""

    def __init__(self, before: Hook = _nothing, after: Hook = _nothing) -> None:
        super().__init__()
        self._before, self._after = before, after

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Create a file."""
        if "/topics/t/log/" not in path:
            return super().put_if_absent(path, data)
        self._before()
        result = super().put_if_absent(path, data)
        self._after()
        return result


def job(
    source: Path, store: LocalStore | None = None, list_files: ListFiles | None = None
) -> FilesImport:
    """Return an import of JSON lines, with a store of the root or a listing of the test."""
    root = replace(
        open_klog_root(str(source.parent / "root"), NO_STORAGE_OPTIONS),
        store=store or LocalStore(),
    )
    name = f"import-files:{os.path.realpath(source)}"
    return FilesImport(
        None,
        root,
        root.log_to_write("t"),
        name,
        {},
        Source(str(source), NO_STORAGE_OPTIONS, "json", RecordFields()),
        lambda topic_id: ImportLedger(root, topic_id, name, back_off),
        list_files or (lambda: list_source(LocalStore(), str(source), "json")),
    )


def records(source: Path, *columns: str) -> list[Any]:
    rows = log_rows(source.parent / "root", "t")
    if len(columns) == 1:
        return [row[columns[0]] for row in rows]
    return [tuple(row[column] for column in columns) for row in rows]


def same(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without what two topics do not share."""
    return [{**row, "topic": "", "headers": row["headers"] or []} for row in rows]
