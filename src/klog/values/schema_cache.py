"""Answers of schema registries, each asked once in a process.

What an id means never changes, so it is kept, within a bound of bytes. A failure is kept for a
short time: a stream with many batches waits for one time-out, not for one in each batch. Ids are
bytes of rows, so that anyone who may write has a request made for each: those that do not exist are
asked for at a bounded rate, and later ones wait.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

from klog.errors import RegistryError, SchemaNotFoundError
from klog.values.registry_requests import request_json
from klog.values.registry_settings import Registry

MAX_KEPT_BYTES = 64 << 20
MAX_UNKNOWN = 1000
"""Answers of one registry that a schema does not exist, in `FAILURE_SECONDS`."""
FAILURE_SECONDS = 30.0

Key: TypeAlias = tuple[Registry, str]


class SchemaCache:
    """Answers of registries. Safe for threads: one request at a time for a path."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Begin empty. Take what returns and what waits for seconds."""
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._locks: dict[Key, threading.Lock] = {}
        self._answers: OrderedDict[Key, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._failures: OrderedDict[Key, tuple[float, RegistryError]] = OrderedDict()

    def get(self, registry: Registry, path: str) -> Any:
        """Return the answer to a GET that always has the same answer.

        Args:
            registry: The registry.
            path: The path.

        Raises:
            RegistryError: There is no answer; the same for the next `FAILURE_SECONDS`.
        """
        key = registry, path
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key][0]
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            try:
                return self._kept_or_asked(key)
            finally:
                with self._lock:
                    self._locks.pop(key, None)

    def _kept_or_asked(self, key: Key) -> Any:
        wait_seconds = 1.0
        while wait_seconds > 0:
            with self._lock:
                if key in self._answers:
                    return self._answers[key][0]
                wait_seconds = self._check_failures(key)
            if wait_seconds > 0:
                self._sleep(wait_seconds)
        try:
            answer = request_json(*key)
        except RegistryError as exc:
            with self._lock:
                self._failures[key] = self._clock(), exc
            raise
        with self._lock:
            self._keep(key, answer, len(json.dumps(answer)))
        return answer

    def _check_failures(self, key: Key) -> float:
        """Raise the error of a request that has failed lately; return how long another waits."""
        now = self._clock()
        while self._failures:
            oldest, (failed_at, _) = next(iter(self._failures.items()))
            if now - failed_at < FAILURE_SECONDS:
                break
            del self._failures[oldest]
        if key in self._failures:
            error = self._failures[key][1]
            raise type(error)(*error.args)
        unknown = [
            failed_at
            for (registry, _), (failed_at, error) in self._failures.items()
            if registry == key[0] and isinstance(error, SchemaNotFoundError)
        ]
        return unknown[0] + FAILURE_SECONDS - now if len(unknown) >= MAX_UNKNOWN else 0.0

    def _keep(self, key: Key, answer: Any, size: int) -> None:
        self._answers[key] = answer, size
        self._bytes += size
        while self._bytes > MAX_KEPT_BYTES and len(self._answers) > 1:
            _, (_, size) = self._answers.popitem(last=False)
            self._bytes -= size
