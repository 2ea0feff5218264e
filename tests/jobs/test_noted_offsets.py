"""What the history of a table says of its copies, as a table of histories."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from klog.connector.source.stream_offsets import StreamOffsets, offsets_to_json
from klog.errors import KlogError, NewerFormatError
from klog.jobs.copying_to_delta.commit_note import CommitNote, parse_commit_note
from klog.jobs.copying_to_delta.noted_offsets import find_noted_offsets
from klog.jobs.copying_to_delta.row_offsets import FileBounds, decide_by_statistics
from klog.jobs.shared.delta.delta_target import TableCommit
from klog.logformat.topic_partition import TopicPartition

TABLE_ID = "d8c1"


def offsets(topic: str, *next_offsets: int) -> StreamOffsets:
    names = [TopicPartition(topic, number) for number in range(len(next_offsets))]
    return StreamOffsets(dict(zip(names, next_offsets, strict=True)), {topic: f"id-{topic}"})


def copied(
    version: int, topic: str, base: int | None = None, **topics: int | Sequence[int]
) -> TableCommit:
    """Return a commit of a copy: by topic, where the table is in its partitions."""
    known = {
        name: offsets(name, *([at] if isinstance(at, int) else at)) for name, at in topics.items()
    }
    base = version - 1 if base is None else base
    note = CommitNote(f"b{version}", "append", TABLE_ID, topic, base, known)
    return TableCommit(version, "WRITE", {"mode": "Append"}, note.to_text())


def other(at: int, operation: str, /, **parameters: str | None) -> TableCommit:
    return TableCommit(at, operation, parameters)


CREATE = other(0, "CREATE TABLE")
HISTORIES: dict[str, tuple[list[TableCommit], Mapping[str, int], Mapping[str, int]]] = {
    "nothing copied": ([CREATE], {}, {}),
    "one topic": ([copied(2, "a", a=20), copied(1, "a", a=10), CREATE], {"a": 20}, {}),
    "others between": (
        [other(3, "OPTIMIZE"), other(2, "DELETE"), copied(1, "a", a=10), CREATE],
        {"a": 10},
        {},
    ),
    "a topic that another commit carries": (
        [copied(3, "b", a=20, b=5), copied(2, "a", a=20), copied(1, "a", a=10)],
        {"a": 20, "b": 5},
        {},
    ),
    "a carried topic that was copied meanwhile": (
        [copied(4, "b", base=2, a=20, b=5), copied(3, "a", a=30), copied(2, "a", a=20)],
        {"a": 30, "b": 5},
        {},
    ),
    "the log ends before the version of the plan": (
        [copied(9, "b", base=5, a=20, b=5), other(8, "OPTIMIZE")],
        {"b": 5},
        {"a": 20},
    ),
    "restored": (
        [
            other(4, "RESTORE", version="1"),
            copied(3, "a", a=30),
            copied(2, "a", a=20),
            copied(1, "a", a=10),
            CREATE,
        ],
        {"a": 10},
        {},
    ),
    "copied after a restore": (
        [
            copied(5, "a", a=15),
            other(4, "RESTORE", version="1"),
            copied(3, "a", a=30),
            copied(1, "a", a=10),
            CREATE,
        ],
        {"a": 15},
        {},
    ),
    "a restore that took a restore back": (
        [
            other(5, "RESTORE", version="3"),
            other(4, "RESTORE", version="1"),
            copied(3, "a", a=30),
            copied(2, "a", a=20),
            copied(1, "a", a=10),
            CREATE,
        ],
        {"a": 30},
        {},
    ),
    "restored to before the first batch": (
        [other(2, "RESTORE", version="0"), copied(1, "a", a=10), CREATE],
        {},
        {},
    ),
    "restored to a time": (
        [other(3, "RESTORE", version=None, timestamp="2026-11-28"), copied(2, "a", a=20)],
        {},
        {},
    ),
    "overwritten": ([other(2, "WRITE", mode="Overwrite"), copied(1, "a", a=10)], {}, {}),
    "overwritten in part": (
        [other(2, "WRITE", mode="Overwrite", predicate="[x]"), copied(1, "a", a=10), CREATE],
        {"a": 10},
        {},
    ),
    "a commit of a writer that says nothing": ([other(2, ""), copied(1, "a", a=10)], {"a": 10}, {}),
    "a clone": ([other(0, "CLONE", source="x")], {}, {}),
    "replaced, and copied since": (
        [copied(7, "b", b=1, a=3), other(5, "CREATE OR REPLACE TABLE AS SELECT")],
        {"a": 3, "b": 1},
        {},
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_histories(name: str) -> None:
    commits, topics, lower_bounds = HISTORIES[name]
    noted = find_noted_offsets(iter(commits), "t", TABLE_ID)
    first_offsets = [
        {topic: at.next_offsets[TopicPartition(topic, 0)] for topic, at in by_topic.items()}
        for by_topic in (noted.topics, noted.lower_bounds)
    ]
    assert first_offsets == [topics, lower_bounds]


def test_only_what_is_needed_is_read() -> None:
    def commits() -> object:
        yield copied(9, "a", a=90, b=2)
        yield copied(8, "a", a=80, b=2)
        raise AssertionError("the rest of the history was read")

    assert set(find_noted_offsets(commits(), "t", TABLE_ID).topics) == {"a", "b"}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "replacing",
    [
        other(5, "RESTORE", version="1"),
        other(5, "CLONE"),
        other(5, "WRITE", mode="Overwrite"),
        other(5, "CREATE OR REPLACE TABLE"),
    ],
    ids=lambda commit: commit.operation,
)
def test_rows_that_follow_what_was_replaced(replacing: TableCommit) -> None:
    commits = [
        copied(7, "b", base=5, b=3),
        copied(6, "a", base=4, a=50),
        replacing,
        copied(4, "a", a=40),
    ]
    message = f"version 5 is a {replacing.operation} .* version 6 has rows of topic a"
    with pytest.raises(KlogError, match=message):
        find_noted_offsets(iter(commits), "t", TABLE_ID)


def test_rows_that_two_batches_have() -> None:
    """Delta had forgotten the transaction of the first when the second came."""
    commits = [copied(6, "a", base=4, a=50), copied(5, "a", a=50), copied(4, "a", a=40)]
    with pytest.raises(KlogError, match=r"version 6 has rows .* version 5 has too.* AS OF 5"):
        find_noted_offsets(iter(commits), "t", TABLE_ID)


@pytest.mark.parametrize(("version", "remedy"), [(0, "Drop the table"), (7, "AS OF 6")])
def test_rows_that_were_planned_for_another_table(version: int, remedy: str) -> None:
    commits = [copied(version, "a", base=5, a=30), other(6, "CREATE OR REPLACE TABLE")]
    with pytest.raises(KlogError, match=f"another table of this name.*{remedy}"):
        find_noted_offsets(iter(commits), "t", "another id")


def test_operations_that_only_have_the_note_of_their_session() -> None:
    note = copied(3, "a", a=30).user_metadata
    commits = [TableCommit(3, "OPTIMIZE", {}, note), copied(2, "a", a=20), copied(1, "a", a=10)]
    noted = find_noted_offsets(iter(commits), "t", TABLE_ID)
    assert noted.topics["a"].next_offsets[TopicPartition("a", 0)] == 20


def test_a_note_says_what_was_copied() -> None:
    note = CommitNote(
        "batch", "append", TABLE_ID, "a", 4, {"a": offsets("a", 3, 5), "b": offsets("b", 1)}
    )
    assert parse_commit_note(note.to_text(), "t", 5) == note


def test_a_note_of_a_later_klog() -> None:
    text = json.dumps({"klog": {"format": 2, "job": "to-delta"}})
    with pytest.raises(NewerFormatError, match=r"table t, version 5: a later klog"):
        parse_commit_note(text, "t", 5)


@pytest.mark.parametrize(
    "text",
    [
        *(None, "", "my job", "klog", '"klog"', "[]", '{"klog": 1}', '{"klog": {}}'),
        '{"klog": {"job": "to-delta", "format": "x"}}',
        '{"klog": {"job": "other", "format": 9}}',
        '{"klog": {"job": "to-delta", "format": 1, "topics": []}}',
    ],
)
def test_what_other_writers_say(text: str | None) -> None:
    assert parse_commit_note(text, "t", 5) is None


def test_statistics_that_decide_and_those_that_do_not() -> None:
    long = "t" * 32
    files = [
        FileBounds("a", "a", 0, 0, 9),
        FileBounds("a", "a", 0, 0, 7),
        FileBounds("a", "a", 1, 1, 3),
        FileBounds("a", "a", 0, 2, 5),
        FileBounds("a", "b", 0, 0, 5),
        FileBounds(long, long, 0, 0, 5),
        FileBounds(None, None, None, None, None),
    ]
    next_offsets, undecided = decide_by_statistics(files)
    assert offsets_to_json(next_offsets) == {"a": {"0": 10, "1": 4}}
    assert undecided == files[3:]


@pytest.mark.parametrize(
    ("bounds", "topics", "is_so"),
    [
        (FileBounds("b", "d", 0, 0, 5), ["a", "e"], False),
        (FileBounds("b", "d", 0, 0, 5), ["a", "c"], True),
        (FileBounds("t" * 32, "t" * 32 + "\x7f", 0, 0, 5), ["t" * 40], True),
        (FileBounds(None, None, None, None, None), ["a"], True),
    ],
)
def test_files_that_have_no_record_of_a_topic(
    bounds: FileBounds, topics: list[str], is_so: bool
) -> None:
    assert bounds.may_have(topics) is is_so


@pytest.mark.parametrize(
    ("commits", "is_so"),
    [
        ([CREATE], True),
        ([other(2, "OPTIMIZE"), copied(1, "a", a=10), CREATE], False),
        ([other(2, "RESTORE", version="0"), copied(1, "a", a=10), CREATE], True),
        ([other(1, "SET TBLPROPERTIES"), CREATE], True),
        ([other(1, "WRITE", mode="Append"), CREATE], False),
        ([other(0, "CREATE TABLE AS SELECT")], False),
        ([other(0, "CLONE")], False),
        ([other(5, "OPTIMIZE")], False),
    ],
)
def test_whether_rows_have_to_be_asked(commits: list[TableCommit], is_so: bool) -> None:
    """A note ends the search before it knows; a topic that no note has is then asked for."""
    assert find_noted_offsets(iter(commits), "t", TABLE_ID).are_all_rows_noted is is_so
