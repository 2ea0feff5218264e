"""Tasks in one process, and what of a root is held and sent for them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from klog.connector.commit_log import segment_entries
from klog.connector.options.storage_options import StorageOptions, parse_storage_options
from klog.errors import CorruptRecordError, KlogError, OptionError, UnsupportedFormatError
from klog.jobs.compacting.rewrite_segments import context_within
from klog.jobs.shared import spark_tasks, task_retries
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.job_tasks import run_tasks, try_tasks
from klog.jobs.shared.task_retries import FailedTask
from klog.logformat.cleaning.batch_retention import CleaningContext
from tests.support.segment_entry import entry_of


def work(number: int) -> int:
    if number == 3:
        raise CorruptRecordError("three", 3)
    if number == 5:
        raise OptionError("five")
    return -number


def test_a_task_is_made_when_what_came_of_the_last_was_taken() -> None:
    started: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(3):
            started.append(number)
            yield number

    results = try_tasks(None, work, numbers(), "count")
    for number in range(3):
        assert next(results) == -number
        assert started == list(range(number + 1))


def test_one_that_fails_ends_nothing_but_what_asks_for_it() -> None:
    *done, failed, last = try_tasks(None, work, [1, 2, 3, 4], "count")
    assert (done, last) == ([-1, -2], -4)
    assert isinstance(failed, FailedTask)
    assert str(failed.error) == "three (position 3)"
    with pytest.raises(CorruptRecordError, match="three"):
        list(run_tasks(None, work, [1, 3], "count"))


def test_what_the_caller_said_ends_all() -> None:
    with pytest.raises(OptionError, match="five"):
        list(try_tasks(None, work, [1, 5, 2], "count"))


def test_a_wave_has_so_many_tasks_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tasks, "WAVE_TASKS", 3)
    monkeypatch.setattr(spark_tasks, "WAVE_BYTES", 1000)
    sizes = [10, 10, 10, 10, 600, 600, 2000, 10]
    waves = list(spark_tasks.task_waves(bytes(size) for size in sizes))
    assert [len(wave.payloads) for wave in waves] == [3, 3, 1, 1]


def test_secrets_are_apart_from_what_is_sent() -> None:
    storage = parse_storage_options({"storage.secret_access_key": "canary0sings"})
    url = "webhdfs://user:canary0sings@host/root"
    (wave,) = spark_tasks.task_waves([(storage, url, "/plain@root", number) for number in range(3)])
    assert b"canary0sings" not in b"".join(wave.payloads)
    assert wave.secrets == [storage, url]
    for number, payload in enumerate(wave.payloads):
        again: tuple[StorageOptions, str, str, int] = spark_tasks.unpickle_task(
            payload, wave.secrets
        )
        assert again == (storage, url, "/plain@root", number)


def table(count: int) -> EntryRows:
    entries = [entry_of(f"t-0/{10 * n:020d}.log", 0, 10 * n, 10 * n + 10) for n in range(count)]
    return EntryRows(segment_entries.to_table(entries))


def test_some_rows_are_sent_without_the_others() -> None:
    rows = table(2000)
    part = rows.part(1000, 1003)
    sent = pickle.dumps(part)
    assert len(sent) < 10_000
    again = pickle.loads(sent)
    assert list(again) == list(part) == list(rows)[1000:1003]
    assert (again[0], again[-1]) == (rows[1000], rows[1002])
    assert again.numbers("base_offset").tolist() == [10_000, 10_010, 10_020]
    with pytest.raises(IndexError):
        again[3]


def test_a_task_gets_the_context_of_its_own_segments() -> None:
    context = CleaningContext(1, 2, np.arange(0, 100, 5), np.arange(0, 100, 7))
    own = context_within(context, 20, 40)
    assert (own.now_ms, own.delete_horizon_ms) == (1, 2)
    assert own.retain_empty_offsets.tolist() == [20, 25, 30, 35]
    assert own.removable_markers.tolist() == [21, 28, 35]
    assert own.retain_empty_offsets.base is None


def test_an_error_comes_back_as_what_it_was() -> None:
    raised = task_retries.run_with_retries(work, 3)
    assert isinstance(raised, task_retries.RaisedError)
    error = raised.to_error()
    assert isinstance(error, CorruptRecordError)
    assert isinstance(error, KlogError)
    assert (error.position, str(error)) == (3, "three (position 3)")


@pytest.mark.parametrize(
    ("error", "times", "calls"),
    [
        (KlogError("away"), 2, 3),
        (ConnectionResetError("away"), 2, 3),
        (KlogError("away"), 9, 3),
        (ConnectionResetError("away"), 9, 3),
        # What is met again when it is tried again.
        (CorruptRecordError("bad", 3), 9, 1),
        (UnsupportedFormatError("newer"), 9, 1),
        (OptionError("wrong"), 9, 1),
    ],
)
def test_a_task_is_tried_again_unless_that_is_in_vain(
    monkeypatch: pytest.MonkeyPatch, error: KlogError | OSError, times: int, calls: int
) -> None:
    """It is done in the third try at last; what it raised in that one is what came of it."""
    monkeypatch.setattr(task_retries, "PAUSE_SECONDS", 0)
    tried: list[int] = []

    def failing(number: int) -> int:
        tried.append(number)
        if len(tried) <= times:
            raise error
        return -number

    done = task_retries.run_with_retries(failing, 7)
    assert tried == [7] * calls
    if times < calls:
        assert done == -7
    else:
        assert isinstance(done, task_retries.RaisedError)
        expected = type(error) if isinstance(error, KlogError) else KlogError
        assert type(done.to_error()) is expected
        assert str(done.to_error()) == str(error)
