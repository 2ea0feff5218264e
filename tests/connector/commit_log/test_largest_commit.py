"""The largest commit files that klog can write, which are what sets `MAX_COMMIT_BYTES`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from klog.connector.commit_log import commit_json
from klog.connector.commit_log.append_commit import MAX_REMEMBERED_RUNS
from klog.connector.commit_log.commit import REPAIR, Actions, Commit, Hole, Topic, WriterTransaction
from klog.connector.commit_log.commit_log_paths import SidecarName
from klog.connector.commit_log.file_size_limits import MAX_COMMIT_BYTES, MAX_TABLE_BYTES
from klog.errors import UnsupportedFormatError
from klog.logformat.broker_files.file_names import MAX_OFFSET
from klog.logformat.topic_config_defaults import klog_config_names
from klog.logformat.topic_partition import MAX_PARTITIONS

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
        explicit_log_end=OFFSETS,
        cleaned_to=OFFSETS,
        asserted_log_end=OFFSETS,
    ),
    "append": Actions(
        create_topic=NEW_TOPIC,
        config=CONFIG,
        writer_transaction=WriterTransaction(
            TEXT, MAX_OFFSET, TEXT, TEXT, (TEXT,) * MAX_REMEMBERED_RUNS
        ),
        asserted_log_end=OFFSETS,
    ),
    REPAIR: Actions(
        holes=tuple(Hole(number, MAX_OFFSET - 1, MAX_OFFSET) for number in range(MAX_PARTITIONS)),
        log_start=OFFSETS,
        asserted_log_end=OFFSETS,
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
    commit = largest(operation)
    data = commit_json.encode_commit(commit)
    assert replace(commit_json.decode_commit(data, "orders", 7), size_bytes=0) == commit


def test_the_bound_is_not_twice_what_is_needed() -> None:
    needed = max(len(commit_json.encode_commit(largest(operation))) for operation in LARGEST)
    assert needed <= MAX_COMMIT_BYTES < 2 * needed


def test_a_commit_may_have_just_so_many_bytes() -> None:
    data = commit_json.encode_commit(Commit(7, "w", 1, "append", "test", Actions()))
    assert commit_json.decode_commit(data.ljust(MAX_COMMIT_BYTES), "orders", 7).version == 7
    with pytest.raises(UnsupportedFormatError, match=f"at most {MAX_COMMIT_BYTES} are read"):
        commit_json.decode_commit(data.ljust(MAX_COMMIT_BYTES + 1), "orders", 7)
