"""Directories, FIFOs, devices and links in a file's place: commands name them, and never hang."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import klog as library
from klog.connector.commit_log import checkpoint_writer, snapshot_leases
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.commit_log.root_discovery import find_root
from klog.logformat.broker_files.file_names import segment_file_name
from tests.connector.committed_topic import BATCHES, table
from tests.connector.log_dirs import many, write_log
from tests.support.klog_command import CommandResult, Klog
from tests.support.special_files import no_hang, put

KINDS = ("a FIFO", "a directory", "a link to a device", "a loop of links")
"""The tests of the store try the other kinds."""
PIN = "0123456789abcdef"
NEWER = CheckpointName(4, 1000, 7)

VERBS: dict[str, tuple[str, ...]] = {
    "list": ("topics", "list"),
    "describe": ("topics", "describe", "--topic", "t"),
    "consume": ("consume", "--topic", "t"),
    "history": ("history", "--topic", "t"),
    "verify": ("verify",),
    "retain": ("retain",),
    "compact": ("compact",),
    "merge": ("merge",),
    "produce": ("produce", "--topic", "t"),
    "vacuum": ("vacuum", "--execute", "--grace", "0s"),
}


def _log(root: Path) -> CommitLog:
    klog_root = find_root(str(root))
    assert klog_root is not None
    return klog_root.log("t")


def _segment(log: CommitLog) -> str:
    files: list[str] = log.load().segments["file"].to_pylist()
    return log.paths.data(files[0])


EVERY = frozenset(VERBS)
PLACES: dict[str, tuple[Callable[[CommitLog], str], frozenset[str]]] = {
    "format.json": (lambda log: f"{log.paths.root}/_klog/format.json", EVERY),
    "topic.json": (lambda log: log.paths.description, EVERY - {"list"}),
    "the last commit": (lambda log: log.paths.commit(3), EVERY - {"list"}),
    "an old commit": (lambda log: log.paths.commit(2), frozenset({"history"})),
    "the next commit": (lambda log: log.paths.commit(4), EVERY - {"list"}),
    "a segment": (_segment, frozenset({"consume", "verify", "merge"})),
    "an index": (lambda log: _segment(log)[:-3] + "index", frozenset({"verify"})),
    "a newer checkpoint": (lambda log: log.paths.checkpoint(NEWER), frozenset()),
    "a part": (lambda log: log.paths.part(NEWER), frozenset()),
    "a sidecar": (lambda log: f"{log.paths.sidecars}/{4:020d}-{PIN}-{5:012d}-00000000.parquet",
        frozenset()),
    "an expiration file": (lambda log: log.paths.expiration(1), frozenset()),
    "a lease": (lambda log: log.paths.lease(PIN), frozenset()),
}  # fmt: skip
"""Where to put it, and the verbs that need the file; other verbs work without it."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root with commits 0 to 3 of a topic, and a checkpoint of the last."""
    path = tmp_path_factory.mktemp("template") / "root"
    log = library.open(str(path))
    log.create_topic("t", 1, {"index.interval.bytes": "200"})
    for first in (0, 100, 200):
        log.append("t", table(first, 100), options=BATCHES)
    commits = _log(path)
    checkpoint_writer.write_checkpoint(commits, commits.load())
    snapshot_leases.take_lease(commits, PIN, 2, 60_000)
    return path


@pytest.fixture(autouse=True)
def _no_hang(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with no_hang():
        yield


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_in_a_klog_root(klog: Klog, source: Path, tmp_path: Path, kind: str, place: str) -> None:
    at, needed_by = PLACES[place]
    lines = tmp_path / "lines"
    lines.write_text("a line\n")
    for verb, arguments in VERBS.items():
        root = tmp_path / verb
        shutil.copytree(source, root)
        path = Path(at(_log(root)))
        put(kind, path)
        more = ("--file", str(lines)) if verb == "produce" else ()
        result = klog(*arguments, *more, "--root", str(root))
        _judge(verb, result, path.name, is_needed=verb in needed_by)


def _judge(verb: str, result: CommandResult, name: str, *, is_needed: bool) -> None:
    assert "Traceback" not in result.err, verb
    if is_needed:
        assert result.code == 1, (verb, result)
        assert name in result.err + result.out.decode(), (verb, result)
        assert result.err.count("\n") <= 1, (verb, result)
    else:
        assert result.code == 0 or name in result.err + result.out.decode(), (verb, result)


BROKERS_PLACES = (
    "t-0/" + segment_file_name(0, "log"),
    "t-0/" + segment_file_name(10, "log"),
    "t-0/" + segment_file_name(0, "index"),
    "t-0/" + segment_file_name(0, "timeindex"),
    "t-0/" + segment_file_name(0, "txnindex"),
    "t-0/00000000000000000010.snapshot",
    "t-0/leader-epoch-checkpoint",
    "t-0/partition.metadata",
    ".lock",
    ".kafka_cleanshutdown",
    "meta.properties",
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)
BROKERS_VERBS = (
    ("topics", "describe", "--root"),
    ("consume", "--topic", "t", "--root"),
    ("adopt", "--root"),
    ("import-log", "--root", "{root}", "--from"),
)


@pytest.mark.parametrize("place", BROKERS_PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_in_a_brokers_directory(klog: Klog, tmp_path: Path, kind: str, place: str) -> None:
    for number, (*arguments, last) in enumerate(BROKERS_VERBS):
        directory = tmp_path / str(number)
        write_log(directory, {0: many(10), 10: many(10, 10)})
        put(kind, directory / place)
        root = str(tmp_path / "root")
        result = klog(*(argument.format(root=root) for argument in arguments), last, str(directory))
        # A directory is not a segment, whatever its name.
        is_needed = place.endswith(".log") and kind not in ("a directory", "a link to a directory")
        _judge(arguments[0], result, place.rpartition("/")[2], is_needed=is_needed)


@pytest.mark.parametrize("place", [place for place in BROKERS_PLACES if place != ".lock"])
@pytest.mark.parametrize("kind", KINDS)
def test_dumped(klog: Klog, tmp_path: Path, kind: str, place: str) -> None:
    path = tmp_path / place
    put(kind, path)
    result = klog("dump", "--files", str(path))
    assert result.code == 1
    assert "Cannot read" in result.err
    assert "has to be a regular file" in result.err


@pytest.mark.parametrize(
    "place",
    [".lock", "log-start-offset-checkpoint", "replication-offset-checkpoint"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_exported_to(klog: Klog, source: Path, tmp_path: Path, kind: str, place: str) -> None:
    put(kind, tmp_path / "to" / place)
    result = klog("export-log", "--root", str(source), "--to", str(tmp_path / "to"))
    _judge("export-log", result, place, is_needed=True)
