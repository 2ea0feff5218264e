"""Encoded batches that wait for their segment to be whole: in memory, and beyond that on disk.

The rule: a store takes one file at a time and whole, while rows come for all partitions in turn. So
batches wait here, each for its segment, and a segment is put in one go. What no longer fits into
memory goes to one temporary file on this machine's disk, which has no name and is gone with the
process; its room is used again when all that it held was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import gettempdir
from typing import IO

from klog.errors import KlogError

OpenFile = Callable[[], IO[bytes]]
"""Makes an empty temporary file."""


@dataclass(slots=True, eq=False)
class Kept:
    """A batch in the spool: its bytes, or its place in the file."""

    data: bytes | None
    position: int
    size_bytes: int


class Spool:
    """What waits; `held_bytes` of it are in memory."""

    def __init__(self, open_file: OpenFile) -> None:
        """Begin empty; a file is opened when one is needed."""
        self.held_bytes = 0
        self._open_file = open_file
        self._file: IO[bytes] | None = None
        self._end = self._live_bytes = 0
        self._in_memory: dict[int, Kept] = {}

    def add(self, batch: bytes) -> Kept:
        """Keep a batch."""
        kept = Kept(batch, 0, len(batch))
        self._in_memory[id(kept)] = kept
        self.held_bytes += len(batch)
        return kept

    def spill(self) -> None:
        """Move all that is in memory to the file. Raises `KlogError` if the disk is full."""
        if not self._in_memory:
            return
        with _in_words():
            if self._file is None:
                self._file = self._open_file()
            self._file.seek(self._end)
            for kept in self._in_memory.values():
                assert kept.data is not None
                self._file.write(kept.data)
                kept.data, kept.position = None, self._end
                self._end += kept.size_bytes
                self._live_bytes += kept.size_bytes
            self._file.flush()
        self._in_memory.clear()
        self.held_bytes = 0

    def take(self, batches: Iterable[Kept]) -> Iterator[bytes]:
        """Give batches back, one at a time; the spool has them no more."""
        for kept in batches:
            if kept.data is not None:
                del self._in_memory[id(kept)]
                self.held_bytes -= kept.size_bytes
                data, kept.data = kept.data, None
            else:
                data = self._read(kept)
            yield data

    def close(self) -> None:
        """Give up the file."""
        if self._file is not None:
            self._file.close()

    def _read(self, kept: Kept) -> bytes:
        assert self._file is not None
        with _in_words():
            self._file.seek(kept.position)
            data = self._file.read(kept.size_bytes)
            self._live_bytes -= kept.size_bytes
            if not self._live_bytes:
                self._file.truncate(0)
                self._end = 0
        return data


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise KlogError(
            f"batches cannot wait in a temporary file in {gettempdir()}: {exc}. Free some space "
            "there, name another directory by TMPDIR, or raise buffer.memory"
        ) from exc
