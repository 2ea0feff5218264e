"""Copy the versions of one table into a topic, one transaction for each.

The rule: before each write the topic is asked where it is, so nothing that this process remembers
decides. A version that another run writes at the same time is written once: klog takes the first
and skips the second. A run that was killed at any step has either written its version or has not.

Versions without changes need no commit. At the end of a round one commit without records says that
they are done: else Delta might expire them, and the next run could not know that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from klog.errors import KlogError, with_context
from klog.jobs.copying_from_delta.encoded_rows import (
    RAW,
    RowFormat,
    encode_rows,
    net_changes,
    union_of_changes,
    without_changes,
)
from klog.jobs.copying_from_delta.from_delta_report import SNAPSHOT, CopiedVersion
from klog.jobs.copying_from_delta.gone_keys import with_gone_keys
from klog.jobs.copying_from_delta.schema_values import SCHEMA_FORMATS
from klog.jobs.copying_from_delta.separate_plan import with_own_plan
from klog.jobs.copying_from_delta.start_version import Start, TableBounds, plan_start
from klog.jobs.copying_from_delta.table_log import INSERT, TableLog
from klog.jobs.copying_from_delta.topic_position import (
    Position,
    TopicPosition,
    check_same_topic,
    transactional_id,
)
from klog.jobs.copying_from_delta.vacuumed_files import vacuumed_files
from klog.jobs.copying_from_delta.version_actions import CHANGE_TYPE, TableVersion
from klog.jobs.copying_from_delta.version_checks import (
    check_new_metadata,
    check_reserved_columns,
    check_version,
)
from klog.jobs.shared.delta.delta_session import delta_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """The options of a copy.

    Attributes:
        root: The root, as the user has it.
        topic: The topic.
        row_format: How rows become records.
        write_options: The options of the writes.
        starting_version: Where a new copy starts.
    """

    root: str
    topic: str
    row_format: RowFormat
    write_options: Mapping[str, str] = field(repr=False)
    starting_version: str = "snapshot"


@dataclass(slots=True)
class Round:
    """What one round did: it copies what the table has when the round begins."""

    start_version: int | None = None
    end_version: int | None = None
    versions: list[CopiedVersion] = field(default_factory=list)
    without_changes: int = 0
    topic_id: str = ""
    """The topic that the round works on; empty until it is there."""


class TableCopy:
    """The copy of one table in one topic."""

    def __init__(
        self,
        spark: SparkSession,
        table: TableLog,
        options: CopyOptions,
        make_position: Callable[[str], TopicPosition],
    ) -> None:
        """Take the table, the options, and what returns the position in a table by its id."""
        self._spark, self._table, self._options = spark, table, options
        self._make_position = make_position

    def copy(self, restart_at: str | None = None, *, dry_run: bool = False) -> Round:
        """Copy what the table has now.

        Args:
            restart_at: Where the copy starts again; None if it goes on.
            dry_run: Only plan.

        Raises:
            KlogError: A version cannot be copied; the message says why and what to do.
        """
        latest = self._table.refresh()
        check_reserved_columns(self._table.metadata(), self._table.name)
        position = self._make_position(self._table.metadata().table_id)
        seen = position.load()
        result = Round(seen.version, seen.version)
        start = plan_start(seen, self._bounds(latest), self._options.starting_version, restart_at)
        if dry_run:
            done = self._plan_first_step(start, result)
        else:
            done = self._do_first_step(start, seen, position, result)
        for version in self._versions(-1 if done is None else done, latest):
            self._check_metadata(version)
            if not version.has_changes:
                result.without_changes += 1
            elif dry_run:
                self._check(version)
                self._check_columns(version)
                result.versions.append(CopiedVersion(version.version, version.operation))
            elif not self._copy_version(version, position, result):
                break
            result.end_version = version.version
        if not dry_run:
            self._finish(position, result)
        return result

    def _bounds(self, latest: int) -> TableBounds:
        table_id = self._table.metadata().table_id
        return TableBounds(self._table.name, table_id, self._table.earliest_version, latest)

    def _plan_first_step(self, start: Start, result: Round) -> int | None:
        """Return the version after which a dry run goes on."""
        row_format = self._options.row_format
        columns = self._table.metadata().columns
        if start.snapshot_version is not None:
            row_format.check_columns(columns, columns)
            result.versions.append(CopiedVersion(start.snapshot_version, SNAPSHOT))
            result.end_version = start.snapshot_version
            return start.snapshot_version
        if start.done_version is not None:
            result.end_version = start.done_version
        return result.end_version

    def _do_first_step(
        self, start: Start, seen: Position, position: TopicPosition, result: Round
    ) -> int | None:
        """Return the version after which to go on; another run may have started in another way."""
        if start.done_version is not None:
            seen = position.advance(start.done_version, seen)
        elif start.snapshot_version not in (None, seen.snapshot_version):
            seen = position.fix_snapshot(start.snapshot_version, seen)
        if seen.snapshot_version is not None and seen.has_earlier_rows:
            seen = _before_snapshot(seen, position)
        result.topic_id = seen.topic_id
        if seen.snapshot_version is None:
            result.end_version = seen.version
            return seen.version
        self._copy_snapshot(seen.snapshot_version, position, seen, result)
        result.end_version = seen.snapshot_version
        return seen.snapshot_version

    def _versions(self, done: int, latest: int) -> Iterator[TableVersion]:
        if done < latest:
            yield from self._table.versions(done + 1, latest)

    def _copy_snapshot(
        self, version: int, position: TopicPosition, seen: Position, result: Round
    ) -> None:
        from pyspark.sql import functions as sf

        options = self._options
        with self._errors_of(version), vacuumed_files(self._table, version):
            rows = self._table.rows_at(version).withColumn(CHANGE_TYPE, sf.lit(INSERT))
            records = without_changes(self._encode(rows))
            if options.row_format.key and seen.has_earlier_rows:
                records = with_gone_keys(
                    self._spark, records, options.root, options.topic, options.write_options
                )
            copied = self._write(records, version, SNAPSHOT, position, seen, result)
        result.versions.append(copied)

    def _copy_version(self, version: TableVersion, position: TopicPosition, result: Round) -> bool:
        """Copy a version; return whether to go on with the next one."""
        self._check(version)
        seen = self._load(position, result)
        if seen.snapshot_version is not None:
            return False  # Another run starts the copy again.
        if not seen.is_before(version.version):
            return True  # Another run was first.
        number, is_raw = version.version, self._options.row_format.value_format == RAW
        with self._errors_of(number), vacuumed_files(self._table, number):
            frames = [self._encode(rows) for rows in self._table.changes(version)]
            records = union_of_changes(frames)
            if version.is_append:
                records = without_changes(records)
            else:
                records = net_changes(records, may_lack_keys=is_raw)
            copied = self._write(records, number, version.operation, position, seen, result)
        result.versions.append(copied)
        return True

    def _load(self, position: TopicPosition, result: Round) -> Position:
        """Return the position now, if the topic is still the one of the round."""
        seen = position.load()
        if result.topic_id:
            check_same_topic(self._options.topic, result.topic_id, seen.topic_id)
        result.topic_id = seen.topic_id
        return seen

    @contextmanager
    def _errors_of(self, version: int) -> Iterator[None]:
        """Name the table and the version in each error."""
        table = f"table {self._table.name}"
        try:
            with delta_errors(f"{table}, version {version}"):
                yield
        except KlogError as exc:
            if str(exc).startswith(table):
                raise
            raise with_context(exc, f"{table}, version {version}: {exc}") from exc

    def _check_metadata(self, version: TableVersion) -> None:
        before = self._table.metadata_before(version) if version.metadata is not None else None
        if before is not None:
            key = self._options.row_format.key
            check_new_metadata(version, before, self._table.name, key)

    def _check(self, version: TableVersion) -> None:
        has_key = bool(self._options.row_format.key)
        check_version(version, self._table.metadata_of(version), self._table.name, has_key=has_key)

    def _check_columns(self, version: TableVersion) -> None:
        """Refuse what the encoding of a version would refuse; a dry run encodes nothing."""
        columns = self._table.metadata_of(version).columns
        known = {*columns, *self._table.metadata().columns}
        with self._errors_of(version.version):
            self._options.row_format.check_columns(columns, known)

    def _encode(self, rows: DataFrame) -> DataFrame:
        return encode_rows(rows, self._options.row_format, self._table.metadata().columns)

    def _write(
        self,
        records: DataFrame,
        version: int,
        operation: str,
        position: TopicPosition,
        seen: Position,
        result: Round,
    ) -> CopiedVersion:
        """Write the records of a version in one commit, unless another run has."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as sf

        row_format = self._options.row_format
        if row_format.value_format in SCHEMA_FORMATS:
            schema, topic = row_format.value_schema, self._options.topic
            records = schema.encode(records, row_format.value_format, topic)
        counts = Observation()
        observed = with_own_plan(self._spark, records).observe(
            counts,
            sf.count(sf.lit(1)).alias("records"),
            sf.count_if(sf.col("value").isNull()).alias("tombstones"),
        )
        options = {
            **{name.lower(): text for name, text in self._options.write_options.items()},
            "topic": self._options.topic,
            "transactionalId": transactional_id(position.table_id),
            "transactionVersion": str(version),
        }
        if not seen.is_new:  # A topic that is deleted meanwhile must not begin with this version.
            options["createtopic"] = "false"
            position.ensure_dead_letter_topic()
        writer = observed.write.format("klog").options(**options).mode("append")
        writer.save(self._options.root)
        if self._load(position, result).is_before(version):  # Without tasks nothing is committed.
            position.advance(version, seen)
        number = counts.get
        return CopiedVersion(version, operation, number["records"], number["tombstones"])

    def _finish(self, position: TopicPosition, result: Round) -> None:
        """Move the position to the last version, if that had no changes."""
        seen = self._load(position, result)
        end = result.end_version
        if end is not None and seen.snapshot_version is None and seen.is_before(end):
            position.advance(end, seen)


def _before_snapshot(seen: Position, position: TopicPosition) -> Position:
    """Return the position just before a snapshot that starts a copy again.

    The keys that the snapshot deletes are those of the topic, so no run that has begun before may
    write a version any more: it would be skipped, as the position is after it. Version 0 has none
    before it.
    """
    while seen.snapshot_version and seen.is_before(seen.snapshot_version - 1):
        seen = position.advance(seen.snapshot_version - 1, seen)
    return seen
