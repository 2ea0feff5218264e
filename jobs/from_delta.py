"""Copy a Delta table into a topic, each of its versions once (docs/from-delta.md).

The rule: one version of the table is one transaction of the topic, named by the table's id and
numbered by the version. So a run that was killed, is repeated or has a second one at its side loses
and doubles nothing, and no checkpoint is needed.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("from_delta")

import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NoReturn

from klog.connector.options.write_options import parse_write_options
from klog.errors import KlogError, OptionError
from klog.jobs.copying_from_delta.copy_table import CopyOptions, Round, TableCopy
from klog.jobs.copying_from_delta.encoded_rows import JSON, make_row_format
from klog.jobs.copying_from_delta.from_delta_report import FromDeltaReport
from klog.jobs.copying_from_delta.schema_values import ValueSchema
from klog.jobs.copying_from_delta.start_version import SNAPSHOT, parse_start
from klog.jobs.copying_from_delta.table_log import TableLog
from klog.jobs.copying_from_delta.topic_position import TopicPosition
from klog.jobs.copying_from_delta.vacuumed_files import IGNORING_SETTINGS, check_settings
from klog.jobs.shared.copy_rounds import FailureLog
from klog.jobs.shared.delta.delta_session import check_delta, delta_errors
from klog.jobs.shared.delta.delta_target import DeltaTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from klog.values import Registry

NO_OPTIONS: Mapping[str, str] = {}
_OWN_OPTIONS = ("topic", "transactionalid", "transactionversion", "path")
"""What the job decides for each write, in lower case."""
_MAX_SHOWN_VERSIONS = 1000


def run(
    spark: SparkSession,
    root: str | PathLike[str],
    topic: str,
    table: str,
    *,
    key: str | Sequence[str] = (),
    key_format: str | None = None,
    value_format: str = JSON,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    value_schema: Any = None,
    value_message: str | None = None,
    registry: Registry | str | None = None,
    starting_version: str | int = SNAPSHOT,
    restart_at: str | int | None = None,
    options: Mapping[str, str] = NO_OPTIONS,
    continuous: bool = False,
    interval_seconds: float = 60.0,
    dry_run: bool = False,
) -> FromDeltaReport:
    """Copy a Delta table into a topic: the versions that it has now, or continuously.

    The topic has the position of the copy, so a run that is repeated copies only new versions.

    Args:
        spark: A session with Delta, with versions of both that work together (docs/tables.md).
        root: The path or URL of the klog root. If it does not exist, klog creates it.
        topic: The name of the topic. If it does not exist, klog creates it.
        table: The table: a path, a URL, or a name in a catalog.
        key: The columns that identify a row; empty for a table that only grows.
        key_format: `string`, the text of one column, or `json`, an object; None for `string` with
            one column, else `json`.
        value_format: `json`, `avro`, `protobuf`, or `raw` for a table with the columns `key` and
            `value`.
        columns: The columns of the value; empty for all.
        exclude: Columns that are left out of the value.
        value_schema: The schema of values in Avro or Protobuf, as `klog.values.encode` takes it.
        value_message: The full name of the Protobuf message; None for the first one.
        registry: The schema registry, or its URL; None to write values without its prefix.
        starting_version: Where the copy starts if the topic has nothing of the table: `snapshot`,
            `earliest`, `latest` or a version.
        restart_at: Where the copy starts again, even if the topic has versions of the table; None
            to go on.
        options: Options of a write, such as `numPartitions`, `compression.type` and `storage.*`.
        continuous: Whether to go on until the process is interrupted.
        interval_seconds: The pause after a round that had nothing to copy, in seconds.
        dry_run: Whether to plan only, and write nothing.

    Returns:
        A report with the versions that were copied, and the numbers of their records and
        tombstones.

    Raises:
        OptionError: An option is wrong, there is no such table, or the session has no Delta.
        DataLossError: A version or its files are gone.
        KlogError: A version cannot be copied, or Spark could not write it.
    """
    root = fspath(root)
    started = time.monotonic()
    key = (key,) if isinstance(key, str) else tuple(key)
    schema = ValueSchema(value_schema, value_message, registry)
    row_format = make_row_format(key, key_format, value_format, columns, exclude, schema)
    starting = parse_start("--starting-version", str(starting_version))
    restart = None if restart_at is None else parse_start("--restart-at", str(restart_at))
    _check_options(options)
    check_delta(spark)
    check_settings({name: spark.conf.get(name, "false") or "" for name in IGNORING_SETTINGS})
    written = parse_write_options({**options, "path": root, "topic": topic})

    def make_position(table_id: str) -> TopicPosition:
        return TopicPosition(written, table_id)

    with delta_errors(f"topic {topic}"):
        copy = TableCopy(
            spark,
            TableLog(spark, DeltaTarget(spark, table)),
            CopyOptions(root, topic, row_format, options, starting),
            make_position,
        )

    def copy_round(restart_at: str | None) -> Round:
        with delta_errors(f"topic {topic}"):
            return copy.copy(restart_at, dry_run=dry_run)

    if continuous and not dry_run:
        copy_until_interrupted(copy_round, restart, interval_seconds)
    copied = copy_round(restart)
    return FromDeltaReport(
        root,
        topic,
        table,
        dry_run,
        copied.start_version,
        copied.end_version,
        tuple(copied.versions[-_MAX_SHOWN_VERSIONS:]),
        len(copied.versions),
        copied.without_changes,
        sum(version.records or 0 for version in copied.versions),
        sum(version.tombstones or 0 for version in copied.versions),
        time.monotonic() - started,
    )


def copy_until_interrupted(
    copy_round: Callable[[str | None], Round], restart_at: str | None, interval_seconds: float
) -> NoReturn:
    """Copy in rounds, and try again after an error that may end by itself.

    The round that starts the copy again is not repeated: what it has done so far is not known.

    Args:
        copy_round: Copies what the table has now; takes where the copy starts again.
        restart_at: Where the first round starts the copy again; None if it goes on.
        interval_seconds: The pause after a round that had nothing to copy, in seconds.

    Raises:
        KlogError: The copy failed, and would fail again.
    """
    failures = FailureLog()
    while True:
        try:
            result = copy_round(restart_at)
        except KlogError as exc:
            if restart_at is not None or not exc.is_retryable:
                raise
            failures.report({"": exc})
        else:
            failures.report({})
            restart_at = None
            if result.versions:
                continue
        time.sleep(interval_seconds)


def _check_options(options: Mapping[str, str]) -> None:
    for name in options:
        if name.lower() in _OWN_OPTIONS:
            raise OptionError(f"{name}: this job sets it by itself. Leave it out")
