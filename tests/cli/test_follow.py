"""`klog consume --follow`, and how signals and closed pipes end commands: real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import klog
from klog.connector.embedded import Log
from tests.corpus import scene
from tests.support.waiting import TIMEOUT_SECONDS

KLOG = str(Path(sys.executable).with_name("klog"))
VALUES = ("-f", r"%t-%p:%o %s\n")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "root")


@pytest.fixture
def log(path: str) -> Log:
    log = klog.open(path)
    log.create_topic("a", partitions=1)
    return log


def append(log: Log, topic: str, *values: str, partition: int = 0) -> None:
    rows = {"value": list(values), "partition": pa.array([partition] * len(values), pa.int32())}
    log.append(topic, pa.table(rows))


@contextmanager
def following(path: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `klog consume --follow`; kill it if it does not end."""
    command = [KLOG, "consume", "--follow", "--root", path, *VALUES, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


def test_it_prints_what_comes_and_new_partitions(log: Log, path: str) -> None:
    append(log, "a", "one", "two", "three")
    with following(path, "-t", "a", "-o", "-2") as process:
        assert lines(process, 2) == ["a-0:1 two", "a-0:2 three"]
        append(log, "a", "four")
        assert lines(process, 1) == ["a-0:3 four"]
        log.add_partitions("a", 2)
        append(log, "a", "five", partition=1)
        assert lines(process, 1) == ["a-1:0 five"]
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=TIMEOUT_SECONDS) == ("", "")
        assert process.returncode == 130


def test_no_record_is_asked_for(log: Log, path: str) -> None:
    with following(path, "-t", "a", "-c", "0") as process:
        assert process.communicate(timeout=TIMEOUT_SECONDS) == ("", "")
        assert process.returncode == 0


def test_several_topics_from_their_ends(log: Log, path: str) -> None:
    log.create_topic("b", partitions=1)
    append(log, "a", "old")
    with following(path, "-t", "a,b", "-o", "end", "-c", "2") as process:
        time.sleep(0.1)
        for _ in range(TIMEOUT_SECONDS):  # It sees only what comes after its first look.
            append(log, "a", "new")
            append(log, "b", "new")
            if process.poll() is not None:
                break
            time.sleep(0.5)
        out, err = process.communicate(timeout=TIMEOUT_SECONDS)
        assert (process.returncode, err) == (0, "")
        assert len(out.splitlines()) == 2
        assert "old" not in out


def test_a_topic_made_again_is_read_from_its_start(log: Log, path: str) -> None:
    append(log, "a", "one", "two")
    with following(path, "-t", "a") as process:
        assert lines(process, 2) == ["a-0:0 one", "a-0:1 two"]
        log.delete_topic("a")
        log.create_topic("a", partitions=1)
        append(log, "a", "again")
        if lines(process, 1) == ["a-0:0 again"]:
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=TIMEOUT_SECONDS)
            assert "created again" in err
        else:  # A poll came between the two changes: it names the topic that is gone.
            _, err = process.communicate(timeout=TIMEOUT_SECONDS)
            assert process.returncode == 1
            assert "topic a" in err


def test_no_record_of_a_topic_that_does_not_exist(log: Log, path: str) -> None:
    with following(path, "-t", "nosuch", "-c", "0") as process:
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode == 1
        assert "there is no topic nosuch" in err


def test_a_restored_topic_is_read_from_where_it_has_changed(log: Log, path: str) -> None:
    append(log, "a", "one")
    shorter = log.history("a")[0].version
    append(log, "a", "two", "three")
    longer = log.history("a")[0].version
    log.restore("a", version=shorter)
    append(log, "a", "four")
    with following(path, "-t", "a") as process:
        assert lines(process, 2) == ["a-0:0 one", "a-0:3 four"]
        log.restore("a", version=longer)
        assert lines(process, 2) == ["a-0:1 two", "a-0:2 three"]
        append(log, "a", "five")
        assert lines(process, 1) == ["a-0:4 five"]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        assert (
            "restored an earlier version, which has other records or none from offset 1 on" in err
        )


def test_it_ends_while_it_waits_and_its_reader_is_gone(log: Log, path: str) -> None:
    append(log, "a", "one")
    with following(path, "-t", "a") as process:
        assert lines(process, 1) == ["a-0:0 one"]
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=TIMEOUT_SECONDS) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_brokers_directory(tmp_path: Path) -> None:
    import shutil

    source = scene("records").partition_dir("segments", 0)
    shutil.copytree(source, tmp_path / "segments-0")
    files = sorted((tmp_path / "segments-0").glob("*.log"))
    last = files[-1].read_bytes()
    files[-1].write_bytes(b"")
    with following(str(tmp_path), "-t", "segments", "-o", "-1") as process:
        first = lines(process, 1)[0]
        files[-1].write_bytes(last)
        assert lines(process, 1)[0] > first


def test_an_end_excludes_follow(path: str) -> None:
    for other in (["-e"], ["-o", "e@5"]):
        result = subprocess.run(
            [KLOG, "consume", "-t", "a", "--root", path, "--follow", *other],
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert (result.returncode, result.stdout) == (2, b"")
