"""The options of a read, parsed by the table; names and meaning are Spark's Kafka connector's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from klog.connector.options import option_table as table
from klog.connector.options.consumer_strategy import ConsumerStrategy
from klog.connector.options.offset_range_limit import (
    EARLIEST,
    LATEST,
    LimitsByPartition,
    OffsetForTime,
    OffsetRangeLimit,
)
from klog.connector.options.option import Option, Use
from klog.connector.options.option_map import OptionMap, option_map
from klog.connector.options.read_columns import COLUMNS, DEFAULT_COLUMNS
from klog.connector.options.storage_options import (
    NO_STORAGE_OPTIONS,
    StorageOptions,
    parse_storage_options,
)
from klog.errors import OptionError

_STRATEGIES: tuple[Option[Any], ...] = (table.SUBSCRIBE, table.SUBSCRIBE_PATTERN, table.ASSIGN)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read, checked.

    Attributes:
        consumer_strategy: The partitions to read.
        starting: Where the read starts, inclusive.
        ending: Where the read ends, exclusive.
        committed_only: Whether records of aborted and open transactions are left out.
        fail_on_data_loss: Whether records that are gone are an error or a warning.
        min_partitions: The smallest number of tasks; 0 for no minimum.
        is_streaming: Whether the options are of a stream, whose errors name another next step.
        storage: The options of the stores.
        columns: The columns to decode, in the order of the schema.
    """

    consumer_strategy: ConsumerStrategy
    starting: OffsetRangeLimit = EARLIEST
    ending: OffsetRangeLimit = LATEST
    committed_only: bool = True
    fail_on_data_loss: bool = True
    min_partitions: int = 0
    is_streaming: bool = False
    storage: StorageOptions = NO_STORAGE_OPTIONS
    columns: tuple[str, ...] = DEFAULT_COLUMNS


def parse_read_options(options: Mapping[str, str], *, is_streaming: bool = False) -> ReadOptions:
    """Parse and check the options of a read.

    A stream starts at `latest` by default and has no end, as in Spark's Kafka connector.

    Args:
        options: All options as Spark hands them over.
        is_streaming: Whether the read is a stream.

    Raises:
        OptionError: An option is wrong; the message begins with its name.
    """
    values = option_map(options, Use.READ, is_streaming=is_streaming)
    shared = _parse_shared(options, values)
    if is_streaming:
        values.check_mode(Use.READ)
        return replace(shared, is_streaming=True)
    ending = values[table.ENDING_OFFSETS]
    ending_timestamp = values.get(table.ENDING_TIMESTAMP)
    if ending_timestamp is not None:
        ending = OffsetForTime(ending_timestamp, latest_if_no_match=True)
    _refuse_empty_batch(table.STARTING_OFFSETS, shared.starting, LATEST)
    _refuse_empty_batch(table.ENDING_OFFSETS, ending, EARLIEST)
    return replace(shared, ending=ending)


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
    return ReadOptions(
        consumer_strategy=_consumer_strategy(values),
        starting=_starting(values),
        committed_only=values[table.ISOLATION_LEVEL] == table.READ_COMMITTED,
        fail_on_data_loss=values[table.FAIL_ON_DATA_LOSS],
        min_partitions=values.get(table.MIN_PARTITIONS) or 0,
        storage=parse_storage_options(options),
        columns=_columns(values),
    )


def _consumer_strategy(values: OptionMap) -> ConsumerStrategy:
    options = [option for option in _STRATEGIES if option in values]
    if len(options) != 1:
        names = " and ".join(option.name for option in options) or "none"
        raise OptionError(f"subscribe, subscribePattern, assign: must set exactly one, got {names}")
    strategy: ConsumerStrategy = values[options[0]]
    return strategy


def _starting(values: OptionMap) -> OffsetRangeLimit:
    limit = values[table.STARTING_OFFSETS]
    strategy = values[table.STARTING_OFFSETS_BY_TIMESTAMP_STRATEGY]
    timestamp = values.get(table.STARTING_TIMESTAMP)
    if timestamp is None:
        return limit
    return OffsetForTime(timestamp, latest_if_no_match=strategy == "latest")


def _columns(values: OptionMap) -> tuple[str, ...]:
    columns = COLUMNS if values[table.INCLUDE_HEADERS] else DEFAULT_COLUMNS
    names = values.get(table.COLUMNS)
    if names is None:
        return columns
    if "headers" in names and "headers" not in columns:
        raise OptionError("columns: headers needs includeHeaders=true. Set it too")
    return names


def _refuse_empty_batch(
    option: Option[OffsetRangeLimit], limit: OffsetRangeLimit, refused: OffsetRangeLimit
) -> None:
    """Raise `OptionError` for a start or end with which every batch would be empty."""
    limits = limit.limits.values() if isinstance(limit, LimitsByPartition) else (limit,)
    if refused in limits:
        word = "latest (-1)" if refused == LATEST else "earliest (-2)"
        raise OptionError(
            f"{option.name}: must not be {word}, with which a batch is empty. Use "
            f"{option.default} or an offset"
        )
