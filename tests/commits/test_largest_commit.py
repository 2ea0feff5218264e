"""The largest commit files that klog can write, which are what sets `MAX_COMMIT_BYTES`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from klog.connector.log import commit as commits
from klog.connector.log.commit import MAX_PARTITIONS, REPAIR, Actions, Commit, Hole, Progress, Topic
from klog.connector.log.max_sizes import MAX_COMMIT_BYTES, MAX_TABLE_BYTES
from klog.connector.log.operations import REMEMBERED_RUNS
from klog.connector.log.paths import SidecarName
from klog.errors import UnsupportedFormatError
from klog.logformat.names import MAX_OFFSET
from klog.logformat.topic_config import klog_config_names

TEXT = "\0" * (1 << 16)
"""The longest text that is read; JSON has six bytes for each character of it."""
OFFSETS = dict.fromkeys(range(MAX_PARTITIONS), MAX_OFFSET)
CONFIG = dict.fromkeys(klog_config_names(), TEXT)
NEW_TOPIC = Topic(TEXT, MAX_PARTITIONS)

LARGEST = {
    "adopt": Actions(
        create_topic=NEW_TOPIC,
        config=CONFIG,
        log_start=OFFSETS,
        ends_at=OFFSETS,
        cleaned_to=OFFSETS,
        log_end=OFFSETS,
    ),
    "append": Actions(
        create_topic=NEW_TOPIC,
        config=CONFIG,
        progress=Progress(TEXT, MAX_OFFSET, TEXT, TEXT, (TEXT,) * REMEMBERED_RUNS),
        log_end=OFFSETS,
    ),
    REPAIR: Actions(
        holes=tuple(Hole(number, MAX_OFFSET - 1, MAX_OFFSET) for number in range(MAX_PARTITIONS)),
        log_start=OFFSETS,
        log_end=OFFSETS,
    ),
}
"""Segments stand in a sidecar, so what is left are numbers by partition and texts."""


def largest(operation: str) -> Commit:
    sidecar = SidecarName(7, "0" * 16, MAX_TABLE_BYTES, 7)
    return Commit(
        7, TEXT, MAX_OFFSET, operation, TEXT, LARGEST[operation],
        sidecar=sidecar, previous_write_id=TEXT,
    )  # fmt: skip


@pytest.mark.parametrize("operation", LARGEST)
def test_the_largest_commit_of_each_operation_is_read(operation: str) -> None:
    made = largest(operation)
    data = commits.encode(made)
    assert replace(commits.decode(data, "orders", 7), size_bytes=0) == made


def test_the_bound_is_not_twice_what_is_needed() -> None:
    needed = max(len(commits.encode(largest(operation))) for operation in LARGEST)
    assert needed <= MAX_COMMIT_BYTES < 2 * needed


def test_a_commit_may_have_just_so_many_bytes() -> None:
    data = commits.encode(Commit(7, "w", 1, "append", "test", Actions()))
    assert commits.decode(data.ljust(MAX_COMMIT_BYTES), "orders", 7).version == 7
    with pytest.raises(UnsupportedFormatError, match=f"at most {MAX_COMMIT_BYTES} are read"):
        commits.decode(data.ljust(MAX_COMMIT_BYTES + 1), "orders", 7)
