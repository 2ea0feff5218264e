"""What was imported into a topic from one source: numbered lists of files, under the root.

    _klog/imports/<32 hex digits>/00000000000000000000.json, ...    `numbered_entries.py`

The rule: an entry lists the files of one transaction before any of them is written, and its number
is the version of the transaction. The topic's log says whether the transaction was committed, and
by its run whether the files are in it or whether it was *abandoned*: a commit of the same version
without records, after which the entry's own can no longer come. The next entry keeps that outcome.

Every 32nd entry also has all files that were imported before it, so a load reads 32 entries at
the most, and those before the last such entry but one are deleted. The digits are a hash of the
topic's id and the transactional id: a topic that is created again begins with no file.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.root_files import KLOG
from klog.errors import InvalidFileError
from klog.jobs.importing_files.source_files import SourceFile
from klog.jobs.shared.numbered_entries import NumberedEntries

FULL_ENTRIES = 32
"""Each entry whose number this divides has all files before it."""
ABANDONED = "abandoned-"
"""Begins the write id of a commit that ends a transaction without its files."""


@dataclass(frozen=True, slots=True)
class ImportState:
    """What is known of a source.

    Attributes:
        number: The number of the newest entry; -1 if there is none.
        files: The files of the newest entry.
        imported: The size of each file that the entries before it have imported, by path.
    """

    number: int = -1
    files: tuple[SourceFile, ...] = ()
    imported: Mapping[str, int] = field(default_factory=dict)

    def with_newest(self) -> Mapping[str, int]:
        """Return what is imported when the files of the newest entry are."""
        return {**self.imported, **{file.path: file.size_bytes for file in self.files}}


def is_committed(state: TopicState, transactional_id: str, number: int) -> bool:
    """Return whether the transaction of an entry was committed, with its files or without.

    Args:
        state: The state of the topic.
        transactional_id: The name of the import.
        number: The number of the entry.
    """
    transaction = state.writer_transactions.get(transactional_id)
    return transaction is not None and transaction.batch_id >= number


def is_abandoned(state: TopicState, transactional_id: str) -> bool:
    """Return whether the last transaction was committed without its files.

    Args:
        state: The state of the topic.
        transactional_id: The name of the import.
    """
    transaction = state.writer_transactions.get(transactional_id)
    return transaction is not None and transaction.run_id.startswith(ABANDONED)


class ImportLedger:
    """The entries of one source and topic."""

    def __init__(
        self, root: KlogRoot, topic_id: str, transactional_id: str, wait: Callable[[int], None]
    ) -> None:
        """Take the topic and the name of the import; nothing is read yet.

        Args:
            root: The klog root.
            topic_id: The id of the topic.
            transactional_id: The name of the import.
            wait: Called with the number of tries before each further put.
        """
        digest = hashlib.blake2b(f"{topic_id}\0{transactional_id}".encode(), digest_size=16)
        directory = f"{root.path}/{KLOG}/imports/{digest.hexdigest()}"
        self._entries = NumberedEntries(root.store, directory, wait, is_trimmed=True)
        self._transactional_id = transactional_id
        self._known = ImportState()

    def load(self) -> ImportState:
        """Return what is known; only entries that this process has not seen are read.

        Raises:
            KlogError: An entry is lost or damaged.
        """
        seen = self._known.number
        newest = self._entries.newest(seen)
        if newest == seen:
            return self._known
        full = newest - newest % FULL_ENTRIES
        first = seen + 1 if seen >= full else full
        entries = [self._entries.read(number) for number in range(first, newest + 1)]
        try:
            known = self._known if seen >= full else _before(entries[0])
            for number, entry in enumerate(entries, first):
                known = _after(known, number, entry)
        except (ValueError, KeyError, TypeError) as exc:
            raise InvalidFileError(
                f"{self._entries.directory}: entries {first} to {newest} are not those of an "
                f"import ({type(exc).__name__}: {exc}). Restore them from a copy"
            ) from exc
        self._known = known
        return known

    def put(self, files: Sequence[SourceFile], *, is_previous_imported: bool) -> bool:
        """Put the entry that lists what is imported next; return False if another run was first.

        Args:
            files: The files.
            is_previous_imported: Whether the files of the newest entry are in the topic.

        Raises:
            CommitStateUnknownError: The store does not say whether the entry landed.
        """
        known = self._known
        number = known.number + 1
        entry: dict[str, Any] = {
            "id": secrets.token_hex(8),
            "transactionalId": self._transactional_id,
            "isPreviousImported": is_previous_imported,
            "files": _as_json(files),
        }
        if number % FULL_ENTRIES == 0:
            imported = known.with_newest() if is_previous_imported else known.imported
            entry["imported"] = sorted(map(list, imported.items()))
        if not self._entries.put(number, entry):
            return False
        self._known = _after(known, number, entry)
        if number % FULL_ENTRIES == 0 and number > FULL_ENTRIES:
            self._entries.delete_before(number - FULL_ENTRIES)
        return True


def _before(full_entry: Mapping[str, Any]) -> ImportState:
    """Return what is known before an entry that has all files before it."""
    imported = {file.path: file.size_bytes for file in _files(full_entry["imported"])}
    return ImportState(imported=imported)


def _after(known: ImportState, number: int, entry: Mapping[str, Any]) -> ImportState:
    """Return what is known with one more entry."""
    imported = known.with_newest() if entry["isPreviousImported"] else known.imported
    return ImportState(number, tuple(_files(entry["files"])), imported)


def _as_json(files: Iterable[SourceFile]) -> list[list[str | int]]:
    return [[file.path, file.size_bytes] for file in files]


def _files(items: Iterable[Any]) -> Iterable[SourceFile]:
    for path, size_bytes in items:
        if not isinstance(path, str) or not isinstance(size_bytes, int):
            raise ValueError(f"{path!r} and {size_bytes!r} are not a path and a size")
        yield SourceFile(path, size_bytes)
