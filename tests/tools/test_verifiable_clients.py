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
from tests.support.klog_command import Klog, Said

COMMAND = [sys.executable, "-c", "import sys; from klog.cli import main; sys.exit(main())"]
WAIT_SECONDS = 60
MOST_SLEEPS = 40


@pytest.fixture
def path(tmp_path: Path) -> str:
    open_log(str(tmp_path / "root"), {}).create_topic("t", partitions=3)
    return str(tmp_path / "root")


def events(said: Said | bytes) -> list[dict[str, Any]]:
    printed = said if isinstance(said, bytes) else said.out
    return [json.loads(line) for line in printed.splitlines()]


def produced(klog: Klog, path: str, *arguments: str) -> Said:
    return klog("verifiable-producer", "--root", path, "--topic", "t", *arguments)


def acknowledged(said: Said | bytes) -> list[tuple[int, int, str]]:
    return [
        (one["partition"], one["offset"], one["value"])
        for one in events(said)
        if one["name"] == "producer_send_success"
    ]


def there(path: str) -> list[tuple[int, int, str]]:
    rows = open_log(path, {}).scan("t", columns=["partition", "offset", "value"]).read_all()
    return [(one["partition"], one["offset"], one["value"].decode()) for one in rows.to_pylist()]


def test_the_events_are_those_of_kafkas_tool(klog: Klog, path: str) -> None:
    said = produced(klog, path, "--max-messages", "2", "--throughput", "1000")
    told = events(said)
    assert all(list(one)[:2] == ["timestamp", "name"] for one in told)
    assert [one["name"] for one in told] == [
        "startup_complete",
        "producer_send_success",
        "producer_send_success",
        "shutdown_complete",
        "tool_data",
    ]
    assert {name: told[1][name] for name in list(told[1])[2:]} == {
        "key": None,
        "value": "0",
        "topic": "t",
        "partition": 0,
        "offset": 0,
    }
    assert {name: told[4][name] for name in ("sent", "acked", "target_throughput")} == {
        "sent": 2,
        "acked": 2,
        "target_throughput": 1000,
    }
    assert (said.code, said.err) == (0, "")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let sleeps move a clock that nothing else moves; gives how long each was, in seconds."""
    clock, seconds = Clock(), list[float]()

    def sleep(ending: Ending, wanted: float) -> None:
        seconds.append(wanted)
        clock.now_ms += round(1000 * wanted)
        if len(seconds) == MOST_SLEEPS:
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
def test_acknowledgements_come_at_the_rate(
    klog: Klog, path: str, slept: list[float],
    throughput: str, messages: int, interval_ms: int, in_a_commit: int,
) -> None:  # fmt: skip
    most = str(messages)
    told = events(produced(klog, path, "--throughput", throughput, "--max-messages", most))
    times = [one["timestamp"] for one in told if one["name"] == "producer_send_success"]
    assert len(times) == messages
    for number, time_ms in enumerate(times):
        due_ms = number // in_a_commit * interval_ms
        assert abs(time_ms - times[0] - due_ms) <= number + 1
    assert len(slept) == messages // in_a_commit - 1, "none before the first, none after the last"
    assert told[-1]["target_throughput"] == json.loads(throughput)


@pytest.mark.parametrize("throughput", ["-1", "-7"])
def test_without_a_throughput_nothing_is_waited_for(
    klog: Klog, path: str, slept: list[float], throughput: str
) -> None:
    said = produced(klog, path, "--throughput", throughput, "--max-messages", "250")
    assert len(acknowledged(said)) == 250
    assert slept == []
    versions = [one.version for one in open_log(path, {}).history("t")]
    assert len(versions) == 4, "three commits of at most 100, and the topic's own"


def test_a_throughput_of_0_sends_once_and_waits_for_a_signal(
    klog: Klog, path: str, slept: list[float]
) -> None:
    said = produced(klog, path, "--throughput", "0", "--max-messages", "250")
    assert len(acknowledged(said)) == 1
    assert len(slept) == MOST_SLEEPS
    assert events(said)[-1]["name"] == "tool_data"


def test_batch_messages_win_over_the_throughput(klog: Klog, path: str, slept: list[float]) -> None:
    words = ("--throughput", "5", "--batch-messages", "10", "--max-messages", "20")
    assert len(acknowledged(produced(klog, path, *words))) == 20
    assert slept == [2.0]


@pytest.mark.parametrize("throughput", ["x", "", "nan", "inf", "5/s"])
def test_what_is_no_throughput(klog: Klog, path: str, throughput: str) -> None:
    said = produced(klog, path, "--throughput", throughput)
    assert said.code == 2
    assert "not a number of messages a second" in said.err


def test_what_is_told_is_what_is_there(klog: Klog, path: str) -> None:
    words = ("--value-prefix", "5", "--repeating-keys", "4", "--batch-messages", "7")
    said = produced(klog, path, "--max-messages", "30", *words, "--message-create-time", "1000")
    assert sorted(acknowledged(said)) == there(path)
    assert [value for _, _, value in acknowledged(said)] == [f"5.{number}" for number in range(30)]
    keys = [one["key"] for one in events(said)[1:31]]
    assert keys == [str(number % 4) for number in range(30)]
    placed = key_partitions(pa.array(keys), 3).to_pylist()
    assert [partition for partition, _, _ in acknowledged(said)] == placed
    times = open_log(path, {}).scan("t", columns=["timestamp"]).read_all()["timestamp"]
    assert 1000 <= min(times.cast(pa.int64()).to_pylist()) // 1000 < 1000 + 1000 * WAIT_SECONDS


def test_the_next_life_goes_on_where_the_log_ends(klog: Klog, path: str) -> None:
    log = open_log(path, {})
    said = [produced(klog, path, "--max-messages", str(most)) for most in (250, 250, 420)]
    assert [len(acknowledged(one)) for one in said] == [250, 0, 170]
    values = [value for one in said for _, _, value in acknowledged(one)]
    assert values == [str(number) for number in range(420)]
    assert sorted(acknowledged(said[0]) + acknowledged(said[2])) == there(path)
    # Cut at the same numbers whatever the first life wrote: a second process makes the same.
    sizes = [
        sum(entry["record_count"] for entry in one.actions.add)
        for one in reversed(log.history("t", 6))
    ]
    assert sizes == [100, 100, 50, 50, 100, 20]


def test_ids_have_numbers_of_their_own(klog: Klog, path: str) -> None:
    for words in (["--value-prefix", "1"], ["--value-prefix", "2"], ["--transactional-id", "x"]):
        assert len(acknowledged(produced(klog, path, "--max-messages", "3", *words))) == 3
    assert len(there(path)) == 9


class Failing:
    """An append that lands, or does not, and then raises, as often as it is told to."""

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
        monkeypatch.setattr(Log, "append", lambda *one, **named: failing(*one, **named))
        monkeypatch.setattr(verifiable_producer, "_MAX_WAIT_SECONDS", 0.01)
        return failing

    return fail


@pytest.mark.parametrize("lands", [True, False])
@pytest.mark.parametrize(
    "error", [CommitStateUnknownError("?"), CommitConflictError("?"), OSError("?")]
)
def test_a_batch_whose_answer_is_lost_is_there_once(
    klog: Klog, path: str, fails: Any, error: Exception, lands: bool
) -> None:
    failing = fails(error, error, lands=lands)
    said = produced(klog, path, "--max-messages", "10", "--batch-messages", "5")
    assert (said.code, failing.calls) == (0, 4)
    assert sorted(acknowledged(said)) == there(path)
    assert len(there(path)) == 10


def test_an_answer_is_looked_up_behind_later_commits(
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
    said = produced(klog, path, "--max-messages", "10", "--batch-messages", "5")
    mine = [one for one in there(path) if one[2] != "another's"]
    assert sorted(acknowledged(said)) == mine
    assert len(mine) == 10


@pytest.mark.parametrize(
    ("errors", "calls"),
    [
        ([ProducerFencedError("another has taken over")], 1),
        ([CommitStateUnknownError("no answer")] * 20, verifiable_producer.MAX_TRIES),
    ],
)
def test_a_batch_that_cannot_be_written_ends_it(
    klog: Klog, path: str, fails: Any, errors: list[Exception], calls: int
) -> None:
    failing = fails(*errors)
    said = produced(klog, path, "--max-messages", "3")
    assert (said.code, failing.calls) == (1, calls)
    told = events(said)
    assert [one["name"] for one in told[1:4]] == ["producer_send_error"] * 3
    assert [one["value"] for one in told[1:4]] == ["0", "1", "2"]
    assert told[1]["exception"] == type(errors[0]).__name__
    assert told[1]["message"] == str(errors[0])
    assert [one["name"] for one in told[4:]] == ["shutdown_complete", "tool_data"]
    assert (told[5]["sent"], told[5]["acked"]) == (3, 0)


def test_killed_and_begun_again(path: str) -> None:
    words = ["verifiable-producer", "--root", path, "--topic", "t", "--batch-messages", "10"]
    told = b""
    for end in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(35):
            told += process.stdout.readline()
        process.send_signal(end)
        rest, _ = process.communicate(timeout=WAIT_SECONDS)
        told += rest[: rest.rfind(b"\n") + 1]
        assert process.returncode == (0 if end == signal.SIGTERM else -end)
    found = there(path)
    assert set(acknowledged(told)) <= set(found)
    assert sorted(int(value) for _, _, value in found) == list(range(len(found)))
    for partition in range(3):
        own = [int(value) for at, _, value in found if at == partition]
        assert own == sorted(own)


def test_the_consumer_tells_what_is_there(klog: Klog, path: str) -> None:
    produced(klog, path, "--max-messages", "300", "--value-prefix", "1", "--repeating-keys", "9")
    said = consumed(klog, path, "--max-messages", "300", "--verbose", "--group-id", "g")
    told = events(said)
    assert (told[0]["name"], told[-1]["name"]) == ("startup_complete", "shutdown_complete")
    records = [one for one in told if one["name"] == "record_data"]
    assert [(one["partition"], one["offset"], one["value"]) for one in records] == there(path)
    assert {one["key"] for one in records} == {str(number) for number in range(9)}
    assert spans(told) == ends(path)
    assert said.err == (
        "klog: warning: options without effect, because klog needs no broker: --group-id\n"
    )


def consumed(klog: Klog, path: str, *arguments: str) -> Said:
    return klog("verifiable-consumer", "--root", path, "--topic", "t", *arguments)


def spans(told: list[dict[str, Any]]) -> Mapping[int, int]:
    """Assert that what was consumed is dense from the beginning; gives where it ends."""
    found: dict[int, int] = {}
    for event in told:
        for one in event.get("partitions", ()):
            assert one["topic"] == "t"
            assert one["minOffset"] == found.get(one["partition"], 0)
            assert event["count"] == one["count"] == one["maxOffset"] + 1 - one["minOffset"]
            found[one["partition"]] = one["maxOffset"] + 1
    return found


def ends(path: str) -> Mapping[int, int]:
    found = {one.partition: one.log_end for one in open_log(path, {}).describe("t").partitions}
    return {partition: end for partition, end in found.items() if end}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--max-messages", "2"], ["0", "3"]),
        (["--max-messages", "4"], ["0", "3", "1", "4"]),
        (["--max-messages", "2", "--start", "0:2,1:1"], ["4", "2"]),
        (["--max-messages", "0"], []),
    ],
)
def test_where_the_consumer_begins_and_ends(
    klog: Klog, path: str, words: list[str], expected: list[str]
) -> None:
    produced(klog, path, "--max-messages", "6")
    told = events(consumed(klog, path, "--verbose", *words))
    assert [one["value"] for one in told if one["name"] == "record_data"] == expected


def test_the_consumer_follows(klog: Klog, path: str) -> None:
    produced(klog, path, "--max-messages", "3")
    words = ["verifiable-consumer", "--root", path, "--topic", "t", "--verbose"]
    process = subprocess.Popen(
        [*COMMAND, *words, "--reset-policy", "latest"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["name"] == "startup_complete"
    produced(klog, path, "--max-messages", "4")
    told = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [(one["name"], one.get("value")) for one in told] == [
        ("record_data", "3"),
        ("records_consumed", None),
    ]
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0
    assert [one["name"] for one in events(rest)] == ["shutdown_complete"]


@pytest.mark.parametrize(
    ("verb", "words", "code", "says"),
    [
        ("verifiable-producer", ["--topic", "x"], 1, "there is no topic x"),
        ("verifiable-consumer", ["--topic", "x"], 1, "there is no topic x"),
        (
            "verifiable-producer",
            ["--topic", "t", "--batch-messages", "0"],
            2,
            "not a number from 1",
        ),
        ("verifiable-consumer", ["--topic", "t", "--start", "0"], 2, "is not PARTITION:OFFSET"),
        ("verifiable-consumer", ["--topic", "t", "--start", "0:9"], 1, "start 9 is out of range"),
    ],
)
def test_what_is_refused(
    klog: Klog, path: str, verb: str, words: list[str], code: int, says: str
) -> None:
    said = klog(verb, "--root", path, *words)
    assert said.code == code
    assert says in said.err
    assert "Traceback" not in said.err
