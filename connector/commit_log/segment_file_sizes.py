"""The sizes of files of segments that are not live any more: vacuum may have deleted them.

The rule: a few files are asked for one by one, as the directory of a partition may have a hundred
thousand names. For more, the directories are listed. Either is done side by side if the store
gains by it, and once for a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.store.parallel_reads import read_in_order
from klog.errors import NotRegularFileError

MAX_SINGLE_FILES = 8
"""More files than this are looked up in listings of their directories."""


class SegmentFileSizes:
    """Sizes of files, and what was asked for so far."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._asked: dict[str, int | None] = {}
        self._listed: dict[str, Mapping[str, int]] = {}

    def sizes(self, log: CommitLog, files: Sequence[str]) -> dict[str, int]:
        """Return the sizes of files that exist.

        Args:
            log: The log of their topic.
            files: The paths of the files, relative to the root.
        """
        unknown = [
            file
            for file in dict.fromkeys(files)
            if file not in self._asked and _directory_of(file) not in self._listed
        ]
        parallel = log.store.max_parallel_reads
        if len(unknown) <= MAX_SINGLE_FILES:
            answers = read_in_order(lambda file: _size(log, file), unknown, parallel)
            self._asked.update(zip(unknown, answers, strict=True))
        else:
            directories = list(dict.fromkeys(map(_directory_of, unknown)))
            listings = read_in_order(lambda name: _list(log, name), directories, parallel)
            self._listed.update(zip(directories, listings, strict=True))
        sizes = {file: self._size_of(file) for file in files}
        return {file: size_bytes for file, size_bytes in sizes.items() if size_bytes is not None}

    def forget(self) -> None:
        """Ask for every file again."""
        self._asked.clear()
        self._listed.clear()

    def _size_of(self, file: str) -> int | None:
        listing = self._listed.get(_directory_of(file))
        return self._asked[file] if listing is None else listing.get(file)


def _directory_of(file: str) -> str:
    return file.rpartition("/")[0]


def _size(log: CommitLog, file: str) -> int | None:
    """Return the size of a file; None if it is missing."""
    try:
        opened = log.store.open(log.paths.data(file))
    except (FileNotFoundError, NotRegularFileError):
        return None
    opened.close()
    return opened.size_bytes


def _list(log: CommitLog, directory: str) -> Mapping[str, int]:
    """Return the sizes of the files in a directory; a missing one has none."""
    return {
        f"{directory}/{entry.name}": entry.size_bytes
        for entry in log.entries(log.paths.data(directory))
        if not entry.is_directory
    }
