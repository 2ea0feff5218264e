"""Numbered entries on a store, by which jobs decide what happens next: a log without gaps.

    <directory>/00000000000000000000.json, ...1.json, ...   entries, put if absent
    <directory>/newest.json                                 a number: a hint for the next process

The rule: the process that creates a number decides, and an entry never changes. An entry has a
random `id`, by which a writer whose answer was lost knows its own. Numbers have no gaps, so a
missing number below another is a lost file, which is an error: what was decided there is not known
any more. So is a number that the hint has and the directory has not. An old hint costs time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from klog.connector.store.writable_store import PutResult, WritableStore
from klog.errors import CommitStateUnknownError, InvalidFileError, KlogError, NewerFormatError

FORMAT = 1
MAX_PUTS = 10
"""Puts of one entry while the store does not say whether it landed."""
MAX_ENTRY_BYTES = 512 << 20
_HINT = "newest.json"
_MAX_HINT_BYTES = 1000
_NAME = re.compile(r"(\d{20})\.json")


class NumberedEntries:
    """The entries in one directory."""

    def __init__(
        self,
        store: WritableStore,
        directory: str,
        wait: Callable[[int], None],
        *,
        is_trimmed: bool = False,
    ) -> None:
        """Take the directory; nothing is read yet.

        Args:
            store: The store of the directory.
            directory: The path of the directory.
            wait: Called with the number of tries before each further one.
            is_trimmed: Whether the first entries may have been deleted (`delete_before`). A writer
                that slept may have put one of them again, so gaps say nothing.
        """
        self._store, self.directory, self._wait = store, directory, wait
        self._is_trimmed = is_trimmed

    def newest(self, seen: int = -1) -> int:
        """Return the newest number, -1 if there are no entries.

        Args:
            seen: A number that this process has seen; -1 for none.

        Raises:
            KlogError: An entry is lost.
        """
        known = seen if seen >= 0 else self._hint()
        names = self._store.names_after(self.directory, _name(known - 1) if known > 0 else "")
        numbers = [int(match[1]) for match in map(_NAME.fullmatch, names) if match]
        if not numbers:
            if known >= 0:
                raise self._lost(known)
            return -1
        if self._is_trimmed:
            return numbers[-1]
        lowest = max(known, 0)
        present = {number for number in numbers if number >= lowest}
        if len(present) != numbers[-1] - lowest + 1:
            raise self._lost(next(n for n in range(lowest, numbers[-1] + 1) if n not in present))
        return numbers[-1]

    def read(self, number: int) -> dict[str, Any]:
        """Return an entry.

        Args:
            number: Its number.

        Raises:
            KlogError: The entry is lost, or it is not one.
            NewerFormatError: A later klog has written it.
        """
        entry = self._read(number)
        if entry is None:
            raise self._lost(number)
        return entry

    def put(self, number: int, entry: Mapping[str, Any]) -> bool:
        """Put an entry at its number; return whether it is this one that has the number.

        Args:
            number: The number after the newest one.
            entry: The entry, with an `id` that no other has.

        Raises:
            CommitStateUnknownError: The store does not say whether the entry landed.
            KlogError: The entry is larger than one that is read.
        """
        data = encode_entry({"format": FORMAT, "number": number, **entry})
        path = self._path(number)
        if len(data) > MAX_ENTRY_BYTES:
            raise KlogError(
                f"{path}: this entry would have {len(data)} bytes, and no job reads one of more "
                f"than {MAX_ENTRY_BYTES}: it lists too many files. Go on with another directory, "
                "and fewer files in it"
            )
        for tries in range(MAX_PUTS):
            result = self._store.put_if_absent(path, data)
            if result is not PutResult.CREATED:
                existing = self._read(number)
                if existing is None or (
                    result is PutResult.UNKNOWN and existing["id"] == entry["id"]
                ):
                    self._wait(tries + 1)
                    continue
                if existing["id"] != entry["id"]:
                    return False
            self._put_hint(number)
            return True
        raise CommitStateUnknownError(
            f"{path}: the store did not say whether this entry was written, in {MAX_PUTS} tries. "
            "Run the job again: it finds out and goes on from there"
        )

    def delete_before(self, number: int) -> None:
        """Delete the entries before a number, as far as that is possible.

        Args:
            number: The first entry that stays.
        """
        with suppress(KlogError, OSError):
            for name in self._store.names_after(self.directory, ""):
                match = _NAME.fullmatch(name)
                if match and int(match[1]) < number:
                    self._store.delete(f"{self.directory}/{name}")

    def _read(self, number: int) -> dict[str, Any] | None:
        path = self._path(number)
        try:
            data = self._store.read(path, MAX_ENTRY_BYTES)
        except FileNotFoundError:
            return None
        try:
            entry = json.loads(data)
            written = entry["format"]
            if isinstance(written, int) and written > FORMAT:
                raise NewerFormatError(
                    f"{path}: a later klog has written it (format {written}, this klog knows "
                    f"{FORMAT}). Run the job with that klog"
                )
            if entry["number"] != number or not isinstance(entry["id"], str):
                raise ValueError("another number or no id")
        except (ValueError, KeyError, TypeError) as exc:
            raise InvalidFileError(
                f"{path}: it is not an entry of klog's: {exc}. Restore it from a copy"
            ) from exc
        return dict(entry)

    def _hint(self) -> int:
        with suppress(KlogError, OSError, ValueError, KeyError, TypeError):
            data = self._store.read(f"{self.directory}/{_HINT}", _MAX_HINT_BYTES)
            return int(json.loads(data)["number"])
        return -1

    def _put_hint(self, number: int) -> None:
        data = encode_entry({"number": number})
        with suppress(KlogError, OSError):
            self._store.put(f"{self.directory}/{_HINT}", [data])

    def _lost(self, number: int) -> KlogError:
        return KlogError(
            f"{self._path(number)} is lost: there is a later one, or there was. It says what was "
            "done, and without it the job could do that twice. Restore the file from a copy"
        )

    def _path(self, number: int) -> str:
        return f"{self.directory}/{_name(number)}"


def encode_entry(entry: Mapping[str, Any]) -> bytes:
    """Return an entry as its file has it.

    Args:
        entry: The entry.
    """
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _name(number: int) -> str:
    return f"{number:020d}.json"
