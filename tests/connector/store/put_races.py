"""Processes that put the same names at the same time."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from klog.connector.options.storage_options import StorageOptions
from klog.connector.store.writable_store import PutResult, WritableStore
from tests.connector.store.store_roots import StoreRoot, store_root_at
from tests.support.waiting import TIMEOUT_SECONDS


def race(root: StoreRoot, racers: int, rounds: int) -> list[list[PutResult]]:
    """Return each racer's result for each round: a name that all put, released by a barrier.

    Racers are processes, or threads if the store lives in one process.
    """
    if root.url.startswith("memory:"):
        return _race_threads(root, racers, rounds)
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(racers), context.SimpleQueue()
    shared = (rounds, barrier, answers)
    processes = [
        context.Process(target=_run, args=(root.url, root.storage, racer, *shared))
        for racer in range(racers)
    ]
    for process in processes:
        process.start()
    results = dict(answers.get() for _ in processes)
    for process in processes:
        process.join(TIMEOUT_SECONDS)
        process.close()
    by_racer = [list(map(PutResult, results[racer])) for racer in range(racers)]
    return [list(answers_of_round) for answers_of_round in zip(*by_racer, strict=True)]


def _run(
    url: str, storage: StorageOptions, racer: int, rounds: int, barrier: Any, answers: Any
) -> None:
    root = store_root_at(url, storage)
    results: list[PutResult] = []
    try:
        results = _race(root.store, root.path, racer, rounds, barrier)
    finally:
        answers.put((racer, [result.value for result in results]))


def _race(
    store: WritableStore, path: str, racer: int, rounds: int, barrier: Any
) -> list[PutResult]:
    results = []
    for number in range(rounds):
        barrier.wait(TIMEOUT_SECONDS)
        results.append(store.put_if_absent(f"{path}/race/{number:020d}", b"%d" % racer * 1000))
    return results


def _race_threads(root: StoreRoot, racers: int, rounds: int) -> list[list[PutResult]]:
    barrier = Barrier(racers)
    with ThreadPoolExecutor(racers) as pool:
        tasks = [
            pool.submit(_race, root.store, root.path, racer, rounds, barrier)
            for racer in range(racers)
        ]
        by_racer = [task.result() for task in tasks]
    return [list(answers_of_round) for answers_of_round in zip(*by_racer, strict=True)]
