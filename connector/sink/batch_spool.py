"""Encoded batches that wait until their segment is closed: in memory, or on disk.

The rule: a store takes a file in one go, while rows arrive for all partitions in turn. So batches
wait here until their segment is closed. Batches that do not fit into memory go to one temporary
file on the local disk. The file has no name and disappears with the process. Its space is used
again when all batches in it have been taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import gettempdir
from typing import IO

from klog.errors import KlogError

OpenFile = Callable[[], IO[bytes]]
"""Opens an empty temporary file."""


@dataclass(slots=True, eq=False)
class SpooledBatch:
    """A batch in the spool: its bytes, or its position in the file."""

    data: bytes | None
    position: int
    size_bytes: int


class BatchSpool:
    """The batches that wait."""

    def __init__(self, open_file: OpenFile) -> None:
        """Start empty; the file is opened when it is needed.

        Args:
            open_file: Opens the file.
        """
        self._memory_bytes = 0
        self._open_file = open_file
        self._file: IO[bytes] | None = None
        self._file_end = self._live_file_bytes = 0
        self._in_memory: dict[int, SpooledBatch] = {}

    @property
    def memory_bytes(self) -> int:
        """Return the size of the batches that are in memory."""
        return self._memory_bytes

    def add(self, data: bytes) -> SpooledBatch:
        """Keep a batch in memory.

        Args:
            data: The encoded batch.

        Returns:
            The batch, to be passed to `take`.
        """
        batch = SpooledBatch(data, 0, len(data))
        self._in_memory[id(batch)] = batch
        self._memory_bytes += len(data)
        return batch

    def spill(self) -> None:
        """Move all batches in memory to the file.

        Raises:
            KlogError: The disk is full, or cannot be written for another reason.
        """
        if not self._in_memory:
            return
        with _translate_errors():
            if self._file is None:
                self._file = self._open_file()
            self._file.seek(self._file_end)
            for batch in self._in_memory.values():
                assert batch.data is not None
                self._file.write(batch.data)
                batch.data, batch.position = None, self._file_end
                self._file_end += batch.size_bytes
                self._live_file_bytes += batch.size_bytes
            self._file.flush()
        self._in_memory.clear()
        self._memory_bytes = 0

    def take(self, batches: Iterable[SpooledBatch]) -> Iterator[bytes]:
        """Yield batches and remove each from the spool.

        Args:
            batches: Batches that `add` returned, each of them once.

        Raises:
            KlogError: The file cannot be read.
        """
        for batch in batches:
            if batch.data is not None:
                del self._in_memory[id(batch)]
                self._memory_bytes -= batch.size_bytes
                data, batch.data = batch.data, None
            else:
                data = self._read(batch)
            yield data

    def close(self) -> None:
        """Close the file, which removes it."""
        if self._file is not None:
            self._file.close()

    def _read(self, batch: SpooledBatch) -> bytes:
        assert self._file is not None
        with _translate_errors():
            self._file.seek(batch.position)
            data = self._file.read(batch.size_bytes)
            self._live_file_bytes -= batch.size_bytes
            if not self._live_file_bytes:
                self._file.truncate(0)
                self._file_end = 0
        return data


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise KlogError(
            f"batches cannot wait in a temporary file in {gettempdir()}: {exc}. Free some space "
            "there, name another directory with TMPDIR, or raise buffer.memory"
        ) from exc
