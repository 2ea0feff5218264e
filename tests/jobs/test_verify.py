"""`verify` finds nothing in a sound root, and each damage as just what it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import klog
from klog.connector.commit_log import commit_builders
from klog.errors import OptionError
from klog.jobs import verify
from klog.jobs.verifying import damaged_log_walk, findings
from klog.jobs.verifying.check_segment import verify_segment
from tests.jobs.verified_roots import (
    commit,
    kinds,
    live,
    many_shapes,
    state_of,
    verified,
    write_root,
)

Damage = Callable[[Path], None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_root(tmp_path / "root")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "root"
    many_shapes(path)
    return path


@pytest.mark.parametrize("fast", [False, True])
def test_nothing_is_wrong_with_what_klog_writes(sound: Path, fast: bool) -> None:
    report = verified(sound, fast=fast)
    assert report.findings == ()
    topics = set(klog.open(str(sound)).topics())
    assert set(report.versions) == topics
    segments = [entry for topic in topics for entry in live(sound, topic)]
    assert report.partitions == sum(state_of(sound, topic).partitions for topic in topics)
    assert report.segments == len(segments) > 50
    assert report.batches == sum(entry["batch_count"] for entry in segments)
    assert report.records == sum(entry["record_count"] for entry in segments)
    assert report.size_bytes == sum(entry["size_bytes"] for entry in segments)


@pytest.mark.parametrize("chunk_bytes", [100, 700])
def test_small_reads_find_nothing_either(
    sound: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    """Batches, index entries and sequences go on from one read to the next."""
    monkeypatch.setattr(damaged_log_walk.walk_damaged_log, "__defaults__", (chunk_bytes,))
    assert verified(sound).findings == ()
    assert verified(sound, fast=True).findings == ()


def test_topics_are_chosen_by_name(sound: Path) -> None:
    report = verify.run(None, str(sound), ["named", "small", "named"])
    assert list(report.versions) == ["named", "small"]
    assert list(verify.run(None, str(sound), "later").versions) == ["later"]


@pytest.mark.parametrize(
    ("topic", "words"),
    [("nope", "no topic nope"), ("gone", "was deleted"), ("a/b", "not a topic name")],
)
def test_a_topic_that_is_named_and_not_there_is_refused(
    sound: Path, topic: str, words: str
) -> None:
    with pytest.raises(OptionError, match=words):
        verify.run(None, str(sound), topic)


def test_a_root_without_commit_logs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    with pytest.raises(OptionError, match="`klog dump --files"):
        verify.run(None, str(tmp_path))


def segment(path: Path, number: int = 0, suffix: str = ".log") -> Path:
    """Return a file of one of the topic's segments, in order of offset."""
    return (path / str(live(path)[number]["file"])).with_suffix(suffix)


def cut(suffix: str, size: int) -> Damage:
    def damage(path: Path) -> None:
        file = segment(path, 0, suffix)
        file.write_bytes(file.read_bytes()[:size])

    return damage


def grown(suffix: str) -> Damage:
    def damage(path: Path) -> None:
        file = segment(path, 0, suffix)
        file.write_bytes(file.read_bytes() + bytes(24))

    return damage


def missing(suffix: str, number: int = 0) -> Damage:
    return lambda path: segment(path, number, suffix).unlink()


def swapped(suffix: str) -> Damage:
    def damage(path: Path) -> None:
        file, other = segment(path, 0, suffix), segment(path, 1, suffix)
        data = file.read_bytes()
        file.write_bytes(other.read_bytes())
        other.write_bytes(data)

    return damage


def zeroed(begin: int, end: int) -> Damage:
    def damage(path: Path) -> None:
        file = segment(path)
        data = bytearray(file.read_bytes())
        data[begin:end] = bytes(len(data[begin:end]))
        file.write_bytes(data)

    return damage


def no_file(path: Path) -> None:
    file = segment(path)
    file.unlink()
    file.mkdir()


DAMAGES: list[tuple[str, Damage, dict[str, int]]] = [
    ("truncated in a batch", cut(".log", 1000), {"size": 1}),
    ("truncated to nothing", cut(".log", 0), {"size": 1}),
    ("longer", grown(".log"), {"size": 1}),
    ("missing", missing(".log"), {"missing": 1}),
    ("the last is missing", missing(".log", -1), {"missing": 1}),
    ("index missing", missing(".index"), {"missing": 1}),
    ("time index missing", missing(".timeindex"), {"missing": 1}),
    ("index truncated", cut(".index", 8), {"index": 1}),
    ("index torn", cut(".index", 5), {"index": 1}),
    ("index longer", grown(".index"), {"index": 1}),
    ("time index empty", cut(".timeindex", 0), {"timeindex": 1}),
    ("indexes swapped", swapped(".index"), {"index": 2}),
    ("time indexes swapped", swapped(".timeindex"), {"timeindex": 2}),
    ("a batch zeroed", zeroed(0, 61), {"frame": 1}),
    ("zeros across batches", zeroed(100, 900), {"crc": 1}),
    ("all zeros", zeroed(0, 1900), {"frame": 1}),
    ("no file", no_file, {"unreadable": 1}),
]


@pytest.mark.parametrize(
    ("damage", "expect"), [row[1:] for row in DAMAGES], ids=[row[0] for row in DAMAGES]
)
def test_a_damage_is_found_as_what_it_is(
    root: Path, damage: Damage, expect: dict[str, int]
) -> None:
    damage(root)
    assert kinds(root) == expect


@pytest.mark.parametrize("fast", [False, True])
def test_swapped_segments_are_two_findings(root: Path, fast: bool) -> None:
    swapped(".log")(root)
    report = verified(root, fast=fast)
    assert {finding.file for finding in report.findings} >= {
        entry["file"] for entry in live(root)[:2]
    }
    assert {"size", "offset"} <= {finding.kind for finding in report.findings}


def test_none_hides_another(root: Path) -> None:
    missing(".log")(root)
    for number in (1, 2):
        file = segment(root, number)
        data = bytearray(file.read_bytes())
        data[70] ^= 1
        data[-1] ^= 1
        file.write_bytes(data)
    segment(root, 1, ".index").unlink()
    report = verified(root)
    assert kinds(root) == {"missing": 2, "crc": 4}
    assert [finding.next_step for finding in report.findings] == [
        findings.NEXT_STEPS[finding.kind] for finding in report.findings
    ]
    crc = [finding for finding in report.findings if finding.kind == "crc"]
    assert crc[0].position == 0
    assert str(crc[0].file) == live(root)[1]["file"]
    assert report.records < sum(entry["record_count"] for entry in live(root))


def test_a_finding_says_the_offset_of_the_log(root: Path) -> None:
    file = segment(root, 1)
    data = bytearray(file.read_bytes())
    data[7] ^= 1
    file.write_bytes(data)
    (report,) = verified(root, fast=True).findings
    assert (report.kind, report.position, report.offset) == (
        "offset", 0, live(root)[1]["base_offset"],
    )  # fmt: skip


def test_a_damaged_commit_log_is_a_finding_of_its_topic(root: Path) -> None:
    klog.open(str(root)).create_topic("other")
    (root / "_klog" / "topics" / "t" / "log" / f"{1:020d}.json").write_bytes(b"{}")
    report = verified(root)
    assert [(finding.topic, finding.partition, finding.kind) for finding in report.findings] == [
        ("t", None, "log")
    ]
    assert list(report.versions) == ["other"]
    assert list(verify.run(None, str(root), "t").versions) == []


def test_what_the_log_has_no_more_is_not_missing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention takes the first segment out, and vacuum its files, when the state is loaded."""
    first, second, *_ = live(root)
    whole = verify_segment

    def meanwhile(*args: Any, **named: Any) -> Any:
        if not gone:
            starts = {0: second["base_offset"]}
            build = commit_builders.delete_records(state_of(root).topic_id, starts)
            commit(root, build, "delete-records")
            for suffix in (".log", ".index", ".timeindex"):
                (root / first["file"]).with_suffix(suffix).unlink()
            gone.append(first["file"])
        return whole(*args, **named)

    gone: list[str] = []
    monkeypatch.setattr("klog.jobs.verifying.verify_topic.verify_segment", meanwhile)
    report = verified(root)
    assert gone
    assert (report.findings, report.moved_on) == ((), 3)


def test_of_a_kind_a_thousand_are_told_and_the_rest_is_counted() -> None:
    collected = findings.Findings("t", 0, "t-0/0.log")
    for position in range(1500):
        collected.add("crc", "bad", position)
        collected.add("crc", "bad", position)
    collected.add("size", "short")
    *reported, last = collected.collected()
    assert len(reported) == 1001
    assert reported[-1].kind == "size"
    assert (last.kind, last.reason) == ("crc", "and 500 more")
