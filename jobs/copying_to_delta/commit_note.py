"""What a commit of a copy says about itself, in Delta's `userMetadata`.

The rule: the note has where the table is in each of its topics after the commit. For the topic that
the commit has copied that is sure; for the others it is as of `baseVersion`, the version of the
table on which the batch was planned. The form is a contract (docs/tables.md): a later klog reads
what an earlier one has written, and a note of a later format is an error.

    {"klog": {"format": 1, "job": "to-delta", "mode": "append", "batch": "6f1c...",
              "tableId": "d8c1...", "baseVersion": 7, "topic": "orders",
              "topics": {"orders": {"orders": {"0": 200}, "#ids": {...}}}}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from klog.connector.source.stream_offsets import StreamOffsets
from klog.errors import NewerFormatError

FORMAT = 1
_KEY = "klog"
JOB = "to-delta"


@dataclass(frozen=True, slots=True)
class CommitNote:
    """The note of one commit.

    Attributes:
        batch: A random id, by which a job knows its own commit.
        mode: `append` or `upsert`.
        table_id: The id of the table on which the batch was planned.
        topic: The topic that the commit has copied.
        base_version: The version of the table on which the batch was planned.
        topics: By topic, where the table is in it.
    """

    batch: str
    mode: str
    table_id: str
    topic: str
    base_version: int
    topics: Mapping[str, StreamOffsets]

    def to_text(self) -> str:
        """Return the note as Delta keeps it."""
        note = {
            "format": FORMAT,
            "job": JOB,
            "mode": self.mode,
            "batch": self.batch,
            "tableId": self.table_id,
            "topic": self.topic,
            "baseVersion": self.base_version,
            "topics": {topic: offsets.to_json() for topic, offsets in sorted(self.topics.items())},
        }
        return json.dumps({_KEY: note}, separators=(",", ":"))


def parse_commit_note(text: str | None, table: str, version: int) -> CommitNote | None:
    """Return the note of a commit; None if another writer made the commit.

    Args:
        text: The `userMetadata` of the commit.
        table: The table, for the error.
        version: The version of the commit, for the error.

    Raises:
        NewerFormatError: A later klog has written the note.
    """
    if text is None or _KEY not in text:
        return None
    try:
        note = json.loads(text)[_KEY]
        if note["job"] != JOB:
            return None
        if note["format"] > FORMAT:
            raise NewerFormatError(
                f"table {table}, version {version}: a later klog has copied to it (note of format "
                f"{note['format']}, this klog knows {FORMAT}). Run the job with that klog"
            )
        topics = {
            topic: StreamOffsets.from_json(offsets) for topic, offsets in note["topics"].items()
        }
        return CommitNote(
            note["batch"],
            note["mode"],
            note["tableId"],
            note["topic"],
            note["baseVersion"],
            topics,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # Text of another writer that happens to look like it.
