"""The verifiable producer and consumer: what they tell is so, over kills and lost answers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from klog.connector import system_clock
from klog.connector.commit_log import klog_root
from klog.connector.embedded import Log, open_log
from klog.connector.embedded_append import AppendResult
from klog.errors import CommitConflictError, CommitStateUnknownError, ProducerFencedError
from klog.logformat.partitioner import key_partitions
from klog.tools import verifiable_producer
from klog.tools.stdin_reader import Ending
from tests.connector.commit_log.memory_logs import Clock
from tests.support.klog_command import CommandResult, Klog
from tests.support.waiting import TIMEOUT_SECONDS

COMMAND = [sys.executable, "-c", "import sys; from klog.cli import main; sys.exit(main())"]
MAX_SLEEPS = 40


@pytest.fixture
def path(tmp_path: Path) -> str:
    open_log(str(tmp_path / "root"), {}).create_topic("t", partitions=3)
    return str(tmp_path / "root")


def events(result: CommandResult | bytes) -> list[dict[str, Any]]:
    printed = result if isinstance(result, bytes) else result.out
    return [json.loads(line) for line in printed.splitlines()]


def produced(klog: Klog, path: str, *arguments: str) -> CommandResult:
    return klog("verifiable-producer", "--root", path, "--topic", "t", *arguments)


def acknowledged(result: CommandResult | bytes) -> list[tuple[int, int, str]]:
    return [
        (event["partition"], event["offset"], event["value"])
        for event in events(result)
        if event["name"] == "producer_send_success"
    ]


def log_rows(path: str) -> list[tuple[int, int, str]]:
    rows = open_log(path, {}).scan("t", columns=["partition", "offset", "value"]).read_all()
    return [(row["partition"], row["offset"], row["value"].decode()) for row in rows.to_pylist()]


def test_events_are_those_of_kafkas_tool(klog: Klog, path: str) -> None:
    result = produced(klog, path, "--max-messages", "2", "--throughput", "1000")
    printed = events(result)
    assert all(list(event)[:2] == ["timestamp", "name"] for event in printed)
    assert [event["name"] for event in printed] == [
        "startup_complete",
        "producer_send_success",
        "producer_send_success",
        "shutdown_complete",
        "tool_data",
    ]
    assert {name: printed[1][name] for name in list(printed[1])[2:]} == {
        "key": None,
        "value": "0",
        "topic": "t",
        "partition": 0,
        "offset": 0,
    }
    assert {name: printed[4][name] for name in ("sent", "acked", "target_throughput")} == {
        "sent": 2,
        "acked": 2,
        "target_throughput": 1000,
    }
    assert (result.code, result.err) == (0, "")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let sleeps advance a fake clock; return the seconds of each sleep."""
    clock, seconds = Clock(), list[float]()

    def sleep(ending: Ending, duration: float) -> None:
        seconds.append(duration)
        clock.now_ms += round(1000 * duration)
        if len(seconds) == MAX_SLEEPS:
            ending.signal = signal.SIGTERM

    monkeypatch.setattr(system_clock, "now_ms", clock)
    monkeypatch.setattr(klog_root, "now_ms", clock)
    monkeypatch.setattr(Ending, "sleep", sleep)
    return seconds


@pytest.mark.parametrize(
    ("throughput", "messages", "interval_ms", "in_a_commit"),
    [("5", 12, 200, 1), ("1", 3, 1000, 1), ("0.5", 3, 2000, 1), ("15", 6, 67, 1),
     ("100", 50, 100, 10), ("1000", 300, 100, 100), ("5000", 300, 20, 100)],
)  # fmt: skip
def test_acknowledgements_come_at_the_throughput(
    klog: Klog, path: str, slept: list[float],
    throughput: str, messages: int, interval_ms: int, in_a_commit: int,
) -> None:  # fmt: skip
    limit = str(messages)
    printed = events(produced(klog, path, "--throughput", throughput, "--max-messages", limit))
    times = [event["timestamp"] for event in printed if event["name"] == "producer_send_success"]
    assert len(times) == messages
    for number, time_ms in enumerate(times):
        due_ms = number // in_a_commit * interval_ms
        assert abs(time_ms - times[0] - due_ms) <= number + 1
    assert len(slept) == messages // in_a_commit - 1, "none before the first, none after the last"
    assert printed[-1]["target_throughput"] == json.loads(throughput)


@pytest.mark.parametrize("throughput", ["-1", "-7"])
def test_no_throughput_no_sleep(klog: Klog, path: str, slept: list[float], throughput: str) -> None:
    result = produced(klog, path, "--throughput", throughput, "--max-messages", "250")
    assert len(acknowledged(result)) == 250
    assert slept == []
    versions = [commit.version for commit in open_log(path, {}).history("t")]
    assert len(versions) == 4, "three commits of at most 100, and the topic's own"


def test_a_throughput_of_0_sends_once_and_waits_for_a_signal(
    klog: Klog, path: str, slept: list[float]
) -> None:
    result = produced(klog, path, "--throughput", "0", "--max-messages", "250")
    assert len(acknowledged(result)) == 1
    assert len(slept) == MAX_SLEEPS
    assert events(result)[-1]["name"] == "tool_data"


def test_batch_messages_win_over_the_throughput(klog: Klog, path: str, slept: list[float]) -> None:
    words = ("--throughput", "5", "--batch-messages", "10", "--max-messages", "20")
    assert len(acknowledged(produced(klog, path, *words))) == 20
    assert slept == [2.0]


@pytest.mark.parametrize("throughput", ["x", "", "nan", "inf", "5/s"])
def test_invalid_throughput(klog: Klog, path: str, throughput: str) -> None:
    result = produced(klog, path, "--throughput", throughput)
    assert result.code == 2
    assert "not a number of messages a second" in result.err


def test_acknowledged_records_are_in_the_log(klog: Klog, path: str) -> None:
    words = ("--value-prefix", "5", "--repeating-keys", "4", "--batch-messages", "7")
    result = produced(klog, path, "--max-messages", "30", *words, "--message-create-time", "1000")
    assert sorted(acknowledged(result)) == log_rows(path)
    assert [value for _, _, value in acknowledged(result)] == [
        f"5.{number}" for number in range(30)
    ]
    keys = [event["key"] for event in events(result)[1:31]]
    assert keys == [str(number % 4) for number in range(30)]
    placed = key_partitions(pa.array(keys), 3).to_pylist()
    assert [partition for partition, _, _ in acknowledged(result)] == placed
    times = open_log(path, {}).scan("t", columns=["timestamp"]).read_all()["timestamp"]
    assert 1000 <= min(times.cast(pa.int64()).to_pylist()) // 1000 < 1000 + 1000 * TIMEOUT_SECONDS


def test_the_next_run_continues_at_the_log_end(klog: Klog, path: str) -> None:
    log = open_log(path, {})
    results = [
        produced(klog, path, "--max-messages", str(max_messages))
        for max_messages in (250, 250, 420)
    ]
    assert [len(acknowledged(result)) for result in results] == [250, 0, 170]
    values = [value for result in results for _, _, value in acknowledged(result)]
    assert values == [str(number) for number in range(420)]
    assert sorted(acknowledged(results[0]) + acknowledged(results[2])) == log_rows(path)
    # Batches end at the same numbers whatever the first run wrote, as in a second process.
    sizes = [
        sum(entry["record_count"] for entry in commit.actions.add)
        for commit in reversed(log.history("t", 6))
    ]
    assert sizes == [100, 100, 50, 50, 100, 20]


def test_transactional_ids_have_separate_numbers(klog: Klog, path: str) -> None:
    for words in (["--value-prefix", "1"], ["--value-prefix", "2"], ["--transactional-id", "x"]):
        assert len(acknowledged(produced(klog, path, "--max-messages", "3", *words))) == 3
    assert len(log_rows(path)) == 9


class Failing:
    """An append that raises each of the errors in turn, after it commits if `lands`."""

    def __init__(self, errors: list[Exception], lands: bool) -> None:
        self.errors, self.lands, self.calls = errors, lands, 0
        self._append = Log.append

    def __call__(self, log: Log, *arguments: Any, **named: Any) -> AppendResult:
        self.calls += 1
        if not self.errors:
            return self._append(log, *arguments, **named)
        if self.lands:
            self._append(log, *arguments, **named)
        raise self.errors.pop(0)


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Any:
    def fail(*errors: Exception, lands: bool = False) -> Failing:
        failing = Failing(list(errors), lands)
        monkeypatch.setattr(Log, "append", lambda *arguments, **named: failing(*arguments, **named))
        monkeypatch.setattr(verifiable_producer, "_MAX_WAIT_SECONDS", 0.01)
        return failing

    return fail


@pytest.mark.parametrize("lands", [True, False])
@pytest.mark.parametrize(
    "error", [CommitStateUnknownError("?"), CommitConflictError("?"), OSError("?")]
)
def test_a_batch_with_a_lost_response_is_written_once(
    klog: Klog, path: str, fails: Any, error: Exception, lands: bool
) -> None:
    failing = fails(error, error, lands=lands)
    result = produced(klog, path, "--max-messages", "10", "--batch-messages", "5")
    assert (result.code, failing.calls) == (0, 4)
    assert sorted(acknowledged(result)) == log_rows(path)
    assert len(log_rows(path)) == 10


def test_offsets_are_looked_up_past_later_commits(
    klog: Klog, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Log.append

    def append(log: Log, *arguments: Any, **named: Any) -> AppendResult:
        if named["transaction_version"] == 4 and len(log.history("t")) == 1:
            real(log, *arguments, **named)
            real(log, "t", pa.table({"value": ["another's"], "partition": [0]}))
            raise CommitStateUnknownError("?")
        return real(log, *arguments, **named)

    monkeypatch.setattr(Log, "append", append)
    result = produced(klog, path, "--max-messages", "10", "--batch-messages", "5")
    mine = [row for row in log_rows(path) if row[2] != "another's"]
    assert sorted(acknowledged(result)) == mine
    assert len(mine) == 10


@pytest.mark.parametrize(
    ("errors", "calls"),
    [
        ([ProducerFencedError("another has taken over")], 1),
        ([CommitStateUnknownError("no answer")] * 20, verifiable_producer.MAX_TRIES),
    ],
)
def test_a_failed_batch_ends_the_run(
    klog: Klog, path: str, fails: Any, errors: list[Exception], calls: int
) -> None:
    failing = fails(*errors)
    result = produced(klog, path, "--max-messages", "3")
    assert (result.code, failing.calls) == (1, calls)
    printed = events(result)
    assert [event["name"] for event in printed[1:4]] == ["producer_send_error"] * 3
    assert [event["value"] for event in printed[1:4]] == ["0", "1", "2"]
    assert printed[1]["exception"] == type(errors[0]).__name__
    assert printed[1]["message"] == str(errors[0])
    assert [event["name"] for event in printed[4:]] == ["shutdown_complete", "tool_data"]
    assert (printed[5]["sent"], printed[5]["acked"]) == (3, 0)


def test_killed_and_restarted(path: str) -> None:
    words = ["verifiable-producer", "--root", path, "--topic", "t", "--batch-messages", "10"]
    printed = b""
    for end in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(35):
            printed += process.stdout.readline()
        process.send_signal(end)
        rest, _ = process.communicate(timeout=TIMEOUT_SECONDS)
        printed += rest[: rest.rfind(b"\n") + 1]
        assert process.returncode == (0 if end == signal.SIGTERM else -end)
    rows = log_rows(path)
    assert set(acknowledged(printed)) <= set(rows)
    assert sorted(int(value) for _, _, value in rows) == list(range(len(rows)))
    for partition in range(3):
        own = [int(value) for at, _, value in rows if at == partition]
        assert own == sorted(own)


def test_the_consumer_prints_what_is_in_the_log(klog: Klog, path: str) -> None:
    produced(klog, path, "--max-messages", "300", "--value-prefix", "1", "--repeating-keys", "9")
    result = consumed(klog, path, "--max-messages", "300", "--verbose", "--group-id", "g")
    printed = events(result)
    assert (printed[0]["name"], printed[-1]["name"]) == ("startup_complete", "shutdown_complete")
    records = [event for event in printed if event["name"] == "record_data"]
    assert [
        (record["partition"], record["offset"], record["value"]) for record in records
    ] == log_rows(path)
    assert {record["key"] for record in records} == {str(number) for number in range(9)}
    assert spans(printed) == ends(path)
    assert result.err == (
        "klog: warning: options without effect, because klog needs no broker: --group-id\n"
    )


def consumed(klog: Klog, path: str, *arguments: str) -> CommandResult:
    return klog("verifiable-consumer", "--root", path, "--topic", "t", *arguments)


def spans(printed: list[dict[str, Any]]) -> Mapping[int, int]:
    """Assert that the consumed offsets have no gaps from 0; return the end of each partition."""
    next_offsets: dict[int, int] = {}
    for event in printed:
        for span in event.get("partitions", ()):
            assert span["topic"] == "t"
            assert span["minOffset"] == next_offsets.get(span["partition"], 0)
            assert event["count"] == span["count"] == span["maxOffset"] + 1 - span["minOffset"]
            next_offsets[span["partition"]] = span["maxOffset"] + 1
    return next_offsets


def ends(path: str) -> Mapping[int, int]:
    log_ends = {
        partition.partition: partition.log_end
        for partition in open_log(path, {}).describe("t").partitions
    }
    return {partition: end for partition, end in log_ends.items() if end}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--max-messages", "2"], ["0", "3"]),
        (["--max-messages", "4"], ["0", "3", "1", "4"]),
        (["--max-messages", "2", "--start", "0:2,1:1"], ["4", "2"]),
        (["--max-messages", "0"], []),
    ],
)
def test_start_and_end_of_the_consumer(
    klog: Klog, path: str, words: list[str], expected: list[str]
) -> None:
    produced(klog, path, "--max-messages", "6")
    printed = events(consumed(klog, path, "--verbose", *words))
    assert [event["value"] for event in printed if event["name"] == "record_data"] == expected


def test_the_consumer_follows(klog: Klog, path: str) -> None:
    produced(klog, path, "--max-messages", "3")
    words = ["verifiable-consumer", "--root", path, "--topic", "t", "--verbose"]
    process = subprocess.Popen(
        [*COMMAND, *words, "--reset-policy", "latest"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["name"] == "startup_complete"
    produced(klog, path, "--max-messages", "4")
    printed = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [(event["name"], event.get("value")) for event in printed] == [
        ("record_data", "3"),
        ("records_consumed", None),
    ]
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0
    assert [event["name"] for event in events(rest)] == ["shutdown_complete"]


@pytest.mark.parametrize(
    ("verb", "words", "code", "message"),
    [
        ("verifiable-producer", ["--topic", "x"], 1, "there is no topic x"),
        ("verifiable-consumer", ["--topic", "x"], 1, "there is no topic x"),
        (
            "verifiable-producer",
            ["--topic", "t", "--batch-messages", "0"],
            2,
            "must be a number from 1",
        ),
        ("verifiable-consumer", ["--topic", "t", "--start", "0"], 2, "is not PARTITION:OFFSET"),
        ("verifiable-consumer", ["--topic", "t", "--start", "0:9"], 1, "start 9 is out of range"),
    ],
)
def test_refused_arguments(
    klog: Klog, path: str, verb: str, words: list[str], code: int, message: str
) -> None:
    result = klog(verb, "--root", path, *words)
    assert result.code == code
    assert message in result.err
    assert "Traceback" not in result.err
