"""A broker's directories in an archive, and the roots that `adopt` and `repair` made.

The rule: the directories come from `tests.corpus` and `tests.golden` when an archive is made. Tests
read them from the archive.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import klog
from tests import corpus, golden
from tests.releases import copy
from tests.releases.command import done, run
from tests.releases.release_topics import OLD_MS, PLAIN, many, numbered, table, wait_for_checkpoint

KEEP = ("--config", "retention.ms=-1")
ABORT = ("--open-transactions", "abort")
OLD_TOPICS = (
    "mixed", "v0", "v1.append", "v2.compacted", "v1.compacted", "idempotent", "txn",
    "__consumer_offsets", "__transaction_state",
)  # fmt: skip
"""Topics of a broker 2.8.2: message formats v0 to v2, cleaned topics, no topic ids."""
RECORDS_TOPICS = ("expired", "retained", "trimmed", "empty")
"""Topics whose records were deleted, some or all, by retention or DeleteRecords."""
LOST_COMMIT = 3


def write_brokers(target: Path) -> None:
    """Copy broker directories: transactions, a killed broker, deleted records, old formats."""
    (transactions,) = corpus.scene("transactions").log_dirs
    copy(transactions, target / "transactions")
    (killed,) = corpus.scene("killed").log_dirs
    copy(killed, target / "killed")
    (records,) = corpus.scene("records").log_dirs
    _copy_topics(records, target / "records", RECORDS_TOPICS)
    (old,) = golden.scene("2.8.2").log_dirs
    _copy_topics(old, target / "old", OLD_TOPICS)


def _copy_topics(source: Path, target: Path, topics: tuple[str, ...]) -> None:
    """Copy a broker's directory with some of its topics."""
    copy(source, target)
    for path in target.iterdir():
        if path.is_dir() and path.name.rpartition("-")[0] not in topics:
            shutil.rmtree(path)


def write_adopted(folder: Path) -> None:
    """Adopt broker directories, append to one of them, and leave another partly adopted.

    A segment of that is damaged during the adoption, so the broker still owns it afterwards.
    """
    for name in ("transactions", "killed", "records", "old"):
        root = copy(folder / "brokers" / name, folder / f"adopted-{name}")
        done("adopt", "--root", str(root), *KEEP, *ABORT)
    klog.open(folder / "adopted-old").append("mixed", table(numbered(0, 4), [0, 1, 2, 3]))
    root = copy(folder / "brokers" / "killed", folder / "adopting")
    segment = root / "killed-0" / f"{0:020}.log"
    data = segment.read_bytes()
    segment.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    assert run("adopt", "--root", str(root), *KEEP, *ABORT).code == 1
    segment.write_bytes(data)
    assert (root / "_klog" / "adopting.json").exists()


def import_topics(brokers: Path, root: Path) -> None:
    """Import topics of two brokers into a klog root."""
    source = ("import-log", "--root", str(root), *KEEP, *ABORT, "--from")
    done(*source, str(brokers / "transactions"), "--topic", "txn.interleaved")
    done(*source, str(brokers / "old"), "--topic", "v1.append", "--topic", "mixed")


def write_repaired(root: Path) -> None:
    """Lose files of topics and repair them: klog 0.2 and later can."""
    log = klog.open(root)
    for topic in ("hole", "hole-in-tail", "added", "described"):
        log.create_topic(topic, 2, PLAIN)
        for number in range(5):
            rows = table(numbered(2 * number, 2), number % 2, OLD_MS + 2 * number)
            log.append(topic, rows)
    lose_commit(root, "added", LOST_COMMIT)
    for topic in ("hole", "hole-in-tail"):
        lose_commit(root, topic, LOST_COMMIT)
        next((root / f"{topic}-0").glob(f"{2:020}-*.log")).unlink()
    (root / "_klog" / "topics" / "described" / "topic.json").unlink()
    many(log, root, "raised", 105)
    lose_commit(root, "raised", 50)
    done("repair", "--root", str(root), "--execute")
    log = klog.open(root)
    for number in range(100):
        log.append("hole", table(numbered(100 + number, 1)))
    wait_for_checkpoint(root, "hole")
    for topic in ("added", "described", "hole-in-tail", "raised"):
        log.append(topic, table(numbered(100, 1)))


def write_restored(root: Path) -> None:
    """Restore earlier versions of topics: klog 0.3 and later can."""
    log = klog.open(root)
    for topic in ("restored", "undone"):
        log.create_topic(topic, 2, PLAIN)
        for number in range(4):
            log.append(topic, table(numbered(2 * number, 2), number % 2, OLD_MS + 2 * number))
    log.alter_config("undone", {"cleanup.policy": "compact", "segment.ms": "1"})
    done("compact", "--root", str(root), "--topic", "undone", "--min-dirty-ratio", "0")
    log.add_partitions("restored", 3)
    deleted = ("--partition", "0", "--offset", "2")
    done("delete-records", "--root", str(root), "--topic", "restored", *deleted)
    done("restore", "--root", str(root), "--topic", "restored", "--version", "2")
    done("restore", "--root", str(root), "--topic", "undone", "--version", "1")
    done("restore", "--root", str(root), "--topic", "undone", "--version", "4")
    for number in range(100):
        log.append("restored", table(numbered(100 + number, 1)))
    wait_for_checkpoint(root, "restored")
    log.append("undone", table(numbered(100, 1)))


def lose_commit(root: Path, topic: str, version: int) -> None:
    """Delete the file of a commit."""
    (root / "_klog" / "topics" / topic / "log" / f"{version:020}.json").unlink()
