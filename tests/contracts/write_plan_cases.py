"""The golden cases of the write plan: plans, tasks and rows, one case for each rule of a write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from klog.connector.commit_log.append_commit import Writer
from klog.connector.options.write_options import WriteOptions
from klog.connector.sink.dead_letters import ATTEMPT
from klog.connector.sink.write_contract import FORMAT, plan_to_dict
from klog.connector.sink.write_plan import TopicPlan, WritePlan, plan_topic
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from tests.connector.sink.staged_tasks import NOW_MS, topic_state

WRITE_ID = "bGVzcyBpcyBtb3Jl"
ROOT = "root"
DAY_US = 86_400_000_000
NOW_US = NOW_MS * 1000
PLAIN = {"compression.type": "none"}
STREAM = Writer("5ad7a8e1-stream", 7, "5ad7a8e1-stream", "0c1e-run")

Row = dict[str, Any]


@dataclass(frozen=True)
class TopicCase:
    """A topic of a case: its configs, log ends and epochs."""

    partitions: int = 1
    config: Mapping[str, str] = field(default_factory=dict)
    topic_id: str = "dG9waWMgaWQgb2YgMTYgYg"
    base_version: int = 0
    log_ends: tuple[int, ...] | None = None
    leader_epochs: tuple[int, ...] | None = None

    def plan(self, topic: str, options: Mapping[str, str]) -> TopicPlan:
        """Return the plan that the driver makes."""
        config = {name.replace(".", "_"): value for name, value in self.config.items()}
        plan = plan_topic(topic, topic_state(self.partitions, **config), options)
        return replace(
            plan,
            topic_id=self.topic_id,
            base_version=self.base_version,
            log_ends=self.log_ends or plan.log_ends,
            leader_epochs=self.leader_epochs or plan.leader_epochs,
        )


@dataclass(frozen=True)
class Case:
    """The input of a case."""

    title: str
    batches: Sequence[Sequence[Row]]
    topics: Mapping[str, TopicCase] = field(default_factory=lambda: {"orders": TopicCase()})
    options: Mapping[str, str] = field(default_factory=lambda: PLAIN)
    topic: str | None = "orders"
    dead_letter_topic: str | None = None
    writer: Writer | None = None
    index: int = 0
    attempt: int = 0
    last_batches: Mapping[str, int] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """Return the case as JSON, without its results."""
        topics = {
            topic: case.plan(
                topic,
                {"max.message.bytes": str(MAX_BATCH_BYTES), **PLAIN}
                if topic == self.dead_letter_topic
                else self.options,
            )
            for topic, case in self.topics.items()
        }
        write_options = WriteOptions(
            ROOT,
            topic=self.topic,
            transactional_id=None if self.writer is None else self.writer.name,
            transaction_version=None if self.writer in (None, STREAM) else self.writer.batch_id,
            dead_letter_topic=self.dead_letter_topic,
            segment_options=self.options,
        )
        plan = WritePlan(write_options, WRITE_ID, 1, topics, self.last_batches)
        writer = None
        if self.writer is not None:
            writer = {
                "name": self.writer.name,
                "batchId": self.writer.batch_id,
                "queryId": self.writer.query_id,
                "runId": self.writer.run_id,
            }
        task = {"index": self.index, "attempt": self.attempt, "nowMs": NOW_MS, "writer": writer}
        case = {
            "title": self.title,
            "plan": plan_to_dict(plan),
            "task": task,
            "rows": self.batches,
        }
        values: dict[str, Any] = json.loads(json.dumps(case))
        assert values["plan"]["format"] == FORMAT
        return values


def row(value: Any, **columns: Any) -> Row:
    """Return a row; a field that no row of a batch has is not a column."""
    return {"value": value, **columns}


def numbered(count: int, size: int = 20, step_us: int = 1_000_000) -> list[Row]:
    """Return rows, a second apart by default, whose values have `size` bytes."""
    return [
        row(f"{number:0{size}d}", timestampUs=NOW_US - (count - number) * step_us)
        for number in range(count)
    ]


TEXT = [
    row("first", key="a", timestampUs=NOW_US),
    row("second", key="b", timestampUs=NOW_US + 1999),
    row(None, key="a", timestampUs=None),
    row("", key="", timestampUs=NOW_US - 5000),
    row({"base64": "/wD+"}, key=None, timestampUs=NOW_US),
]
KEYED = [row(str(number), key=f"key-{number % 7}") for number in range(20)] + [
    row("no key", key=None)
]
FOUR_PARTITIONS = {"orders": TopicCase(partitions=4)}

CASES: dict[str, Case] = {
    "plain": Case("keys and values of bytes, empty and null; no compression", [TEXT]),
    "no_rows": Case("a task without rows stages nothing", []),
    "empty_batches": Case("Arrow batches without rows stage nothing", [[], []]),
    "headers": Case(
        "headers keep their order and may repeat; their values may be null",
        [
            [
                row("1", headers=[["a", "x"], ["a", "y"], ["", None]]),
                row("2", headers=[]),
                row("3", headers=None),
                row("4", headers=[["b", ""]]),
            ]
        ],
    ),
    "timestamps": Case(
        "timestamps are rounded down to ms; -1 ms stays; null is the time of staging",
        [
            [
                row("us", timestampUs=NOW_US - 1),
                row("none", timestampUs=-1000),
                row("null", timestampUs=None),
                row("old", timestampUs=0),
            ]
        ],
    ),
    "log_append_time": Case(
        "LogAppendTime: the time of staging in the batch's header, whatever the rows say",
        [[row("1", timestampUs=NOW_US - DAY_US), row("2", timestampUs=None), row("3")]],
        topics={"orders": TopicCase(config={"message.timestamp.type": "LogAppendTime"})},
    ),
    "batches_by_size": Case(
        "a batch takes records until the next one would exceed batch.size uncompressed",
        [numbered(5), numbered(4)],
        options=PLAIN | {"batch.size": "150"},
    ),
    "record_larger_than_a_batch": Case(
        "a record that is larger than batch.size is a batch of its own",
        [[row("a"), row("b" * 300), row("c")]],
        options=PLAIN | {"batch.size": "200"},
    ),
    "roll_by_size": Case(
        "a segment rolls before segment.bytes is exceeded",
        [numbered(12)],
        options=PLAIN | {"batch.size": "150", "segment.bytes": "400"},
    ),
    "roll_by_time": Case(
        "a segment rolls when a batch is more than segment.ms newer than the segment's first",
        [
            [
                row(str(day), timestampUs=NOW_US - 40 * DAY_US + day * DAY_US)
                for day in (0, 1, 6, 7, 8, 9, 14, 30)
            ]
        ],
        options=PLAIN | {"batch.size": "0"},
    ),
    "indexes": Case(
        "a segment of at least minIndexedBytes has both indexes",
        [numbered(30)],
        topics={"orders": TopicCase(config={"index.interval.bytes": "100"})},
        options=PLAIN | {"batch.size": "120"},
    ),
    "indexes_by_size": Case(
        "of two partitions only the larger has indexes",
        [[*numbered(30)[:28], row("x", partition=1, timestampUs=None)]],
        topics={"orders": TopicCase(partitions=2, config={"index.interval.bytes": "100"})},
        options=PLAIN | {"batch.size": "120", "partitioner": "sticky"},
    ),
    "roll_by_full_index": Case(
        "a segment rolls when its offset index is full",
        [numbered(12)],
        topics={
            "orders": TopicCase(config={"index.interval.bytes": "0", "segment.index.bytes": "36"})
        },
        options=PLAIN | {"batch.size": "0"},
    ),
    "partitioner_murmur2": Case(
        "Kafka's murmur2 of the key; rows without a key go to the sticky partition",
        [KEYED],
        topics=FOUR_PARTITIONS,
    ),
    "partitioner_sticky": Case(
        "the sticky partition is (baseVersion + task) mod partitions",
        [KEYED],
        topics={"orders": TopicCase(partitions=4, base_version=5)},
        options=PLAIN | {"partitioner": "sticky"},
        index=2,
        attempt=2,
    ),
    "partitioner_round_robin": Case(
        "row n of the task goes to (sticky + n) mod partitions, over all its batches",
        [KEYED[:5], KEYED[5:11]],
        topics=FOUR_PARTITIONS,
        options=PLAIN | {"partitioner": "round-robin"},
        index=1,
        attempt=1,
    ),
    "partition_column": Case(
        "the column partition wins over the key; null leaves it to the partitioner",
        [
            [
                row("1", key="key-1", partition=3),
                row("2", key="key-1", partition=None),
                row("3", key=None, partition=None),
                row("4", key=None, partition=0),
            ]
        ],
        topics=FOUR_PARTITIONS,
    ),
    "log_ends_and_epochs": Case(
        "offsets start at the log ends, leader epochs and the base version are the plan's",
        [[row("1", partition=0), row("2", partition=1), row("3", partition=1)]],
        topics={
            "orders": TopicCase(
                partitions=2, base_version=41, log_ends=(0, 12345), leader_epochs=(0, 7)
            )
        },
    ),
    "new_topic": Case(
        "a topic that the commit is to create has no id yet",
        [[row("1", partition=2)]],
        topics={"orders": TopicCase(partitions=3, topic_id="")},
    ),
    "nameless_task": Case(
        "a write without a transactional id: the producer follows from write id and task",
        [[row("1")]],
        index=3,
        attempt=11,
    ),
    "named_batch": Case(
        "a batch write with a transactional id and a version",
        [[row("1"), row("2")]],
        writer=Writer("orders-etl", 20261121, "", WRITE_ID),
    ),
    "micro_batch": Case(
        "a stream's micro-batch, named by its query; several batches count one sequence",
        [numbered(9)],
        options=PLAIN | {"batch.size": "150"},
        writer=STREAM,
        index=1,
        attempt=5,
    ),
    "producer_epoch_starts_again": Case(
        "batch 32767 of a writer has epoch 0 of another producer id",
        [[row("1")]],
        writer=Writer("orders-etl", 32767, "", WRITE_ID),
    ),
    "batch_is_committed": Case(
        "a batch at or below lastBatches of its writer is not staged again",
        [[row("1")]],
        writer=STREAM,
        last_batches={STREAM.name: 7},
    ),
    "several_topics": Case(
        "rows go to the topics of their column, each topic from its own plan",
        [
            [
                row("1", topic="orders", key="a"),
                row("2", topic="bills", key="a"),
                row("3", topic="orders", key="b"),
            ],
            [row("4", topic="bills", key=None)],
        ],
        topics={
            "bills": TopicCase(partitions=2, base_version=3, topic_id="YW5vdGhlciB0b3BpYyBpZA"),
            "orders": TopicCase(),
        },
        topic=None,
        writer=STREAM,
    ),
    "dead_letters": Case(
        "rows that cannot be written go to the topic for dead letters, with headers",
        [
            [
                row("good", key="a", partition=0, timestampUs=NOW_US),
                row("partition", key="b", partition=7, timestampUs=NOW_US, headers=[["h", "x"]]),
            ],
            [row("no key", key=None, partition=None, timestampUs=None)],
            [row("late", key="c", timestampUs=NOW_US - 10_000_000)],
            [row("again", key="d", timestampUs=-2000, headers=[[ATTEMPT, "1"]])],
            [row("x" * 300, key="e", timestampUs=None)],
        ],
        topics={
            "orders": TopicCase(
                partitions=2,
                config={
                    "cleanup.policy": "compact",
                    "message.timestamp.before.max.ms": "5000",
                    "max.message.bytes": "300",
                },
            ),
            "dead": TopicCase(topic_id="YW5vdGhlciB0b3BpYyBpZA"),
        },
        dead_letter_topic="dead",
        writer=STREAM,
        index=2,
        attempt=4,
    ),
    "dead_letters_without_a_topic": Case(
        "a row whose topic is null is a dead letter",
        [[row("1", topic=None), row("2", topic="orders")]],
        topics={"orders": TopicCase(), "dead": TopicCase(topic_id="YW5vdGhlciB0b3BpYyBpZA")},
        topic=None,
        dead_letter_topic="dead",
    ),
    "rejected_row": Case(
        "without a topic for dead letters a row that cannot be written fails the task",
        [[row("1", partition=0)], [row("2", partition=0), row("3", partition=9)]],
        topics=FOUR_PARTITIONS,
    ),
    "rejected_header": Case(
        "a header without a name is rejected",
        [[row("1", headers=None), row("2", headers=[]), row("3", headers=[[None, "x"]])]],
    ),
    "rejected_timestamp": Case(
        "a timestamp before -1 ms is rejected",
        [[row("1", timestampUs=-1000), row("2", timestampUs=-1001)]],
    ),
    "rejected_topic": Case(
        "a row whose topic is null is rejected",
        [[row("1", topic="orders"), row("2", topic=None)]],
        topic=None,
    ),
    "no_headers": Case(
        "null and an empty array are no headers",
        [[row("1", headers=None), row("2", headers=[]), row("3", headers=[["a", ""]])]],
    ),
    "incompressible": Case(
        "records that grow by compression are compressed all the same",
        [[row("k7Qz")]],
        options={"compression.type": "snappy"},
    ),
    "too_large_row": Case(
        "so does a record whose batch exceeds max.message.bytes",
        [[row("1"), row("x" * 300)]],
        options=PLAIN | {"max.message.bytes": "300"},
    ),
} | {
    f"codec_{codec}{'_level_' + level if level else ''}".replace("-", "minus_"): Case(
        f"{codec} at {'level ' + level if level else 'its default level'}",
        [numbered(40)],
        options={"compression.type": codec, "batch.size": "500"}
        | ({f"compression.{codec}.level": level} if level else {}),
    )
    for codec, level in (
        ("gzip", ""),
        ("gzip", "1"),
        ("snappy", ""),
        ("lz4", ""),
        ("lz4", "17"),
        ("zstd", ""),
        ("zstd", "-5"),
        ("zstd", "22"),
    )
}  # fmt: skip
