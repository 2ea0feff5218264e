"""`klog produce`: typed lines are committed once and soon; a mistake commits nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klog.cli import produce
from klog.connector.embedded import Log, open_log
from tests.support.klog_command import CommandResult, Klog
from tests.support.waiting import TIMEOUT_SECONDS

COMMAND = [sys.executable, "-c", "import sys; from klog.cli import main; sys.exit(main())"]
BOTH = ("--property", "parse.key=true", "--reader-property", "parse.headers=true")
OPTION = ["--compression-codec"]

Produce = Callable[..., CommandResult]


@pytest.fixture
def path(tmp_path: Path) -> str:
    open_log(str(tmp_path / "root"), {}).create_topic("t", partitions=2)
    return str(tmp_path / "root")


@pytest.fixture
def log(path: str) -> Log:
    return open_log(path, {})


@pytest.fixture
def typed(klog: Klog, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Produce:
    """Return a function that runs `klog produce` with a text on stdin, as a pipe that ends."""

    def run(text: bytes, *arguments: str) -> CommandResult:
        reading, writing = os.pipe()
        writer = threading.Thread(target=_pour, args=(writing, text))
        writer.start()
        with os.fdopen(reading) as stdin, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", stdin)
            result = klog("produce", "--root", path, "--topic", "t", *arguments)
        writer.join()
        return result

    return run


def _pour(writing: int, text: bytes) -> None:
    try:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(text)
    except BrokenPipeError:
        pass  # The reader has stopped at a bad line.


def values(log: Log) -> list[bytes | None]:
    result: list[bytes | None] = log.scan("t", columns=["value"]).read_all()["value"].to_pylist()
    return result


def commits(log: Log) -> int:
    return len(log.history("t")) - 1


@pytest.mark.parametrize("codec", [(), ("--compression-codec",), ("--compression-codec", "lz4")])
def test_what_is_produced_is_consumed(
    klog: Klog, typed: Produce, path: str, codec: tuple[str, ...]
) -> None:
    text = b"h:1,g:\\N\tk\tv\n\\N\t\\N\t\\N\nh:\xff\t\xfe\tx\xfdy\n"
    result = typed(text, *BOTH, "--property", "null.marker=\\N", "-p", "1", *codec)
    assert (result.code, result.out, result.err) == (0, b"", "")
    result = klog("consume", "--root", path, "--topic", "t", "--json")
    records = [json.loads(line) for line in result.out.splitlines()]
    assert [
        (record["partition"], record["offset"], record["key"], record["value"])
        for record in records
    ] == [
        (1, 0, "k", "v"),
        (1, 1, None, None),
        (1, 2, {"base64": "/g=="}, {"base64": "eP15"}),
    ]
    assert [record["headers"] for record in records] == [
        [{"key": "h", "value": "1"}, {"key": "g", "value": None}],
        [],
        [{"key": "h", "value": {"base64": "/w=="}}],
    ]


def test_codec(typed: Produce, log: Log) -> None:
    for arguments, codec in (
        ([], "zstd"),
        (["--compression-codec"], "gzip"),
        ([*OPTION, "none"], "none"),
    ):
        typed(b"a\n", *arguments)
        (entry,) = log.history("t", 1)[0].actions.add
        assert entry["codec"] == codec


def test_keys_are_placed_as_kafka_places_them(typed: Produce, log: Log) -> None:
    typed(b"".join(b"%d,%d\n" % (n, n) for n in range(50)),
          "--property", "parse.key=true", "--property", "key.separator=,")  # fmt: skip
    log.append("t", [_rows(50)])
    records = log.scan("t", columns=["key", "partition"]).read_all().to_pylist()
    assert len(records) == 100
    assert len({(record["key"], record["partition"]) for record in records}) == 50


def _rows(count: int) -> Any:
    import pyarrow as pa

    texts = [str(number) for number in range(count)]
    return pa.RecordBatch.from_pydict({"key": texts, "value": texts})


def test_a_property_wins_over_the_reader_config(typed: Produce, log: Log, tmp_path: Path) -> None:
    config = tmp_path / "reader.properties"
    config.write_text("parse.key = true\nkey.separator=\\t\n")
    typed(b"a|b\n", "--reader-config", str(config), "--property", "key.separator=|")
    (record,) = log.scan("t", columns=["key", "value"]).read_all().to_pylist()
    assert record == {"key": b"a", "value": b"b"}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--property", "parse.keys=true"], 1, "did you mean parse.key?"),
        (["--property", "=true"], 2, "is not NAME=VALUE"),
        (["--command-property", "compression.typ=lz4"], 1, "Did you mean compression.type?"),
        (["--command-property", "transactional.id=x"], 1, "Give --transactional-id"),
        (
            ["--command-property", "linger.ms=soon"],
            1,
            "linger.ms: must be a number of milliseconds from 0 to 2147483647, got 'soon'",
        ),
        (["--compression-codec", "lz5"], 1, "--compression-codec: must be one of"),
        (["--batch-size", "x"], 1, "--batch-size: must be a number of bytes"),
        (["--timeout", "1s"], 2, "must be a number of milliseconds from 0 to 2147483647, got '1s'"),
        (["--transactional-id", "x"], 1, "--transaction-version: give both"),
        (["--line-reader", "com.example.Reader"], 1, "--line-reader: must be org.apache.kafka"),
        (["--bootstrap-servers", "x"], 2, "did you mean --bootstrap-server?"),
        (["-p", "2"], 1, "t: line 1: "),
        (["-p", "-1"], 2, "must be the number of a partition, from 0 to 2147483647, got '-1'"),
        (["--reader-config", "/nowhere"], 1, "No such file"),
        (["--reader-config", "/dev/zero"], 1, "/dev/zero: it has more than 1,048,576 bytes"),
        (["--file", "/dev/zero"], 1, "line 1: longer than"),
        (["-l", "/nowhere"], 1, "No such file"),
        (["--property", "headers.separator=a{99999999999}"], 1, "must be a regular expression"),
        (["-p", "99999999999"], 2, "must be the number of a partition"),
    ],
)
def test_what_is_refused(
    typed: Produce, log: Log, arguments: list[str], code: int, says: str
) -> None:
    result = typed(b"a\n", *arguments)
    assert (result.code, result.out) == (code, b"")
    assert says in result.err
    assert commits(log) == 0


def test_a_topic_or_root_that_is_not_there(klog: Klog, path: str, tmp_path: Path) -> None:
    result = klog("produce", "--root", path, "--topic", "x")
    assert (result.code, result.out) == (1, b"")
    assert "there is no topic x" in result.err
    result = klog("produce", "--root", str(tmp_path / "none"), "--topic", "t")
    assert result.code == 1
    assert "create a klog root there: `klog topics create`" in result.err


def test_broker_options_and_configs_are_warned_of(typed: Produce, log: Log) -> None:
    result = typed(
        b"a\n", "--bootstrap-server", "x:1", "--sync", "--request-required-acks", "all",
        "--command-property", "security.protocol=SSL", "--producer-property", "batch.size=1000",
        "--line-reader", "org.apache.kafka.tools.LineMessageReader",
    )  # fmt: skip
    assert (result.code, values(log)) == (0, [b"a"])
    assert result.err == (
        "klog: warning: options without effect, because klog needs no broker: --bootstrap-server, "
        "--request-required-acks, --sync\n"
        "klog: warning: options without effect, because klog needs no broker: security.protocol\n"
    )


def test_a_bad_line_lands_nothing_of_its_commit(typed: Produce, log: Log) -> None:
    result = typed(b"k\tv\nbad\nk\tw\n", "--property", "parse.key=true", "--timeout", "999999")
    assert result.code == 1
    assert result.err.startswith("klog: line 2: no key separator '\\t' in 'bad'")
    assert result.err.endswith("(no line is written)\n")
    assert commits(log) == 0


def test_a_bad_line_leaves_the_commits_before_it(
    typed: Produce, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce, "MAX_COMMIT_BYTES", 1)
    lines = b"".join(b"%07d\t\n" % number for number in range(200_000))
    result = typed(lines + b"bad\n", "--property", "parse.key=true", "--json")
    assert result.code == 1
    reports = [json.loads(line) for line in result.out.splitlines()]
    count = sum(report["records"] for report in reports)
    assert len(reports) == commits(log) > 1
    assert "line 200001: no key separator" in result.err
    assert f"(lines 1 to {count} are written)" in result.err
    assert len(values(log)) == count


def test_a_record_that_is_too_large_is_named_by_its_line(
    typed: Produce, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.alter_config("t", {"max.message.bytes": "1000"})
    monkeypatch.setattr(produce, "MAX_COMMIT_BYTES", 1)
    lines = b"x\n" * 1_000_000  # More than one read of a pipe, so more than one commit.
    result = typed(lines + os.urandom(5000).hex().encode() + b"\n")
    assert result.code == 1
    assert "klog: t: line 1000001: the record" in result.err


def test_a_file_is_one_commit(klog: Klog, log: Log, path: str, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"".join(b"%09d\n" % number for number in range(300_000)))
    result = klog(
        "produce", "--root", path, "--topic", "t", "-l", str(file), "--json", "--timeout", "0",
        "-p", "1",
    )  # fmt: skip
    assert json.loads(result.out) == {
        "topic": "t",
        "version": 1,
        "isNew": True,
        "records": 300_000,
        "offsets": {"1": [0, 300_000]},
    }
    assert values(log) == [b"%09d" % number for number in range(300_000)]


def test_a_named_input_is_written_once(typed: Produce, log: Log) -> None:
    named = ("--transactional-id", "me", "--transaction-version", "3", "--json")
    for is_new in (True, False):
        result = typed(b"a\nb\n", *named, "--timeout", "0")
        assert json.loads(result.out)["isNew"] is is_new
    assert values(log) == [b"a", b"b"]


class Running:
    """The command as a process, with a pipe that stays open."""

    def __init__(self, path: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "produce", "--root", path, "--topic", "t", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def types(self, text: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def end(self, by: int) -> tuple[int, bytes]:
        self.process.send_signal(by)
        _, errors = self.process.communicate(timeout=TIMEOUT_SECONDS)
        return self.process.returncode, errors


def wait_for(log: Log, expected: list[bytes]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while values(log) != expected:
        assert time.monotonic() < deadline, values(log)
        time.sleep(0.05)


@pytest.mark.parametrize(("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_was_typed_is_there_soon_and_at_the_end(
    log: Log, path: str, signal_number: int, code: int
) -> None:
    running = Running(path, "--timeout", "200", "-p", "0")
    running.types(b"one\ntw")
    wait_for(log, [b"one"])
    running.types(b"o\n")
    wait_for(log, [b"one", b"two"])
    assert running.end(signal_number) == (code, b"")


def test_a_signal_commits_what_was_read(log: Log, path: str) -> None:
    running = Running(path, "--timeout", "999999", "-p", "0")
    running.types(b"one\ntwo\nthr")
    _until_read(running)
    assert running.end(signal.SIGINT) == (130, b"")
    assert values(log) == [b"one", b"two"]


def test_a_signal_ends_a_named_input_with_nothing(log: Log, path: str) -> None:
    running = Running(path, "--transactional-id", "me", "--transaction-version", "0")
    running.types(b"one\n")
    _until_read(running)
    code, errors = running.end(signal.SIGTERM)
    assert code == 1
    assert b"nothing was written under 'me'" in errors
    assert commits(log) == 0


def _until_read(running: Running) -> None:
    """Wait until the command has read all input from the pipe."""
    import array
    import fcntl
    import termios

    assert running.process.stdin is not None
    size = array.array("i", [1])
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while size[0]:
        fcntl.ioctl(running.process.stdin.fileno(), termios.FIONREAD, size)
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.2)
