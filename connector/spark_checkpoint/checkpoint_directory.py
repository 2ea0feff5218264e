"""The files of a checkpoint directory, listed, read and compared.

The rule: Spark replaces no file of a checkpoint: it adds files under new names and deletes old
ones. So two listings that are the same show that nothing was written between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from klog.connector.store.readable_store import DirectoryEntry, ReadableStore

METADATA = "metadata"
OFFSETS, COMMITS, SOURCES = "offsets", "commits", "sources"
_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """What a checkpoint directory has at one moment.

    Attributes:
        store: The store.
        root: The path of the directory.
        entries: Each file, by its path in the directory.
    """

    store: ReadableStore
    root: str
    entries: Mapping[str, DirectoryEntry]

    def path(self, name: str) -> str:
        """Return the full path of a file.

        Args:
            name: The path in the directory.
        """
        return f"{self.root}/{name}"

    def read(self, name: str, max_bytes: int) -> bytes:
        """Return the bytes of a small file.

        Args:
            name: The path in the directory.
            max_bytes: The largest size of a file of its kind.
        """
        return self.store.read(self.entries[name].path, max_bytes)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a file of any size.

        Args:
            name: The path in the directory.
        """
        file = self.store.open(self.entries[name].path)
        try:
            for start in range(0, file.size_bytes, _CHUNK_BYTES):
                yield file.read(start, start + _CHUNK_BYTES)
        finally:
            file.close()

    def batch_ids(self, log: str) -> list[int]:
        """Return the micro-batches that a log of the checkpoint has, in order.

        Args:
            log: `OFFSETS` or `COMMITS`.
        """
        texts = (name.removeprefix(f"{log}/") for name in self.entries if name.startswith(log))
        return sorted(int(text) for text in texts if text.isascii() and text.isdecimal())

    def difference(self, later: CheckpointFiles) -> str | None:
        """Return a file that a later listing has, lacks, or has with other bytes; None if none is.

        Args:
            later: The later listing.
        """
        names = sorted(self.entries.keys() | later.entries.keys())
        for name in names:
            if _version(self.entries.get(name)) != _version(later.entries.get(name)):
                return name
        return None


def list_checkpoint(store: ReadableStore, root: str) -> CheckpointFiles:
    """Return the files in a directory and in all below it; a missing one has none.

    Args:
        store: The store.
        root: The path of the directory.
    """
    entries: dict[str, DirectoryEntry] = {}
    pending = [""]
    while pending:
        prefix = pending.pop()
        try:
            listed = store.entries(f"{root}/{prefix}".rstrip("/"))
        except FileNotFoundError:  # Spark deletes state directories, and the root may be missing.
            continue
        for entry in listed:
            if entry.is_directory:
                pending.append(f"{prefix}{entry.name}/")
            else:
                entries[f"{prefix}{entry.name}"] = entry
    return CheckpointFiles(store, root, entries)


def is_hidden(name: str) -> bool:
    """Return whether a file is not part of the checkpoint: a checksum of Hadoop's, or unfinished.

    Args:
        name: The path in the directory.
    """
    return any(part.startswith(".") for part in name.split("/"))


def _version(entry: DirectoryEntry | None) -> tuple[int, str] | None:
    return None if entry is None else (entry.size_bytes, entry.identity)
