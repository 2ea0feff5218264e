"""The options of a write, parsed by the table; names and meaning are Spark's Kafka sink's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from klog.connector.options import write_option_table as table
from klog.connector.options.option import Use
from klog.connector.options.option_defaults import BUFFER_BYTES
from klog.connector.options.option_map import OptionMap, option_map
from klog.connector.options.spark_paths import write_path
from klog.connector.options.storage_options import (
    NO_STORAGE_OPTIONS,
    StorageOptions,
    parse_storage_options,
)
from klog.connector.options.unknown_options import unknown_option
from klog.errors import OptionError


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write, checked.

    Attributes:
        path: The root; an absolute path or a URL.
        topic: The topic of all rows; None if the column `topic` names the topic of each.
        transactional_id: The name of the writer, if it has one.
        transaction_version: The number of a batch write by that name.
        create_topic: Whether a missing topic is created.
        num_partitions: The partitions of a topic that is created; None for the root's number.
        dead_letter_topic: The topic for rows that cannot be written, if any.
        segment_options: The texts of the options that decide how rows become segments.
        buffer_bytes: How many bytes of rows a task gathers.
        storage: The options of the stores.
        engine: What runs the tasks: `auto`, `python` or `jvm`.
    """

    path: str
    topic: str | None = None
    transactional_id: str | None = None
    transaction_version: int | None = None
    create_topic: bool = True
    num_partitions: int | None = None
    dead_letter_topic: str | None = None
    segment_options: Mapping[str, str] = field(default_factory=dict)
    buffer_bytes: int = BUFFER_BYTES
    storage: StorageOptions = NO_STORAGE_OPTIONS
    engine: str = "auto"


def parse_write_options(options: Mapping[str, str], *, is_streaming: bool = False) -> WriteOptions:
    """Parse and check the options of a write.

    Args:
        options: All options as Spark hands them over.
        is_streaming: Whether a stream writes.

    Raises:
        OptionError: An option is wrong; the message begins with its name.
    """
    values = option_map(options, Use.WRITE, is_streaming=is_streaming)
    values.check_mode(Use.WRITE)
    values.check(table.WRITE_HEADERS)
    values.check(table.DISTRIBUTION_MODE)
    segment_options = segment_option_map(
        {row.name: values.texts[row.name] for row in table.SEGMENT_OPTIONS if row in values}
    )
    parsed = WriteOptions(
        path=write_path(options),
        topic=values.get(table.TOPIC),
        transactional_id=values.get(table.TRANSACTIONAL_ID),
        transaction_version=values.get(table.TRANSACTION_VERSION),
        create_topic=values[table.CREATE_TOPIC],
        num_partitions=values.get(table.NUM_PARTITIONS),
        dead_letter_topic=values.get(table.DEAD_LETTER_TOPIC),
        segment_options=segment_options.texts,
        buffer_bytes=segment_options[table.BUFFER_MEMORY],
        storage=parse_storage_options(options),
        engine=values[table.WRITE_ENGINE],
    )
    if parsed.topic is not None and parsed.topic == parsed.dead_letter_topic:
        raise OptionError(
            f"deadLetterTopic: must not be the topic of the write, got {parsed.topic!r}. Use "
            "another topic"
        )
    if not is_streaming:
        _check_transaction(parsed)
    return parsed


def segment_option_map(options: Mapping[str, str]) -> OptionMap:
    """Return the options that decide how rows become segments, by their exact names, checked.

    Args:
        options: The texts of the options by name, and no other option.

    Raises:
        OptionError: An option is unknown or its text has no value.
    """
    names = [option.name for option in table.SEGMENT_OPTIONS]
    for name in options:
        if name not in names:
            raise unknown_option(name, Use.WRITE.value, names)
    values = OptionMap(options)
    values.check(*table.SEGMENT_OPTIONS)
    return values


def _check_transaction(parsed: WriteOptions) -> None:
    if (parsed.transactional_id is None) != (parsed.transaction_version is None):
        raise OptionError(
            "transactionalId, transactionVersion: must be set together, or not at all: the version "
            "says which write is tried again. In foreachBatch, it is the id of the batch"
        )
