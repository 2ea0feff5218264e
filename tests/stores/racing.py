"""Processes that put the same names at the same moment."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from klog.connector.store.contract import Put, WritableStore
from klog.connector.store.storage import Storage
from tests.stores.places import Place, place_at

WAIT_SECONDS = 120


def race(place: Place, racers: int, rounds: int) -> list[list[Put]]:
    """Give each racer's answer for each round: a name that all put, released by a barrier.

    Racers are processes, but threads where the store lives in one process.
    """
    if place.url.startswith("memory:"):
        return _race_of_threads(place, racers, rounds)
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(racers), context.SimpleQueue()
    shared = (rounds, barrier, answers)
    processes = [
        context.Process(target=_run, args=(place.url, place.storage, number, *shared))
        for number in range(racers)
    ]
    for process in processes:
        process.start()
    found = dict(answers.get() for _ in processes)
    for process in processes:
        process.join(WAIT_SECONDS)
        process.close()
    return [[Put(found[number][one]) for number in range(racers)] for one in range(rounds)]


def _run(url: str, storage: Storage, number: int, rounds: int, barrier: Any, answers: Any) -> None:
    place = place_at(url, storage)
    found: list[Any] = []
    try:
        found = [one.value for one in _race(place.store, place.path, number, rounds, barrier)]
    finally:
        answers.put((number, found))


def _race(store: WritableStore, root: str, number: int, rounds: int, barrier: Any) -> list[Put]:
    found = []
    for one in range(rounds):
        barrier.wait(WAIT_SECONDS)
        found.append(store.put_if_absent(f"{root}/race/{one:020d}", b"%d" % number * 1000))
    return found


def _race_of_threads(place: Place, racers: int, rounds: int) -> list[list[Put]]:
    barrier = Barrier(racers)
    with ThreadPoolExecutor(racers) as pool:
        tasks = [
            pool.submit(_race, place.store, place.path, number, rounds, barrier)
            for number in range(racers)
        ]
        found = [task.result() for task in tasks]
    return [[found[number][one] for number in range(racers)] for one in range(rounds)]
