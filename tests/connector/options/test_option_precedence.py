"""Of options that say the same thing one wins, and the others are not looked at."""

from __future__ import annotations

import pytest

from klog.connector.options.offset_range_limit import OffsetForTime
from klog.connector.options.read_options import parse_read_options
from klog.errors import OptionError
from tests.connector.options.parsed_options import T, parse


def test_timestamp_wins_over_offsets_that_would_be_refused() -> None:
    # So it does in Spark's connector (docs/migrating.md), which does not look at the others.
    for offsets in ("latest", "nonsense"):
        with pytest.warns(UserWarning, match="^startingOffsets: ignored, because"):
            options = parse(startingTimestamp="5", startingOffsets=offsets)
        assert options.starting == OffsetForTime(5)
        assert options.starting_option == "startingTimestamp"
    with pytest.warns(UserWarning, match="^endingOffsets: ignored, because endingTimestamp"):
        options = parse(endingTimestamp="5", endingOffsets="earliest")
    assert options.ending == OffsetForTime(5, latest_if_no_match=True)


def test_time_for_all_partitions_wins_over_times_by_partition() -> None:
    with pytest.warns(UserWarning, match="ignored") as caught:
        options = parse(startingTimestamp="5", startingOffsetsByTimestamp="x", startingOffsets="y")
    assert options.starting == OffsetForTime(5)
    (warning,) = caught
    assert str(warning.message) == (
        "startingOffsetsByTimestamp, startingOffsets: ignored, because startingTimestamp is set"
    )
    with pytest.warns(UserWarning, match="^endingOffsets: ignored, because endingOffsetsByTime"):
        options = parse(endingOffsetsByTimestamp='{"t":{"0":5}}', endingOffsets="y")
    assert options.ending_option == "endingOffsetsByTimestamp"


@pytest.mark.parametrize("strategy", ["latest", "LATEST", "error"])
def test_strategy_decides_about_a_time_after_the_last_record(strategy: str) -> None:
    options = parse(startingTimestamp="5", startingOffsetsByTimestampStrategy=strategy)
    assert options.starting == OffsetForTime(5, latest_if_no_match=strategy.lower() == "latest")


STARTS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
RIGHT = {"Timestamp": "5", "ByTimestamp": '{"t":{"0":5}}'}


PAIRS = [
    pytest.param(names[winner], names[loser], is_streaming)
    for names, is_streaming in ((STARTS, False), (STARTS, True), (ENDS, False))
    for winner, loser in ((0, 1), (0, 2), (1, 2))
]


@pytest.mark.parametrize(("winner", "loser", "is_streaming"), PAIRS)
@pytest.mark.parametrize("nonsense", ["x", "{", '{"t":{"0":-9}}', "latest", "earliest", ""])
def test_what_loses_is_ignored_with_one_warning_however_wrong(
    winner: str, loser: str, nonsense: str, is_streaming: bool
) -> None:
    right = {winner: RIGHT["ByTimestamp" if "By" in winner else "Timestamp"]}
    expected = parse_read_options(T | right, is_streaming=is_streaming)
    with pytest.warns(UserWarning, match=f"^{loser}: ignored, because {winner} is set$") as caught:
        parsed = parse_read_options(T | right | {loser: nonsense}, is_streaming=is_streaming)
    assert len(caught) == 1
    assert parsed == expected


@pytest.mark.parametrize("winner", [STARTS[0], STARTS[1], ENDS[0], ENDS[1]])
def test_what_wins_is_looked_at_however_right_the_other(winner: str) -> None:
    """No fall back to `startingOffsets`."""
    loser = "startingOffsets" if winner in STARTS else "endingOffsets"
    with pytest.warns(UserWarning, match="ignored"), pytest.raises(OptionError, match=winner):
        parse_read_options(T | {winner: "x", loser: '{"t":{"0":1}}'})


def test_a_time_of_a_partition_ends_after_its_start() -> None:
    """Spark compares times by partition; others only when they have become offsets."""
    starts = {"startingOffsetsByTimestamp": '{"t":{"0":50,"1":-2}}'}
    ends = {"endingOffsetsByTimestamp": '{"t":{"0":49,"1":0}}'}
    with pytest.raises(OptionError, match="t-0 has 49 and 50"):
        parse(**starts, **ends)
    parse(**starts, endingOffsetsByTimestamp='{"t":{"0":50,"1":0}}')
    parse(startingTimestamp="50", endingTimestamp="49")
