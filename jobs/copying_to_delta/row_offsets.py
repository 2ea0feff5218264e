"""Where a table is in topics, by its rows: the largest offset of each partition.

The rule: the statistics of files say it without reading a row, for a file that has one partition of
one topic. Delta cuts the statistics of text after 32 characters, so the name of a topic may be in
question. The rows of a file that the statistics leave open are read: three columns, and only from
files that may have larger offsets than are known. Deleted rows count as long as their file has
them, which a deletion vector leaves so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klog.jobs.shared.delta.delta_target import DeltaTarget, TableSnapshot
from klog.logformat.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TOPIC, PARTITION, OFFSET = OFFSET_COLUMNS = ("topic", "partition", "offset")
_TEXT_STATISTICS_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class FileBounds:
    """The bounds that some files share, by their statistics; None for what those do not say.

    Attributes:
        min_topic: Not after the name of any topic in the files.
        max_topic: Not before the name of any topic in the files.
        min_partition: The smallest number of a partition.
        max_partition: The largest one.
        max_offset: The largest offset in the files.
    """

    min_topic: str | None
    max_topic: str | None
    min_partition: int | None
    max_partition: int | None
    max_offset: int | None

    @property
    def is_known(self) -> bool:
        """Return whether no bound is missing."""
        return None not in (
            self.min_topic,
            self.max_topic,
            self.min_partition,
            self.max_partition,
            self.max_offset,
        )

    def may_have(self, topics: Sequence[str]) -> bool:
        """Return whether a record of one of some topics may be in the files.

        Args:
            topics: The names of the topics.
        """
        return any(
            (self.min_topic is None or self.min_topic <= topic)
            and (self.max_topic is None or topic <= self.max_topic)
            for topic in topics
        )

    def single_partition(self) -> TopicPartition | None:
        """Return the only partition in the files; None if there may be several."""
        if self.min_topic is None or self.min_topic != self.max_topic:
            return None
        if self.min_partition is None or self.min_partition != self.max_partition:
            return None
        # A name of so many characters may be the beginning of a longer one.
        if len(self.min_topic) >= _TEXT_STATISTICS_CHARACTERS:
            return None
        return TopicPartition(self.min_topic, self.min_partition)


def find_row_offsets(
    target: DeltaTarget, snapshot: TableSnapshot, topics: Sequence[str]
) -> dict[TopicPartition, int]:
    """Return the next offset of each partition that has rows in a table.

    Args:
        target: The table.
        snapshot: The table at one version.
        topics: The topics that are asked for.
    """
    if not snapshot.column_names.issuperset(OFFSET_COLUMNS):
        return {}
    next_offsets, open_files = decide_by_statistics(_file_bounds(snapshot))
    undecided = [bounds for bounds in open_files if bounds.may_have(topics)]
    if undecided:
        rows = target.rows_at(snapshot.version).where(_may_be_larger(undecided, next_offsets))
        for name, next_offset in _next_offsets_of_rows(rows, topics):
            next_offsets[name] = max(next_offset, next_offsets.get(name, 0))
    return {name: offset for name, offset in next_offsets.items() if name.topic in topics}


def decide_by_statistics(
    files: Iterable[FileBounds],
) -> tuple[dict[TopicPartition, int], list[FileBounds]]:
    """Return the next offsets that statistics say, and the bounds of files that have to be read.

    Args:
        files: The bounds of files.
    """
    next_offsets: dict[TopicPartition, int] = {}
    undecided = []
    for bounds in files:
        name = bounds.single_partition()
        if name is None or bounds.max_offset is None:
            undecided.append(bounds)
        else:
            next_offsets[name] = max(bounds.max_offset + 1, next_offsets.get(name, 0))
    return next_offsets, undecided


def _file_bounds(snapshot: TableSnapshot) -> list[FileBounds]:
    from pyspark.sql import functions as sf

    physical = snapshot.physical_names(OFFSET_COLUMNS)
    fields = ", ".join(
        f"`{physical[column]}`: {kind}"
        for column, kind in zip(OFFSET_COLUMNS, ("string", "int", "bigint"), strict=True)
    )
    schema = f"minValues struct<{fields}>, maxValues struct<{fields}>"
    statistics = sf.from_json("stats", schema)

    def bound(side: str, column: str) -> Column:
        in_path = sf.col("partitionValues").getItem(physical[column])
        kind = {TOPIC: "string", PARTITION: "int", OFFSET: "bigint"}[column]
        return sf.coalesce(statistics[side][physical[column]], in_path.cast(kind))

    keys = [
        bound("minValues", TOPIC).alias("min_topic"),
        bound("maxValues", TOPIC).alias("max_topic"),
        bound("minValues", PARTITION).alias("min_partition"),
        bound("maxValues", PARTITION).alias("max_partition"),
    ]
    max_offset = bound("maxValues", OFFSET)
    bounds = snapshot.files().groupBy(*keys, max_offset.isNull().alias("is_unknown"))
    rows = bounds.agg(sf.max(max_offset).alias("max_offset")).collect()
    return [
        FileBounds(
            row["min_topic"],
            row["max_topic"],
            row["min_partition"],
            row["max_partition"],
            row["max_offset"],
        )
        for row in rows
    ]


def _may_be_larger(
    undecided: Sequence[FileBounds], next_offsets: Mapping[TopicPartition, int]
) -> Column:
    """Return the condition of rows that may have a larger offset than is known."""
    from pyspark.sql import functions as sf

    if not all(bounds.is_known for bounds in undecided):
        return sf.lit(True)
    return sf.col(OFFSET) >= min(_smallest_known(bounds, next_offsets) for bounds in undecided)


def _smallest_known(bounds: FileBounds, next_offsets: Mapping[TopicPartition, int]) -> int:
    """Return the offset below which no row of files with these bounds says anything new."""
    assert bounds.min_topic is not None
    assert bounds.min_partition is not None
    assert bounds.max_partition is not None
    if bounds.min_topic != bounds.max_topic:
        return 0
    numbers = range(bounds.min_partition, bounds.max_partition + 1)
    names = (TopicPartition(bounds.min_topic, number) for number in numbers)
    return min(next_offsets.get(name, 0) for name in names)


def _next_offsets_of_rows(
    rows: DataFrame, topics: Sequence[str]
) -> Iterable[tuple[TopicPartition, int]]:
    from pyspark.sql import functions as sf

    largest = (
        rows.where(sf.col(TOPIC).isin(*topics))
        .groupBy(TOPIC, PARTITION)
        .agg(sf.max(OFFSET).alias(OFFSET))
    )
    for row in largest.collect():
        yield TopicPartition(row[TOPIC], row[PARTITION]), row[OFFSET] + 1
