"""The options of writes: a row each, in the order of docs/options.md."""

from __future__ import annotations

from typing import Any

from klog.connector.options import option_values as values
from klog.connector.options.engine_option import engine_option
from klog.connector.options.option import Mode, Option, Use
from klog.connector.options.option_defaults import BUFFER_BYTES
from klog.connector.options.option_values import MAX_LONG
from klog.logformat.batches.batch_limits import DEFAULT_BATCH_BYTES, MAX_BATCH_BYTES
from klog.logformat.broker_files.file_names import MAX_OFFSET
from klog.logformat.codecs.codec_names import CODEC_LEVELS, CODEC_NAMES
from klog.logformat.topic_config_defaults import default_config_text
from klog.logformat.topic_partition import MAX_PARTITIONS

PARTITIONERS = ("murmur2", "sticky", "round-robin")

WRITE_PATH = Option(
    "path",
    Use.WRITE,
    values.TEXT,
    "What `save()` and `start()` get: the klog root.",
    default_help="required; `save()` or `start()` sets it",
)
WRITE_ENGINE = engine_option(Use.WRITE, "which-engine-writes", "encode rows", "do this write")
DISTRIBUTION_MODE = Option(
    "distributionMode",
    Use.WRITE,
    values.choice("none", "hash", any_case=True),
    "For writes of the JVM engine. `hash`: Spark shuffles the batches, so that one task writes all "
    "batches of a partition to few files. `none`: each task writes its own rows to files of its "
    "own, as tasks of the Python engine always do.",
    default="hash",
)
TOPIC = Option(
    "topic",
    Use.WRITE,
    values.TOPIC_NAME,
    "The topic to write to. Wins over a column `topic`.",
    default_help="the column `topic`; one of the two is required",
)
TRANSACTIONAL_ID = Option(
    "transactionalId",
    Use.WRITE,
    values.TRANSACTIONAL_ID_TEXT,
    "The name of the writer, for [exactly-once writes](exactly-once.md). A batch needs "
    "`transactionVersion` too.",
    default_help="streams: the id of the query; batches: no name",
)
TRANSACTION_VERSION = Option(
    "transactionVersion",
    Use.WRITE,
    values.whole_number(0, MAX_OFFSET),
    "The number of this write. If the `transactionalId` has written this number or a higher one, "
    "the write does nothing.",
    default_help="none",
    mode=Mode.BATCH,
    wrong_mode_reason="a stream counts its batches itself. Leave it out",
)
CREATE_TOPIC = Option(
    "createTopic",
    Use.WRITE,
    values.BOOLEAN,
    "`true`: the write creates a missing topic. `false`: a missing topic is an error.",
    default="true",
)
NUM_PARTITIONS = Option(
    "numPartitions",
    Use.WRITE,
    values.whole_number(1, MAX_PARTITIONS),
    "The number of partitions of a topic that the write creates. If the topic exists, it must have "
    "this number.",
    default_help="`num.partitions` of the root, usually 1",
)
DEAD_LETTER_TOPIC = Option(
    "deadLetterTopic",
    Use.WRITE,
    values.TOPIC_NAME,
    "The topic for dead letters, which are "
    "[rows that cannot be written](exactly-once.md#rows-that-cannot-be-written). Their headers say "
    "the reason.",
    default_help="none; such a row fails the write",
)
WRITE_HEADERS = Option(
    "includeHeaders",
    Use.WRITE,
    values.BOOLEAN,
    "Has no effect, as in Spark's Kafka sink: a write includes the column `headers` if it exists.",
    default="false",
)
COMPRESSION_TYPE = Option(
    "compression.type",
    Use.WRITE,
    values.choice(*CODEC_NAMES, "uncompressed", "producer"),
    "The codec of the batches. `uncompressed` means `none`. `producer` means the default of klog, "
    "`zstd`.",
    default_help="`compression.type` of the topic, else `zstd`",
    kafka_name="kafka.compression.type",
)
BATCH_SIZE = Option(
    "batch.size",
    Use.WRITE,
    values.byte_count(MAX_BATCH_BYTES),
    "The maximum size of a batch in bytes before compression. A record that is larger is a batch "
    "of its own. `max.message.bytes` can make batches smaller.",
    default=str(DEFAULT_BATCH_BYTES),
    default_help=f"{DEFAULT_BATCH_BYTES >> 10} KiB",
    kafka_name="kafka.batch.size",
)
BUFFER_MEMORY = Option(
    "buffer.memory",
    Use.WRITE,
    values.byte_count(MAX_LONG),
    "How many bytes of rows and batches a task keeps in memory. The rest is in a temporary file.",
    default=str(BUFFER_BYTES),
    default_help=f"{BUFFER_BYTES >> 20} MiB",
    kafka_name="kafka.buffer.memory",
)
PARTITIONER = Option(
    "partitioner",
    Use.WRITE,
    values.choice(*PARTITIONERS),
    "How klog chooses the partition of a row that has no `partition`. `murmur2`: by the key as "
    "Kafka does, and as `sticky` for a row without a key. `sticky`: all rows of a task go to "
    "one partition; other tasks and later writes use other partitions. `round-robin`: each row "
    "goes to the next partition.",
    default=PARTITIONERS[0],
)


def _from_topic(name: str) -> str:
    return f"the config of the topic, else `{default_config_text(name)}`"


TOPIC_CONFIGS: tuple[Option[Any], ...] = (
    *(
        Option(
            f"compression.{CODEC_NAMES[codec]}.level",
            Use.WRITE,
            values.topic_config(f"compression.{CODEC_NAMES[codec]}.level"),
            f"The level of {CODEC_NAMES[codec]}.",
            default_help=_from_topic(f"compression.{CODEC_NAMES[codec]}.level"),
            kafka_name=f"kafka.compression.{CODEC_NAMES[codec]}.level",
        )
        for codec in CODEC_LEVELS
    ),
    Option(
        "segment.bytes",
        Use.WRITE,
        values.topic_config("segment.bytes"),
        "The maximum size of a segment, in bytes.",
        default_help=_from_topic("segment.bytes"),
    ),
    Option(
        "max.message.bytes",
        Use.WRITE,
        values.topic_config("max.message.bytes"),
        "The maximum size of a batch after compression, in bytes.",
        default_help=_from_topic("max.message.bytes"),
    ),
)
"""Options that mean what the topic config of that name means."""
SEGMENT_OPTIONS: tuple[Option[Any], ...] = (
    COMPRESSION_TYPE,
    BATCH_SIZE,
    BUFFER_MEMORY,
    PARTITIONER,
    *TOPIC_CONFIGS,
)
"""Options that decide how rows become segments, with and without Spark."""

WRITE_OPTIONS: tuple[Option[Any], ...] = (
    WRITE_PATH,
    WRITE_ENGINE,
    DISTRIBUTION_MODE,
    TOPIC,
    TRANSACTIONAL_ID,
    TRANSACTION_VERSION,
    CREATE_TOPIC,
    NUM_PARTITIONS,
    DEAD_LETTER_TOPIC,
    WRITE_HEADERS,
    *SEGMENT_OPTIONS,
)
