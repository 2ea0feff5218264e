"""An adoption that is run again: after a kill, in a klog root, next to a failed write."""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

import klog
from klog.cli import main
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.open_root import open_root
from klog.connector.options.read_options import parse_read_options
from klog.connector.root_files import ADOPTING_FILE
from klog.connector.source.subscription import subscribed_partitions
from klog.errors import KlogError, OptionError
from klog.jobs import adopt, merge
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.broker_files.metadata_files import encode_partition_metadata
from klog.logformat.producers.control_records import ABORT, COMMIT
from klog.logformat.topic_partition import TopicPartition
from tests.jobs.adopted_rows import COMMITTED, WHOLE, offsets, reasons
from tests.jobs.broker_dirs import (
    Killed,
    files_of,
    killed_at,
    names_of,
    read_all,
    write_broker_dir,
)
from tests.jobs.verified_roots import root_of, state_of
from tests.support.batch_bytes import marker, transactional
from tests.support.sampled_cases import sampled


def test_topics_can_be_adopted_later(tmp_path: Path) -> None:
    root = write_broker_dir(tmp_path, {"t-0": {0: WHOLE}, "u-0": {0: WHOLE}})
    adopt.run(None, str(root), "t")
    klog.open(str(root)).create_topic("new", 1)
    klog.open(str(root)).append("new", pa.table({"value": [b"x"]}))
    report = adopt.run(None, str(root))
    assert {partition.topic: partition.left for partition in report.partitions} == {
        "new": "it has no file of a broker", "t": "it was adopted before", "u": "",
    }  # fmt: skip
    assert offsets(root, COMMITTED, "u") == [0]
    klog.open(str(root)).append("u", pa.table({"value": [b"x"]}))
    assert offsets(root, COMMITTED, "u") == [0, 2]
    TopicAdmin(root_of(root)).delete("u")
    (left,) = (
        partition.left
        for partition in adopt.run(None, str(root)).partitions
        if partition.topic == "u"
    )
    assert left == "it was deleted"
    with pytest.raises(OptionError, match="was adopted and then deleted"):
        adopt.run(None, str(root), "u")


LEFT_BY_A_FAILED_WRITE: dict[str, list[str]] = {
    "new-0": [],
    "new-1": ["00000000000000000000-0000000000-3f9ac2d1.log"],
    "gap-3": ["00000000000000000000-0000000000-3f9ac2d1.log"],
    "torn-0": [".00000000000000000000-0000000000-3f9ac2d1.log.0123456789abcdef.tmp"],
    "with-dash-0": ["00000000000000000000-0000000000-3f9ac2d1.index"],
}


def write_that_failed(root: Path) -> None:
    """Leave the directories of topics that no commit made."""
    for directory, files in LEFT_BY_A_FAILED_WRITE.items():
        (root / directory).mkdir()
        for name in files:
            (root / directory / name).write_bytes(WHOLE)


def test_a_klog_root_is_one_already(tmp_path: Path) -> None:
    """Nothing is done and that is said, by a dry run as by a run, however often."""
    log = klog.open(tmp_path)
    log.create_topic("t", 2)
    log.append("t", pa.table({"value": [b"x"]}))
    write_that_failed(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for dry_run in (True, False, True, False):
        report = adopt.run(None, str(tmp_path), dry_run=dry_run)
        assert {left for _, _, left in reasons(report)} == {"it has no file of a broker"}
        assert {topic for topic, _, _ in reasons(report)} == {"t"}
        assert report.exit_code == 0
        assert "it is a klog root already" in report.note
        assert log.topics() == ["t"]
        named = adopt.run(None, str(tmp_path), "t", dry_run=dry_run)
        assert reasons(named) == reasons(report)
        for topic in ("new", "gap", "torn", "with-dash", "nope"):
            with pytest.raises(OptionError, match=f"has no topic {topic} of a broker"):
                adopt.run(None, str(tmp_path), topic, dry_run=dry_run)
    assert sorted(tmp_path.rglob("*")) == before


def test_directory_of_a_failed_write_is_not_a_topic(tmp_path: Path) -> None:
    root = write_broker_dir(tmp_path, {"t-0": {0: WHOLE}, "u-0": {0: WHOLE}})
    adopt.run(None, str(root), "t")
    write_that_failed(root)
    (root / "u-1").mkdir()  # Of a write to u, which is not adopted yet.
    klog.open(root).add_partitions("t", 2)
    klog.open(root).append("t", pa.table({"value": [b"x"], "partition": pa.array([1])}))
    dry = adopt.run(None, str(root), dry_run=True)
    assert reasons(dry) == [("t", 0, "it was adopted before"), ("u", 0, "")]
    report = adopt.run(None, str(root))
    assert reasons(report) == reasons(dry)
    assert "a broker does not start" in report.note
    assert klog.open(root).topics() == ["t", "u"]
    again = [adopt.run(None, str(root), dry_run=dry_run) for dry_run in (True, False)]
    assert reasons(again[0]) == reasons(again[1])
    assert all("it is a klog root already" in report.note for report in again)


@pytest.mark.parametrize(
    "command",
    [
        ["topics", "list"], ["topics", "describe"], ["verify"], ["retain"], ["merge"], ["compact"],
        ["vacuum", "--execute"], ["export-log", "--to", "OUT"], ["adopt"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_verb_takes_what_a_failed_write_left_for_a_topic(
    tmp_path: Path, command: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    root = tmp_path / "root"
    klog.open(root).create_topic("t")
    klog.open(root).append("t", pa.table({"value": [b"x"]}))
    write_that_failed(root)
    out = str(tmp_path / "out")
    assert main([*(out if word == "OUT" else word for word in command), "--root", str(root)]) == 0
    output = b"".join(capfdbinary.readouterr()).decode()
    assert not any(topic in output for topic in ("new", "gap", "torn-", "with-dash"))
    assert klog.open(root).topics() == ["t"]
    pattern = parse_read_options({"subscribePattern": ".*"})
    look = open_root([str(root)]).snapshot()
    assert subscribed_partitions(pattern.consumer_strategy, look) == [TopicPartition("t", 0)]


def test_a_dry_run_says_what_a_killed_adoption_has_done(tmp_path: Path) -> None:
    root = write_broker_dir(tmp_path, {"t-0": {0: WHOLE}, "u-0": {0: WHOLE}})
    adopt.run(None, str(root), "t")
    (root / "_klog" / "format.json").rename(root / "_klog" / "adopting.json")
    dry = adopt.run(None, str(root), dry_run=True)
    assert reasons(dry) == [("t", 0, "it was adopted before"), ("u", 0, "")]
    assert not (root / "_klog" / "format.json").exists()
    assert reasons(adopt.run(None, str(root))) == reasons(dry)
    assert klog.open(root).topics() == ["t", "u"]


def test_a_topic_that_went_on_is_left(tmp_path: Path) -> None:
    root = write_broker_dir(
        tmp_path, {"t-0": {0: WHOLE, 10: transactional(10, 1) + marker(11, 1, COMMIT)}}
    )
    adopt.run(None, str(root))
    merge.run(None, str(root))
    assert [partition.left for partition in adopt.run(None, str(root)).partitions] == [
        "it was adopted before"
    ]
    (root / "t-0" / "partition.metadata").write_bytes(
        encode_partition_metadata("BAAAAAAAAAAAAAAAAAAAAQ")
    )
    with pytest.raises(KlogError, match="its name is taken"):
        adopt.run(None, str(root))


def test_until_it_is_done_it_is_a_brokers(tmp_path: Path) -> None:
    root = write_broker_dir(tmp_path, {"t-0": {0: WHOLE}})
    raw = open_root([str(root)])
    adopt.run(None, str(root))
    assert not (root / ADOPTING_FILE).exists()
    with pytest.raises(KlogError, match="has been adopted"):
        raw.snapshot()
    (root / "_klog" / "format.json").unlink()
    with pytest.raises(KlogError, match=r"format\.json: this file is lost"):
        open_root([str(root)]).snapshot()
    (root / ADOPTING_FILE).write_bytes(b"{}")
    assert offsets(root, COMMITTED) == [0]
    file = root / "t-0" / segment_file_name(0, "log")
    file.write_bytes(WHOLE + transactional(2, 1) + marker(3, 1, COMMIT))
    with pytest.raises(KlogError, match="something changed the directory since"):
        adopt.run(None, str(root))


@pytest.mark.slow
# After a call is nearly the same as before the next one.
@pytest.mark.parametrize(
    "after", sampled([False, True], 2, pytest.mark.full), ids=["before", "after"]
)
def test_killed_at_each_call_it_is_raw_or_whole(tmp_path: Path, after: bool) -> None:
    logs = {
        0: transactional(0, 1) + marker(1, 1, ABORT),
        10: transactional(10, 2) + marker(11, 2, 1),
    }
    base = write_broker_dir(tmp_path / "base", {"t-0": logs, "t-1": {}, "u-0": {0: WHOLE}})
    names = names_of(base)
    before, files = read_all(names, base), files_of(base)
    for at in count():
        root = tmp_path / str(at)
        shutil.copytree(base, root)
        with killed_at(at, after=after) as calls:
            try:
                adopt.run(None, str(root))
                is_killed = False
            except Killed:
                is_killed = True
        assert read_all(names, root) == before, calls[-1]
        adopt.run(None, str(root))
        assert read_all(names, root) == before, calls[-1]
        assert files_of(root) == files
        assert (root / "_klog" / "format.json").exists()
        assert not (root / ADOPTING_FILE).exists()
        assert state_of(root).version == 0
        shutil.rmtree(root)
        if not is_killed:
            assert at > 30
            break
