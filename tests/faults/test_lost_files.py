"""Files of a root that were lost at rest, and how each command reports them.

The rule: each command starts without cached state, as a new process does. If it does not need the
file, its result is the same as before; otherwise it fails with an error that names the file. It
never gives fewer records. Acknowledged records are there after the file is restored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from klog.connector.commit_log import checkpoint_writer
from klog.connector.options.storage_options import parse_storage_options
from klog.errors import KlogError, LostCommitError
from tests.connector.store.fake_s3 import fake_s3
from tests.faults.lost_root import (
    ROWS,
    TOPIC,
    Root,
    files_of,
    name_pattern,
    with_checkpoint_and_sidecars,
    with_eight_appends,
)
from tests.support.store_servers import BUCKET, S3Server


@pytest.fixture
def local(tmp_path: Path) -> Root:
    return with_eight_appends(Root(str(tmp_path / "root")))


VERBS: Mapping[str, Callable[[Root], object]] = {
    "scan": lambda root: root.values(),
    "describe": lambda root: root.open().describe(TOPIC),
    "history": lambda root: [commit.version for commit in root.open().history(TOPIC)],
    "topics": lambda root: root.open().topics(),
}


def results_by_verb(root: Root) -> dict[str, object]:
    """Return the result of each command that reads, or its error."""
    results: dict[str, object] = {}
    for name, verb in VERBS.items():
        try:
            results[name] = verb(root)
        except KlogError as exc:
            results[name] = exc
    return results


def refusal(root: Root) -> KlogError | None:
    """Append a row; return the error if klog refuses it."""
    try:
        root.append("after")
    except KlogError as exc:
        return exc
    return None


def assert_safe(root: Root, lost: list[str], before: dict[str, object]) -> None:
    """Run every command without the lost files, restore them, and compare."""
    kept = root.files()
    for path in lost:
        root.store.delete(path)
    remaining = root.files()
    names = name_pattern(lost)
    for verb, result in results_by_verb(root).items():
        if isinstance(result, KlogError):
            assert re.search(names, str(result)), (verb, result)
        else:
            assert result == before[verb], verb
    root.vacuum()
    assert root.files().items() >= remaining.items()
    error = refusal(root)
    assert error is None or re.search(names, str(error)), error
    appended = [] if error else ["after"]
    for path in lost:
        assert root.store.put_if_absent(path, kept[path]).name == "CREATED", path
    assert root.values() == [*ROWS, *appended]
    assert root.is_verified()


@pytest.mark.parametrize(
    "lost", [*([version] for version in range(8)), [0, 1], [2, 5], list(range(8))], ids=str
)
def test_f33_a_lost_commit_is_named_by_every_verb(local: Root, lost: list[int]) -> None:
    assert_safe(local, [local.paths.commit(version) for version in lost], results_by_verb(local))


def test_f33_the_fourth_of_eight_commits(local: Root, capsys: pytest.CaptureFixture[str]) -> None:
    """Reads, appends and vacuum fail; no read gives only the first rows."""
    path = Path(local.paths.commit(4))
    whole = path.read_bytes()
    path.unlink()
    before = local.files()
    for verb in (local.values, lambda: local.append("after")):
        with pytest.raises(LostCommitError, match=re.escape(path.name)):
            verb()
    capsys.readouterr()
    assert local.verb("verify") == 1
    printed = capsys.readouterr()
    assert path.name in printed.out + printed.err
    assert local.verb("vacuum", "--execute", "--grace", "1h") == 1
    assert local.files() == before
    path.write_bytes(whole)
    local.append("after")
    assert local.values() == [*ROWS, "after"]


def test_f33_the_last_commit_is_lost(local: Root) -> None:
    """Only a checkpoint shows the loss: without one, the log ends before it."""
    path = Path(local.paths.commit(8))
    whole = path.read_bytes()
    path.unlink()
    assert local.values() == ROWS[:-1]
    path.write_bytes(whole)
    checkpoint_writer.write_checkpoint(local.log(), local.log().load())
    assert_safe(local, [str(path)], results_by_verb(local))


@pytest.fixture
def rich(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """Create a root with sidecars, a checkpoint in parts, expired commits, and later commits."""
    return with_checkpoint_and_sidecars(Root(str(tmp_path / "root")), monkeypatch)


KINDS = ("format.json", "topic.json", "log", "sidecars", "checkpoints", "parts", "gc", "orders-0")


@pytest.mark.parametrize("kind", KINDS)
def test_f33_a_lost_file_of_each_kind(rich: Root, kind: str) -> None:
    before, files = results_by_verb(rich), files_of(rich, kind)
    assert files
    assert_safe(rich, files[:1], before)
    assert_safe_again(rich, files)


def assert_safe_again(root: Root, files: list[str]) -> None:
    """Lose all files of a kind at once, after the append above."""
    for path in files:
        if path in root.files():
            root.store.delete(path)
    names = name_pattern(files)
    for verb, result in results_by_verb(root).items():
        if isinstance(result, KlogError):
            assert re.search(names, str(result)), (verb, result)
    scanned = results_by_verb(root)["scan"]
    assert isinstance(scanned, KlogError) or scanned[: len(ROWS)] == ROWS  # type: ignore[index]


def test_f33_a_root_without_its_format_is_an_error_for_every_verb(
    local: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(local.paths.root, "_klog", "format.json").unlink()
    before = local.files()
    assert all(isinstance(result, KlogError) for result in results_by_verb(local).values())
    for verb in (("verify",), ("vacuum", "--execute"), ("topics", "list")):
        capsys.readouterr()
        assert local.verb(*verb) != 0
        assert "format.json" in capsys.readouterr().err
    with pytest.raises(KlogError, match=r"format\.json"):
        local.append("after")
    assert local.files() == before


def on_object_store(root: Root) -> None:
    """Lose a commit in the middle of a topic on an object store."""
    with_eight_appends(root)
    assert_safe(root, [root.paths.commit(4)], results_by_verb(root))


def test_f33_on_an_object_store() -> None:
    with fake_s3() as fake:
        on_object_store(Root("s3://bucket/root", fake.storage()))


@pytest.mark.stores
def test_f33_on_an_s3_server(s3_server: S3Server) -> None:
    on_object_store(Root(f"s3a://{BUCKET}/lost/root", parse_storage_options(s3_server.options())))
