"""The manifest of a topic's files: what has been copied, which files have it, what is under way.

    <to>/<topic>/_manifest/00000000000000000000.json    `numbered_entries.py`

The rule (docs/files.md): a *plan* says which offsets the next files have and what they are called,
before any of them is written. A *files* entry says that all files of a plan are there. So a run
that finds a plan without its files entry, its own or that of a killed run, writes the files that
are missing under the names that the plan has, and no record is ever in two files. Each entry has
the positions after it, so the newest one alone says where a copy is. The form is a contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from klog.connector.commit_log.commit_info import this_engine
from klog.connector.source.stream_offsets import StreamOffsets, offsets_from_json, offsets_to_json
from klog.connector.store.writable_store import WritableStore
from klog.errors import InvalidFileError
from klog.jobs.shared.numbered_entries import NumberedEntries
from klog.logformat.topic_partition import TopicPartition

MANIFEST = "_manifest"
"""The folder of the manifest. Readers of Parquet directories skip names that begin so."""
PLAN, FILES = "plan", "files"


@dataclass(frozen=True, slots=True)
class FileRange:
    """Offsets of one partition whose records go to one file for each hour that they are of."""

    partition: int
    start_offset: int
    end_offset: int

    def as_json(self) -> dict[str, int]:
        """Return the range as the manifest has it."""
        return {
            "partition": self.partition,
            "startOffset": self.start_offset,
            "endOffset": self.end_offset,
        }


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What is to be copied next.

    Attributes:
        topic: The topic.
        plan_id: 16 hex digits in the names of the plan's files, and of no others.
        partition_by: How files are laid out in directories.
        compression: The compression of the files.
        starts: Where each partition was before.
        end: Where each partition is when the plan is done.
        ranges: What goes to files of their own, in order.
        number: The number of the entry; -1 before it has one.
    """

    topic: str
    plan_id: str
    partition_by: str
    compression: str
    starts: Mapping[TopicPartition, int]
    end: StreamOffsets
    ranges: tuple[FileRange, ...]
    number: int = -1

    def as_json(self) -> dict[str, Any]:
        """Return the entry as the manifest has it."""
        return {
            "id": self.plan_id,
            "kind": PLAN,
            "topic": self.topic,
            "partitionBy": self.partition_by,
            "compression": self.compression,
            "from": offsets_to_json(self.starts),
            "next": self.end.to_json(),
            "ranges": [file_range.as_json() for file_range in self.ranges],
        }


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file. Its path is relative to the directory of its topic; `end_offset` is exclusive."""

    path: str
    partition: int
    start_offset: int
    end_offset: int
    records: int
    size_bytes: int

    def as_json(self) -> dict[str, Any]:
        """Return the file as the manifest has it."""
        return {
            "path": self.path,
            "partition": self.partition,
            "startOffset": self.start_offset,
            "endOffset": self.end_offset,
            "records": self.records,
            "sizeBytes": self.size_bytes,
        }


@dataclass(frozen=True, slots=True)
class FilesEntry:
    """The files of a plan, all of them written."""

    topic: str
    partition_by: str
    end: StreamOffsets
    plan_number: int
    plan_id: str
    files: tuple[WrittenFile, ...]
    number: int = -1
    entry_id: str = field(default="")

    def as_json(self) -> dict[str, Any]:
        """Return the entry as the manifest has it."""
        return {
            "id": self.entry_id,
            "kind": FILES,
            "topic": self.topic,
            "partitionBy": self.partition_by,
            "next": self.end.to_json(),
            "plan": self.plan_number,
            "planId": self.plan_id,
            "files": [file.as_json() for file in self.files],
        }


class FilesManifest:
    """The manifest of one topic, as one process has seen it."""

    def __init__(self, store: WritableStore, directory: str, wait: Callable[[int], None]) -> None:
        """Take the directory of the topic's files; nothing is read yet.

        Args:
            store: The store of the directory.
            directory: The path of the directory.
            wait: Called with the number of tries before each further put.
        """
        self.store, self.directory = store, directory
        self._entries = NumberedEntries(store, f"{directory}/{MANIFEST}", wait)
        self._newest: FilePlan | FilesEntry | None = None

    def newest(self) -> FilePlan | FilesEntry | None:
        """Return the newest entry; None if nothing was ever planned.

        Raises:
            KlogError: An entry is lost or damaged.
        """
        seen = -1 if self._newest is None else self._newest.number
        number = self._entries.newest(seen)
        if number != seen:
            self._newest = self._read(number)
        return self._newest

    def put(self, entry: FilePlan | FilesEntry) -> bool:
        """Put the entry after the newest one; return False if another run was first.

        Args:
            entry: The entry.

        Raises:
            CommitStateUnknownError: The store does not say whether the entry landed.
        """
        number = 0 if self._newest is None else self._newest.number + 1
        return self._entries.put(number, {**entry.as_json(), "engine": this_engine()})

    def files_entries(self) -> Iterator[FilesEntry]:
        """Yield all entries that list files, oldest first."""
        for number in range(self._entries.newest() + 1):
            entry = self._read(number)
            if isinstance(entry, FilesEntry):
                yield entry

    def _read(self, number: int) -> FilePlan | FilesEntry:
        fields = self._entries.read(number)
        try:
            return parse_entry(fields)
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise InvalidFileError(
                f"{self._entries.directory}: entry {number} is not one of a manifest "
                f"({type(exc).__name__}: {exc}). Restore it from a copy"
            ) from exc


def parse_entry(fields: Mapping[str, Any]) -> FilePlan | FilesEntry:
    """Return an entry of a manifest.

    Args:
        fields: The entry as JSON.

    Raises:
        ValueError, KeyError, TypeError: It is not one.
    """
    end = StreamOffsets.from_json(fields["next"])
    if fields["kind"] == PLAN:
        return FilePlan(
            fields["topic"],
            fields["id"],
            fields["partitionBy"],
            fields["compression"],
            offsets_from_json(fields["from"]),
            end,
            tuple(
                FileRange(item["partition"], item["startOffset"], item["endOffset"])
                for item in fields["ranges"]
            ),
            fields["number"],
        )
    if fields["kind"] != FILES:
        raise ValueError(f"unknown kind {fields['kind']!r}")
    return FilesEntry(
        fields["topic"],
        fields["partitionBy"],
        end,
        fields["plan"],
        fields["planId"],
        tuple(
            WrittenFile(
                item["path"],
                item["partition"],
                item["startOffset"],
                item["endOffset"],
                item["records"],
                item["sizeBytes"],
            )
            for item in fields["files"]
        ),
        fields["number"],
        fields["id"],
    )
