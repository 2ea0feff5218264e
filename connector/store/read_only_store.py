"""A store that klog only reads, in the place of one that a commit log could be written to.

The rule: every write is refused with the schemes that klog writes to, and nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from klog.connector.store.readable_store import DirectoryEntry, File, ReadableStore
from klog.connector.store.writable_store import PutResult
from klog.errors import OptionError


@dataclass(frozen=True, slots=True)
class ReadOnlyStore:
    """A readable store with the calls of a writable one.

    Attributes:
        store: The store that is read.
        refusal: The message of the `OptionError` of each write.
    """

    store: ReadableStore
    refusal: str

    @property
    def max_parallel_reads(self) -> int:
        """Return how many small reads at a time pay off."""
        return self.store.max_parallel_reads

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """See `ReadableStore.entries`."""
        return self.store.entries(directory)

    def names_after(self, directory: str, name: str) -> list[str]:
        """See `ReadableStore.names_after`."""
        return self.store.names_after(directory, name)

    def open(self, path: str, size_bytes: int | None = None) -> File:
        """See `ReadableStore.open`."""
        return self.store.open(path, size_bytes)

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """See `ReadableStore.read`."""
        return self.store.read(path, max_bytes)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See `WritableStore.put_if_absent`. It raises `OptionError`."""
        raise OptionError(self.refusal)

    def put(self, path: str, chunks: Iterable[bytes]) -> None:
        """See `WritableStore.put`. It raises `OptionError`."""
        raise OptionError(self.refusal)

    def delete(self, path: str) -> None:
        """See `WritableStore.delete`. It raises `OptionError`."""
        raise OptionError(self.refusal)
