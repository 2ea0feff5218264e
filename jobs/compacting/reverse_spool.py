"""What is left of segments, taken from the end of a log and given from its beginning.

The rule: so many bytes stay in memory; where it is more, all of it lies in a temporary file of the
machine that the task runs on, which has no name and goes with the task. Of a block nothing is held
besides but where it lies. (What a writer spools, `connector/sink/spool.py`, goes by partitions.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from tempfile import SpooledTemporaryFile

from klog.logformat import batch as v2
from klog.logformat.restamp import Run


class NoRoomError(Exception):
    """What is left does not fit memory, and there can be no temporary file."""


class ReverseSpool:
    """Blocks of batches; each lies before those that came earlier."""

    def __init__(self, most_bytes: int) -> None:
        """Begin with none; so many bytes stay in memory."""
        self._file = SpooledTemporaryFile(max_size=most_bytes)  # noqa: SIM115 - `close` does
        self._ends = [0]
        self._marked = 1

    def add(self, runs: Sequence[Run]) -> None:
        """Take a block, whose runs are in the order of the log. Raises `NoRoomError`."""
        with _in_room():
            for run in runs:
                self._file.write(run.data)
        if runs:
            self._ends.append(self._ends[-1] + sum(len(run.data) for run in runs))

    def mark(self) -> None:
        """Remember what is here now."""
        self._marked = len(self._ends)

    def drop(self) -> None:
        """Give up what came since it was marked."""
        del self._ends[self._marked :]
        with _in_room():
            self._file.seek(self._ends[-1])
            self._file.truncate()

    def drain(self) -> Iterator[Run]:
        """Give each block as one piece, in the order of the log; then it has none."""
        while len(self._ends) > 1:
            end, begin = self._ends.pop(), self._ends[-1]
            with _in_room():
                self._file.seek(begin)
                data = self._file.read(end - begin)
            yield Run(data, v2.scan(data, 0, len(data)))
        self._marked = 1
        self.drop()

    def close(self) -> None:
        """Give the memory and the file back; what a full disk did not take is given up."""
        with suppress(OSError):  # Closing tries once more to write it.
            self._file.close()


@contextmanager
def _in_room() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise NoRoomError from exc
