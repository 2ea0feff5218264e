"""Where a copy starts, or starts again: a version, or a snapshot of the table.

The rule: `--starting-version` counts only for a topic that has nothing of the table, as Spark's
`startingOffsets` counts only for a new query. `--restart-at` counts whatever the topic has. A topic
that has another table is refused without it: its keys may be those of a table that is gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from klog.errors import DataLossError, KlogError, OptionError
from klog.jobs.copying_from_delta.topic_position import Position

SNAPSHOT, EARLIEST, LATEST = START_NAMES = ("snapshot", "earliest", "latest")
RESTART_AT_SNAPSHOT = (
    "Run the job once with --restart-at snapshot, which copies the rows that the table has now and "
    "writes tombstones for keys that are gone"
)
_VERSION = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Start:
    """The first step of a copy.

    Attributes:
        snapshot_version: The version whose rows come first; None for none.
        done_version: The version that counts as copied, so that the next one comes first; None for
            no change.
    """

    snapshot_version: int | None = None
    done_version: int | None = None


@dataclass(frozen=True, slots=True)
class TableBounds:
    """What a table has.

    Attributes:
        name: The table, as the user has it.
        table_id: Its id.
        earliest: Returns the first version that can be read.
        latest: The newest version.
    """

    name: str
    table_id: str
    earliest: Callable[[], int]
    latest: int


def parse_start(option: str, text: str) -> str:
    """Return the text of a start, checked.

    Args:
        option: The name of the option, for the error.
        text: `snapshot`, `earliest`, `latest` or a version.

    Raises:
        OptionError: It is something else.
    """
    if text not in START_NAMES and not _VERSION.fullmatch(text):
        raise OptionError(
            f"{option}: must be one of {', '.join(START_NAMES)} or a version, got {text!r}"
        )
    return text


def plan_start(
    position: Position, table: TableBounds, starting_version: str, restart_at: str | None
) -> Start:
    """Return the first step of a copy.

    Args:
        position: Where the topic is.
        table: What the table has.
        starting_version: Where a new copy starts.
        restart_at: Where a copy starts again; None if it goes on.

    Raises:
        KlogError: The topic has another table.
        DataLossError: The table is at a version before that of the topic.
        OptionError: The table does not have the version, or the topic is after it.
    """
    if restart_at is None:
        _check_same_table(position, table)
        if not position.is_new:
            return Start(snapshot_version=position.snapshot_version)
        return _start("--starting-version", starting_version, table)
    start = _start("--restart-at", restart_at, table)
    version = start.done_version if start.snapshot_version is None else start.snapshot_version
    # Version 0 is before every position: nothing is done then.
    done = -1 if version is None else version
    if position.is_before(done):
        _check_pending_snapshot(position, done, restart_at)
        return start
    if start.snapshot_version is None and position.version == done:
        return Start()
    raise OptionError(
        f"--restart-at {restart_at}: the topic has version {position.version} of table "
        f"{table.name} already, and its versions only go up. Commit to the table first, such as "
        "by ALTER TABLE SET TBLPROPERTIES, or delete the topic and run the job without "
        "--restart-at"
    )


def _check_pending_snapshot(position: Position, version: int, restart_at: str) -> None:
    """Refuse a start before a snapshot that is not complete: it would be completed all the same."""
    pending = position.snapshot_version
    if pending is not None and version < pending:
        raise OptionError(
            f"--restart-at {restart_at}: a snapshot of version {pending} was begun and is not "
            f"complete. Give {SNAPSHOT}, {LATEST} or a version from {pending + 1} on, or run the "
            "job without --restart-at, which completes it"
        )


def _check_same_table(position: Position, table: TableBounds) -> None:
    """Refuse a table that is not the one of the topic, or an older copy of it."""
    if position.is_new and position.other_tables:
        raise KlogError(
            f"table {table.name} has the id {table.table_id}, and the topic has versions of "
            f"{', '.join(position.other_tables)}: the table was dropped or replaced and created "
            "again, or the topic is for another table. "
            f"{RESTART_AT_SNAPSHOT}, or use another topic"
        )
    if not position.is_before(table.latest + 1):
        raise DataLossError(
            f"table {table.name} is at version {table.latest}, and the topic has version "
            f"{position.version}: the files of the table were restored from an older copy. Run "
            "the job once with --restart-at snapshot when the table has passed that version, or "
            "delete the topic and copy the table again"
        )


def _start(option: str, text: str, table: TableBounds) -> Start:
    if text == SNAPSHOT:
        return Start(snapshot_version=table.latest)
    if text == LATEST:
        return Start(done_version=table.latest)
    earliest = table.earliest()
    if earliest > table.latest and text == EARLIEST:
        raise OptionError(
            f"{option} {text}: the log of table {table.name} has no version that says what it "
            f"changed. Give {SNAPSHOT}"
        )
    version = earliest if text == EARLIEST else int(text)
    if version > table.latest + 1:
        raise OptionError(
            f"{option} {text}: table {table.name} is at version {table.latest}. Give a version up "
            f"to {table.latest + 1}"
        )
    if version < earliest:
        raise OptionError(
            f"{option} {text}: {earliest} is the earliest version that table {table.name} "
            f"has. Give it, or {SNAPSHOT}"
        )
    return Start(done_version=version - 1 if version else None)
