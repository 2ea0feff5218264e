"""Whether a store keeps the promise of put-if-absent: tried before a log is trusted to it.

Some servers that speak S3 ignore the condition. Some check it and then write: they answer several
writers that each of them won. A race with more than one winner, or without one, proves that commits
would be lost there. Races that all go right prove little, but find those servers.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

from klog.connector.store.readable_store import MAX_SMALL_FILE_BYTES
from klog.connector.store.temporary_names import NewTemporaryId, random_id
from klog.connector.store.writable_store import PutResult, WritableStore
from klog.errors import KlogError, StoreError

RACERS = 8
RACES = 3
WAIT_SECONDS = 60


def probe_put_if_absent(
    store: WritableStore, directory: str, new_id: NewTemporaryId = random_id
) -> None:
    """Let several writers race for one name, a few times.

    The names are `probe-<id>`. They are deleted again, if this user may delete.

    Args:
        store: The store.
        directory: The directory of the names.
        new_id: Returns the id of a name.

    Raises:
        KlogError: A race has not exactly one winner whose bytes are there, or has no result.
    """
    for _ in range(RACES):
        path = f"{directory}/probe-{new_id()}"
        _check_race(store, path, _race(store, path))
        # A writer that may never delete leaves a few bytes, which no log ever names.
        with suppress(KlogError):
            store.delete(path)


def _race(store: WritableStore, path: str) -> list[PutResult]:
    """Put one name from several threads at a time; the clients have connections of their own."""
    barrier = Barrier(RACERS)

    def put(racer: int) -> PutResult:
        barrier.wait(WAIT_SECONDS)
        return store.put_if_absent(path, _racer_bytes(racer))

    with ThreadPoolExecutor(RACERS) as pool:
        return list(pool.map(put, range(RACERS)))


def _check_race(store: WritableStore, path: str, results: list[PutResult]) -> None:
    winners = [racer for racer, result in enumerate(results) if result is PutResult.CREATED]
    if not winners and PutResult.UNKNOWN in results:
        raise StoreError(
            f"{path}: the store did not answer when writers raced for a name. Try again later"
        )
    if not winners:
        # A client that repeats a lost request meets its own file, and answers EXISTS.
        raise KlogError(
            f"{path}: 0 of {RACERS} writers of one name were told that they had created it. Try "
            "again; if it happens again, keep the log on a store that puts if absent"
        )
    if len(winners) == 1 and store.put_if_absent(path, b"late") is PutResult.CREATED:
        winners.append(RACERS)
    if len(winners) != 1:
        raise KlogError(
            f"{path}: {len(winners)} of {RACERS} writers of one name were told that they had "
            "created it: commits would be lost on this store. Keep the log on a store that puts if "
            "absent; on S3, one that honours If-None-Match"
        )
    if store.read(path, MAX_SMALL_FILE_BYTES) != _racer_bytes(winners[0]):
        raise KlogError(
            f"{path}: the store told one writer that it had created the name, and has the bytes of "
            "another: commits would be lost on this store. Keep the log on another store"
        )


def _racer_bytes(racer: int) -> bytes:
    return b"klog probe %d" % racer
