"""A continuous from-delta goes on after an error that may end by itself, and after no other."""

from __future__ import annotations

import logging

import pytest

from klog.errors import DataLossError, KlogError, StoreError
from klog.jobs.copying_from_delta.copy_table import Round
from klog.jobs.from_delta import copy_until_interrupted


class Rounds:
    """What each round does: it returns, or raises an error."""

    def __init__(self, *results: Round | KlogError) -> None:
        self.results, self.restarts = list(results), list[str | None]()

    def copy(self, restart_at: str | None) -> Round:
        self.restarts.append(restart_at)
        result = self.results.pop(0)
        if isinstance(result, KlogError):
            raise result
        return result


def test_a_round_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    down = StoreError("s3://u:secret@x is down")
    rounds = Rounds(Round(), down, down, Round(), down, DataLossError("versions are gone"))
    with caplog.at_level(logging.WARNING), pytest.raises(DataLossError):
        copy_until_interrupted(rounds.copy, None, 0)
    assert rounds.results == []
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["not copied, the next round tries again: s3://***@x is down"] * 2


def test_the_copy_starts_again_once() -> None:
    rounds = Rounds(Round(), Round(), DataLossError("end"))
    with pytest.raises(DataLossError):
        copy_until_interrupted(rounds.copy, "snapshot", 0)
    assert rounds.restarts == ["snapshot", None, None]


def test_a_round_that_starts_again_is_not_repeated() -> None:
    rounds = Rounds(StoreError("down"))
    with pytest.raises(StoreError):
        copy_until_interrupted(rounds.copy, "snapshot", 0)
