"""The options of reads: a row each, in the order of docs/options.md."""

from __future__ import annotations

from typing import Any

from klog.connector.options import as_of
from klog.connector.options import offset_range_values as limits
from klog.connector.options import option_values as values
from klog.connector.options.as_of import TIME_OPTION, VERSION_OPTION
from klog.connector.options.engine_option import engine_option
from klog.connector.options.option import Mode, Option, Use
from klog.connector.options.option_defaults import READ_COMMITTED, READ_UNCOMMITTED, TARGET_BYTES
from klog.connector.options.option_values import MAX_INT, MAX_LONG

_NO_END = "a stream has no end. Use spark.read for a range"
_NO_PAST = (
    "a stream reads what commits add, and none adds to an earlier version. Use spark.read; a "
    "stream starts in the past by startingOffsets or startingTimestamp"
)

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
    "What happens if a partition has no record at or after the start time. `error`: the read "
    "fails. `latest`: the read starts at the latest offset of the partition. An age, such as "
    "`now-10m`, never fails: the read then starts at the latest offset.",
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
    default_help=f"none; a task reads about {TARGET_BYTES >> 20} MiB",
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
    "at an entry of a segment's [index](topic-configs.md#segments-and-their-indexes).",
    default_help=f"{TARGET_BYTES >> 20} MiB",
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
    "About how many bytes of the log a micro-batch has, as they are in its files, so compressed "
    "bytes. The partitions share it in proportion to their backlogs. If `maxOffsetsPerTrigger` is "
    "set too, a partition ends at the limit that comes first.",
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
ENGINE = engine_option(Use.READ, "which-engine-reads", "decode records", "do this read")

READ_OPTIONS: tuple[Option[Any], ...] = (
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
)
