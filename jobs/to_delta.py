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
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.options.spark_paths import log_directories
from klog.errors import OptionError
from klog.jobs.copying_to_delta.batch_writer import APPEND, MODES, BatchWriter
from klog.jobs.copying_to_delta.copy_topic import CopyResult, TableOptions, TopicCopy
from klog.jobs.copying_to_delta.dead_letter_table import DeadLetterTable
from klog.jobs.copying_to_delta.table_rows import DEAD_LETTERS, FAIL, DecodedValues, TableRows
from klog.jobs.copying_to_delta.to_delta_report import CopiedPartition, CopiedRows, ToDeltaReport
from klog.jobs.shared.copy_rounds import copy_in_rounds, topic_strategy
from klog.jobs.shared.delta.delta_session import check_delta, delta_errors
from klog.jobs.shared.delta.delta_target import DeltaTarget
from klog.jobs.shared.job_failures import FailedTopic
from klog.jobs.shared.topic_batches import TopicReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOPIC_PLACE = "{topic}"
_REMEDY = (
    "give the option failOnDataLoss=false to go on with what is left, or another table for what "
    "the topic has now"
)
NO_OPTIONS: Mapping[str, str] = {}


def run(
    spark: SparkSession,
    root: str,
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
    """Copy what topics have now, or go on with what comes.

    Args:
        spark: A session with Delta, of a pair of versions that works (docs/tables.md).
        root: A klog root or a broker's log directories, as `load()` takes them.
        topic: A topic, several, or None with `topic_pattern`.
        table: The table: a path, a URL, or a name in a catalog. `{topic}` in it stands for the
            name of the topic; without it several topics have one table.
        topic_pattern: A regular expression that is searched for in names of topics.
        mode: `append`: a row for each record. `upsert`: a row for each key, with its last value.
        options: Options of a stream that reads the root, such as `startingOffsets`,
            `failOnDataLoss`, `maxOffsetsPerTrigger`, `engine` and `storage.*`.
        decode: Arguments of `klog.values.decode`, such as `{"value": "avro", "registry": url}`:
            the columns `key` and `value` are what it returns. Without it they are bytes. JSON needs
            no schema: it has that of the table, and a new table that of a sample.
        on_error: A record that cannot be decoded fails the job (`fail`), is null with the reason in
            `key_error` or `value_error` (`null`), or goes to another table (`dead-letters`).
        dead_letter_table: That table, with the records as bytes and a column `reason`.
        merge_schema: Add new columns, and new fields of values, to a table that exists.
        table_properties: Table properties for a table that does not exist yet.
        cluster_by: The columns of its liquid clustering.
        zorder_by: The columns by which OPTIMIZE orders the rows of each table that got some.
        continuous: Go on until the process is interrupted.
        interval_seconds: The pause between two looks at a topic that had nothing new.
        dry_run: Only plan; write nothing.

    Returns:
        What was copied: the offsets of each partition, and the rows as Delta counts them.

    Raises:
        OptionError: An option is wrong, a topic does not exist, or the session has no Delta.
        DataLossError: Records that the table does not have yet are gone, with `failOnDataLoss`.
        KlogError: Spark or Delta could not write a batch.
    """
    started = time.monotonic()
    if mode not in MODES:
        raise OptionError(f"--mode: must be one of {', '.join(MODES)}, got {mode!r}")
    check_delta(spark)
    reader = TopicReader(log_directories({"path": root}), options, _REMEDY)
    values = DecodedValues(decode, on_error, merge_schema)
    if (on_error == DEAD_LETTERS) != (dead_letter_table is not None):
        raise OptionError("--on-error dead-letters, --dead-letter-table: give both or neither")
    dead_letters = (
        DeadLetterTable(DeltaTarget(spark, dead_letter_table)) if dead_letter_table else None
    )
    rows = TableRows(root, options, values)
    table_options = TableOptions(table_properties, tuple(cluster_by))

    def target_of(name: str) -> DeltaTarget:
        return DeltaTarget(spark, table.replace(_TOPIC_PLACE, name))

    def copy_of(name: str) -> TopicCopy:
        target = target_of(name)
        writer = BatchWriter(target.name, mode, merge_schema=merge_schema)
        return TopicCopy(spark, name, reader, target, rows, writer, dead_letters, random_uuid)

    def copy(name: str) -> CopyResult:
        if dry_run:
            return copy_of(name).plan()
        result = copy_of(name).copy(table_options)
        if zorder_by and result.rows.batches:
            target_of(name).optimize(zorder_by)
        return result

    copies = _Copies()

    def copy_one(name: str) -> None:
        with delta_errors(name):
            copies.add(copy(name))

    if (topic is None) == (topic_pattern is None):
        raise OptionError("--topic, --topic-pattern: must give exactly one of them")
    strategy = topic_strategy(topic, topic_pattern)
    failed = copy_in_rounds(
        lambda: reader.topics(strategy),
        copy_one,
        is_continuous=continuous and not dry_run,
        interval_seconds=interval_seconds,
    )
    return copies.report(root, failed, dry_run=dry_run, seconds=time.monotonic() - started)


class _Copies:
    """What was copied so far, in any number of rounds."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, str, int], CopiedPartition] = {}
        self._rows = CopiedRows()

    def add(self, result: CopyResult) -> None:
        """Add what was copied of a topic."""
        self._rows += result.rows
        for part in result.partitions:
            key = (part.table, part.topic, part.partition)
            first = self._partitions.get(key, part)
            self._partitions[key] = replace(part, start_offset=first.start_offset)

    def report(
        self, root: str, failed: tuple[FailedTopic, ...], *, dry_run: bool, seconds: float
    ) -> ToDeltaReport:
        """Return the report."""
        partitions = tuple(self._partitions.values())
        return ToDeltaReport(root, dry_run, partitions, seconds, failed, self._rows)
