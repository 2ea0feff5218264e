"""How the command line reports each kind of lost file: a table, on local disk and on S3.

The rule: a command prints the same as before and returns 0, or returns 1 and names a lost file.
Nothing else happens at either isolation level, and `klog verify` reports the same as text and as
JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from klog.cli import main
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, parse_storage_options
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


def commits(*versions: int) -> Callable[[Root], list[str]]:
    return lambda root: [root.paths.commit(version) for version in versions]


def first_of(kind: str) -> Callable[[Root], list[str]]:
    return lambda root: files_of(root, kind)[:1]


def all_of(kind: str) -> Callable[[Root], list[str]]:
    return lambda root: files_of(root, kind)


def last_of(kind: str) -> Callable[[Root], list[str]]:
    return lambda root: files_of(root, kind)[-1:]


@dataclass(frozen=True, slots=True)
class Loss:
    """Files that are lost, and what the commands report.

    `rows` is the number of rows that can be read, None if a read fails and names a lost file.
    `versions` are those that `history` prints; it fails after them unless `is_history_complete`.
    `findings` are the kinds that `verify` finds, with the range of lost commits; None if the root
    cannot be opened.
    """

    root: str
    files: Callable[[Root], list[str]]
    rows: int | None
    versions: list[int]
    is_history_complete: bool
    findings: list[str] | None


ALL = [8, 7, 6, 5, 4, 3, 2, 1, 0]
KEPT = [8, 7, 6]
"""Versions of the rich root: its last expired version is 5, and versions 5 and 6 have
checkpoints."""
LOSSES = {
    "nothing, plain": Loss("plain", commits(), 8, ALL, True, []),
    "nothing, rich": Loss("rich", commits(), 8, KEPT, True, []),
    "format.json": Loss("rich", first_of("format.json"), None, [], False, None),
    "topic.json": Loss("rich", first_of("topic.json"), None, [], False, ["log"]),
    "the first commit": Loss("plain", commits(0), None, [], False, ["lost 0"]),
    "a commit in the middle": Loss("plain", commits(4), None, [], False, ["lost 4"]),
    "several commits": Loss("plain", commits(2, 3, 6), None, [], False, ["lost 2 to 3", "lost 6"]),
    "the last commit": Loss("plain", commits(8), 7, ALL[1:], True, []),
    "the last commits, with traces": Loss("plain", commits(7, 8), 6, ALL[2:], True, ["above"]),
    "the last commits, above a checkpoint": Loss(
        "rich", commits(7, 8), 6, [6], True, ["above"] * 2
    ),
    "the last commits, with a checkpoint": Loss(
        "rich", commits(6, 7, 8), None, [], False, ["lost 6"]
    ),
    "a commit that a checkpoint covers": Loss("rich", commits(6), 8, [8, 7], False, ["lost 6"]),
    "the last expired version": Loss("rich", first_of("gc"), 8, KEPT, False, ["lost 0 to 5"]),
    "a sidecar": Loss("rich", last_of("sidecars"), None, [], False, ["log"]),
    "a sidecar that a checkpoint covers": Loss("rich", first_of("sidecars"), 8, [8, 7], False, []),
    "the newest checkpoint": Loss("rich", last_of("checkpoints"), 8, KEPT, True, []),
    "the checkpoints": Loss("rich", all_of("checkpoints"), None, [], False, ["log"]),
    "the parts of checkpoints": Loss("rich", all_of("parts"), None, [], False, ["log"]),
}


@dataclass(frozen=True, slots=True)
class Result:
    """A command's exit code and output."""

    code: int
    out: str
    err: str


Klog = Callable[..., Result]


@pytest.fixture
def klog(capsysbinary: pytest.CaptureFixture[bytes]) -> Klog:
    """Return a function that runs a command on a root."""

    def run(root: Root, *arguments: str) -> Result:
        capsysbinary.readouterr()
        code = main([*arguments, "--root", root.url])
        printed = capsysbinary.readouterr()
        return Result(code, printed.out.decode(), printed.err.decode())

    return run


@pytest.fixture(scope="module", params=["local", pytest.param("s3", marks=pytest.mark.stores)])
def roots(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Root]]:
    """Create both roots; on S3 the command line takes its keys from the environment."""
    url, storage = str(tmp_path_factory.mktemp("roots")), NO_STORAGE_OPTIONS
    with pytest.MonkeyPatch.context() as environment:
        if request.param == "s3":
            server: S3Server = request.getfixturevalue("s3_server")
            url, storage = f"s3a://{BUCKET}/lost-cli", parse_storage_options(server.options())
            for name, value in server.environment().items():
                environment.setenv(name, value)
        with pytest.MonkeyPatch.context() as small:
            rich = with_checkpoint_and_sidecars(Root(f"{url}/rich", storage), small)
        yield {"plain": with_eight_appends(Root(f"{url}/plain", storage)), "rich": rich}


@pytest.fixture(params=LOSSES)
def loss(request: pytest.FixtureRequest) -> Loss:
    case: Loss = LOSSES[request.param]
    return case


@contextmanager
def lost(loss: Loss, root: Root) -> Iterator[str]:
    """Lose the files, yield a pattern of their names, and restore them."""
    kept = {path: root.store.read(path) for path in loss.files(root)}
    for path in kept:
        root.store.delete(path)
    try:
        yield name_pattern(list(kept))
    finally:
        for path, data in kept.items():
            assert root.store.put_if_absent(path, data).name == "CREATED", path


def lines(rows: Sequence[str]) -> str:
    return "".join(f"{row}\n" for row in rows)


def test_f33_consume(klog: Klog, roots: dict[str, Root], loss: Loss) -> None:
    root = roots[loss.root]
    with lost(loss, root) as names:
        for level in ("read_committed", "read_uncommitted"):
            for where, first in (("earliest", 0), ("5", 5), ("-1", (loss.rows or 0) - 1)):
                result = klog(
                    root, "consume", "--topic", TOPIC, "--isolation-level", level, "-o", where
                )
                if loss.rows is None:
                    assert (result.code, result.out) == (1, "")
                    assert re.search(names, result.err)
                else:
                    rows = lines(ROWS[first : loss.rows])
                    assert result == Result(0, rows, "")


def test_f33_describe(klog: Klog, roots: dict[str, Root], loss: Loss) -> None:
    root = roots[loss.root]
    with lost(loss, root) as names:
        result = klog(root, "topics", "describe", "--topic", TOPIC)
        if loss.rows is None:
            assert result.code == 1
            assert "LogEndOffset" not in result.out
            assert re.search(names, result.out + result.err)
        else:
            assert (result.code, result.err) == (0, "")
            assert f"LogEndOffset: {loss.rows}\t" in result.out


def test_f33_history(klog: Klog, roots: dict[str, Root], loss: Loss) -> None:
    root = roots[loss.root]
    with lost(loss, root) as names:
        result = klog(root, "history", "--topic", TOPIC, "--json")
        assert [json.loads(line)["version"] for line in result.out.splitlines()] == loss.versions
        assert result.code == (0 if loss.is_history_complete else 1)
        assert result.err == "" if loss.is_history_complete else re.search(names, result.err)


def test_f33_verify(klog: Klog, roots: dict[str, Root], loss: Loss) -> None:
    root = roots[loss.root]
    with lost(loss, root) as names:
        text, as_json = klog(root, "verify"), klog(root, "verify", "--json")
    assert text.code == as_json.code == (0 if loss.findings == [] else 1)
    if loss.findings is None:
        for result in (text, as_json):
            assert result.out == ""
            assert re.search(names, result.err)
        return
    findings = json.loads(as_json.out)["findings"]
    kinds = [finding.partition(" ")[0] for finding in loss.findings]
    assert [finding["kind"] for finding in findings] == kinds
    assert re.findall(r"^Finding: (\w+)", text.out, re.MULTILINE) == kinds
    for expected, finding in zip(loss.findings, findings, strict=True):
        kind, _, versions = expected.partition(" ")
        pattern = {
            "lost": f"^commits? {versions} (is|are) lost",
            "log": names,
            "above": "version 7 was",
        }
        assert re.search(pattern[kind], finding["what"])
        assert finding["nextStep"]
