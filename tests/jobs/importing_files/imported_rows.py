"""An import of the directory of a test, and what the topic has then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from klog.connector.back_off import back_off
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS
from klog.jobs import import_files
from klog.jobs.importing_files.chosen_fields import RecordFields
from klog.jobs.importing_files.import_batches import FilesImport, ListFiles
from klog.jobs.importing_files.import_ledger import ImportLedger
from klog.jobs.importing_files.import_report import ImportFilesReport
from klog.jobs.importing_files.import_task import Source
from tests.jobs.file_rows import log_rows


def run(source: Path, **arguments: Any) -> ImportFilesReport:
    return import_files.run(None, str(source.parent / "root"), "t", str(source), **arguments)


def job(source: Path, list_files: ListFiles) -> FilesImport:
    """Return an import of JSON lines, whose files are listed by a function of the test."""
    root = open_klog_root(str(source.parent / "root"), NO_STORAGE_OPTIONS, "")
    return FilesImport(
        None,
        root,
        root.log_to_write("t"),
        "test",
        {},
        Source(str(source), NO_STORAGE_OPTIONS, "json", RecordFields()),
        lambda topic_id: ImportLedger(root, topic_id, "test", back_off),
        list_files,
    )


def records(source: Path, *columns: str) -> list[Any]:
    rows = log_rows(source.parent / "root", "t")
    if len(columns) == 1:
        return [row[columns[0]] for row in rows]
    return [tuple(row[column] for column in columns) for row in rows]


def same(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without what two topics do not share."""
    return [{**row, "topic": "", "headers": row["headers"] or []} for row in rows]
