"""Batches that a cleaning keeps: added from the end of a log, drained from its beginning.

The rule: up to a number of bytes stays in memory; if there is more, all of it is in an unnamed
temporary file of the task's machine, which goes with the task. In memory there is only the position
of each block. (A writer's spool, `connector/sink/batch_spool.py`, is by partition.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from tempfile import SpooledTemporaryFile

from klog.logformat.batches.rewrite_offsets import BatchRun
from klog.logformat.batches.scan_batches import scan_batches


class SpoolFullError(Exception):
    """The blocks do not fit memory, and a temporary file cannot be written."""


class ReverseSpool:
    """Blocks of batches; each comes before those that were added earlier."""

    def __init__(self, max_memory_bytes: int) -> None:
        """Begin with no block."""
        self._file = SpooledTemporaryFile(max_size=max_memory_bytes)  # noqa: SIM115 - `close` does
        self._ends = [0]
        self._savepoint = 1

    def add(self, runs: Sequence[BatchRun]) -> None:
        """Add a block.

        Args:
            runs: Its batches in the order of the log.

        Raises:
            SpoolFullError: There is no room.
        """
        with _translate_errors():
            for run in runs:
                self._file.write(run.data)
        if runs:
            self._ends.append(self._ends[-1] + sum(len(run.data) for run in runs))

    def set_savepoint(self) -> None:
        """Remember the blocks that are here now."""
        self._savepoint = len(self._ends)

    def roll_back(self) -> None:
        """Drop the blocks that were added since the savepoint."""
        del self._ends[self._savepoint :]
        with _translate_errors():
            self._file.seek(self._ends[-1])
            self._file.truncate()

    def drain(self) -> Iterator[BatchRun]:
        """Yield the blocks in the order of the log; afterwards there are none."""
        while len(self._ends) > 1:
            end, start = self._ends.pop(), self._ends[-1]
            with _translate_errors():
                self._file.seek(start)
                data = self._file.read(end - start)
            yield BatchRun(data, scan_batches(data, 0, len(data)))
        self._savepoint = 1
        self.roll_back()

    def close(self) -> None:
        """Free the memory and the file; bytes that a full disk did not take are dropped."""
        with suppress(OSError):  # Closing tries to write them again.
            self._file.close()


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise SpoolFullError from exc
