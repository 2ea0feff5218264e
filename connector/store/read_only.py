"""A store that is only read, where a topic's log asks for one that could be written.

The rule: every write is refused with the schemes that klog writes to; nothing is sent to the store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from klog.connector.store.contract import Put
from klog.connector.store.files import Entry, File, Store
from klog.errors import OptionError


@dataclass(frozen=True, slots=True)
class ReadOnlyStore:
    """A store behind `refusal`, which says what a writer should have given."""

    store: Store
    refusal: str

    @property
    def reads_at_once(self) -> int:
        """Return how many reads side by side are worth it."""
        return self.store.reads_at_once

    def entries(self, directory: str) -> list[Entry]:
        """List a directory."""
        return self.store.entries(directory)

    def names_after(self, directory: str, name: str) -> list[str]:
        """List the names that sort after `name`."""
        return self.store.names_after(directory, name)

    def open(self, path: str, size_bytes: int | None = None) -> File:
        """Open a file for reading ranges."""
        return self.store.open(path, size_bytes)

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """Read a whole small file."""
        return self.store.read(path, most_bytes)

    def put_if_absent(self, path: str, data: bytes) -> Put:
        """Refuse to write, with `OptionError`."""
        raise OptionError(self.refusal)

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Refuse to write, with `OptionError`."""
        raise OptionError(self.refusal)

    def delete(self, path: str) -> None:
        """Refuse to delete, with `OptionError`."""
        raise OptionError(self.refusal)
