"""Where a table is in its topics, and the transaction that the next batch is.

The rule: notes of commits say it (`noted_offsets.py`), and rows for topics without a note
(`row_offsets.py`): after a clone, after Delta has expired the commits with notes, or if another
job has filled the table. All is as of one version of the table.

A batch is one transaction of Delta's. Its number is larger than that of the last one, and larger
than that of any batch planned when the table had less of the topic, so it needs no number that
Delta has expired. Two runs that plan on the same table have the same number, and Delta lets one of
them in: also where the table has nothing of a partition, and each run begins at its own
`startingOffsets`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from klog.connector.source.stream_offsets import StreamOffsets
from klog.errors import OptionError
from klog.jobs.copying_to_delta.noted_offsets import NotedOffsets, find_noted_offsets
from klog.jobs.copying_to_delta.row_offsets import find_row_offsets
from klog.jobs.shared.delta.delta_target import DeltaTarget, TableSnapshot
from klog.jobs.shared.topic_batches import CopiedOffsets, TopicBatch
from klog.logformat.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class DeltaTransaction:
    """Delta's `txn` of one batch: `txnAppId` and `txnVersion`."""

    application_id: str
    version: int


@dataclass(frozen=True, slots=True)
class CopiedTopics:
    """Where a table is in its topics, at one version.

    Attributes:
        snapshot: The table.
        topics: By topic, where the table is in it.
        noted_ms: When the newest note was made, in ms; None if there is no note.
    """

    snapshot: TableSnapshot
    topics: Mapping[str, CopiedOffsets]
    noted_ms: int | None = None

    def has_lasting_note(self, now_ms: int) -> bool:
        """Return whether the newest note is in the first half of the time that Delta keeps it.

        Args:
            now_ms: The time, in ms.
        """
        if self.noted_ms is None:
            return False
        return now_ms - self.noted_ms < self.snapshot.log_retention_ms / 2

    def transaction(self, batch: TopicBatch) -> DeltaTransaction:
        """Return the transaction that a batch is.

        Args:
            batch: The batch, planned from these offsets.
        """
        application_id = f"klog-to-delta:{self.snapshot.table_id}:{batch.topic_id or batch.topic}"
        last = self.snapshot.transaction_version(application_id) or 0
        known = self.topics.get(batch.topic)
        copied = 0 if known is None else sum(known.offsets.next_offsets.values())
        return DeltaTransaction(application_id, max(last, copied) + 1)

    def is_next(self, transaction: DeltaTransaction, snapshot: TableSnapshot) -> bool:
        """Return whether no other run has committed a transaction or a table in its place.

        Args:
            transaction: The transaction, which was planned on `self.snapshot`.
            snapshot: The newest version of the table.
        """
        last = snapshot.transaction_version(transaction.application_id) or 0
        return snapshot.table_id == self.snapshot.table_id and last < transaction.version


def find_copied_topics(target: DeltaTarget, topics: Sequence[str], mode: str) -> CopiedTopics:
    """Return where a table is in its topics.

    Args:
        target: The table, which exists.
        topics: The topics that are asked for; others are there if a note has them.
        mode: How the topics are copied, `append` or `upsert`.

    Raises:
        OptionError: The table was filled in another mode.
        KlogError: Rows are at a wrong place, which the message names.
    """
    snapshot = target.snapshot()
    commits = target.commits(snapshot.version)
    noted = find_noted_offsets(commits, target.name, snapshot.table_id)
    if noted.mode not in ("", mode):
        raise OptionError(
            f"--mode {mode}: table {target.name} was filled by --mode {noted.mode}. Use that, or "
            "another table"
        )
    copied = {topic: CopiedOffsets(offsets) for topic, offsets in noted.topics.items()}
    missing = [topic for topic in {*topics, *noted.lower_bounds} if topic not in copied]
    if missing and not noted.are_all_rows_noted:
        rows = find_row_offsets(target, snapshot, missing)
        copied |= _by_rows(missing, noted, rows)
    return CopiedTopics(snapshot, copied, noted.noted_ms)


def _by_rows(
    topics: Sequence[str], noted: NotedOffsets, rows: Mapping[TopicPartition, int]
) -> dict[str, CopiedOffsets]:
    copied = {}
    for topic in topics:
        next_offsets = {name: offset for name, offset in rows.items() if name.topic == topic}
        lower = noted.lower_bounds.get(topic, StreamOffsets({}, {}))
        for name, offset in lower.next_offsets.items():
            next_offsets[name] = max(offset, next_offsets.get(name, 0))
        if next_offsets:
            offsets = StreamOffsets(next_offsets, lower.topic_ids, restores=lower.restores)
            copied[topic] = CopiedOffsets(offsets, has_all_partitions=False)
    return copied
