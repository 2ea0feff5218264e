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
    "What `load()` has: a klog root, or the log directories of a broker with commas between them.",
)
READ_PATHS = Option(
    "paths",
    Use.READ,
    values.PATH_LIST,
    "What `load()` has as a list: the log directories of a broker, as JSON. Wins over `path`.",
)
SUBSCRIBE = Option("subscribe", Use.READ, values.TOPIC_LIST, "The topics to read.")
SUBSCRIBE_PATTERN = Option(
    "subscribePattern",
    Use.READ,
    values.REGULAR_EXPRESSION,
    "The topics to read: those in whose name the pattern is found. Kafka's internal topics never "
    "match.",
)
ASSIGN = Option("assign", Use.READ, values.PARTITION_LISTS, "The partitions to read.")
STARTING_OFFSETS = Option(
    "startingOffsets",
    Use.READ,
    limits.OFFSET_RANGE_LIMIT,
    "Where the read starts. JSON must name every partition of the read; -2 is earliest, -1 latest. "
    "Only a stream can start at `latest`. `-100` is the last 100 offsets of each partition, "
    "`now-10m` the records of the last ten minutes, `2026-11-01T00:00:00Z` those since then.",
    default="earliest",
    stream_default="latest",
)
STARTING_TIMESTAMP = Option(
    "startingTimestamp",
    Use.READ,
    limits.TIMESTAMP,
    "A time in ms since 1970: the read starts at the first record at or after it. -1 is latest, -2 "
    "earliest, -3 the record with the largest time. An age and a time with its zone do too. Wins "
    "over `startingOffsetsByTimestamp` and `startingOffsets`.",
)
STARTING_OFFSETS_BY_TIMESTAMP = Option(
    "startingOffsetsByTimestamp",
    Use.READ,
    limits.TIMESTAMPS_BY_PARTITION,
    "The same by partition: JSON that must name every partition of the read. Wins over "
    "`startingOffsets`.",
)
STARTING_OFFSETS_BY_TIMESTAMP_STRATEGY = Option(
    "startingOffsetsByTimestampStrategy",
    Use.READ,
    values.choice("error", "latest", any_case=True),
    "What happens to a partition that has no record at or after the time of its start: an error, "
    "or the read starts at its latest offset.",
    default="error",
)
ENDING_OFFSETS = Option(
    "endingOffsets",
    Use.READ,
    limits.OFFSET_RANGE_LIMIT,
    "Where the read ends, exclusive. JSON must name every partition of the read; -1 is latest. "
    "`earliest` is not allowed. `-100`, `now-10m` and a time are those of `startingOffsets`.",
    default="latest",
    mode=Mode.BATCH,
    wrong_mode_reason=_NO_END,
)
ENDING_TIMESTAMP = Option(
    "endingTimestamp",
    Use.READ,
    limits.TIMESTAMP,
    "A time: the read ends before the first record at or after it, or at latest if there is none. "
    "Wins over `endingOffsetsByTimestamp` and `endingOffsets`.",
    mode=Mode.BATCH,
    wrong_mode_reason=_NO_END,
)
ENDING_OFFSETS_BY_TIMESTAMP = Option(
    "endingOffsetsByTimestamp",
    Use.READ,
    limits.TIMESTAMPS_BY_PARTITION,
    "The same by partition: JSON that must name every partition of the read. Wins over "
    "`endingOffsets`.",
    mode=Mode.BATCH,
    wrong_mode_reason=_NO_END,
)
ISOLATION_LEVEL = Option(
    "isolationLevel",
    Use.READ,
    values.choice(READ_COMMITTED, READ_UNCOMMITTED),
    "`read_committed` leaves out the records of aborted and open transactions.",
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
    "With `true`, records that are gone before they are read are an error. With `false`, they are "
    "a warning, and the read goes on with the others.",
    default="true",
)
MIN_PARTITIONS = Option(
    "minPartitions",
    Use.READ,
    values.whole_number(1, MAX_INT),
    "The minimum number of tasks, unless there are fewer offsets. If it is not set, a task reads "
    "about 64 MiB.",
)
MAX_RECORDS_PER_PARTITION = Option(
    "maxRecordsPerPartition",
    Use.READ,
    values.whole_number(1, MAX_LONG),
    "The maximum number of offsets of a task.",
)
MAX_BYTES_PER_PARTITION = Option(
    "maxBytesPerPartition",
    Use.READ,
    values.SIZE,
    "The size of a task in bytes of the log, about: a task begins and ends at an index entry. The "
    "default is 64 MiB.",
)
MAX_OFFSETS_PER_TRIGGER = Option(
    "maxOffsetsPerTrigger",
    Use.READ,
    values.whole_number(0, MAX_LONG),
    "The maximum number of offsets of a micro-batch, shared by partitions as their backlogs are: "
    "each share is rounded down, but is at least one offset.",
    mode=Mode.STREAM,
)
MAX_BYTES_PER_TRIGGER = Option(
    "maxBytesPerTrigger",
    Use.READ,
    values.SIZE,
    "The size of a micro-batch in bytes of the log, about, shared by partitions as their backlogs "
    "are.",
    mode=Mode.STREAM,
)
MIN_OFFSETS_PER_TRIGGER = Option(
    "minOffsetsPerTrigger",
    Use.READ,
    values.LONG,
    "A micro-batch waits until there are so many offsets, or until `maxTriggerDelay` has passed. "
    "The first one after a start does not wait, and `availableNow` reads the rest.",
    mode=Mode.STREAM,
)
MAX_TRIGGER_DELAY = Option(
    "maxTriggerDelay",
    Use.READ,
    values.DURATION,
    "How long `minOffsetsPerTrigger` waits.",
    default="15m",
    mode=Mode.STREAM,
)
AS_OF_VERSION = Option(
    VERSION_OPTION,
    Use.READ,
    as_of.AS_OF_VERSION,
    "Reads one topic of a klog root as its commit of this version left it. `klog history` shows "
    "the versions.",
    mode=Mode.BATCH,
    wrong_mode_reason=_NO_PAST,
)
AS_OF_TIMESTAMP = Option(
    TIME_OPTION,
    Use.READ,
    as_of.AS_OF_TIMESTAMP,
    "The same as of the last commit at or before a time: ms since 1970, an age such as `now-1d`, "
    "or a time with its zone.",
    mode=Mode.BATCH,
    wrong_mode_reason=_NO_PAST,
)
COLUMNS = Option(
    "columns",
    Use.READ,
    values.COLUMN_LIST,
    "The columns of the result. The others are not decoded. The default is all columns, "
    "`headers` only with `includeHeaders`.",
)


def _engine(use: Use, step: str, verb: str) -> Option[str]:
    return Option(
        "engine",
        use,
        values.choice("auto", "python", "jvm", any_case=True),
        f"What {step}: `python`, or `jvm` with klog's jar (docs/engines.md). `auto` is the JVM "
        f"where it can {verb}, else Python; `jvm` is an error where it cannot.",
        default="auto",
    )


ENGINE = _engine(Use.READ, "decodes", "read")

# Writes.

WRITE_PATH = Option("path", Use.WRITE, values.TEXT, "What `save()` and `start()` have: the root.")
WRITE_ENGINE = _engine(Use.WRITE, "encodes", "write")
DISTRIBUTION_MODE = Option(
    "distributionMode",
    Use.WRITE,
    values.choice("none", "hash", any_case=True),
    "With `hash` a write of the JVM leaves one file a partition and roll, where that saves files: "
    "one task gets all batches of a partition. With `none` each task writes its rows, as Python's "
    "tasks always do.",
    default="hash",
)
TOPIC = Option(
    "topic",
    Use.WRITE,
    values.TOPIC_NAME,
    "The topic to write to. Wins over a column `topic`; one of the two is required.",
)
TRANSACTIONAL_ID = Option(
    "transactionalId",
    Use.WRITE,
    values.TRANSACTIONAL_ID_TEXT,
    "The name of the writer. A batch write sets it together with `transactionVersion`. The default "
    "of a stream is the id of its query.",
)
TRANSACTION_VERSION = Option(
    "transactionVersion",
    Use.WRITE,
    values.whole_number(0, MAX_OFFSET),
    "The number of this write. A write at or below the last number of its `transactionalId` does "
    "nothing.",
    mode=Mode.BATCH,
    wrong_mode_reason="a stream counts its batches itself. Leave it out",
)
CREATE_TOPIC = Option(
    "createTopic", Use.WRITE, values.BOOLEAN, "Whether a missing topic is created.", default="true"
)
NUM_PARTITIONS = Option(
    "numPartitions",
    Use.WRITE,
    values.whole_number(1, MAX_PARTITIONS),
    "The number of partitions of a topic that the write creates. The default is `num.partitions` "
    "of the root.",
)
DEAD_LETTER_TOPIC = Option(
    "deadLetterTopic",
    Use.WRITE,
    values.TOPIC_NAME,
    "The topic for rows that cannot be written, with the reason in headers. If it is not set, such "
    "a row fails the write.",
)
WRITE_HEADERS = Option(
    "includeHeaders",
    Use.WRITE,
    values.BOOLEAN,
    "Has no effect, as in Spark's Kafka sink: headers are written if there is a column `headers`.",
    default="false",
)
COMPRESSION_TYPE = Option(
    "compression.type",
    Use.WRITE,
    values.choice(*CODEC_NAMES, "uncompressed", "producer"),
    "The codec. `uncompressed` means `none`, `producer` means `zstd`. The default is the topic's "
    "config, else `zstd`.",
    kafka_name="kafka.compression.type",
)
BATCH_SIZE = Option(
    "batch.size",
    Use.WRITE,
    values.byte_count(MAX_BATCH_BYTES),
    "The size of a batch before compression.",
    default=str(DEFAULT_BATCH_BYTES),
    kafka_name="kafka.batch.size",
)
BUFFER_MEMORY = Option(
    "buffer.memory",
    Use.WRITE,
    values.byte_count(MAX_LONG),
    "How many bytes of rows and batches a task keeps in memory. More wait in a temporary file.",
    default=str(BUFFER_BYTES),
    kafka_name="kafka.buffer.memory",
)
PARTITIONER = Option(
    "partitioner",
    Use.WRITE,
    values.choice(*PARTITIONERS),
    "Which partition a row without a column `partition` goes to. `murmur2` is Kafka's: by the key, "
    "and sticky for a row without a key.",
    default=PARTITIONERS[0],
)
TOPIC_CONFIGS: tuple[Option[Any], ...] = (
    *(
        Option(
            f"compression.{CODEC_NAMES[codec]}.level",
            Use.WRITE,
            values.topic_config(f"compression.{CODEC_NAMES[codec]}.level"),
            f"The level of {CODEC_NAMES[codec]}. The default is the topic's config.",
            kafka_name=f"kafka.compression.{CODEC_NAMES[codec]}.level",
        )
        for codec in CODEC_LEVELS
    ),
    Option(
        "segment.bytes",
        Use.WRITE,
        values.topic_config("segment.bytes"),
        "The maximum size of a segment. The default is the topic's config.",
    ),
    Option(
        "max.message.bytes",
        Use.WRITE,
        values.topic_config("max.message.bytes"),
        "The maximum size of a batch after compression. The default is the topic's config.",
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
