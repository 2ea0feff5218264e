"""A store whose n-th call fails, in every way that a store's call may fail.

The rule: it does only what the contract allows. An error of `put_if_absent` means that nothing
happened. If the put may have succeeded, it returns UNKNOWN, or EXISTS if the client sent it twice.
The error of any other call says nothing about its effect.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from typing import Any

from klog.connector.store.readable_store import DirectoryEntry, File
from klog.connector.store.writable_store import PutResult, WritableStore
from klog.errors import StoreError


class Fault(Enum):
    """The outcome of the n-th call."""

    REFUSED = "an error before it takes effect"
    BEFORE = "no answer and no effect"
    AFTER = "no answer, but it takes effect"
    TWICE = "the client sends it twice and finds its own file"
    LATE = "no answer, and it takes effect after the caller gave up"
    TWICE_DOWN = "the client sends it twice and finds its own file, then the store is down"
    DOWN_BEFORE = "the store is down from before the call"
    DOWN_AFTER = "the store is down from after the call"


_TWICE = (Fault.TWICE, Fault.TWICE_DOWN)
_DOWN = (Fault.DOWN_BEFORE, Fault.DOWN_AFTER, Fault.TWICE_DOWN)
_IN_EFFECT = (Fault.AFTER, Fault.DOWN_AFTER, *_TWICE)


class FailingStore:
    """A store whose call number `at`, from 0, has a fault; earlier and later calls succeed."""

    max_parallel_reads = 1

    def __init__(self, store: WritableStore) -> None:
        self._store, self._lock = store, threading.Lock()
        self.heal()

    def heal(self) -> None:
        """Remove the fault, and count calls from 0 again."""
        self.calls, self.fault, self.at = 0, Fault.BEFORE, -1
        self._late: list[Callable[[], Any]] = []

    def fail(self, fault: Fault, at: int) -> None:
        """Let call number `at` fail."""
        self.heal()
        self.fault, self.at = fault, at

    @property
    def was_reached(self) -> bool:
        """Whether there were enough calls to reach the fault."""
        return self.at < self.calls

    def land(self) -> None:
        """Run the late calls."""
        late, self._late = self._late, []
        for call in late:
            with suppress(FileNotFoundError):
                call()

    def entries(self, directory: str) -> list[DirectoryEntry]:
        return list(self._call(lambda: self._store.entries(directory)))

    def names_after(self, directory: str, name: str) -> list[str]:
        return list(self._call(lambda: self._store.names_after(directory, name)))

    def open(self, path: str, size_bytes: int | None = None) -> File:
        file: File = self._call(lambda: self._store.open(path, size_bytes))
        return file

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        return bytes(self._call(lambda: self._store.read(path, max_bytes)))

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        data = b"".join(pieces)
        self._call(lambda: self._store.put(path, [data]))

    def delete(self, path: str) -> None:
        self._call(lambda: self._store.delete(path))

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        def call() -> PutResult:
            return self._store.put_if_absent(path, data)

        fault, is_first = self._next()
        if fault is None:
            return call()
        if fault is Fault.REFUSED or not is_first:
            raise no_answer()
        self._take_effect(fault, call)
        return PutResult.EXISTS if fault in _TWICE else PutResult.UNKNOWN

    def _call(self, call: Callable[[], Any]) -> Any:
        fault, is_first = self._next()
        if fault is None:
            return call()
        if is_first:
            self._take_effect(fault, call)
        raise no_answer()

    def _take_effect(self, fault: Fault, call: Callable[[], Any]) -> None:
        if fault is Fault.LATE:
            self._late.append(call)
        elif fault in _IN_EFFECT:
            with suppress(FileNotFoundError):
                call()

    def _next(self) -> tuple[Fault | None, bool]:
        """Count a call; return its fault, and whether it is the first call that fails."""
        with self._lock:
            number, self.calls = self.calls, self.calls + 1
        is_down = self.fault in _DOWN and number > self.at >= 0
        return (self.fault if number == self.at or is_down else None), number == self.at


def no_answer() -> StoreError:
    return StoreError("the store does not answer. Check the network, then try again")
