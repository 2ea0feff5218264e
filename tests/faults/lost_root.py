"""A root on any store whose files are lost at rest and restored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pytest

import klog
from klog.cli import main
from klog.connector.commit_log import (
    checkpoint_parts,
    checkpoint_writer,
    commit_sidecar,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.embedded import Log
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.store.store_for_url import writable_store_for
from klog.connector.store.writable_store import WritableStore
from klog.errors import KlogError
from klog.jobs import vacuum, verify
from tests.connector.commit_log import memory_logs

TOPIC = "orders"


@dataclass(frozen=True, slots=True)
class Root:
    """A root with eight appends, whose files the store itself deletes and restores."""

    url: str
    storage: StorageOptions = NO_STORAGE_OPTIONS

    @property
    def store(self) -> WritableStore:
        """Return the store."""
        return writable_store_for(self.url, self.storage)[0]

    @property
    def paths(self) -> TopicPaths:
        """Return the topic's paths, as the store spells them."""
        return TopicPaths(writable_store_for(self.url, self.storage)[1], TOPIC)

    def open(self) -> Log:
        """Open the root without any cached state."""
        return klog.open(self.url, **dict(self.storage.values))

    def log(self) -> CommitLog:
        """Return the topic's log."""
        root = find_root(self.url, self.storage)
        assert root is not None
        return root.log(TOPIC)

    def append(self, value: str) -> None:
        """Append one row."""
        self.open().append(TOPIC, pa.table({"value": [value]}))

    def values(self) -> list[str]:
        """Scan the topic."""
        table = self.open().scan(TOPIC).read_all()
        return [bytes(value).decode() for value in table["value"].to_pylist()]

    def verb(self, *arguments: str) -> int:
        """Run a command on the root; return its exit code."""
        return main([*arguments, "--root", self.url])

    def is_verified(self) -> bool:
        """Verify the root."""
        return verify.run(None, self.url, storage=self.storage).exit_code == 0

    def vacuum(self) -> None:
        """Vacuum the root with a grace of an hour; ignore klog's errors."""
        with suppress(KlogError):
            vacuum.run(None, self.url, grace_ms=3_600_000, storage=self.storage, dry_run=False)

    def files(self) -> dict[str, bytes]:
        """Read every file of the root."""
        return dict(_files(self.store, self.paths.root))


def _files(store: WritableStore, directory: str) -> Iterator[tuple[str, bytes]]:
    for entry in store.entries(directory):
        if entry.is_directory:
            yield from _files(store, entry.path)
        else:
            yield entry.path, store.read(entry.path)


ROWS = [f"row {number}" for number in range(8)]


def with_eight_appends(root: Root) -> Root:
    """Create the topic and append eight times: versions 0 to 8."""
    root.open().create_topic(TOPIC, 1)
    for row in ROWS:
        root.append(row)
    return root


def with_checkpoint_and_sidecars(root: Root, monkeypatch: pytest.MonkeyPatch) -> Root:
    """Create the topic with sidecars, a checkpoint in parts, expired commits, and later commits."""
    monkeypatch.setattr(commit_sidecar, "MAX_JSON_BYTES", 0)
    monkeypatch.setattr(checkpoint_parts, "PART_ROWS", 2)
    root.open().create_topic(TOPIC, 1)
    for number, row in enumerate(ROWS):
        root.append(row)
        if number == 5:
            log = root.log()
            checkpoint_writer.write_checkpoint(log, log.load())
            assert memory_logs.checkpoint_and_expire(log, -(10**9)) == 5
    return root


def files_of(root: Root, kind: str) -> list[str]:
    """Return the files whose name or folder is `kind`."""
    files = sorted(path for path in root.files() if kind in path.split("/")[-2:])
    return files[:-1] if kind == "log" else files


def name_pattern(lost: list[str]) -> str:
    """Return a pattern that matches a file's name, or the folder of a Parquet file."""
    folders = {path.rpartition("/")[0] for path in lost if path.endswith(".parquet")}
    return "|".join(
        [re.escape(path.rpartition("/")[2]) for path in lost]
        + [re.escape(folder) for folder in folders]
    )
