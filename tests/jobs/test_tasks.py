"""Tasks in one process, and what of a root is held and sent for them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from klog.connector.log import entries
from klog.connector.store.storage import Storage, storage_of
from klog.errors import CorruptRecordError, KlogError, OptionError, UnsupportedFormatError
from klog.jobs import tasks
from klog.jobs.compacting.rewriting import fates_within
from klog.jobs.entry_rows import EntryRows
from klog.jobs.tasks import Failed, run_tasks, try_tasks
from klog.logformat.cleaning.rewrite import Fates
from tests.commits.logs import entry


def work(number: int) -> int:
    if number == 3:
        raise CorruptRecordError("three", 3)
    if number == 5:
        raise OptionError("five")
    return -number


def test_a_task_is_made_when_what_came_of_the_last_was_taken() -> None:
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(3):
            made.append(number)
            yield number

    found = try_tasks(None, work, numbers(), "count")
    for number in range(3):
        assert next(found) == -number
        assert made == list(range(number + 1))


def test_one_that_fails_ends_nothing_but_what_asks_for_it() -> None:
    *done, failed, last = try_tasks(None, work, [1, 2, 3, 4], "count")
    assert (done, last) == ([-1, -2], -4)
    assert isinstance(failed, Failed)
    assert str(failed.error) == "three (position 3)"
    with pytest.raises(CorruptRecordError, match="three"):
        list(run_tasks(None, work, [1, 3], "count"))


def test_what_the_caller_said_ends_all() -> None:
    with pytest.raises(OptionError, match="five"):
        list(try_tasks(None, work, [1, 5, 2], "count"))


def test_a_wave_has_so_many_tasks_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "WAVE_TASKS", 3)
    monkeypatch.setattr(tasks, "WAVE_BYTES", 1000)
    sizes = [10, 10, 10, 10, 600, 600, 2000, 10]
    waves = list(tasks._waves(bytes(size) for size in sizes))
    assert [len(wave.payloads) for wave in waves] == [3, 3, 1, 1]


def test_secrets_are_apart_from_what_is_sent() -> None:
    storage = storage_of({"storage.secret_access_key": "canary0sings"})
    url = "webhdfs://user:canary0sings@host/root"
    (wave,) = tasks._waves([(storage, url, "/plain@root", number) for number in range(3)])
    assert b"canary0sings" not in b"".join(wave.payloads)
    assert wave.apart == [storage, url]
    for number, payload in enumerate(wave.payloads):
        again: tuple[Storage, str, str, int] = tasks._unpickled(payload, wave.apart)
        assert again == (storage, url, "/plain@root", number)


def table(count: int) -> EntryRows:
    some = [entry(f"t-0/{10 * n:020d}.log", 0, 10 * n, 10 * n + 10) for n in range(count)]
    return EntryRows(entries.table_of(some))


def test_some_rows_are_sent_without_the_others() -> None:
    rows = table(2000)
    some = rows.part(1000, 1003)
    sent = pickle.dumps(some)
    assert len(sent) < 10_000
    again = pickle.loads(sent)
    assert list(again) == list(some) == list(rows)[1000:1003]
    assert (again[0], again[-1]) == (rows[1000], rows[1002])
    assert again.numbers("base_offset").tolist() == [10_000, 10_010, 10_020]
    with pytest.raises(IndexError):
        again[3]


def test_a_task_gets_the_fates_of_its_own_segments() -> None:
    fates = Fates(1, 2, np.arange(0, 100, 5), np.arange(0, 100, 7))
    own = fates_within(fates, (20, 40))
    assert (own.now_ms, own.horizon_ms) == (1, 2)
    assert own.kept_empty.tolist() == [20, 25, 30, 35]
    assert own.spent_markers.tolist() == [21, 28, 35]
    assert own.kept_empty.base is None


def test_an_error_comes_back_as_what_it_was() -> None:
    raised = tasks._tried(work, 3)
    assert isinstance(raised, tasks._Raised)
    error = raised.error()
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
    monkeypatch.setattr(tasks, "PAUSE_SECONDS", 0)
    tried: list[int] = []

    def failing(number: int) -> int:
        tried.append(number)
        if len(tried) <= times:
            raise error
        return -number

    done = tasks._tried(failing, 7)
    assert tried == [7] * calls
    if times < calls:
        assert done == -7
    else:
        assert isinstance(done, tasks._Raised)
        expected = type(error) if isinstance(error, KlogError) else KlogError
        assert type(done.error()) is expected
        assert str(done.error()) == str(error)
