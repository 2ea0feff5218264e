"""Copy topics into Delta tables, exactly once and without a checkpoint (docs/tables.md).

The rule: where a copy is, is in its table: a batch and the offsets after it are one commit of
Delta's. So a run that was killed, is repeated or has a second one at its side loses and doubles
nothing, and a table that was restored goes on where it was restored to.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("to_delta")

import time
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from klog.connector.options.spark_paths import log_directories
from klog.errors import OptionError
from klog.jobs.copying_to_delta.batch_writer import APPEND, MODES
from klog.jobs.copying_to_delta.copy_topic import TableOptions
from klog.jobs.copying_to_delta.table_rows import DEAD_LETTERS, FAIL, DecodedValues, TableRows
from klog.jobs.copying_to_delta.to_delta_report import ToDeltaReport
from klog.jobs.copying_to_delta.topic_copies import CopyTables, TopicCopies
from klog.jobs.shared.copy_rounds import copy_in_rounds, topic_strategy
from klog.jobs.shared.delta.delta_session import check_delta
from klog.jobs.shared.topic_batches import TopicReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REMEDY = (
    "give the option failOnDataLoss=false to go on with what is left, or another table for what "
    "the topic has now"
)
NO_OPTIONS: Mapping[str, str] = {}


def run(
    spark: SparkSession,
    root: str | PathLike[str],
    topic: str | Sequence[str] | None,
    table: str,
    *,
    topic_pattern: str | None = None,
    mode: str = APPEND,
    options: Mapping[str, str] = NO_OPTIONS,
    decode: Mapping[str, Any] = NO_OPTIONS,
    on_error: str = FAIL,
    dead_letter_table: str | None = None,
    merge_schema: bool = False,
    table_properties: Mapping[str, str] = NO_OPTIONS,
    cluster_by: Sequence[str] = (),
    zorder_by: Sequence[str] = (),
    continuous: bool = False,
    interval_seconds: float = 60.0,
    dry_run: bool = False,
) -> ToDeltaReport:
    """Copy topics into Delta tables: what they have now, or continuously.

    The table has the position of the copy, so a run that is repeated copies only new records.

    Args:
        spark: A session with Delta, with versions of both that work together (docs/tables.md).
        root: A klog root or a broker's log directories, as `load()` takes them.
        topic: The name of a topic, several names, or None with `topic_pattern`.
        table: The table: a path, a URL, or a name in a catalog. `{topic}` in it stands for the
            name of the topic; without it several topics have one table.
        topic_pattern: A regular expression that is searched for in names of topics.
        mode: `append`: a row for each record. `upsert`: a row for each key, with its last value.
        options: Options of a stream that reads the root, such as `startingOffsets`,
            `failOnDataLoss`, `maxOffsetsPerTrigger`, `engine` and `storage.*`.
        decode: Arguments of `klog.values.decode`, such as `{"value": "avro", "registry": url}`.
            The table gets the decoded columns `key` and `value`; without this argument, bytes. JSON
            needs no schema: klog takes the type of the table's column, or for a new table a type
            that fits a sample of the records.
        on_error: What happens to a record that cannot be decoded. `fail`: the job ends with an
            error. `null`: the column is null, and `key_error` or `value_error` has the reason.
            `dead-letters`: the record goes to another table.
        dead_letter_table: The table for `dead-letters`. It has the records as bytes and a column
            `reason`.
        merge_schema: Whether to add new columns, and new fields of values, to a table that exists.
        table_properties: Table properties for a table that does not exist yet.
        cluster_by: The columns of its liquid clustering.
        zorder_by: The columns by which OPTIMIZE orders the rows, at the end of the run, of each
            table that got rows.
        continuous: Whether to go on until the process is interrupted.
        interval_seconds: The pause between two rounds, in seconds.
        dry_run: Whether to plan only, and write nothing.

    Returns:
        A report with the offsets of each partition, and the rows as Delta counts them.

    Raises:
        OptionError: An option is wrong, a topic does not exist, or the session has no Delta.
        DataLossError: Records that the table does not have yet are gone, and `failOnDataLoss` is
            not false.
        KlogError: Spark or Delta could not write a batch of the only topic.
    """
    root = fspath(root)
    started = time.monotonic()
    if mode not in MODES:
        raise OptionError(f"--mode: must be one of {', '.join(MODES)}, got {mode!r}")
    check_delta(spark)
    if (topic is None) == (topic_pattern is None):
        raise OptionError("--topic, --topic-pattern: must give exactly one of them")
    if (on_error == DEAD_LETTERS) != (dead_letter_table is not None):
        raise OptionError("--on-error dead-letters, --dead-letter-table: give both or neither")
    _check_zorder(zorder_by, cluster_by, continuous=continuous)
    reader = TopicReader(log_directories({"path": root}), options, _REMEDY)
    rows = TableRows(root, options, DecodedValues(decode, on_error, merge_schema))
    table_options = TableOptions(table_properties, tuple(cluster_by))
    tables = CopyTables(table, dead_letter_table, mode, merge_schema, table_options)
    copies = TopicCopies(spark, reader, rows, tables)
    strategy = topic_strategy(topic, topic_pattern)
    failed = copy_in_rounds(
        lambda: reader.topics(strategy),
        copies.plan if dry_run else copies.copy,
        is_continuous=continuous and not dry_run,
        interval_seconds=interval_seconds,
    )
    if zorder_by:
        failed = (*failed, *copies.order_rows(zorder_by))
    seconds = time.monotonic() - started
    return ToDeltaReport(root, dry_run, copies.partitions, seconds, failed, copies.rows)


def _check_zorder(zorder_by: Sequence[str], cluster_by: Sequence[str], *, continuous: bool) -> None:
    if zorder_by and cluster_by:
        raise OptionError("--zorder-by, --cluster-by: Delta orders rows by only one of them")
    if zorder_by and continuous:
        raise OptionError(
            "--zorder-by: it comes at the end of a run, and --continuous has none. Run OPTIMIZE "
            "... ZORDER BY by itself, or use --cluster-by"
        )
