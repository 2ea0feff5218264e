"""An append without Spark: its rows are in the log once, at the offsets that it returns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from klog.connector.commit_log import append_commit, commit_builders
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.embedded_append import append
from klog.errors import CommitConflictError, OptionError, ProducerFencedError
from tests.connector.commit_log.memory_logs import CountingStore, attempt, created, topic_log
from tests.connector.commit_log.memory_logs import append as committed
from tests.connector.sink.staged_rows import read_back

ROWS = pa.table({"value": ["1", None, "3", "4"], "partition": [0, 1, 0, 0]})


def values(store: CountingStore, state: Any, partition: int) -> list[Any]:
    """Return the offsets and values of a partition."""
    return [(row.offset, row.value) for row in read_back(store, state, partition)]


def test_rows_are_at_the_returned_offsets() -> None:
    store = CountingStore()
    log = topic_log(store)
    first = append(log, created(log), ROWS, attempt("append"))
    second = append(log, first.state, ROWS.slice(0, 1), attempt("append"))
    assert (first.version, second.version) == (1, 2)
    assert first.offsets == {0: (0, 3), 1: (0, 1)}
    assert second.offsets == {0: (3, 4)}
    assert values(store, second.state, 0) == [(0, b"1"), (1, b"3"), (2, b"4"), (3, b"1")]
    assert values(store, second.state, 1) == [(0, None)]


def test_returned_offsets_span_all_segments() -> None:
    store = CountingStore()
    log = topic_log(store)
    rows = pa.table({"value": [b"v" * 50] * 40, "partition": [0, 1] * 20})
    options = {"segment.bytes": "300", "batch.size": "100", "compression.type": "none"}
    first = append(log, created(log), rows, attempt("append"), options)
    second = append(log, first.state, rows.slice(0, 21), attempt("append"), options)
    assert first.state.segments.num_rows > 4
    assert first.offsets == {0: (0, 20), 1: (0, 20)}
    assert second.offsets == {0: (20, 31), 1: (20, 30)}


def test_append_after_a_concurrent_one_is_shifted() -> None:
    store = CountingStore()
    log = topic_log(store)
    old = created(log)
    append(log, old, ROWS, attempt("append"))
    late = append(log, old, ROWS, attempt("append"))
    assert late.version == 2
    assert late.offsets == {0: (3, 6), 1: (1, 2)}
    assert late.state.segments["offset_shift"].to_pylist() == [0, 3, 0, 1]
    assert [offset for offset, _ in values(store, late.state, 0)] == [0, 1, 2, 3, 4, 5]


def test_batch_with_a_transactional_id_is_written_once() -> None:
    store = CountingStore()
    log = topic_log(store)
    state = created(log)

    def write(version: int, state: Any) -> Any:
        return append(
            log,
            state,
            ROWS,
            attempt("append"),
            transactional_id="etl",
            transaction_version=version,
        )

    first = write(7, state)
    store.requests.clear()
    again = write(7, first.state)
    assert (again.is_new, again.offsets, again.version) == (False, {}, first.version)
    assert not store.requests, "nothing is staged, and the store gets no request"
    # A write that was planned before the first commit stages its rows, and commits nothing.
    late = write(6, state)
    assert not late.is_new
    assert late.state.log_end == first.state.log_end
    assert write(8, first.state).offsets == {0: (3, 6), 1: (1, 2)}


def test_empty_write_with_a_transactional_id_commits_its_version() -> None:
    log = topic_log(CountingStore())
    state, no_rows = created(log), ROWS.slice(0, 0)
    result = append(
        log, state, no_rows, attempt("append"), transactional_id="etl", transaction_version=0
    )
    assert result.state.writer_transactions["etl"].batch_id == 0
    assert result.offsets == {}
    assert append(log, state, no_rows, attempt("append")).version == state.version


@pytest.mark.parametrize(("name", "version"), [("etl", None), (None, 1)])
def test_transactional_id_and_version_go_together(name: str | None, version: int | None) -> None:
    check_refused(name, version, "transactional_id, transaction_version: must be set together")


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [
        ("", 1, "transactional_id: must be .*it has 0 bytes"),
        (b"etl", 1, "transactional_id: must be a text .*got b'etl'"),
        ("\ud800", 1, "half of a surrogate pair"),
        ("a" * 32768, 1, "1 to 32767 bytes of UTF-8.*it has 32768 bytes"),
        ("ä" * 16384, 1, "1 to 32767 bytes of UTF-8.*it has 32768 bytes"),
        (
            "etl",
            -1,
            "transaction_version: must be a whole number from 0, got -1",
        ),
        (
            "etl",
            1 << 63,
            "from 0 to 2.63 - 1, got 9223372036854775808",
        ),
        ("etl", "1", "transaction_version: must be a whole number from 0, got '1'"),
        ("etl", True, "transaction_version: must be a whole number from 0, got True"),
    ],
)
def test_invalid_transactional_id_or_version_stages_nothing(
    name: Any, version: Any, message: str
) -> None:
    check_refused(name, version, message)


def check_refused(name: Any, version: Any, message: str) -> None:
    """Check that the error comes before any request to the store."""
    store = CountingStore()
    log = topic_log(store)
    state = created(log)
    store.requests.clear()
    with pytest.raises(OptionError, match=message):
        append(
            log,
            state,
            ROWS,
            attempt("append"),
            transactional_id=name,
            transaction_version=version,
        )
    assert not store.requests


def test_longest_transactional_id_and_last_version_are_accepted() -> None:
    log = topic_log(CountingStore())
    name, version = "ä" * 16383 + "b", (1 << 63) - 1
    result = append(
        log,
        created(log),
        ROWS,
        attempt("append"),
        transactional_id=name,
        transaction_version=version,
    )
    assert (
        log.load().writer_transactions[name].batch_id
        == result.state.writer_transactions[name].batch_id
        == version
    )


def test_transactional_id_of_a_stream_is_fenced() -> None:
    log = topic_log(CountingStore())
    state = committed(
        log, created(log), (0, 1), writer=append_commit.Writer("etl", 9, "a query", "a run")
    )
    with pytest.raises(ProducerFencedError, match="query a query"):
        append(log, state, ROWS, attempt("append"), transactional_id="etl", transaction_version=1)


def test_append_to_a_missing_topic_is_refused() -> None:
    log = topic_log(CountingStore())
    with pytest.raises(OptionError, match="no topic orders"):
        append(log, log.load(), ROWS, CommitInfo("w", "append", "test"))


def test_topic_deleted_meanwhile_is_a_conflict() -> None:
    log = topic_log(CountingStore())
    old = created(log)
    log.commit(old, commit_builders.delete_topic(old.topic_id), attempt("delete-topic"))
    with pytest.raises(CommitConflictError, match="deleted"):
        append(log, old, ROWS, attempt("append"))


def test_partitions_added_after_the_plan_are_a_conflict() -> None:
    """The records of a key would be in two partitions."""
    log = topic_log(CountingStore())
    old = created(log)
    log.commit(old, commit_builders.add_partitions(old.topic_id, 3), attempt("add-partitions"))
    with pytest.raises(CommitConflictError, match="3 partitions now"):
        append(log, old, ROWS, attempt("append"))
