"""The options of a read, parsed by the table; names and meaning are Spark's Kafka connector's."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from klog.connector.options import read_option_table as table
from klog.connector.options.as_of import AsOf, parse_as_of
from klog.connector.options.consumer_strategy import ConsumerStrategy
from klog.connector.options.offset_range_limit import (
    EARLIEST,
    LATEST,
    LastOffsets,
    LimitsByPartition,
    OffsetForTime,
    OffsetRangeLimit,
    PartitionLimit,
)
from klog.connector.options.offset_range_values import for_missing_times
from klog.connector.options.option import Option, Use
from klog.connector.options.option_defaults import READ_COMMITTED
from klog.connector.options.option_map import OptionMap, option_map
from klog.connector.options.option_values import LONG
from klog.connector.options.read_columns import COLUMNS, DEFAULT_COLUMNS
from klog.connector.options.storage_options import (
    NO_STORAGE_OPTIONS,
    StorageOptions,
    parse_storage_options,
)
from klog.errors import NoSubscriptionError, OptionError

_EMPTY_STARTS: Mapping[PartitionLimit, str] = {LATEST: "latest (-1)", LastOffsets(0): "-0"}
_EMPTY_ENDS: Mapping[PartitionLimit, str] = {EARLIEST: "earliest (-2)"}
_STRATEGIES: tuple[Option[Any], ...] = (table.SUBSCRIBE, table.SUBSCRIBE_PATTERN, table.ASSIGN)


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """How a read is parted into tasks.

    Attributes:
        min_tasks: The smallest number of tasks, unless there are fewer offsets; 0 for no minimum.
        max_offsets: The largest number of offsets of a task; None for no maximum.
        max_bytes: The size of a task, about; None for klog's own.
    """

    min_tasks: int = 0
    max_offsets: int | None = None
    max_bytes: int | None = None


NO_TASK_LIMITS = TaskLimits()


@dataclass(frozen=True, slots=True)
class TriggerLimits:
    """How much a micro-batch reads, and what it waits for.

    Attributes:
        max_offsets: The largest number of offsets; None for no maximum.
        max_bytes: The largest size in bytes of the log, about; None for no maximum.
        min_offsets: The number of offsets that it waits for; 0 for none.
        max_delay_ms: How long it waits for them.
    """

    max_offsets: int | None = None
    max_bytes: int | None = None
    min_offsets: int = 0
    max_delay_ms: int = 900_000


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read, checked.

    Attributes:
        consumer_strategy: The partitions to read.
        starting: Where the read starts, inclusive.
        ending: Where the read ends, exclusive.
        starting_option: The option that says where it starts, as errors name it.
        ending_option: The option that says where it ends.
        committed_only: Whether records of aborted and open transactions are left out.
        fail_on_data_loss: Whether records that are gone are an error or a warning.
        task_limits: How the read is parted into tasks.
        trigger_limits: How much a micro-batch reads.
        is_streaming: Whether the options are of a stream, whose errors name another next step.
        as_of: The earlier version that is read; None for what the topics have now.
        storage: The options of the stores.
        columns: The columns to decode, in the order of the schema.
        engine: What decodes: `auto`, `python` or `jvm`.
    """

    consumer_strategy: ConsumerStrategy
    starting: OffsetRangeLimit = EARLIEST
    ending: OffsetRangeLimit = LATEST
    starting_option: str = table.STARTING_OFFSETS.name
    ending_option: str = table.ENDING_OFFSETS.name
    committed_only: bool = True
    fail_on_data_loss: bool = True
    task_limits: TaskLimits = NO_TASK_LIMITS
    trigger_limits: TriggerLimits = TriggerLimits()
    is_streaming: bool = False
    as_of: AsOf | None = None
    storage: StorageOptions = NO_STORAGE_OPTIONS
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    engine: str = "auto"


def parse_read_options(
    options: Mapping[str, str], *, is_streaming: bool = False, is_loaded: bool = False
) -> ReadOptions:
    """Parse and check the options of a read.

    A stream starts at `latest` by default and has no end, as in Spark's Kafka connector.

    Args:
        options: All options as Spark hands them over.
        is_streaming: Whether the read is a stream.
        is_loaded: Whether `parse_shared_options` was called before, and gave its warnings.

    Raises:
        OptionError: An option is wrong; the message begins with its name.
    """
    with _without_warnings() if is_loaded else nullcontext():
        values = option_map(options, Use.READ, is_streaming=is_streaming)
        shared = _parse_shared(options, values)
    values.check_mode(Use.READ)
    _check_trigger_order(values)
    if is_streaming:
        return replace(shared, is_streaming=True, trigger_limits=_trigger_limits(values))
    shared = replace(shared, as_of=_as_of(values))
    if shared.starting_option == table.STARTING_OFFSETS.name:
        _refuse_empty_batch(table.STARTING_OFFSETS, shared.starting, _EMPTY_STARTS)
    option = values.first_set(
        table.ENDING_TIMESTAMP, table.ENDING_OFFSETS_BY_TIMESTAMP, table.ENDING_OFFSETS
    )
    ending = for_missing_times(values[option], latest_if_no_match=True)
    if option is table.ENDING_OFFSETS:
        _refuse_empty_batch(option, ending, _EMPTY_ENDS)
    _refuse_times_that_end_before_they_start(shared.starting, ending)
    return replace(shared, ending=ending, ending_option=option.name)


@contextmanager
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def parse_shared_options(options: Mapping[str, str]) -> ReadOptions:
    """Parse and check the options that mean the same for a batch and for a stream.

    Spark does not say at `load()` which of the two the read is. An option that is wrong for only
    one of them, such as where a read ends, is not looked at.

    Args:
        options: All options as Spark hands them over.

    Raises:
        OptionError: An option is wrong for both.
    """
    return _parse_shared(options, option_map(options, Use.READ))


def _parse_shared(options: Mapping[str, str], values: OptionMap) -> ReadOptions:
    option = values.first_set(
        table.STARTING_TIMESTAMP, table.STARTING_OFFSETS_BY_TIMESTAMP, table.STARTING_OFFSETS
    )
    is_latest = values[table.STARTING_OFFSETS_BY_TIMESTAMP_STRATEGY] == "latest"
    return ReadOptions(
        consumer_strategy=_consumer_strategy(values),
        starting=for_missing_times(values[option], latest_if_no_match=is_latest),
        starting_option=option.name,
        committed_only=values[table.ISOLATION_LEVEL] == READ_COMMITTED,
        fail_on_data_loss=values[table.FAIL_ON_DATA_LOSS],
        task_limits=TaskLimits(
            values.get(table.MIN_PARTITIONS) or 0,
            values.get(table.MAX_RECORDS_PER_PARTITION),
            values.get(table.MAX_BYTES_PER_PARTITION),
        ),
        storage=parse_storage_options(options),
        columns=selected_columns(values),
        engine=values[table.ENGINE],
    )


def _consumer_strategy(values: OptionMap) -> ConsumerStrategy:
    options = [option for option in _STRATEGIES if option in values]
    message = "subscribe, subscribePattern, assign: must set exactly one, got"
    if not options:
        raise NoSubscriptionError(f"{message} none")
    if len(options) > 1:
        raise OptionError(f"{message} {' and '.join(option.name for option in options)}")
    strategy: ConsumerStrategy = values[options[0]]
    return strategy


def _as_of(values: OptionMap) -> AsOf | None:
    return parse_as_of(
        values.texts.get(table.AS_OF_VERSION.name), values.texts.get(table.AS_OF_TIMESTAMP.name)
    )


def _trigger_limits(values: OptionMap) -> TriggerLimits:
    return TriggerLimits(
        values.get(table.MAX_OFFSETS_PER_TRIGGER),
        values.get(table.MAX_BYTES_PER_TRIGGER),
        values.get(table.MIN_OFFSETS_PER_TRIGGER) or 0,
        values[table.MAX_TRIGGER_DELAY],
    )


def _check_trigger_order(values: OptionMap) -> None:
    """Compare the limits of a trigger, of a batch too, which ignores them one by one."""
    options = (table.MIN_OFFSETS_PER_TRIGGER, table.MAX_OFFSETS_PER_TRIGGER)
    if not all(option in values for option in options):
        return
    smallest, largest = (LONG.value(option.name, values.texts[option.name]) for option in options)
    if smallest > largest:
        raise OptionError(
            f"minOffsetsPerTrigger: must not be above maxOffsetsPerTrigger, got {smallest} and "
            f"{largest}. Set a lower minimum"
        )


def selected_columns(values: OptionMap) -> tuple[str, ...]:
    """Return the columns that a read has.

    Args:
        values: The options of the read.

    Raises:
        OptionError: `columns` is wrong, or has headers without `includeHeaders`.
    """
    columns = COLUMNS if values[table.INCLUDE_HEADERS] else DEFAULT_COLUMNS
    names = values.get(table.COLUMNS)
    if names is None:
        return columns
    if "headers" in names and "headers" not in columns:
        raise OptionError("columns: headers needs includeHeaders=true. Set it too")
    return names


def _refuse_times_that_end_before_they_start(
    starting: OffsetRangeLimit, ending: OffsetRangeLimit
) -> None:
    """Raise `OptionError` for a time by partition that ends before it starts.

    Spark's Kafka connector compares these before it looks for offsets, and others only after that.
    """
    if not isinstance(starting, LimitsByPartition) or not isinstance(ending, LimitsByPartition):
        return
    for name, start in starting.limits.items():
        end = ending.limits.get(name)
        if not isinstance(start, OffsetForTime) or not isinstance(end, OffsetForTime):
            continue
        if 0 <= end.timestamp_ms < start.timestamp_ms:
            raise OptionError(
                f"endingOffsetsByTimestamp: must not be before startingOffsetsByTimestamp, and "
                f"{name} has {end.timestamp_ms} and {start.timestamp_ms}. Give a later end"
            )


def _refuse_empty_batch(
    option: Option[OffsetRangeLimit],
    limit: OffsetRangeLimit,
    refused: Mapping[PartitionLimit, str],
) -> None:
    """Raise `OptionError` for a start or end with which every batch would be empty."""
    limits = limit.limits.values() if isinstance(limit, LimitsByPartition) else (limit,)
    for refused_limit, word in refused.items():
        if refused_limit in limits:
            raise OptionError(
                f"{option.name}: must not be {word}, with which a batch is empty. Use "
                f"{option.default} or an offset"
            )
