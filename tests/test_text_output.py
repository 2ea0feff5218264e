"""How commands print: labels, times, and nothing that moves the cursor."""

from __future__ import annotations

import pytest

from klog.text_output import configs_text, labelled, printable, time_text


def test_fields_without_a_value_are_left_out() -> None:
    assert labelled({"A": 1, "B": None, "C": "", "D": 0}) == "A: 1\tC: \tD: 0"


def test_a_value_cannot_make_a_field_or_a_line_of_its_own() -> None:
    assert labelled({"A": "x\tB: y\nC: z\x1b[2J\x7f\u202e"}) == r"A: x\tB: y\nC: z\x1b[2J\x7f\u202e"
    assert printable("Zoë 東京 \udc80") == r"Zoë 東京 \udc80"


def test_configs() -> None:
    assert configs_text({"b": "1,2", "a": None}) == "a unset,b=1,2"
    assert configs_text({}) is None


@pytest.mark.parametrize(
    ("timestamp_ms", "expected"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        ((1 << 63) - 1, "9223372036854775807 ms"),
    ],
)
def test_times(timestamp_ms: int, expected: str) -> None:
    assert time_text(timestamp_ms) == expected
