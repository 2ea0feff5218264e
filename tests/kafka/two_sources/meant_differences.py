"""The differences from Spark's Kafka connector that are meant; docs/migrating.md lists them.

The rule: a case whose outcomes differ is named here, and a case named here differs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference, and the cases that show it.

    Attributes:
        kafka_option: What the user of Spark's Kafka connector sets, as Markdown.
        klog_option: What has this place in klog, as Markdown.
        difference: What differs, in one sentence or two.
        cases: The names of the cases whose outcomes differ because of it.
    """

    kafka_option: str
    klog_option: str
    difference: str
    cases: tuple[str, ...]


MEANT: tuple[Difference, ...] = (
    Difference(
        "`kafka.isolation.level`",
        "`isolationLevel`, or the same",
        "Without it Kafka's client reads uncommitted records too; klog reads committed records.",
        ("no isolation level", "no isolation level, aborted records",
         "a stream, no isolation level"),
    ),
    Difference(
        "an option that does not exist",
        "the nearest option",
        "Kafka's source ignores it; klog fails and names the nearest option.",
        ("an unknown option",),
    ),
    Difference(
        "`subscribePattern`",
        "the same",
        "Kafka's source takes Java's regular expressions, klog Python's.",
        ("pattern with a POSIX class", "pattern with quoting"),
    ),
    Difference(
        "`kafkaConsumer.pollTimeoutMs`, `fetchOffset.numRetries`",
        "",
        "klog has no Kafka client, and ignores their values.",
        ("poll timeout in letters", "retries in letters"),
    ),
    Difference(
        "`endingTimestamp` in a stream",
        "",
        "Kafka's source ignores it; klog fails, as it does for the other ending options.",
        ("a stream with an end in time",),
    ),
    Difference(
        "`minPartitions`",
        "`minPartitions`, `maxBytesPerPartition`",
        "Kafka's source splits a read by offsets, klog by bytes.",
        ("minPartitions above the partitions", "minPartitions of one partition",
         "minPartitions of empty partitions", "minPartitions of gaps"),
    ),
    Difference(
        "`maxRecordsPerPartition` in a batch",
        "the same",
        "Kafka's source ignores it unless `minPartitions` is above the number of partitions.",
        ("maxRecordsPerPartition alone", "maxRecordsPerPartition and a lower minimum"),
    ),
    Difference(
        "`minOffsetsPerTrigger` with `availableNow`",
        "the same",
        "If the rest is less than the minimum, Kafka's source ends without it; klog reads it.",
        ("a minimum and a maximum that leave a rest",),
    ),
    Difference(
        "`failOnDataLoss=true`, a topic created again",
        "the same",
        "Kafka's source knows a topic by its name. If the new log is longer, it continues at the "
        "old offset. klog knows a topic by its id, and fails.",
        ("a topic created again, longer",),
    ),
    Difference(
        "`failOnDataLoss=false`, a topic created again",
        "the same",
        "Kafka's source skips records of the new topic up to its old offset; klog reads the new "
        "topic from its start.",
        ("a topic created again, shorter, loss allowed",
         "a topic created again, longer, loss allowed"),
    ),
    Difference(
        "`subscribePattern`, the only topic is deleted",
        "the same",
        "Kafka's source waits for another topic, whatever `failOnDataLoss` is. klog fails, unless "
        "`failOnDataLoss` is false.",
        ("a topic of a pattern deleted",),
    ),
    Difference(
        "`startingOffsets` in JSON",
        "the same",
        "Kafka's source takes 3.5 as 3, null as 0 and a partition `+0` as 0; klog fails.",
        ("start with a fraction", "start null", "start of partition +0"),
    ),
    Difference(
        "`startingTimestamp` in a compacted topic",
        "the same",
        "If compaction has removed the records of that time from a segment, a broker may find no "
        "offset in it, and Kafka's source fails. klog finds the next record.",
        ("time in a gap",),
    ),
    Difference(
        "`subscribePattern` that matches no topic yet",
        "the same",
        "Kafka's source runs no micro-batch; klog's first one is empty.",
        ("a stream of a pattern that matches nothing",),
    ),
    Difference(
        "the records of a batch",
        "",
        "Kafka's source takes the end of the log when each query runs, klog at `load()`.",
        ("records appended after the load", "records deleted after the load",
         "records deleted after the load, loss allowed"),
    ),
)  # fmt: skip
