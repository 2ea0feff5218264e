"""Files of a root that were lost at rest, and what every verb says of them.

The rule: each verb begins from nothing, as a process of its own does. It gives what it gave before,
where it does not need the file, or one error that names it; never less. What a writer was told has
landed is there when the file is back.
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
from tests.faults.lost_root import ROWS, TOPIC, Root, eight, enriched, files_of, named
from tests.support.store_servers import BUCKET, S3Server


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
    checkpoint_writer.write_checkpoint(local.log(), local.log().load())
    assert_safe(local, [str(path)], answers(local))


@pytest.fixture
def rich(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """Have sidecars, a checkpoint in parts with a boundary, and commits behind it."""
    return enriched(Root(str(tmp_path / "root")), monkeypatch)


KINDS = ("format.json", "topic.json", "log", "sidecars", "checkpoints", "parts", "gc", "orders-0")


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
    on_object_store(Root(f"s3a://{BUCKET}/lost/root", parse_storage_options(s3_server.options())))
