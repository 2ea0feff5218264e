"""Rounds of copies: what fails of one topic is said, and keeps no other topic from being copied."""

from __future__ import annotations

import logging

import pytest

from klog.errors import KlogError, OptionError, StoreError, StoreRefusedError
from klog.jobs.shared.copy_rounds import copy_in_rounds, topic_strategy


class Stopped(BaseException):
    """Ctrl-C."""


class Topics:
    """Two topics that fail in some rounds; after the last round the process is interrupted."""

    def __init__(self, *rounds: dict[str, str]) -> None:
        self.rounds, self.copied = list(rounds), list[str]()

    def names(self) -> list[str]:
        if not self.rounds:
            raise Stopped
        self.failures = self.rounds.pop(0)
        return ["a", "b"]

    def copy(self, topic: str) -> None:
        if topic in self.failures:
            raise KlogError(self.failures[topic])
        self.copied.append(topic)


def test_failures_are_logged_once_until_they_change(caplog: pytest.LogCaptureFixture) -> None:
    topics = Topics(
        {"a": "s3://u:secret@x is down"}, {"a": "s3://u:secret@x is down"}, {}, {"a": "two"}
    )
    with caplog.at_level(logging.WARNING), pytest.raises(Stopped):
        copy_in_rounds(topics.names, topics.copy, is_continuous=True, interval_seconds=0)
    messages = [record.getMessage() for record in caplog.records]
    assert [message.rpartition(": ")[2] for message in messages] == ["s3://***@x is down", "two"]
    assert topics.copied == ["b", "b", "a", "b", "b"]


def test_one_round_returns_what_failed() -> None:
    topics = Topics({"a": "one"})
    (failed,) = copy_in_rounds(topics.names, topics.copy, is_continuous=False, interval_seconds=0)
    assert (failed.topic, failed.failure.reason, topics.copied) == ("a", "one", ["b"])


def test_the_failure_of_the_only_topic_is_that_of_the_job() -> None:
    topics = Topics({"a": "one"})
    with pytest.raises(KlogError, match="one"):
        copy_in_rounds(
            lambda: topics.names()[:1], topics.copy, is_continuous=True, interval_seconds=0
        )


def test_the_only_topic_is_tried_again_after_an_error_that_may_end_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures: list[KlogError | None] = [StoreError("down"), None, StoreRefusedError("no access")]
    copied: list[str] = []

    def copy(topic: str) -> None:
        failure = failures.pop(0)
        if failure is not None:
            raise failure
        copied.append(topic)

    with caplog.at_level(logging.WARNING), pytest.raises(StoreRefusedError):
        copy_in_rounds(lambda: ["a"], copy, is_continuous=True, interval_seconds=0)
    assert copied == ["a"]
    assert [record.getMessage() for record in caplog.records] == [
        "not copied, the next round tries again: down"
    ]


def test_topics_are_listed_again_after_an_error_that_may_end_by_itself() -> None:
    topics = Topics({}, {})
    answers: list[KlogError | None] = [StoreError("down"), None, StoreError("down"), None]

    def names() -> list[str]:
        answer = answers.pop(0) if answers else None
        if answer is not None:
            raise answer
        return topics.names()

    with pytest.raises(Stopped):
        copy_in_rounds(names, topics.copy, is_continuous=True, interval_seconds=0)
    assert topics.copied == ["a", "b", "a", "b"]
    answers.append(StoreError("down"))
    with pytest.raises(StoreError):
        copy_in_rounds(names, topics.copy, is_continuous=False, interval_seconds=0)


def test_topics_and_a_pattern() -> None:
    with pytest.raises(OptionError, match="only one of them"):
        topic_strategy("a", "b")
