"""The files of a source, in the order in which they are imported.

The rule: a file is known by its path below the source and its size, which a listing has. Names that
begin with `_` or `.` are hidden, and names without the suffix of the format are not looked at. If
the source has the manifest of `to-files`, the manifest says which files there are: those of a plan
that is under way are not complete yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import PurePosixPath

from klog.connector.back_off import back_off
from klog.connector.store.readable_store import DirectoryEntry, ReadableStore
from klog.connector.store.writable_store import WritableStore
from klog.errors import KlogError, OptionError
from klog.jobs.shared.files_manifest import MANIFEST, FilesManifest
from klog.jobs.shared.parquet_paths import parse_file_name

JSON, CSV, PARQUET = FORMATS = ("json", "csv", "parquet")
COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
"""Suffixes after that of the format, with the codec."""
_SUFFIXES = {
    JSON: (".json", ".jsonl", ".ndjson"),
    CSV: (".csv", ".tsv"),
    PARQUET: (".parquet",),
}


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """One file: its path below the source, and its size.

    Attributes:
        path: The path.
        size_bytes: The size.
        start_offset: The offset of its first record, if a manifest lists the file; else 0.
    """

    path: str
    size_bytes: int
    start_offset: int = field(default=0, compare=False)


def check_format(file_format: str) -> None:
    """Refuse a format that does not exist.

    Args:
        file_format: `json`, `csv` or `parquet`.

    Raises:
        OptionError: It is not one of these.
    """
    if file_format not in FORMATS:
        raise OptionError(f"--format: must be one of {', '.join(FORMATS)}, got {file_format!r}")


def list_source(store: WritableStore, source: str, file_format: str) -> list[SourceFile]:
    """Return the files of a source, in order.

    Args:
        store: The store of the source.
        source: A directory.
        file_format: The format of its files.

    Raises:
        OptionError: There is no such directory.
    """
    try:
        entries = store.entries(source)
    except FileNotFoundError:
        raise OptionError(f"--from: there is no directory {source}") from None
    except NotADirectoryError:
        raise OptionError(
            f"--from: {source} is a file. Give its directory: files are known by their paths in it"
        ) from None
    has_manifest = any(entry.name == MANIFEST and entry.is_directory for entry in entries)
    if file_format == PARQUET and has_manifest:
        return _listed_files(FilesManifest(store, source, back_off))
    return sorted(_walk(store, source, entries, file_format))


def codec_of(path: str) -> str | None:
    """Return the codec of a file by the suffix of its name; None if it is not compressed.

    Args:
        path: The path of the file.
    """
    return COMPRESSED.get(_codec_suffix(path))


def groups_of(files: Sequence[SourceFile], file_format: str) -> Iterator[list[SourceFile]]:
    """Yield the files whose records have one order: those of one range of offsets, else each alone.

    Args:
        files: The files, in order.
        file_format: Their format.
    """

    def range_of(file: SourceFile) -> object:
        name = parse_file_name(file.path.rpartition("/")[2]) if file_format == PARQUET else None
        return name or file

    for _, group in groupby(files, range_of):
        yield list(group)


def _listed_files(manifest: FilesManifest) -> list[SourceFile]:
    files = []
    for entry in manifest.files_entries():
        listed = sorted(entry.files, key=lambda file: (parse_range(file.path), file.path))
        files += [SourceFile(file.path, file.size_bytes, file.start_offset) for file in listed]
    return files


def parse_range(path: str) -> tuple[int, int]:
    """Return the partition and the first offset that the path of a listed file has.

    Args:
        path: The path, relative to the directory of the manifest.

    Raises:
        KlogError: No file of `to-files` has such a path.
    """
    name = parse_file_name(path.rpartition("/")[2])
    if name is None or path.startswith("/") or ".." in path.split("/") or "://" in path:
        raise KlogError(f"the manifest lists {path!r}, which is not a path of to-files; restore it")
    return name.partition, name.start_offset


def _walk(
    store: ReadableStore, source: str, entries: Iterable[DirectoryEntry], file_format: str
) -> Iterator[SourceFile]:
    """Yield the files among the entries of a source, and those in its folders."""
    folders = [("", entries)]
    while folders:
        prefix, entries = folders.pop()
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if file_format == PARQUET and entry.name == MANIFEST:
                raise OptionError(
                    f"--from: {source}/{prefix} is a directory of to-files, with a manifest. "
                    "Import each topic's directory by itself"
                )
            if entry.name.startswith(("_", ".")) or entry.special:
                continue
            if entry.is_directory:
                _check_link(entry)
                folders.append((f"{path}/", store.entries(entry.path)))
            elif without_codec(entry.name).endswith(_SUFFIXES[file_format]):
                yield SourceFile(path, entry.size_bytes)


def _check_link(folder: DirectoryEntry) -> None:
    """Refuse a folder that a link leads to, and that has this link in it. Only disks have links."""
    if folder.link and any(
        os.path.realpath(parent) == os.path.realpath(folder.path)
        for parent in PurePosixPath(folder.path).parents
    ):
        raise OptionError(
            f"--from: the link {folder.link} leads back to a folder that it is in, so its files "
            "have no end. Remove the link"
        )


def without_codec(path: str) -> str:
    """Return a path without the suffix of its codec.

    Args:
        path: The path of a file.
    """
    return path.removesuffix(_codec_suffix(path))


def _codec_suffix(path: str) -> str:
    return next((suffix for suffix in COMPRESSED if path.endswith(suffix)), "")
