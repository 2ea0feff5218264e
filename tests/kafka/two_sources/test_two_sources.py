"""The same options for `format("kafka")` on a broker and for `format("klog")` on its directory.

The rule: rows, schema, offsets of a stream, rows of each micro-batch, and whether there is an error
are the same, but for the differences that `meant_differences.py` lists; an error of klog names an
option or a topic of the case. A klog root with copies of the logs gives what the directory gives.
The tests run with those on brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.clients import Client
from tests.kafka.two_sources.changes import CHANGES, Change, Topic
from tests.kafka.two_sources.changing_log import run_change
from tests.kafka.two_sources.compared_case import BATCH, Case
from tests.kafka.two_sources.compared_topics import OPEN
from tests.kafka.two_sources.limits import LIMITS, TASKS, TRANSACTIONS
from tests.kafka.two_sources.meant_differences import MEANT
from tests.kafka.two_sources.sources import Directory, Ended, Source
from tests.kafka.two_sources.starts_and_ends import ENDS, STARTS
from tests.kafka.two_sources.subscriptions import SUBSCRIPTIONS, VALUES
from tests.kafka.two_sources.times import ENDING_TIMES, PRECEDENCE, STARTING_TIMES, STRATEGIES
from tests.support.kafka_broker import Broker

pytestmark = pytest.mark.kafka

CASES: tuple[Case, ...] = (
    *STARTS, *ENDS, *STARTING_TIMES, *STRATEGIES, *ENDING_TIMES, *PRECEDENCE, *SUBSCRIPTIONS,
    *VALUES, *TRANSACTIONS, *TASKS, *LIMITS,
)  # fmt: skip
MEANT_NAMES = {name for difference in MEANT for name in difference.cases}
CREATED_AGAIN_UNDER_A_STREAM = "a topic created again under a stream, loss allowed"
"""Kafka's source reads such a topic from its start only if it polled while there was none. klog
always does."""


class Both:
    """The two sources: of the broker, and of its directory."""

    def __init__(self, kafka: Source, directory: Directory, folder: Path) -> None:
        """Take them, and a folder for checkpoints."""
        self._kafka, self._directory, self._folder = kafka, directory, folder

    def compare(self, case: Case) -> None:
        """Run a case on both, and compare what comes of it."""
        theirs, ours = self._kafka.run(case, self._folder), self._directory.run(case)
        _compare(case.name, [theirs], [ours])
        names = [
            *case.options,
            *(name.removeprefix("kafka.").replace(".", "") for name in case.options),
        ]
        names += case.options.get("subscribe", "").split(",")
        assert not ours.error or any(name.lower() in ours.error.lower() for name in names), (
            ours.error
        )


@pytest.fixture
def both(sources: tuple[Source, Source], directory: Directory, tmp_path: Path) -> Both:
    return Both(sources[0], directory, tmp_path)


def named(cases: Iterable[Case]) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in cases]


# Three tests of one kind, because CI runs a few cases of each test.
@pytest.mark.parametrize(
    "case", named(case for case in CASES if case.trigger == BATCH and case.name not in MEANT_NAMES)
)
def test_the_rows_of_a_batch_are_the_same(both: Both, case: Case) -> None:
    both.compare(case)


@pytest.mark.parametrize(
    "case", named(case for case in CASES if case.trigger != BATCH and case.name not in MEANT_NAMES)
)
def test_the_rows_of_a_stream_are_the_same(both: Both, case: Case) -> None:
    both.compare(case)


@pytest.mark.parametrize("case", named(case for case in CASES if case.name in MEANT_NAMES))
def test_the_outcome_differs_as_it_is_meant_to(both: Both, case: Case) -> None:
    both.compare(case)


# A klog root has no open transactions: import-log ends them.
@pytest.mark.parametrize("case", named(case for case in CASES if OPEN not in str(case.options)))
def test_a_klog_root_gives_what_the_directory_gives(
    directory: Directory, root_source: Source, case: Case, tmp_path: Path
) -> None:
    expected, ended = directory.run(case).outcome, root_source.run(case, tmp_path)
    # How a read is parted is meant to differ: by bytes, and these are of other files.
    tasks = expected.tasks if case.name in MEANT_NAMES else ended.outcome.tasks
    assert replace(ended.outcome, tasks=tasks) == expected, ended.error


@pytest.mark.parametrize("change", [pytest.param(change, id=change.name) for change in CHANGES])
def test_the_outcome_of_a_changing_log_is_the_same(
    sources: tuple[Source, Source], broker: Broker, change: Change, tmp_path: Path
) -> None:
    name = f"sides.changes.{CHANGES.index(change)}"
    topic = Topic(Client(broker), broker.log_dirs[0], name, change.partitions)
    theirs, ours = run_change(sources, change, topic, tmp_path)
    if change.name == CREATED_AGAIN_UNDER_A_STREAM:
        (outcome,) = [ended.outcome for ended in ours]
        assert (outcome.has_failed, sum(map(len, outcome.rows))) == (False, 10 + 4)
    else:
        _compare(change.name, theirs, ours)
    assert all(not ended.error or name in ended.error for ended in ours)


def _compare(name: str, theirs: Sequence[Ended], ours: Sequence[Ended]) -> None:
    outcomes = [[ended.outcome for ended in side] for side in (theirs, ours)]
    if name in MEANT_NAMES:
        assert outcomes[0] != outcomes[1], "no difference: take it out of meant_differences.py"
    else:
        assert outcomes[0] == outcomes[1], [ended.error for ended in (*theirs, *ours)]


def test_names_are_unique_and_known() -> None:
    names = Counter(
        name for name in (*(case.name for case in CASES), *(change.name for change in CHANGES))
    )
    assert [name for name, count in names.items() if count > 1] == []
    listed = Counter(name for difference in MEANT for name in difference.cases)
    assert [name for name, count in listed.items() if count > 1] == []
    assert listed.keys() <= names.keys()
    assert all(difference.cases for difference in MEANT)
