"""Control batches: those that Kafka's classes wrote, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from klog.logformat import batch as v2
from klog.logformat import markers
from klog.logformat.control import ABORT, COMMIT, LEADER_CHANGE
from klog.logformat.markers import At
from klog.logformat.transactions import control_type
from klog.logformat.transactions import markers as found_markers
from tests.logformat.golden import CONTROLS

KRAFT = At(offset=0, timestamp_ms=1000, leader_epoch=1)
WRITTEN: dict[str, Callable[[], bytes]] = {
    "commit": lambda: markers.end_transaction(At(12, 1000, 2), COMMIT, 4000, 3, 9),
    "abort": lambda: markers.end_transaction(At(13, 1001, 2), ABORT, 4000, 3, 9),
    "leader_change": lambda: markers.leader_change(KRAFT, 1, [1, 2], [1]),
    "snapshot_header": lambda: markers.snapshot_header(KRAFT, 999),
    "snapshot_footer": lambda: markers.snapshot_footer(At(1, 1000, 1)),
    "kraft_version": lambda: markers.kraft_version(KRAFT, 1),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_writes_what_kafkas_classes_wrote(name: str) -> None:
    assert WRITTEN[name]().hex() == CONTROLS[name][0].hex()


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_a_marker_is_read_back(kind: int) -> None:
    made = markers.end_transaction(At(7, -1, -1), kind, 5, 0, 15)
    assert len(made) == 78
    assert found_markers(made, v2.scan(made, 0, len(made))) == [(7, 5, kind)]


def test_many_voters() -> None:
    """Their count takes two bytes from 127 on."""
    made = markers.leader_change(KRAFT, 1, range(200), [])
    assert control_type(made, 0, len(made)) == LEADER_CHANGE
    assert bytes.fromhex("0000 00000001 c901 00000000 00 00000001 00") in made


@pytest.mark.parametrize(
    ("kind", "producer", "epoch", "words"),
    [
        (LEADER_CHANGE, 4000, 3, "type 2 is no transaction marker"),
        (COMMIT, -1, 3, "needs a producer id"),
        (COMMIT, 4000, -1, "needs a producer epoch"),
    ],
)
def test_refuses_a_marker_of_no_transaction(
    kind: int, producer: int, epoch: int, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        markers.end_transaction(At(0, 0, 0), kind, producer, epoch, 0)


def test_a_change_of_leader_needs_a_leader_epoch() -> None:
    with pytest.raises(ValueError, match="leader epoch"):
        markers.leader_change(At(0, 0, -1), 1, [1], [1])


def test_refuses_numbers_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="2147483648 is no int32"):
        markers.end_transaction(At(0, 0, 0), COMMIT, 1, 0, 1 << 31)
    with pytest.raises(ValueError, match="-2147483649 is no int32"):
        markers.leader_change(At(0, 0, 0), 1, [-(1 << 31) - 1], [])
