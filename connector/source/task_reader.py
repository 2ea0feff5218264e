"""What Spark sends to each task: an object that reads slices, and nothing that plans.

The rule: Spark pickles a reader into every task, so a reader pickles as a `TaskReader`. Importing
this module imports neither what plans a read nor what decodes one: a planner makes readers and
decodes nothing, and a task plans only if the file of a slice has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klog.connector.options.storage_options import StorageOptions
from klog.connector.source.data_loss import BATCH_REMEDY, Remedy, raise_or_warn, stream_remedy
from klog.connector.source.slice_reader import SliceReader
from klog.connector.source.slices import Slice
from klog.connector.spark_errors import sentence_first

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition

    from klog.connector.options.as_of import AsOf
    from klog.connector.options.read_options import ReadOptions


def make_reader(directories: Sequence[str], options: ReadOptions) -> SliceReader:
    """Return the reader that tasks use.

    Args:
        directories: The roots of the read.
        options: The options of the read.
    """
    remedy = stream_remedy("what is left") if options.is_streaming else BATCH_REMEDY
    return SliceReader(
        options.columns,
        Replanner(
            tuple(directories), options.storage, options.fail_on_data_loss, remedy, options.as_of
        ),
        options.fail_on_data_loss,
        options.storage,
        remedy,
    )


@dataclass(frozen=True, slots=True)
class TaskReader:
    """The `read` of Spark's readers, batch and stream."""

    slice_reader: SliceReader

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task. Spark passes an empty partition if the plan has no task.

        Args:
            partition: What the planner made of the task.
        """
        with sentence_first():
            yield from self.slice_reader.read(partition.value or [])


@dataclass(frozen=True, slots=True)
class Replanner:
    """Plans a slice again in the task that finds its file changed; pickles with its reader."""

    directories: tuple[str, ...]
    storage: StorageOptions
    fail_on_data_loss: bool = True
    remedy: Remedy = BATCH_REMEDY
    as_of: AsOf | None = None

    def __call__(self, slice_: Slice) -> tuple[int, list[Slice]]:
        """Return the log start now, and slices for the offsets that are left."""
        from klog.connector.source.scan_planner import plan_slice_again

        def report_hole(hole: int) -> None:
            raise_or_warn(
                f"{slice_.name}: the records from offset {hole} on were taken back while they were "
                f"read, and vacuum has deleted their file ({slice_.path})",
                self.remedy,
                "what is left",
                fail_on_data_loss=self.fail_on_data_loss,
            )

        return plan_slice_again(self.directories, self.storage, slice_, report_hole, self.as_of)
