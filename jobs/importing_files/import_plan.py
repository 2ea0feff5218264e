"""Which files of a source are imported next, and which are left.

The rule: a file whose path was imported is never imported again; if its size is another one, it is
reported. Files that belong to one order of records are in one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from klog.jobs.importing_files.import_ledger import ImportState
from klog.jobs.importing_files.import_task import ImportedFile
from klog.jobs.importing_files.source_files import SourceFile, groups_of

MAX_BATCH_FILES = 10_000


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What there is to import.

    Attributes:
        new: The files that were not imported, in order.
        changed: Files that were imported, and have another size now.
    """

    new: tuple[SourceFile, ...]
    changed: tuple[SourceFile, ...]


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A file that was left out, because it changed or was deleted before it was read.

    Attributes:
        path: Its path.
        size_bytes: The size that it was listed with.
        is_deleted: Whether it was deleted; else it has another size.
    """

    path: str
    size_bytes: int
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did.

    Attributes:
        files: The files that were imported.
        changed: Files that were imported before, and have another size now.
        left: Files that were left out.
    """

    files: tuple[ImportedFile, ...]
    changed: tuple[SourceFile, ...]
    left: tuple[LeftFile, ...]


def plan_import(
    files: Sequence[SourceFile], known: ImportState, left: Collection[str] = ()
) -> ImportPlan:
    """Return what there is to import.

    Args:
        files: The files of the source, in order.
        known: What is known of it.
        left: The paths of files that are not to be imported.
    """
    imported = known.imported
    return ImportPlan(
        tuple(file for file in files if file.path not in imported and file.path not in left),
        tuple(
            file for file in files if imported.get(file.path, file.size_bytes) != file.size_bytes
        ),
    )


def changed_files(listed: Iterable[SourceFile], files: Iterable[SourceFile]) -> list[LeftFile]:
    """Return the files of an entry that the source has no longer, or with another size.

    Args:
        listed: The files of the entry.
        files: The files of the source.
    """
    sizes = {file.path: file.size_bytes for file in files}
    return [
        LeftFile(file.path, file.size_bytes, file.path not in sizes)
        for file in listed
        if sizes.get(file.path) != file.size_bytes
    ]


def next_files(files: Sequence[SourceFile], file_format: str, max_bytes: int) -> list[SourceFile]:
    """Return the first files, as many as belong to a transaction.

    Args:
        files: The files to be imported, in order.
        file_format: Their format.
        max_bytes: The most bytes of a transaction, unless it has one group.
    """
    batch: list[SourceFile] = []
    size_bytes = 0
    for group in groups_of(files, file_format):
        size_bytes += total_bytes(group)
        if batch and (size_bytes > max_bytes or len(batch) + len(group) > MAX_BATCH_FILES):
            break
        batch += group
    return batch


def total_bytes(files: Iterable[SourceFile]) -> int:
    """Return the size of all files together.

    Args:
        files: The files.
    """
    return sum(file.size_bytes for file in files)
