"""A run of `availableNow`: its end is fixed once, and is there before each of its micro-batches."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from klog.connector.source.stream_reader import KlogStreamReader
from klog.errors import DataLossError
from tests.connector.log_dirs import many, offsets, set_checkpoint, write_log
from tests.connector.source.test_stream_reader import (
    EVERYTHING,
    ID,
    LOSSY,
    OTHER_ID,
    create_topic_again,
    latest,
    name_topic,
    rows,
    stream,
)


def test_available_now_has_a_fixed_end(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(3)})
    reader = stream(tmp_path)
    reader.prepareForTriggerAvailableNow()
    (directory / "00000000000000000000.log").write_bytes(b"".join(many(8)))
    write_log(tmp_path, {0: many(2)}, "t-1")
    start = {"t": {"0": 0}}
    end = latest(reader, start)
    assert end == {"t": {"0": 3}}
    assert offsets(rows(reader, start, end)) == [0, 1, 2]
    assert latest(reader, end) == end
    assert latest(stream(tmp_path), start) == {"t": {"0": 8, "1": 2}}


@pytest.mark.parametrize("case", ["shorter", "deleted", "created again"])
def test_available_now_notices_data_loss(tmp_path: Path, case: str) -> None:
    # As in Spark's connector, AvailableNow checks the partitions and that no offset moved back;
    # `failOnDataLoss`.
    if case == "created again":
        start = create_topic_again(tmp_path, 8)
    else:
        write_log(tmp_path, {0: many(5)})
        start = {"t": {"0": 9}} if case == "shorter" else {"t": {"0": 5, "1": 7}}
    reader = stream(tmp_path)
    reader.prepareForTriggerAvailableNow()
    with pytest.raises(DataLossError):
        reader.latestOffset(start, EVERYTHING)


def test_available_now_never_goes_back(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(5)})
    reader = stream(tmp_path, **LOSSY)
    reader.prepareForTriggerAvailableNow()
    assert latest(reader, {"t": {"0": 9}}) == {"t": {"0": 9}}


def now(root: Path, **options: str) -> KlogStreamReader:
    """Return the reader of a run."""
    reader = stream(root, **options)
    reader.prepareForTriggerAvailableNow()
    return reader


def read_batch(reader: KlogStreamReader, start: dict[str, Any]) -> tuple[list[int], dict[str, Any]]:
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    return offsets(rows(reader, start, end)), end


@pytest.mark.parametrize("starting", ["latest", '{"t":{"0":-1}}', "-0"])
def test_latest_is_where_the_run_ends(tmp_path: Path, starting: str) -> None:
    """What comes between the two looks is no data loss, and the next run reads it."""
    write_log(tmp_path, {0: many(3)})
    reader = now(tmp_path, startingOffsets=starting)
    write_log(tmp_path, {0: many(8)})
    start = reader.initialOffset()
    assert start == {"t": {"0": 3}}
    read, end = read_batch(reader, start)
    assert (read, end["t"]) == ([], {"0": 3})
    assert read_batch(now(tmp_path), end)[0] == [3, 4, 5, 6, 7]


def test_start_is_looked_for_in_what_is_there(tmp_path: Path) -> None:
    """The segment of the start was deleted after the run had fixed its end."""
    directory = write_log(tmp_path, {0: many(4), 4: many(4, 4)})
    reader = now(tmp_path, startingOffsets="1970-01-01T00:00:01.002Z")
    (directory / "00000000000000000000.log").unlink()
    start = reader.initialOffset()
    assert start == {"t": {"0": 4}}
    assert read_batch(reader, start)[0] == [4, 5, 6, 7]


def test_partition_that_is_gone_before_the_start_is_not_part_of_the_run(tmp_path: Path) -> None:
    for partition in ("t-0", "t-1"):
        write_log(tmp_path, {0: many(4)}, partition)
    reader = now(tmp_path, startingOffsets="1970-01-01T00:00:01.002Z")
    shutil.rmtree(tmp_path / "t-1")
    start = reader.initialOffset()
    assert start == {"t": {"0": 2}}
    read, end = read_batch(reader, start)
    assert (read, end["t"]) == ([2, 3], {"0": 4})


def limited(root: Path, **options: str) -> tuple[KlogStreamReader, dict[str, Any]]:
    """Run the first of several micro-batches of two partitions; return the reader and its end."""
    for partition in ("t-0", "t-1"):
        write_log(root, {0: many(9)}, partition)
        name_topic(root, ID, partition)
    reader = now(root, maxOffsetsPerTrigger="6", **options)
    read, end = read_batch(reader, reader.initialOffset())
    assert read == [0, 1, 2, 0, 1, 2]
    return reader, end


@pytest.mark.parametrize("loss", [{}, LOSSY])
def test_partition_that_vanishes_is_an_error_of_the_run(
    tmp_path: Path, loss: dict[str, str]
) -> None:
    """Whatever `failOnDataLoss` is, as in Spark's connector; the next run goes on by it."""
    reader, end = limited(tmp_path, **loss)
    shutil.rmtree(tmp_path / "t-1")
    with pytest.raises(DataLossError, match="t-1: the partition was deleted after availableNow"):
        read_batch(reader, end)
    following = now(tmp_path, **loss)
    if loss:
        assert read_batch(following, end)[0] == [3, 4, 5, 6, 7, 8]
    else:
        with pytest.raises(DataLossError, match="t-1: the partition was deleted while the stream"):
            read_batch(following, end)


@pytest.mark.parametrize("loss", [{}, LOSSY])
def test_log_that_ends_before_the_micro_batch_is_an_error_of_the_run(
    tmp_path: Path, loss: dict[str, str]
) -> None:
    reader, end = limited(tmp_path, **loss)
    write_log(tmp_path, {0: many(4)}, "t-1")
    with pytest.raises(
        DataLossError,
        match="t-1: the log was cut off at offset 4 after availableNow had fixed where this run "
        "ends, offset 9; run the query again, with failOnDataLoss=false to go on with what is left",
    ):
        read_batch(reader, end)


@pytest.mark.parametrize("loss", [{}, LOSSY])
def test_topic_created_again_is_an_error_of_the_run(tmp_path: Path, loss: dict[str, str]) -> None:
    reader, end = limited(tmp_path, **loss)
    for partition in ("t-0", "t-1"):
        write_log(tmp_path, {0: many(20)}, partition)
        name_topic(tmp_path, OTHER_ID, partition)
    with pytest.raises(DataLossError, match="t-0: the topic was deleted and created again after"):
        read_batch(reader, end)


def test_log_start_that_moves_is_data_loss_of_the_micro_batch(tmp_path: Path) -> None:
    for number, loss in enumerate(({}, LOSSY)):
        root = tmp_path / str(number)
        reader, end = limited(root, **loss)
        set_checkpoint(root, "log-start-offset-checkpoint", {("t", 0): 5})
        if loss:
            assert read_batch(reader, end)[0] == [5, 3, 4, 5]
        else:
            with pytest.raises(DataLossError, match="t-0: offsets 3 to 4 were deleted"):
                read_batch(reader, end)


def test_all_is_read_while_the_log_grows_and_gets_partitions(tmp_path: Path) -> None:
    reader, end = limited(tmp_path)
    for partition in ("t-0", "t-1", "t-2"):
        write_log(tmp_path, {0: many(20)}, partition)
        name_topic(tmp_path, ID, partition)
    total = 6
    while True:
        read, following = read_batch(reader, end)
        if following == end:
            break
        total, end = total + len(read), following
    assert total == 18
    assert end["t"] == {"0": 9, "1": 9}
