"""Archives, each unpacked once, and copies of their directories."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.releases import EXPECTED, copy, read_json, unpack, versions
from tests.releases.brokers import (
    import_topics,
    write_adopted,
    write_brokers,
    write_repaired,
    write_restored,
)
from tests.releases.release_topics import write_topics


@pytest.fixture(scope="session", autouse=True)
def _unsynced() -> Iterator[None]:
    """Sync no file: these tests check the contents of files, not their durability."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that is unpacked to `folder`, where nothing may change."""

    version: str
    folder: Path
    expected: dict[str, Any]


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Archive]:
    """Return a function that returns the archive of a version."""
    archives: dict[str, Archive] = {}

    def archive_of(version: str) -> Archive:
        if version not in archives:
            folder = unpack(version, tmp_path_factory.mktemp("release") / "archive")
            archives[version] = Archive(version, folder, read_json(folder / EXPECTED))
        return archives[version]

    return archive_of


def _marked(release: str) -> Any:
    """Return a parameter: releases between the first and the last run with `make full` only."""
    is_between = release not in (versions()[0], versions()[-1])
    return pytest.param(release, marks=pytest.mark.full if is_between else ())


@pytest.fixture(params=list(map(_marked, versions())))
def archive(request: pytest.FixtureRequest, unpacked: Callable[[str], Archive]) -> Archive:
    """Return the archive of each version."""
    return unpacked(request.param)


@pytest.fixture
def copied(archive: Archive, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that copies a directory of the archive."""
    return lambda name: copy(archive.folder / name, tmp_path / "copy" / name)


@dataclass(frozen=True, slots=True)
class WrittenRoots:
    """Roots that the current code writes as `make.py` writes those of an archive."""

    folder: Path

    @property
    def root(self) -> Path:
        """Return a root with all that klog 0.1 can express."""
        return self.folder / "root"

    @property
    def adopted(self) -> Path:
        """Return an adopted broker's directory; all of them are in `all`."""
        return self.folder / "adopted-transactions"

    @property
    def adopting(self) -> Path:
        """Return a broker's directory whose adoption did not finish."""
        return self.folder / "adopting"

    @property
    def repaired(self) -> Path:
        """Return a root with topics that klog 0.1 cannot read."""
        return self.folder / "repaired"

    @property
    def restored(self) -> Path:
        """Return a root with topics that klog 0.2 cannot read."""
        return self.folder / "restored"

    @property
    def readable(self) -> list[Path]:
        """Return the roots that klog 0.1 can read."""
        return [self.root, *sorted(self.folder.glob("adopted-*"))]

    @property
    def all(self) -> list[Path]:
        """Return all roots."""
        return [*self.readable, self.repaired, self.restored]


@pytest.fixture(scope="session")
def written_roots(tmp_path_factory: pytest.TempPathFactory) -> WrittenRoots:
    """Write roots with the current code; no test may change them."""
    folder = tmp_path_factory.mktemp("written")
    write_topics(folder / "root")
    write_brokers(folder / "brokers")
    write_adopted(folder)
    import_topics(folder / "brokers", folder / "root")
    write_repaired(folder / "repaired")
    write_restored(folder / "restored")
    return WrittenRoots(folder)
