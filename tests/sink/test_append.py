"""An append without Spark: what was given is in the log once, at the offsets that it says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from klog.connector.log import operations
from klog.connector.log.topic_log import Attempt
from klog.connector.sink.append import append
from klog.errors import CommitConflictError, OptionError, ProducerFencedError
from tests.commits.logs import CountingStore, attempt, created, topic_log
from tests.commits.logs import append as committed
from tests.sink.reading import read_back

ROWS = pa.table({"value": ["1", None, "3", "4"], "partition": [0, 1, 0, 0]})


def values(store: CountingStore, state: Any, partition: int) -> list[Any]:
    """Give the values that a partition holds, with their offsets."""
    return [(row.offset, row.value) for row in read_back(store, state, partition)]


def test_rows_are_where_the_answer_says() -> None:
    store = CountingStore()
    log = topic_log(store)
    first = append(log, created(log), ROWS, attempt("append"))
    second = append(log, first.state, ROWS.slice(0, 1), attempt("append"))
    assert (first.version, second.version) == (1, 2)
    assert first.offsets == {0: (0, 3), 1: (0, 1)}
    assert second.offsets == {0: (3, 4)}
    assert values(store, second.state, 0) == [(0, b"1"), (1, b"3"), (2, b"4"), (3, b"1")]
    assert values(store, second.state, 1) == [(0, None)]


def test_the_offsets_of_many_segments_are_those_of_all() -> None:
    store = CountingStore()
    log = topic_log(store)
    rows = pa.table({"value": [b"v" * 50] * 40, "partition": [0, 1] * 20})
    options = {"segment.bytes": "300", "batch.size": "100", "compression.type": "none"}
    first = append(log, created(log), rows, attempt("append"), options)
    second = append(log, first.state, rows.slice(0, 21), attempt("append"), options)
    assert first.state.segments.num_rows > 4
    assert first.offsets == {0: (0, 20), 1: (0, 20)}
    assert second.offsets == {0: (20, 31), 1: (20, 30)}


def test_an_append_on_top_of_anothers_is_shifted() -> None:
    store = CountingStore()
    log = topic_log(store)
    old = created(log)
    append(log, old, ROWS, attempt("append"))
    late = append(log, old, ROWS, attempt("append"))
    assert late.version == 2
    assert late.offsets == {0: (3, 6), 1: (1, 2)}
    assert late.state.segments["offset_shift"].to_pylist() == [0, 3, 0, 1]
    assert [offset for offset, _ in values(store, late.state, 0)] == [0, 1, 2, 3, 4, 5]


def test_a_named_batch_is_written_once() -> None:
    store = CountingStore()
    log = topic_log(store)
    state = created(log)

    def write(version: int, on_top_of: Any) -> Any:
        return append(
            log,
            on_top_of,
            ROWS,
            attempt("append"),
            transactional_id="etl",
            transaction_version=version,
        )

    first = write(7, state)
    store.requests.clear()
    again = write(7, first.state)
    assert (again.is_new, again.offsets, again.version) == (False, {}, first.version)
    assert not store.requests, "nothing is staged or asked of the store"
    # One that planned before the first was committed stages in vain, and commits nothing.
    raced = write(6, state)
    assert not raced.is_new
    assert raced.state.log_end == first.state.log_end
    assert write(8, first.state).offsets == {0: (3, 6), 1: (1, 2)}


def test_a_named_write_without_rows_is_remembered() -> None:
    log = topic_log(CountingStore())
    state, nothing = created(log), ROWS.slice(0, 0)
    named = append(
        log, state, nothing, attempt("append"), transactional_id="etl", transaction_version=0
    )
    assert named.state.progress["etl"].batch_id == 0
    assert named.offsets == {}
    assert append(log, state, nothing, attempt("append")).version == state.version


@pytest.mark.parametrize(("name", "version"), [("etl", None), (None, 1)])
def test_a_name_and_a_version_go_together(name: str | None, version: int | None) -> None:
    refused(name, version, "give both, or neither")


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("", 1, "transactional id is empty"),
        (b"etl", 1, "transactional id is b'etl'; give a text"),
        ("\ud800", 1, "no valid UTF-8"),
        ("a" * 32768, 1, "has 32768 bytes of UTF-8, at most 32767"),
        ("ä" * 16384, 1, "has 32768 bytes of UTF-8, at most 32767"),
        ("etl", -1, "transaction version is -1; it counts from 0 to 9223372036854775807"),
        ("etl", 1 << 63, "transaction version is 9223372036854775808; it counts"),
        ("etl", "1", "transaction version is '1'; give a whole number"),
        ("etl", True, "transaction version is True; give a whole number"),
    ],
)
def test_a_name_or_a_version_that_no_commit_could_say_stages_nothing(
    name: Any, version: Any, words: str
) -> None:
    refused(name, version, words)


def refused(name: Any, version: Any, words: str) -> None:
    """Check that nothing is asked of the store either."""
    store = CountingStore()
    log = topic_log(store)
    state = created(log)
    store.requests.clear()
    with pytest.raises(OptionError, match=words):
        append(
            log,
            state,
            ROWS,
            attempt("append"),
            transactional_id=name,
            transaction_version=version,
        )
    assert not store.requests


def test_the_longest_name_and_the_last_version_are_taken() -> None:
    log = topic_log(CountingStore())
    name, version = "ä" * 16383 + "b", (1 << 63) - 1
    done = append(
        log,
        created(log),
        ROWS,
        attempt("append"),
        transactional_id=name,
        transaction_version=version,
    )
    assert log.load().progress[name].batch_id == done.state.progress[name].batch_id == version


def test_a_streams_name_is_refused() -> None:
    log = topic_log(CountingStore())
    state = committed(
        log, created(log), (0, 1), writer=operations.Writer("etl", 9, "a query", "a run")
    )
    with pytest.raises(ProducerFencedError, match="query a query"):
        append(log, state, ROWS, attempt("append"), transactional_id="etl", transaction_version=1)


def test_a_topic_that_is_not_there_is_refused() -> None:
    log = topic_log(CountingStore())
    with pytest.raises(OptionError, match="no topic orders"):
        append(log, log.load(), ROWS, Attempt("w", "append", "test"))


def test_a_topic_deleted_meanwhile_is_a_conflict() -> None:
    log = topic_log(CountingStore())
    old = created(log)
    log.commit(old, operations.delete_topic(old.topic_id), attempt("delete-topic"))
    with pytest.raises(CommitConflictError, match="deleted"):
        append(log, old, ROWS, attempt("append"))


def test_more_partitions_meanwhile_are_a_conflict() -> None:
    """A key's records would lie in two partitions."""
    log = topic_log(CountingStore())
    old = created(log)
    log.commit(old, operations.add_partitions(old.topic_id, 3), attempt("add-partitions"))
    with pytest.raises(CommitConflictError, match="3 partitions now"):
        append(log, old, ROWS, attempt("append"))
