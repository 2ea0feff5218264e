"""A topic as of one version of its log.

The rule: a state is what a replay of commits 0 to `version` in order leads to (`state_replay.py`),
and has nothing else. Values are immutable; a replay makes a new state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pyarrow as pa

from klog.connector.commit_log.commit import Hole, WriterTransaction
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.commit_log.live_segments import LiveSegments
from klog.connector.commit_log.past_restores import PastRestore

MAX_REMEMBERED_WRITES = 10_000
"""A state has the write ids of so many of the last commits. Whether a try landed that takes longer
cannot be known."""

REMOVED_SCHEMA = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("timestamp_ms", pa.int64(), nullable=False),
    ]
)
"""Segments that a commit removed, its version and time: readers of older versions need them."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as of `version`; -1 is before its first commit. A deleted topic has no `topic_id`.

    `log_start` and `log_end` are by partition. `removed` has `REMOVED_SCHEMA`. `writes` has the
    version by write id, oldest first. `restores` are the last ones, also oldest
    first. `checkpoint` is the newest known one, and `tail_bytes` is the
    size of the commits after it. `listed_ms` is when the commits were last listed, -1 if they never
    were, `loaded_ms` is when they were last loaded from a checkpoint, and `own_commits` is how many
    this process has put since. States that differ only in these five are equal.
    """

    version: int = -1
    timestamp_ms: int = -1
    topic_id: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    log_start: tuple[int, ...] = ()
    log_end: tuple[int, ...] = ()
    cleaned_to: Mapping[int, int] = field(default_factory=dict)
    live: LiveSegments = field(default_factory=LiveSegments)
    removed: pa.Table = field(default_factory=lambda: pa.Table.from_batches([], REMOVED_SCHEMA))
    writer_transactions: Mapping[str, WriterTransaction] = field(default_factory=dict)
    writes: Mapping[str, int] = field(default_factory=dict)
    vacuum_version: int = 0
    holes: tuple[Hole, ...] = ()
    restores: tuple[PastRestore, ...] = ()
    checkpoint: CheckpointName | None = field(default=None, compare=False)
    tail_bytes: int = field(default=0, compare=False)
    listed_ms: int = field(default=-1, compare=False)
    loaded_ms: int = field(default=-1, compare=False)
    own_commits: int = field(default=0, compare=False)

    @property
    def last_write_id(self) -> str:
        """Return the write id of the commit of `version`; empty before the first commit."""
        return last_write_id(self.writes)

    @property
    def segments(self) -> pa.Table:
        """Return the live segments, `segment_entries.SCHEMA`, sorted by partition and offset.

        The table may have many chunks. It is computed once, when a caller first needs it: a writer
        that only appends never does.
        """
        return self.live.segments()

    @property
    def partitions(self) -> int:
        """Return the number of partitions."""
        return len(self.log_end)

    def remembers(self, version: int) -> bool:
        """Return whether `writes` has the write ids of commits of this version.

        Args:
            version: A version up to that of the state.
        """
        if len(self.writes) < MAX_REMEMBERED_WRITES:
            return True
        return version >= next(iter(self.writes.values()))


def last_write_id(writes: Mapping[str, int]) -> str:
    """Return the last write id; empty if there is none.

    Args:
        writes: Versions by write id. It must be a dictionary, whose last key is found at once.
    """
    return next(reversed(cast("dict[str, int]", writes)), "")
