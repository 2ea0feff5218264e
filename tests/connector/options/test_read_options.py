"""Options of a read: defaults, names, and the options of a broker's client."""

from __future__ import annotations

import re
import warnings

import pytest

from klog.connector.options.consumer_strategy import Subscribe
from klog.connector.options.offset_range_limit import EARLIEST, LATEST
from klog.connector.options.option import Use
from klog.connector.options.option_map import REFUSED_KEYS
from klog.connector.options.option_table import OPTION_TABLE
from klog.connector.options.read_columns import DEFAULT_COLUMNS
from klog.connector.options.read_options import ReadOptions, parse_read_options
from klog.errors import OptionError
from tests.connector.options.parsed_options import (
    T,
    by_partition,
    check_refused,
    parse,
    parse_stream,
)

SUPPORTED = [row.name for row in OPTION_TABLE if row.use is Use.READ and row.is_supported]
PLANNED = [row.name for row in OPTION_TABLE if not row.is_supported]


def test_defaults() -> None:
    options = parse()
    assert options == ReadOptions(Subscribe(("t",)))
    assert (options.starting, options.ending) == (EARLIEST, LATEST)
    assert options.committed_only
    assert options.fail_on_data_loss
    assert options.columns == DEFAULT_COLUMNS
    assert not options.is_streaming
    assert parse_stream() == ReadOptions(Subscribe(("t",)), starting=LATEST, is_streaming=True)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("subscrib", "subscribe"),
        ("subscribePatern", "subscribePattern"),
        ("startingOffset", "startingOffsets"),
        ("staringoffsets", "startingOffsets"),
        ("isolation_level", "isolationLevel"),
        ("minPartition", "minPartitions"),
        ("includeHeader", "includeHeaders"),
        ("failOnDataLos", "failOnDataLoss"),
        ("column", "columns"),
    ],
)
def test_unknown_option_names_the_nearest(name: str, nearest: str) -> None:
    message = f"{name.lower()}: unknown read option. Did you mean {nearest}?"
    check_refused(T | {name: "x"}, message)


def test_unknown_option_like_no_other_lists_all() -> None:
    check_refused(T | {"zzz": "x"}, f"zzz: unknown read option. Use one of {', '.join(SUPPORTED)}")


@pytest.mark.parametrize("name", PLANNED)
def test_planned_option_is_refused_by_name(name: str) -> None:
    (option,) = [row for row in OPTION_TABLE if row.name == name]
    check_refused(T | {name: "1"}, f"{name}: not supported yet. {option.next_step}")
    assert option.next_step


@pytest.mark.parametrize("name", [name[:-1] for name in PLANNED])
def test_hint_names_no_option_that_is_refused(name: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_read_options(T | {name: "1"})
    assert not set(PLANNED) & set(re.findall(r"\w+", str(caught.value)))


def test_options_of_a_client_are_one_warning() -> None:
    options = {
        "kafka.bootstrap.servers": "h:9092",
        "kafka.security.protocol": "SSL",
        "kafka.group.id": "g",
        "kafkaConsumer.pollTimeoutMs": "5",
        "fetchOffset.numRetries": "3",
        "groupIdPrefix": "p",
    }
    with pytest.warns(UserWarning, match="have no effect") as caught:
        parsed = parse(**options)
    assert len(caught) == 1
    assert all(name.lower() in str(caught[0].message) for name in options)
    assert parsed == parse()


@pytest.mark.parametrize(
    "key",
    [
        "kafka.auto.offset.reset",
        "kafka.key.deserializer",
        "kafka.value.deserializer",
        "kafka.enable.auto.commit",
        "kafka.interceptor.classes",
    ],
)
@pytest.mark.parametrize("is_streaming", [False, True])
def test_options_of_a_client_that_spark_refuses(key: str, is_streaming: bool) -> None:
    assert key in REFUSED_KEYS[Use.READ]
    check_refused(
        T | {key.upper(): "x"}, f"{key}: klog ", "Remove this option", is_streaming=is_streaming
    )


def test_options_with_an_effect_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse(**{"kafka.isolation.level": "read_committed", "path": "x", "paths": "[]"})


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_stream_has_no_end(name: str) -> None:
    check_refused(T | {name: "latest"}, f"{name}: a stream has no end", is_streaming=True)


def test_stream_may_start_at_latest() -> None:
    assert parse_stream(startingOffsets="latest").starting == LATEST
    limits = parse_stream(startingOffsets='{"t":{"0":-1}}').starting
    assert limits == by_partition(p0=LATEST)
