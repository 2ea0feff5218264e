"""Verify what a broker wrote: its producers' sequences, and its messages of old formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from klog.connector.producer_ids import MIN_PRODUCER_ID
from klog.connector.segment_chunks import CHUNK_BYTES
from klog.jobs import adopt, import_log, merge, verify
from klog.logformat.codecs.codec_names import LZ4
from klog.logformat.producers.control_records import ABORT, COMMIT
from klog.logformat.producers.producer_state import EXPIRATION_MS
from tests.jobs.broker_dirs import write_broker_dir
from tests.support.batch_bytes import TRANSACTIONAL, Record, batch, marker
from tests.support.legacy_bytes import wrapper

Take = Callable[[Path, Path], str]
START_MS = 1_700_000_000_000


def adopted(source: Path, _: Path) -> str:
    adopt.run(None, str(source))
    return str(source)


def imported(source: Path, to: Path) -> str:
    import_log.run(None, str(to), source=str(source))
    return str(to)


def merged(source: Path, to: Path) -> str:
    root = imported(source, to)
    merge.run(None, root)
    return root


def data(
    offset: int,
    sequence: int,
    time_ms: int = START_MS,
    attributes: int = 0,
    count: int = 1,
    producer_id: int = 13,
) -> bytes:
    return batch(
        [Record(offset + i, time_ms, b"k%d" % (offset + i), b"v") for i in range(count)],
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )


def reasons(root: str, topic: str) -> list[str]:
    return [finding.reason for finding in verify.run(None, root, topic).findings]


COMMITS = b"".join(
    data(offset, 0, attributes=TRANSACTIONAL) + marker(offset + 1, 13, kind)
    for offset, kind in ((0, COMMIT), (2, ABORT), (4, COMMIT))
)
"""Offsets that a group coordinator committed for a transactional producer: sequence 0 each time."""


@pytest.mark.parametrize("take", [adopted, imported, merged])
@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "orders"])
def test_a_coordinator_begins_each_batch_at_0(tmp_path: Path, take: Take, topic: str) -> None:
    rest = data(6, 0, attributes=TRANSACTIONAL) + marker(7, 13, COMMIT)
    source = write_broker_dir(tmp_path / "log", {f"{topic}-0": {0: COMMITS, 6: rest}})
    breaks = ["producer 13, epoch 0: sequence 0 where 1 is due"] * 3
    root = take(source, tmp_path / "root")
    assert reasons(root, topic) == (breaks if topic == "orders" else [])


def test_klogs_own_producers_are_held_to_their_rule(tmp_path: Path) -> None:
    """In a coordinator's topic too."""
    twice = data(0, 0, producer_id=MIN_PRODUCER_ID) + data(1, 0, producer_id=MIN_PRODUCER_ID)
    root = imported(
        write_broker_dir(tmp_path / "log", {"__consumer_offsets-0": {0: twice}}), tmp_path / "to"
    )
    (reason,) = reasons(root, "__consumer_offsets")
    assert reason.endswith("epoch 0: sequence 0 where 1 is due")


@pytest.mark.parametrize("take", [adopted, imported, merged])
def test_a_producer_that_a_broker_forgot(tmp_path: Path, take: Take) -> None:
    """Its first batch may have any sequence, and so may the first one after it expired."""
    later_ms = START_MS + EXPIRATION_MS
    logs = {
        "t-0": {0: data(0, 57, count=3), 3: data(3, 60)},
        "t-1": {0: data(0, 57), 1: data(1, 0, later_ms)},
        "t-2": {0: data(0, 57), 1: data(1, 0, later_ms - 1)},
    }
    root = take(write_broker_dir(tmp_path / "log", logs), tmp_path / "root")
    assert reasons(root, "t") == ["producer 13, epoch 0: sequence 0 where 58 is due"]


@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_messages_of_old_formats_in_several_chunks(tmp_path: Path, magic: int) -> None:
    """The header of a wrapper has its last offset alone, also at the start of a chunk."""
    value = Random(magic).randbytes(CHUNK_BYTES // 8)
    wrappers = [
        [Record(offset + i, START_MS, b"k", value) for i in range(3)] for offset in range(0, 12, 3)
    ]
    log = b"".join(wrapper(records, magic, LZ4) for records in wrappers)
    assert len(log) > CHUNK_BYTES
    root = imported(write_broker_dir(tmp_path / "log", {"t-0": {0: log}}), tmp_path / "root")
    assert not reasons(root, "t")
