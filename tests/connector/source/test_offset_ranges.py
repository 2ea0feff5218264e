"""Options to offset ranges: a table of inputs and what Spark's connector was seen to do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from klog.connector.source.load_plan import ResolvedRange
from klog.connector.source.subscription import subscribed_partitions
from klog.errors import KlogError, OffsetOutOfRangeError, OptionError
from klog.logformat.topic_partition import TopicPartition
from tests.connector.log_dirs import set_checkpoint, write_log
from tests.support.batch_bytes import ABORT, COMMIT, Record, batch, marker, plain, transactional
from tests.support.resolved_offsets import resolve_offsets

OUT = OffsetOutOfRangeError
LOSSY = {"failOnDataLoss": "false"}
TAKE_LATEST = {"startingOffsetsByTimestampStrategy": "latest"}
UNCOMMITTED = {"isolationLevel": "read_uncommitted"}


def start(*offsets: int) -> dict[str, str]:
    return {"startingOffsets": _json(offsets)}


def end(*offsets: int) -> dict[str, str]:
    return {"endingOffsets": _json(offsets)}


def _json(offsets: tuple[int, ...]) -> str:
    return json.dumps({"t": {str(i): offset for i, offset in enumerate(offsets)}})


def at(starting: int | None = None, ending: int | None = None) -> dict[str, str]:
    times = {"startingTimestamp": starting, "endingTimestamp": ending}
    return {name: str(value) for name, value in times.items() if value is not None}


def by_times(*starting: int, ending: tuple[int, ...] = ()) -> dict[str, str]:
    """Return options of times by partition."""
    options = {"startingOffsetsByTimestamp": starting, "endingOffsetsByTimestamp": ending}
    return {name: _json(times) for name, times in options.items() if times}


@dataclass(frozen=True)
class Log:
    """One partition: its batches, and the log start if it was moved."""

    batches: list[bytes] = field(default_factory=list)
    log_start: int = 0


TEN = Log([plain(i, timestamp=1000 + 10 * i) for i in range(10)])
TEN_AGAIN = plain(10, timestamp=1090)
TRIMMED = Log(TEN.batches, 5)
EMPTY = Log()
# A transaction from 4 is open: the last stable offset is 4, the log end 8.
OPEN = Log([*TEN.batches[:4], transactional(4, 9), *(plain(i) for i in range(5, 8))])
# Out of order: 0 is later than 1 to 4.
DISORDERED = Log(
    [batch([Record(i, ts)]) for i, ts in enumerate([5000, 1000, 2000, 3000, 3000, 6000])]
)
# Data at 1000, an abort at 5000, data at 1500, a commit at 7000.
TIMED_MARKERS = Log(
    [
        transactional(0, 3),
        batch(
            [Record(1, 5000, b"\0\0\0\0", bytes(6))],
            attributes=0x30,
            producer_id=3,
            producer_epoch=0,
        ),
        batch([Record(2, 1500)]),
        batch(
            [Record(3, 7000, b"\0\0\0\1", bytes(6))],
            attributes=0x30,
            producer_id=4,
            producer_epoch=0,
        ),
    ]
)
ABORTED = Log([transactional(0, 3), marker(1, 3, ABORT), transactional(2, 3), marker(3, 3, COMMIT)])

Ranges = dict[int, tuple[int, int]]
Expected = Ranges | type[KlogError]

CASES: list[tuple[str, list[Log], dict[str, str], Expected]] = [
    ("everything", [TEN], {}, {0: (0, 10)}),
    ("everything of several", [TEN, TRIMMED], {}, {0: (0, 10), 1: (5, 10)}),
    ("an empty partition has no range", [TEN, EMPTY], {}, {0: (0, 10)}),
    ("nothing at all", [EMPTY], {}, {}),
    ("an exclusive end", [TEN], start(3) | end(7), {0: (3, 7)}),
    ("one record", [TEN], start(9), {0: (9, 10)}),
    ("earliest and latest by number", [TRIMMED], start(-2) | end(-1), {0: (5, 10)}),
    ("each partition by its own", [TEN, TEN], start(2, 4) | end(3, -1), {0: (2, 3), 1: (4, 10)}),
    ("fractions that are whole", [TEN], {"startingOffsets": '{"t":{"0":3.0}}'}, {0: (3, 10)}),
    ("words in any case", [TEN], {"startingOffsets": " Earliest "}, {0: (0, 10)}),
    ("start is end", [TEN], start(4) | end(4), {}),
    ("start is the log end", [TEN], start(10), {}),
    ("start after end", [TEN], start(7) | end(3), OUT),
    ("the same, loss or not", [TEN], start(7) | end(3) | LOSSY, OUT),
    ("by timestamps", [TEN], at(1070, 1030), OUT),
    ("start after the log end", [TEN], start(50), OUT),
    ("start after the log end, loss or not", [TEN], start(50) | LOSSY, OUT),
    ("both after the log end", [TEN], start(40) | end(50), OUT),
    ("both after the log end, lossy", [TEN], start(40) | end(50) | LOSSY, {}),
    ("end after the log end", [TEN], end(50), OUT),
    ("end after the log end, lossy", [TEN], start(3) | end(50) | LOSSY, {0: (3, 10)}),
    ("end after the log end, empty", [TEN], start(50) | end(50), {}),
    ("end below the log start, empty", [TRIMMED], start(2) | end(2), {}),
    ("earliest is after the end", [TRIMMED], end(3), OUT),
    ("earliest is after the end, loss or not", [TRIMMED], end(3) | LOSSY, OUT),
    ("a start by time after the end", [TEN], at(1070) | end(3) | LOSSY, OUT),
    ("an end by time before the start", [TEN], start(7) | at(ending=1030) | LOSSY, OUT),
    ("cut at both ends", [TRIMMED], start(2) | end(50) | LOSSY, {0: (5, 10)}),
    ("cut at both ends is an error", [TRIMMED], start(2) | end(50), OUT),
    ("times by partition, end first", [TEN], by_times(1059, ending=(1055,)), OptionError),
    ("times by partition, no record between", [TEN], by_times(1055, ending=(1059,)), {}),
    ("end after the LSO", [OPEN], end(6), OUT),
    ("end after the LSO, lossy", [OPEN], end(6) | LOSSY, {0: (0, 4)}),
    ("end after the LSO, uncommitted", [OPEN], end(6) | UNCOMMITTED, {0: (0, 6)}),
    ("latest is the LSO", [OPEN], {}, {0: (0, 4)}),
    ("latest is the log end, uncommitted", [OPEN], UNCOMMITTED, {0: (0, 8)}),
    ("start after the LSO", [OPEN], start(6), OUT),
    ("start at the LSO", [OPEN], start(4), {}),
    ("start below the log start", [TRIMMED], start(2), OUT),
    ("even if others are fine", [TEN, TRIMMED], start(2, 2), OUT),
    ("lossy from the log start", [TRIMMED], start(2) | LOSSY, {0: (5, 10)}),
    ("a range wholly below it", [TRIMMED], start(1) | end(3) | LOSSY, {}),
    ("a range up to it", [TRIMMED], start(1) | end(5) | LOSSY, {}),
    ("a range across it", [TRIMMED], start(1) | end(7) | LOSSY, {0: (5, 7)}),
    ("a partition is missing", [TEN, TEN], start(3), OptionError),
    ("a partition too many", [TEN], start(3, 3), OptionError),
    ("the ends miss one", [TEN, TEN], end(3), OptionError),
    ("no partition is named", [TEN], {"startingOffsets": "{}"}, OptionError),
    ("by time", [TEN], at(1030, 1070), {0: (3, 7)}),
    ("by time, between records", [TEN], at(1031, 1071), {0: (4, 8)}),
    ("by time, before all", [TEN], at(1), {0: (0, 10)}),
    ("no record at or after the start", [TEN], at(1091), OUT),
    ("no record at or after the end", [TEN], at(ending=1091), {0: (0, 10)}),
    ("end before all", [TEN], at(ending=5), {}),
    ("the first at or after the time", [DISORDERED], at(2500), {0: (0, 6)}),
    ("the first of equal times", [DISORDERED], at(5500), {0: (5, 6)}),
    ("a control record counts", [TIMED_MARKERS], at(4000), {0: (1, 4)}),
    ("beyond all data", [TIMED_MARKERS], at(6000), {0: (3, 4)}),
    ("an aborted record counts", [ABORTED], at(1000), {0: (0, 4)}),
    ("a time below the log start", [TRIMMED], at(1020), {0: (5, 10)}),
    ("an empty partition has no match", [TEN, EMPTY], at(1000), OUT),
    ("unless latest is the strategy", [TEN, EMPTY], at(1050) | TAKE_LATEST, {0: (5, 10)}),
    ("an empty partition ends at latest", [TEN, EMPTY], at(ending=1050), {0: (0, 5)}),
    ("a match after the LSO is none", [OPEN], at(1031), OUT),
    ("-3 is no offset", [TEN], start(-3), OptionError),
    ("-1 is latest", [TEN], at(-1), {}),
    ("-1 is the LSO", [OPEN], at(ending=-1), {0: (0, 4)}),
    ("-2 is earliest", [TRIMMED], at(-2), {0: (5, 10)}),
    ("an end at -2 is empty", [TEN], at(ending=-2), {}),
    ("-3 is the largest time", [DISORDERED], at(-3), {0: (5, 6)}),
    ("-3 is the first of equal times", [Log([*TEN.batches, TEN_AGAIN])], at(-3), {0: (9, 11)}),
    ("-3 of nothing", [EMPTY], at(-3), OUT),
    ("-3 of nothing is latest", [EMPTY], at(-3) | TAKE_LATEST, {}),
    ("-4 is the earliest local one", [TRIMMED], at(-4), {0: (5, 10)}),
    ("-5 is none", [TEN], at(-5), OUT),
    ("-5 is none at the end", [TEN], at(ending=-5), {0: (0, 10)}),
    ("times by partition", [TEN, TEN], by_times(1030, 1050), {0: (3, 10), 1: (5, 10)}),
    ("end times", [TEN, TEN], by_times(ending=(1030, 1050)), {0: (0, 3), 1: (0, 5)}),
    ("special times by partition", [TRIMMED, TEN], by_times(-2, 1050), {0: (5, 10), 1: (5, 10)}),
    ("times miss a partition", [TEN, TEN], by_times(1030), OptionError),
    ("times have one too many", [TEN], by_times(1030, 1030), OptionError),
    ("one of the times is too late", [TEN, TEN], by_times(1030, 1091), OUT),
    ("unless latest is the strategy", [TEN, TEN], by_times(1030, 1091) | TAKE_LATEST, {0: (3, 10)}),
    ("an end time that is too late", [TEN], by_times(ending=(1091,)), {0: (0, 10)}),
    ("the last two", [TEN], {"startingOffsets": "-2"}, {0: (8, 10)}),
    ("the last of those that are stable", [OPEN], {"startingOffsets": "-1"}, {0: (3, 4)}),
    ("the last hundred of fewer", [TRIMMED], {"startingOffsets": "-100"}, {0: (5, 10)}),
    ("up to the last two", [TEN], {"endingOffsets": "-2"}, {0: (0, 8)}),
    ("nothing is so young", [TEN], {"startingOffsets": "now-10m"}, {}),
    ("all is older", [TEN], {"endingOffsets": "now-10m"}, {0: (0, 10)}),
    ("an age that all are below", [TEN], {"startingOffsets": "now-99999999h"}, {0: (0, 10)}),
    ("a time with its zone", [TEN], {"startingOffsets": "1970-01-01T00:00:01.05Z"}, {0: (5, 10)}),
    ("an end with its zone", [TEN], {"endingTimestamp": "1970-01-01T00:00:01.05Z"}, {0: (0, 5)}),
]  # fmt: skip

# A lower option is not looked at; the check of one warning is test_read_options.py's.
PRECEDENCE: list[tuple[str, list[Log], dict[str, str], Expected]] = [
    ("a time wins over latest", [TEN], at(1050) | {"startingOffsets": "latest"}, {0: (5, 10)}),
    ("a time wins over offsets", [TEN], at(1050) | start(9), {0: (5, 10)}),
    ("a time wins over nonsense", [TEN], at(1050) | {"startingOffsets": "x"}, {0: (5, 10)}),
    ("an end time wins over earliest", [TEN], at(ending=1050) | end(-2), {0: (0, 5)}),
    ("an end time wins over offsets", [TEN], at(ending=1050) | end(99), {0: (0, 5)}),
    ("an end wins over nonsense", [TEN], at(ending=1050) | {"endingOffsets": "x"}, {0: (0, 5)}),
    ("a time wins over times", [TEN], at(1050) | by_times(1070), {0: (5, 10)}),
    ("times win over offsets", [TEN], by_times(1050) | start(9), {0: (5, 10)}),
    ("end times win over offsets", [TEN], by_times(ending=(1050,)) | end(9), {0: (0, 5)}),
]  # fmt: skip


def resolved(root: Path, logs: list[Log], more: dict[str, str]) -> Ranges:
    for number, log in enumerate(logs):
        write_log(root, {0: log.batches}, f"t-{number}")
    starts = {("t", number): log.log_start for number, log in enumerate(logs)}
    set_checkpoint(root, "log-start-offset-checkpoint", starts)
    options = parse_read_options({"subscribe": "t"} | more)
    resolved_ranges = resolve_offsets(RawRoot([str(root)]), options)
    return {r.name.partition: (r.start_offset, r.end_offset) for r in resolved_ranges}


def check(root: Path, logs: list[Log], more: dict[str, str], expected: Expected) -> None:
    if isinstance(expected, dict):
        assert resolved(root, logs, more) == expected
    else:
        with pytest.raises(expected) as caught:
            resolved(root, logs, more)
        assert "t-" in str(caught.value) or "Offsets" in str(caught.value)


@pytest.mark.parametrize(
    ("logs", "options", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_ranges(
    tmp_path: Path, logs: list[Log], options: dict[str, str], expected: Expected
) -> None:
    check(tmp_path, logs, options, expected)


@pytest.mark.parametrize(
    ("logs", "options", "expected"), [pytest.param(*case[1:], id=case[0]) for case in PRECEDENCE]
)
@pytest.mark.filterwarnings("ignore:.*ignored, because")
def test_precedence(
    tmp_path: Path, logs: list[Log], options: dict[str, str], expected: Expected
) -> None:
    check(tmp_path, logs, options, expected)


@pytest.mark.parametrize("timestamp", [(1 << 63) - 1, 1 << 63, 10**30, -(10**30)])
def test_times_beyond_any_record(tmp_path: Path, timestamp: int) -> None:
    write_log(tmp_path, {0: TEN.batches})
    with pytest.raises(KlogError, match="startingTimestamp"):
        resolved(tmp_path, [TEN], at(timestamp))


def test_error_names_the_offsets_of_the_log(tmp_path: Path) -> None:
    with pytest.raises(OUT, match=r"t-0: startingOffsets 2 .*5 to 10.*failOnDataLoss=false"):
        resolved(tmp_path, [TRIMMED], start(2))


def test_2_assign(tmp_path: Path) -> None:
    for number in (0, 1):
        write_log(tmp_path, {0: TEN.batches}, f"t-{number}")
    root = RawRoot([str(tmp_path)])
    resolved_ranges = resolve_offsets(root, parse_read_options({"assign": '{"t":[1,1]}'}))
    assert resolved_ranges == [ResolvedRange(TopicPartition("t", 1), "", 0, 10)]
    with pytest.raises(OptionError, match="no topic u"):
        resolve_offsets(root, parse_read_options({"assign": '{"u":[0]}'}))


@pytest.mark.parametrize("assigned", ["{}", '{"t":[]}', '{"u":[]}', '{"t":[7,-1]}'])
def test_2_assign_nothing_that_exists(tmp_path: Path, assigned: str) -> None:
    write_log(tmp_path, {0: TEN.batches})
    root = RawRoot([str(tmp_path)])
    assert resolve_offsets(root, parse_read_options({"assign": assigned})) == []


def test_2_assigned_partition_that_does_not_exist_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_log(tmp_path, {0: TEN.batches})
    root = RawRoot([str(tmp_path)])
    options = parse_read_options({"assign": '{"t":[3,0]}'})
    (resolved_range,) = resolve_offsets(root, options)
    assert resolved_range.name == TopicPartition("t", 0)
    assert caplog.messages == [
        "assign: there is no partition 3 of topic t, whose partitions are 0; left out"
    ]
    with pytest.raises(OptionError, match="Remove t-3"):
        resolve_offsets(
            root,
            parse_read_options({"assign": '{"t":[3,0]}', "startingOffsets": '{"t":{"0":1,"3":1}}'}),
        )


@pytest.mark.parametrize(
    ("pattern", "topics"),
    [
        ("a", ["alpha", "beta", "x.a"]),
        ("^a", ["alpha"]),
        ("nothing", []),
        ("offsets|state|metadata", []),
        (".*", ["alpha", "beta", "x.a"]),
    ],
)
def test_1_patterns_are_searched_for(tmp_path: Path, pattern: str, topics: list[str]) -> None:
    internal = ["__consumer_offsets", "__transaction_state", "__cluster_metadata"]
    for topic in ["alpha", "beta", "x.a", *internal]:
        write_log(tmp_path, {0: TEN.batches}, f"{topic}-0")
    resolved_ranges = resolve_offsets(
        RawRoot([str(tmp_path)]), parse_read_options({"subscribePattern": pattern})
    )
    assert [resolved.name.topic for resolved in resolved_ranges] == topics


@pytest.mark.parametrize(("count", "suffix"), [(1, ""), (20, ""), (21, ", ...")])
def test_error_of_a_missing_topic_lists_some_topics(
    tmp_path: Path, count: int, suffix: str
) -> None:
    topics = [f"t{number:02}" for number in range(count)]
    for topic in topics:
        write_log(tmp_path, {0: TEN.batches}, f"{topic}-0")
    listed = ", ".join(topics[:20])
    for options in ({"subscribe": "x"}, {"assign": '{"x":[0]}'}):
        strategy = parse_read_options(options).consumer_strategy
        with pytest.raises(OptionError) as caught:
            subscribed_partitions(strategy, RawRoot([str(tmp_path)]).snapshot())
        assert str(caught.value).endswith(f"no topic x; the topics here are {listed}{suffix}")
