"""A topic as of one version of its log, and how commits change it.

The rule: a state is what folding commits 0 to `version` in order gives, and nothing else goes into
it. Folding asserts what commits promise: numbers without gaps, times that rise, appends that begin
where the log ends, removals of what is live, and the log ends that the commit itself states. A
commit that breaks one is a `KlogError`: the log was changed by something that is not klog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pyarrow as pa

from klog.connector.commit_log.commit import Hole, WriterTransaction
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.commit_log.live_segments import LiveSegments

MAX_REMEMBERED_WRITES = 10_000
"""So many of the last commits are known by their write id: of a try that takes longer nobody knows
whether it landed."""

REMOVED_SCHEMA = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("timestamp_ms", pa.int64(), nullable=False),
    ]
)
"""Segments that a commit took out, and which one when: readers of older versions may need them."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as of `version`; -1 is before its first commit. A deleted topic has no `topic_id`.

    `log_start` and `log_end` are by partition. `removed` has `REMOVED_SCHEMA`. `writes` gives the
    version by write id, oldest first. `checkpoint` is the newest known one, and `tail_bytes` is
    the size of the commits after it. `listed_ms` is when the commits were last listed, -1 if they
    never were, `loaded_ms` when they were last loaded from a checkpoint, and `own_commits` how
    many this process has put since. States that differ in these alone are the same.
    """

    version: int = -1
    timestamp_ms: int = -1
    topic_id: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    log_start: tuple[int, ...] = ()
    log_end: tuple[int, ...] = ()
    cleaned_to: Mapping[int, int] = field(default_factory=dict)
    live: LiveSegments = field(default_factory=LiveSegments)
    removed: pa.Table = field(default_factory=REMOVED_SCHEMA.empty_table)
    writer_transactions: Mapping[str, WriterTransaction] = field(default_factory=dict)
    writes: Mapping[str, int] = field(default_factory=dict)
    vacuum_version: int = 0
    holes: tuple[Hole, ...] = ()
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
        """Give the live segments, `entries.SCHEMA`, sorted by partition and offset.

        The table may have many chunks. It is worked out once for a state, when it is first asked
        for: a writer that only appends never pays for it.
        """
        return self.live.segments()

    @property
    def partitions(self) -> int:
        """Give the number of partitions."""
        return len(self.log_end)

    def remembers(self, version: int) -> bool:
        """Tell whether the write id of a commit of this version would be among `writes`."""
        if len(self.writes) < MAX_REMEMBERED_WRITES:
            return True
        return version >= next(iter(self.writes.values()))


def last_write_id(writes: Mapping[str, int]) -> str:
    """Return the last key; what a state is made of are dictionaries, which know it at once."""
    return next(reversed(cast("dict[str, int]", writes)), "")
