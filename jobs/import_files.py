"""Import JSON lines, CSV and Parquet files into a topic, each file once (docs/files.md).

The rule: a file is known by its path below the source and its size. Which files are imported is
listed under the root before they are written, and the topic's log says whether they were, so a run
that was killed, is repeated or has a second one at its side loses and doubles nothing.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("import_files")

import os
import time
from collections.abc import Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING

from klog.connector.back_off import back_off
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import STORAGE_PREFIX, parse_storage_options
from klog.connector.root_urls import absolute_root
from klog.connector.store.store_for_url import log_store_for
from klog.errors import OptionError
from klog.jobs.importing_files.chosen_fields import RecordFields, check_fields
from klog.jobs.importing_files.import_batches import FilesImport, check_import_options
from klog.jobs.importing_files.import_ledger import ImportLedger
from klog.jobs.importing_files.import_plan import ImportResult
from klog.jobs.importing_files.import_report import ImportFilesReport
from klog.jobs.importing_files.import_task import ImportedFile, Source
from klog.jobs.importing_files.source_files import CSV, JSON, check_format, list_source
from klog.url_secrets import without_passwords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_OPTIONS: Mapping[str, str] = {}
_ID = "transactionalid"


def run(
    spark: SparkSession | None,
    root: str | PathLike[str],
    topic: str,
    source: str,
    *,
    format: str = JSON,  # noqa: A002 - Spark's name for it
    key: str | None = None,
    value: str | None = None,
    timestamp: str | None = None,
    records: bool = False,
    options: Mapping[str, str] = NO_OPTIONS,
    dry_run: bool = False,
) -> ImportFilesReport:
    """Write the files of a directory that were not imported before to a topic.

    Args:
        spark: The session that runs the tasks; None for this process.
        root: The path or URL of the klog root.
        topic: The name of the topic, which exists.
        source: A directory or a URL; files in its folders count too.
        format: `json` for JSON lines, `csv` or `parquet`.
        key: The field that becomes the key of a record; None for no key.
        value: The field that becomes the value. With None, the value is the whole line of JSON, or
            a JSON object of all columns of a row.
        timestamp: The field that becomes the timestamp: a time, ISO 8601, or ms since 1970. With
            None, the timestamp is the time of the import.
        records: Whether a line is a complete record, as `klog consume --json` prints it. Parquet
            files of `to-files` do not need this argument.
        options: Options of a write, such as `compression.type`, `storage.*`, and
            `transactionalId`, the name of the import; by default it follows from the source.
        dry_run: Whether to only list the files, and write nothing.

    Returns:
        A report with the imported files, their numbers of records, and the files that the run left
        out.

    Raises:
        OptionError: An option is wrong, or the topic or the directory does not exist.
        KlogError: A file cannot be imported; the message names it, the place in it and what to do.
    """
    root = fspath(root)
    started = time.monotonic()
    check_format(format)
    fields = RecordFields(key, value, timestamp, records)
    check_fields(fields)
    if records and format == CSV:
        raise OptionError("--records: columns of CSV are text. Use --key, --value and --timestamp")
    by_lower = {name.lower(): text for name, text in options.items()}
    check_import_options(by_lower)
    storage = parse_storage_options(options)
    location = absolute_root(source).rstrip("/")
    store, path = log_store_for(location, storage)
    transactional_id = by_lower.get(_ID) or f"import-files:{_identity(path)}"
    klog_root = open_klog_root(root, storage, "create one with `klog topics create`")
    job = FilesImport(
        spark,
        klog_root,
        klog_root.log_to_write(topic),
        transactional_id,
        _segment_options(options),
        Source(location, storage, format, fields),
        lambda topic_id: ImportLedger(klog_root, topic_id, transactional_id, back_off),
        lambda: list_source(store, path, format),
    )
    if dry_run:
        plan = job.plan()
        files = [ImportedFile(file.path, file.size_bytes, None) for file in plan.new]
        result = ImportResult(tuple(files), plan.changed, ())
    else:
        result = job.run()
    seconds = time.monotonic() - started
    return ImportFilesReport(
        root, topic, source, dry_run, result.files, result.changed, result.left, seconds
    )


def _identity(path: str) -> str:
    """Return the one name of a source, however the user has spelled it.

    Args:
        path: The path as its store has it: `s3a://` is `s3://`, and `file:` is gone.
    """
    return without_passwords(path if "://" in path else os.path.realpath(path))


def _segment_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that decide how records are written."""
    return {
        name: text
        for name, text in options.items()
        if name.lower() != _ID and not name.lower().startswith(STORAGE_PREFIX)
    }
