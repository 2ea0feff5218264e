"""The paths of the files of a topic, below the directory of the topic.

    date=2026-11-28/hour=14/part-0-00000000000000000100-6f1c0a9b4d3e2f10.parquet

The rule: a path follows from the plan and the hour (`partition_by`) alone: partition, first offset
of the planned range, id of the plan. It does not have the topic, which may be as long as a name can
be, or begin with `_`, which hides a file from plain readers; the folder and each row have it. So a
repeated run writes under the same names, whatever the log has lost meanwhile, and two plans never
share a name. Folders are Hive's: `date=` and `hour=` are columns to Spark, DuckDB and Arrow. A time
that no date of theirs has is Hive's null.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from klog.errors import OptionError
from klog.jobs.shared.files_manifest import FilePlan, FileRange
from klog.logformat.array_types import Longs

HOUR, DAY, NONE = PARTITIONINGS = ("hour", "day", "none")
_MICROSECONDS = {HOUR: 3_600_000_000, DAY: 86_400_000_000}
_NULL = "__HIVE_DEFAULT_PARTITION__"
_MIN_DAY = int(np.datetime64("0001-01-01", "D").astype(np.int64))
_MAX_DAY = int(np.datetime64("9999-12-31", "D").astype(np.int64))
_HOURS = 24
_NO_TIME = np.iinfo(np.int64).min
"""The bucket of times that no date has."""
_NAME = re.compile(
    r"part-(?P<partition>\d{1,10})-(?P<offset>\d{20})-(?P<plan>[0-9a-f]{16})\.parquet"
)


@dataclass(frozen=True, slots=True)
class FileName:
    """What the name of a file says."""

    partition: int
    start_offset: int
    plan_id: str


def check_partitioning(partition_by: str) -> None:
    """Refuse a layout that does not exist.

    Args:
        partition_by: `hour`, `day` or `none`.

    Raises:
        OptionError: It is not one of these.
    """
    if partition_by not in PARTITIONINGS:
        names = ", ".join(PARTITIONINGS)
        raise OptionError(f"--partition-by: must be one of {names}, got {partition_by!r}")


def buckets_of(timestamps: pa.Array, partition_by: str) -> Longs:
    """Return the bucket of each record: hours or days since the epoch.

    Args:
        timestamps: The timestamps, in microseconds.
        partition_by: `hour`, `day` or `none`.
    """
    if partition_by == NONE:
        return np.zeros(len(timestamps), np.int64)
    size = _MICROSECONDS[partition_by]
    buckets: Longs = timestamps.cast(pa.int64()).to_numpy() // size
    a_day = _MICROSECONDS[DAY] // size
    is_dated = (buckets >= _MIN_DAY * a_day) & (buckets < (_MAX_DAY + 1) * a_day)
    return np.where(is_dated, buckets, _NO_TIME)


def file_path(plan: FilePlan, file_range: FileRange, bucket: int) -> str:
    """Return the path of a file, relative to the directory of the topic.

    Args:
        plan: The plan.
        file_range: The range of the plan that the file has records of.
        bucket: Their bucket, as `buckets_of` returns it.
    """
    name = f"part-{file_range.partition}-{file_range.start_offset:020d}-{plan.plan_id}.parquet"
    return f"{_folder(plan.partition_by, bucket)}{name}"


def parse_file_name(name: str) -> FileName | None:
    """Return what the name of a file says; None if it is not a name of `to-files`.

    Args:
        name: The name, without folders.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return FileName(int(match["partition"]), int(match["offset"]), match["plan"])


def _folder(partition_by: str, bucket: int) -> str:
    if partition_by == NONE:
        return ""
    if bucket == _NO_TIME:
        return f"date={_NULL}/" + (f"hour={_NULL}/" if partition_by == HOUR else "")
    if partition_by == DAY:
        return f"date={np.datetime64(bucket, 'D')}/"
    return f"date={np.datetime64(bucket // _HOURS, 'D')}/hour={bucket % _HOURS:02d}/"
