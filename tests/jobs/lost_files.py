"""Topics that have lost files, for tests of `repair`."""

from __future__ import annotations

from pathlib import Path

from klog.connector.root_files import FORMAT_FILE
from tests.corpus.clients import EPOCH_2024, Sent
from tests.jobs.written_root import WrittenRoot

TOPIC = "orders"


def written(path: Path) -> WrittenRoot:
    """Return a root with a topic of two partitions and versions 0 to 5."""
    root = WrittenRoot(str(path))
    root.create(TOPIC, 2)
    for number in range(5):
        append(root, number + 1, number % 2)
    return root


def append(root: WrittenRoot, records: int, partition: int) -> None:
    """Append so many records to a partition, each earlier than the last, in a commit of its own."""
    rows = [Sent(None, b"%d" % n, EPOCH_2024 - n) for n in range(records)]
    root.append(TOPIC, rows, partition)


def lose_commits(root: WrittenRoot, *versions: int) -> None:
    """Delete the files of commits."""
    for version in versions:
        Path(root.root.log(TOPIC).paths.commit(version)).unlink()


def lose_description(root: WrittenRoot) -> None:
    """Delete `topic.json`."""
    Path(root.root.log(TOPIC).paths.description).unlink()


def lose_format(root: WrittenRoot) -> None:
    """Delete `format.json`."""
    (Path(root.location) / FORMAT_FILE).unlink()
