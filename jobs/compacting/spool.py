"""What is left of segments, taken from the end of a log and given from its beginning.

The rule: so many bytes stay in memory; where it is more, all of it lies in a temporary file of the
machine that the task runs on, which has no name and goes with the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from tempfile import SpooledTemporaryFile

from klog.logformat import batch as v2
from klog.logformat.restamp import Run

MOST_BYTES = 32 << 20


class Spool:
    """Blocks of batches; each lies before those that came earlier."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        """Begin with none."""
        self._file = SpooledTemporaryFile(max_size=most_bytes)  # noqa: SIM115 - `close` does
        self._blocks: list[tuple[int, list[v2.Batches]]] = []
        self._end = 0
        self._marked = 0, 0

    def add(self, runs: Sequence[Run]) -> None:
        """Take a block, whose runs are in the order of the log."""
        self._blocks.append((self._end, [run.batches for run in runs]))
        for run in runs:
            self._file.write(run.data)
            self._end += len(run.data)

    def mark(self) -> None:
        """Remember what is here now."""
        self._marked = len(self._blocks), self._end

    def drop(self) -> None:
        """Give up what came since it was marked."""
        blocks, self._end = self._marked
        del self._blocks[blocks:]
        self._file.seek(self._end)
        self._file.truncate()

    def drain(self) -> Iterator[Run]:
        """Give all of it in the order of the log, and give it up when that is done."""
        for begin, batches in reversed(self._blocks):
            self._file.seek(begin)
            for some in batches:
                yield Run(self._file.read(int(some.ends[-1])), some)
        self._marked = 0, 0
        self.drop()

    def close(self) -> None:
        """Give the memory and the file back."""
        self._file.close()
