"""Whether a store keeps the promise of put-if-absent: tried, before a log is trusted to it.

Some servers that speak S3 ignore the condition, and some check it and then write: they answer each
of several writers that it won. One race in which more than one wins, or none, is proof that
commits would be lost there. That all races were right proves little, but finds those servers.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

from klog.connector.store.contract import Put, WritableStore
from klog.connector.store.files import SMALL_BYTES
from klog.connector.store.temporary import NewId, random_id
from klog.errors import KlogError

RACERS = 8
RACES = 3
WAIT_SECONDS = 60


def probe(store: WritableStore, directory: str, new_id: NewId = random_id) -> None:
    """Let several writers race for one name in `directory`, a few times over.

    The names are new ones, `probe-<id>`, deleted again where this user may. Raises `KlogError`
    where a race has not exactly one winner whose bytes are there, or cannot be decided.
    """
    for _ in range(RACES):
        path = f"{directory}/probe-{new_id()}"
        answers = _race(store, path)
        _judge(store, path, answers)
        # A writer that may never delete leaves a few bytes, which no log ever names.
        with suppress(KlogError):
            store.delete(path)


def _race(store: WritableStore, path: str) -> list[Put]:
    """Put one name from several threads at once; the clients have connections of their own."""
    barrier = Barrier(RACERS)

    def put(number: int) -> Put:
        barrier.wait(WAIT_SECONDS)
        return store.put_if_absent(path, _bytes(number))

    with ThreadPoolExecutor(RACERS) as pool:
        return list(pool.map(put, range(RACERS)))


def _judge(store: WritableStore, path: str, answers: list[Put]) -> None:
    winners = [number for number, answer in enumerate(answers) if answer is Put.CREATED]
    if not winners and Put.UNKNOWN in answers:
        raise KlogError(
            f"{path}: the store did not answer when writers raced for a name; try again when it "
            "is well"
        )
    if not winners:
        # A client that sends a lost request again meets what it put itself, and says EXISTS.
        raise KlogError(
            f"{path}: 0 of {RACERS} writers of one name were told that they had created it. Try "
            "again; if that is said again, keep the log on a store that puts if absent"
        )
    if len(winners) == 1 and store.put_if_absent(path, b"late") is Put.CREATED:
        winners.append(RACERS)
    if len(winners) != 1:
        raise KlogError(
            f"{path}: {len(winners)} of {RACERS} writers of one name were told that they had "
            "created it; on such a store commits are lost. Keep the log on a store that puts if "
            "absent: on S3, one that honours If-None-Match"
        )
    if store.read(path, SMALL_BYTES) != _bytes(winners[0]):
        raise KlogError(
            f"{path}: the store told one writer that it had created the name and kept the bytes of "
            "another; on such a store commits are lost. Keep the log elsewhere"
        )


def _bytes(number: int) -> bytes:
    return b"klog probe %d" % number
