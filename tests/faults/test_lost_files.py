"""Files of a root that were lost at rest, and what every verb says of them.

The rule: each verb begins from nothing, as a process of its own does. It gives what it gave before,
where it does not need the file, or one error that names it; never less. What a writer was told has
landed is there when the file is back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import klog
from klog.cli import main
from klog.connector.embedded import Log
from klog.connector.log import checkpoint_parts, cleaning, sidecar
from klog.connector.log.paths import TopicPaths
from klog.connector.log.root import find_root
from klog.connector.log.topic_log import TopicLog
from klog.connector.store.contract import WritableStore
from klog.connector.store.schemes import writable_store_for
from klog.connector.store.storage import NOTHING_GIVEN, Storage, storage_of
from klog.errors import KlogError, LostCommitError
from klog.jobs import vacuum, verify
from tests.servers import BUCKET, S3Server
from tests.stores.fake_s3 import fake_s3

TOPIC = "orders"


@dataclass(frozen=True, slots=True)
class Root:
    """A root with eight appends, whose files are lost and put back by the store itself."""

    url: str
    storage: Storage = NOTHING_GIVEN

    @property
    def store(self) -> WritableStore:
        """Give the store."""
        return writable_store_for(self.url, self.storage)[0]

    @property
    def paths(self) -> TopicPaths:
        """Give the topic's paths, as the store spells them."""
        return TopicPaths(writable_store_for(self.url, self.storage)[1], TOPIC)

    def open(self) -> Log:
        """Open the root with nothing known of it."""
        return klog.open(self.url, **dict(self.storage.given))

    def log(self) -> TopicLog:
        """Give the topic's log."""
        found = find_root(self.url, self.storage)
        assert found is not None
        return found.log(TOPIC)

    def append(self, value: str) -> None:
        """Append one row."""
        self.open().append(TOPIC, pa.table({"value": [value]}))

    def values(self) -> list[str]:
        """Scan the topic."""
        table = self.open().scan(TOPIC).read_all()
        return [bytes(one).decode() for one in table["value"].to_pylist()]

    def verb(self, *arguments: str) -> int:
        """Run a verb of the command line; gives its exit code."""
        return main([*arguments, "--root", self.url])

    def is_verified(self) -> bool:
        """Verify the root."""
        return verify.run(None, self.url, storage=self.storage).exit_code == 0

    def vacuum(self) -> None:
        """Vacuum the root with a grace of an hour, as far as it goes."""
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


def eight(root: Root) -> Root:
    """Make the topic and append eight times: versions 0 to 8."""
    root.open().create_topic(TOPIC, 1)
    for row in ROWS:
        root.append(row)
    return root


@pytest.fixture
def local(tmp_path: Path) -> Root:
    return eight(Root(str(tmp_path / "root")))


VERBS: Mapping[str, Callable[[Root], object]] = {
    "scan": lambda root: root.values(),
    "describe": lambda root: root.open().describe(TOPIC),
    "history": lambda root: [one.version for one in root.open().history(TOPIC)],
    "topics": lambda root: root.open().topics(),
}


def answers(root: Root) -> dict[str, object]:
    """Give what each verb that reads gives, or its error."""
    found: dict[str, object] = {}
    for name, verb in VERBS.items():
        try:
            found[name] = verb(root)
        except KlogError as exc:
            found[name] = exc
    return found


def named(lost: list[str]) -> str:
    """Give what an error has to name one of: a file, or the folder where any of several will do."""
    folders = {path.rpartition("/")[0] for path in lost if path.endswith(".parquet")}
    return "|".join(
        [re.escape(path.rpartition("/")[2]) for path in lost] + [re.escape(one) for one in folders]
    )


def refusal(root: Root) -> KlogError | None:
    """Append a row; gives the error if it is refused."""
    try:
        root.append("after")
    except KlogError as exc:
        return exc
    return None


def assert_safe(root: Root, lost: list[str], before: dict[str, object]) -> None:
    """Run every verb with files lost, put them back, and compare."""
    kept = root.files()
    for path in lost:
        root.store.delete(path)
    left = root.files()
    names = named(lost)
    for verb, found in answers(root).items():
        if isinstance(found, KlogError):
            assert re.search(names, str(found)), (verb, found)
        else:
            assert found == before[verb], verb
    root.vacuum()
    assert root.files().items() >= left.items()
    error = refusal(root)
    assert error is None or re.search(names, str(error)), error
    appended = [] if error else ["after"]
    for path in lost:
        assert root.store.put_if_absent(path, kept[path]).name == "CREATED", path
    assert root.values() == [*ROWS, *appended]
    assert root.is_verified()


@pytest.mark.parametrize(
    "lost", [*([one] for one in range(8)), [0, 1], [2, 5], list(range(8))], ids=str
)
def test_f33_a_lost_commit_is_named_by_every_verb(local: Root, lost: list[int]) -> None:
    assert_safe(local, [local.paths.commit(one) for one in lost], answers(local))


def test_f33_the_fourth_of_eight_commits(local: Root, capsys: pytest.CaptureFixture[str]) -> None:
    """No three rows of eight, no append on top, nothing deleted."""
    path = Path(local.paths.commit(4))
    whole = path.read_bytes()
    path.unlink()
    before = local.files()
    for verb in (local.values, lambda: local.append("after")):
        with pytest.raises(LostCommitError, match=re.escape(path.name)):
            verb()
    capsys.readouterr()
    assert local.verb("verify") == 1
    said = capsys.readouterr()
    assert path.name in said.out + said.err
    assert local.verb("vacuum", "--execute", "--grace", "1h") == 1
    assert local.files() == before
    path.write_bytes(whole)
    local.append("after")
    assert local.values() == [*ROWS, "after"]


def test_f33_the_last_commit_is_lost(local: Root) -> None:
    """Nothing shows it but a checkpoint: without one the log ends before it."""
    path = Path(local.paths.commit(8))
    whole = path.read_bytes()
    path.unlink()
    assert local.values() == ROWS[:-1]
    path.write_bytes(whole)
    cleaning.write_checkpoint(local.log(), local.log().load())
    assert_safe(local, [str(path)], answers(local))


@pytest.fixture
def rich(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """Have sidecars, a checkpoint in parts with a boundary, and commits behind it."""
    return enriched(Root(str(tmp_path / "root")), monkeypatch)


def enriched(root: Root, monkeypatch: pytest.MonkeyPatch) -> Root:
    monkeypatch.setattr(sidecar, "MOST_JSON_BYTES", 0)
    monkeypatch.setattr(checkpoint_parts, "PART_ROWS", 2)
    root.open().create_topic(TOPIC, 1)
    for number, row in enumerate(ROWS):
        root.append(row)
        if number == 5:
            log = root.log()
            cleaning.write_checkpoint(log, log.load())
            assert cleaning.clean_log(log, -(10**9)) == 5
    return root


KINDS = ("format.json", "topic.json", "log", "sidecars", "checkpoints", "parts", "gc", "orders-0")


def files_of(root: Root, kind: str) -> list[str]:
    """Give the files of a kind, which is their name or their folder's."""
    found = sorted(path for path in root.files() if kind in path.split("/")[-2:])
    return found[:-1] if kind == "log" else found


@pytest.mark.parametrize("kind", KINDS)
def test_f33_a_lost_file_of_each_kind(rich: Root, kind: str) -> None:
    before, files = answers(rich), files_of(rich, kind)
    assert files
    assert_safe(rich, files[:1], before)
    assert_safe_again(rich, files)


def assert_safe_again(root: Root, files: list[str]) -> None:
    """Lose all files of a kind at once: what is appended above is known by now."""
    for path in files:
        if path in root.files():
            root.store.delete(path)
    names = named(files)
    for verb, found in answers(root).items():
        if isinstance(found, KlogError):
            assert re.search(names, str(found)), (verb, found)
    scanned = answers(root)["scan"]
    assert isinstance(scanned, KlogError) or scanned[: len(ROWS)] == ROWS  # type: ignore[index]


def test_f33_a_root_without_its_format_is_an_error_for_every_verb(
    local: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(local.paths.root, "_klog", "format.json").unlink()
    before = local.files()
    assert all(isinstance(one, KlogError) for one in answers(local).values())
    for verb in (("verify",), ("vacuum", "--execute"), ("topics", "list")):
        capsys.readouterr()
        assert local.verb(*verb) != 0
        assert "format.json" in capsys.readouterr().err
    with pytest.raises(KlogError, match=r"format\.json"):
        local.append("after")
    assert local.files() == before


def on_object_store(root: Root) -> None:
    """Lose a commit in the middle of a topic on an object store, with the same answers."""
    eight(root)
    assert_safe(root, [root.paths.commit(4)], answers(root))


def test_f33_on_an_object_store() -> None:
    with fake_s3() as fake:
        on_object_store(Root("s3://bucket/root", fake.storage()))


@pytest.mark.stores
def test_f33_on_an_s3_server(s3_server: S3Server) -> None:
    on_object_store(Root(f"s3a://{BUCKET}/lost/root", storage_of(s3_server.options())))
