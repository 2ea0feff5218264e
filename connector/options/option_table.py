"""The table of options: a row an option, for reads, writes and stores.

The rule: an option without a row does not exist. Parsing, errors, the suggestion for an unknown
option and docs/options.md all come from these rows.
"""

from __future__ import annotations

from typing import Any

from klog.connector.options import as_of
from klog.connector.options import offset_range_values as limits
from klog.connector.options import option_values as values
from klog.connector.options.as_of import TIME_OPTION, VERSION_OPTION
from klog.connector.options.option import Mode, Option, Use
from klog.connector.options.option_defaults import BUFFER_BYTES, READ_COMMITTED, READ_UNCOMMITTED
from klog.connector.options.option_values import MAX_INT, MAX_LONG
from klog.connector.options.planned_options import PLANNED_OPTIONS
from klog.connector.options.storage_option_table import FSSPEC, STORAGE_OPTIONS
from klog.logformat.batches.batch_limits import DEFAULT_BATCH_BYTES, MAX_BATCH_BYTES
from klog.logformat.broker_files.file_names import MAX_OFFSET
from klog.logformat.codecs.codec_names import CODEC_LEVELS, CODEC_NAMES
from klog.logformat.topic_config_defaults import default_config_text
from klog.logformat.topic_partition import MAX_PARTITIONS

PARTITIONERS = ("murmur2", "sticky", "round-robin")

_NO_END = "a stream has no end. Use spark.read for a range"
_NO_PAST = (
    "a stream reads what commits add, and none adds to an earlier version. Use spark.read; a "
    "stream starts in the past by startingOffsets or startingTimestamp"
)

# Reads.

READ_PATH = Option(
    "path",
    Use.READ,
    values.TEXT,
    "What `load()` gets: a klog root, or the log directories of a broker with commas between them.",
    default_help="required; `load()` sets it",
)
READ_PATHS = Option(
    "paths",
    Use.READ,
    values.PATH_LIST,
    "What `load()` gets as a list: the log directories of a broker, as JSON. Wins over `path`.",
    default_help="none",
)
_REQUIRED = "exactly one of `subscribe`, `subscribePattern` and `assign` is required"
SUBSCRIBE = Option(
    "subscribe", Use.READ, values.TOPIC_LIST, "The topics to read.", default_help=_REQUIRED
)
SUBSCRIBE_PATTERN = Option(
    "subscribePattern",
    Use.READ,
    values.REGULAR_EXPRESSION,
    "The topics to read: all topics with a name that contains a match of the pattern. Kafka's "
    "internal topics never match.",
    default_help=_REQUIRED,
)
ASSIGN = Option(
    "assign", Use.READ, values.PARTITION_LISTS, "The partitions to read.", default_help=_REQUIRED
)
STARTING_OFFSETS = Option(
    "startingOffsets",
    Use.READ,
    limits.OFFSET_RANGE_LIMIT,
    "Where the read starts. JSON must name every partition of the read. Only a stream can start at "
    "`latest`. If a stream has a checkpoint, it starts there, and this option has no effect.",
    default="earliest",
    stream_default="latest",
)
STARTING_TIMESTAMP = Option(
    "startingTimestamp",
    Use.READ,
    limits.TIMESTAMP,
    "The read starts in each partition at the first record at or after this time. Wins over "
    "`startingOffsetsByTimestamp` and `startingOffsets`.",
    default_help="`startingOffsets` decides",
)
STARTING_OFFSETS_BY_TIMESTAMP = Option(
    "startingOffsetsByTimestamp",
    Use.READ,
    limits.TIMESTAMPS_BY_PARTITION,
    "A time for each partition: the read starts there at the first record at or after it. The JSON "
    "must name every partition of the read. Wins over `startingOffsets`.",
    default_help="`startingOffsets` decides",
)
STARTING_OFFSETS_BY_TIMESTAMP_STRATEGY = Option(
    "startingOffsetsByTimestampStrategy",
    Use.READ,
    values.choice("error", "latest", any_case=True),
    "What happens if a partition has no record at or after the time at which the read starts. "
    "`error`: the read fails. `latest`: the read starts at the latest offset of the partition.",
    default="error",
)
ENDING_OFFSETS = Option(
    "endingOffsets",
    Use.READ,
    limits.OFFSET_RANGE_LIMIT,
    "Where the read ends. The read does not include this offset. JSON must name every partition of "
    "the read. `earliest` is not allowed.",
    default="latest",
    mode=Mode.BATCH,
    wrong_mode_reason=_NO_END,
)
ENDING_TIMESTAMP = Option(
    "endingTimestamp",
    Use.READ,
    limits.TIMESTAMP,
    "The read ends in each partition before the first record at or after this time. Without such a "
    "record it ends at the latest offset. Wins over `endingOffsetsByTimestamp` and "
    "`endingOffsets`.",
    default_help="`endingOffsets` decides",
    mode=Mode.BATCH,
    wrong_mode_reason=_NO_END,
)
ENDING_OFFSETS_BY_TIMESTAMP = Option(
    "endingOffsetsByTimestamp",
    Use.READ,
    limits.TIMESTAMPS_BY_PARTITION,
    "A time for each partition: the read ends there before the first record at or after it. The "
    "JSON must name every partition of the read. Wins over `endingOffsets`.",
    default_help="`endingOffsets` decides",
    mode=Mode.BATCH,
    wrong_mode_reason=_NO_END,
)
ISOLATION_LEVEL = Option(
    "isolationLevel",
    Use.READ,
    values.choice(READ_COMMITTED, READ_UNCOMMITTED),
    "`read_committed` leaves out the records of aborted transactions, and ends at the first open "
    "transaction. `read_uncommitted` returns them.",
    default=READ_COMMITTED,
    kafka_name="kafka.isolation.level",
)
INCLUDE_HEADERS = Option(
    "includeHeaders",
    Use.READ,
    values.BOOLEAN,
    "Adds the column `headers`. It is null for a record without headers.",
    default="false",
)
FAIL_ON_DATA_LOSS = Option(
    "failOnDataLoss",
    Use.READ,
    values.BOOLEAN,
    "What happens if records were deleted before klog reads them. `true`: the read fails. "
    "`false`: klog warns, and reads the other records.",
    default="true",
)
MIN_PARTITIONS = Option(
    "minPartitions",
    Use.READ,
    values.whole_number(1, MAX_INT),
    "The minimum number of tasks of a read or a micro-batch. If there are fewer offsets, there are "
    "fewer tasks.",
    default_help="none; a task reads about 64 MiB",
)
MAX_RECORDS_PER_PARTITION = Option(
    "maxRecordsPerPartition",
    Use.READ,
    values.whole_number(1, MAX_LONG),
    "The maximum number of offsets of a task.",
    default_help="no limit",
)
MAX_BYTES_PER_PARTITION = Option(
    "maxBytesPerPartition",
    Use.READ,
    values.SIZE,
    "About how many bytes of the log a task reads. It is not exact, because a task begins and ends "
    "at an index entry.",
    default_help="64 MiB",
)
MAX_OFFSETS_PER_TRIGGER = Option(
    "maxOffsetsPerTrigger",
    Use.READ,
    values.whole_number(0, MAX_LONG),
    "The maximum number of offsets of a micro-batch. The partitions share it in proportion to "
    "their backlogs. Each share is rounded down, but is at least one offset.",
    default_help="no limit",
    mode=Mode.STREAM,
)
MAX_BYTES_PER_TRIGGER = Option(
    "maxBytesPerTrigger",
    Use.READ,
    values.SIZE,
    "About how many bytes of the log a micro-batch has. The partitions share it in proportion to "
    "their backlogs.",
    default_help="no limit",
    mode=Mode.STREAM,
)
MIN_OFFSETS_PER_TRIGGER = Option(
    "minOffsetsPerTrigger",
    Use.READ,
    values.LONG,
    "A micro-batch waits until there are this many offsets, or until `maxTriggerDelay` has passed. "
    "The first micro-batch after a start does not wait. `availableNow` also reads the last "
    "offsets, even if there are fewer.",
    default_help="a micro-batch does not wait",
    mode=Mode.STREAM,
)
MAX_TRIGGER_DELAY = Option(
    "maxTriggerDelay",
    Use.READ,
    values.DURATION,
    "The longest time that a micro-batch waits because of `minOffsetsPerTrigger`.",
    default="15m",
    mode=Mode.STREAM,
)
AS_OF_VERSION = Option(
    VERSION_OPTION,
    Use.READ,
    as_of.AS_OF_VERSION,
    "Reads one topic of a klog root as it was after the commit with this version. `klog history` "
    "shows the versions.",
    default_help="the last version",
    mode=Mode.BATCH,
    wrong_mode_reason=_NO_PAST,
)
AS_OF_TIMESTAMP = Option(
    TIME_OPTION,
    Use.READ,
    as_of.AS_OF_TIMESTAMP,
    "Reads one topic of a klog root as it was after the last commit at or before this time. Set "
    "this option or `asOfVersion`, not both.",
    default_help="the last version",
    mode=Mode.BATCH,
    wrong_mode_reason=_NO_PAST,
)
COLUMNS = Option(
    "columns",
    Use.READ,
    values.COLUMN_LIST,
    "The columns of the result. klog does not decode the others.",
    default_help="all columns; `headers` only with `includeHeaders`",
)


def _engine(use: Use, page_part: str, tasks: str, verb: str) -> Option[str]:
    return Option(
        "engine",
        use,
        values.choice("auto", "python", "jvm", any_case=True),
        f"Which [engine](engines.md#{page_part}) runs the tasks that {tasks}. `auto`: the JVM if "
        f"the session has klog's jar and the JVM can {verb}, else Python. `jvm`: it is an error if "
        f"the JVM cannot {verb}.",
        default="auto",
        default_help="or the conf `spark.klog.engine`"
        if use is Use.READ
        else "or the confs `spark.klog.write.engine` and `spark.klog.engine`",
    )


ENGINE = _engine(Use.READ, "which-engine-reads", "decode records", "read this")

# Writes.

WRITE_PATH = Option(
    "path",
    Use.WRITE,
    values.TEXT,
    "What `save()` and `start()` get: the klog root.",
    default_help="required; `save()` or `start()` sets it",
)
WRITE_ENGINE = _engine(Use.WRITE, "which-engine-writes", "encode rows", "write this")
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
    default_help="a stream: the id of its query; a batch: none",
)
TRANSACTION_VERSION = Option(
    "transactionVersion",
    Use.WRITE,
    values.whole_number(0, MAX_OFFSET),
    "The number of this write. If it is not above the last number that the `transactionalId` has "
    "written, the write does nothing.",
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
    "The topic for [rows that cannot be written](exactly-once.md#rows-that-cannot-be-written). "
    "Their headers say the reason.",
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
    "The codec of the batches. `uncompressed` means `none`, `producer` means `zstd`.",
    default_help="`compression.type` of the topic, else `zstd`",
    kafka_name="kafka.compression.type",
)
BATCH_SIZE = Option(
    "batch.size",
    Use.WRITE,
    values.byte_count(MAX_BATCH_BYTES),
    "The maximum size of a batch in bytes before compression. `max.message.bytes` can make batches "
    "smaller.",
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


OPTION_TABLE: tuple[Option[Any], ...] = (
    READ_PATH,
    READ_PATHS,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    ASSIGN,
    STARTING_OFFSETS,
    STARTING_TIMESTAMP,
    STARTING_OFFSETS_BY_TIMESTAMP,
    STARTING_OFFSETS_BY_TIMESTAMP_STRATEGY,
    ENDING_OFFSETS,
    ENDING_TIMESTAMP,
    ENDING_OFFSETS_BY_TIMESTAMP,
    ISOLATION_LEVEL,
    INCLUDE_HEADERS,
    FAIL_ON_DATA_LOSS,
    MIN_PARTITIONS,
    MAX_RECORDS_PER_PARTITION,
    MAX_BYTES_PER_PARTITION,
    MAX_OFFSETS_PER_TRIGGER,
    MAX_BYTES_PER_TRIGGER,
    MIN_OFFSETS_PER_TRIGGER,
    MAX_TRIGGER_DELAY,
    AS_OF_VERSION,
    AS_OF_TIMESTAMP,
    COLUMNS,
    ENGINE,
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
    *STORAGE_OPTIONS,
    FSSPEC,
    *PLANNED_OPTIONS,
)
