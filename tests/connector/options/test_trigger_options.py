"""Options of triggers: checked in a stream, and ignored by a batch."""

from __future__ import annotations

import pytest

from klog.connector.options.read_options import TriggerLimits
from tests.connector.options.parsed_options import T, check_refused, parse, parse_stream


def test_limits_of_a_trigger() -> None:
    options = parse_stream(
        maxOffsetsPerTrigger="0", minOffsetsPerTrigger="0", maxTriggerDelay="90s"
    )
    assert options.trigger_limits == TriggerLimits(0, None, 0, 90_000)
    options = parse_stream(maxBytesPerTrigger="1g", minOffsetsPerTrigger="5")
    assert options.trigger_limits == TriggerLimits(None, 1 << 30, 5, 900_000)
    options = parse_stream(minOffsetsPerTrigger="-5", maxTriggerDelay="-1s")
    assert options.trigger_limits == TriggerLimits(None, None, -5, -1000)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (
            {"maxOffsetsPerTrigger": "-1"},
            "maxOffsetsPerTrigger: must be a whole number of 64 bits from 0",
        ),
        (
            {"maxOffsetsPerTrigger": "x"},
            "maxOffsetsPerTrigger: must be a whole number of 64 bits from 0",
        ),
        (
            {"minOffsetsPerTrigger": "9223372036854775808"},
            "minOffsetsPerTrigger: must be a whole number of 64 bits, got",
        ),
        ({"minOffsetsPerTrigger": " 5"}, "minOffsetsPerTrigger: must be a whole number of 64 bits"),
        ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger: must be a size"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay: must be a duration such as"),
        (
            {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"},
            "minOffsetsPerTrigger: must not be above maxOffsetsPerTrigger, got 6 and 5",
        ),
    ],
)
def test_wrong_limits_of_a_trigger(options: dict[str, str], part: str) -> None:
    check_refused(T | options, part, is_streaming=True)


def test_limits_of_a_trigger_have_no_effect_on_a_batch() -> None:
    """Spark does not look at their values either."""
    with pytest.warns(UserWarning, match="Trigger, maxTriggerDelay: ignored") as caught:
        options = parse(maxOffsetsPerTrigger="x", maxTriggerDelay="y")
    assert len(caught) == 1
    assert options == parse()


@pytest.mark.parametrize(
    ("smallest", "largest", "part"),
    [
        ("6", "5", "minOffsetsPerTrigger: must not be above maxOffsetsPerTrigger, got 6 and 5"),
        ("x", "5", "minOffsetsPerTrigger: must be a whole number of 64 bits, got 'x'"),
        ("6", "y", "maxOffsetsPerTrigger: must be a whole number of 64 bits, got 'y'"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*as a batch has no triggers")
def test_batch_compares_a_minimum_with_a_maximum(smallest: str, largest: str, part: str) -> None:
    """Spark looks at the two of a batch only where both are set."""
    check_refused(T | {"minOffsetsPerTrigger": smallest, "maxOffsetsPerTrigger": largest}, part)
    assert parse(minOffsetsPerTrigger="5", maxOffsetsPerTrigger="5") == parse()
    assert parse(minOffsetsPerTrigger="-5", maxOffsetsPerTrigger="-1") == parse()
