"""The data source as Spark asks it: `schema()` at `load()`, then the reader of a batch or a stream.

The rule: an error of a batch speaks of a batch, an error of a stream of a stream.
"""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

import klog
from klog.connector.datasource import KlogDataSource
from klog.connector.options.read_columns import COLUMNS, DEFAULT_COLUMNS
from klog.connector.options.read_options import parse_read_options
from klog.connector.source.read_schema import schema_text
from klog.connector.source.row_schema import arrow_schema
from klog.errors import OptionError
from tests.connector.log_dirs import many, set_checkpoint, write_log

WRONG_FOR_BOTH = [
    {"startingOffsets": "newest"},
    {"startingOffsets": "{bad"},
    {"startingTimestamp": "x"},
    {"startingOffsetsByTimestampStrategy": "x"},
    {"minPartitions": "0"},
    {"includeHeaders": "maybe"},
    {"failOnDataLoss": "maybe"},
    {"isolationLevel": "committed"},
    {"columns": "valu"},
    {"assign": '{"t": [0]}'},
    {"endingOffset": "latest"},
    {"storage.endpont": "x"},
]
ENDS = [
    {},
    {"endingOffsets": "latest"},
    {"endingOffsets": '{"t": {"0": 1}}'},
    {"endingOffsets": "earliest"},
    {"endingOffsets": "newest"},
    {"endingTimestamp": "5"},
    {"endingTimestamp": "x"},
]
WRONG_FOR_A_BATCH = [
    {"startingOffsets": "latest"},
    {"startingOffsets": '{"t": {"0": -1}}'},
    {"endingOffsets": "earliest"},
    {"endingOffsets": '{"t": {"0": -2}}'},
    {"endingOffsets": "newest"},
    {"endingTimestamp": "x"},
]


def read_as_spark_does(options: dict[str, str], *, streaming: bool) -> None:
    source = KlogDataSource(options)
    source.schema()
    if streaming:
        source.streamReader(StructType([])).initialOffset()
    else:
        source.reader(StructType([]))


def refused(options: dict[str, str], *, streaming: bool) -> str:
    with pytest.raises(OptionError) as caught:
        read_as_spark_does(options, streaming=streaming)
    return str(caught.value)


def own_error(options: dict[str, str], *, streaming: bool) -> str:
    with pytest.raises(OptionError) as caught:
        parse_read_options(options, is_streaming=streaming)
    return str(caught.value)


@pytest.fixture
def options_of_topic(tmp_path: Path) -> dict[str, str]:
    write_log(tmp_path, {0: many(3)})
    return {"subscribe": "t", "path": str(tmp_path)}


@pytest.mark.parametrize("end", ENDS, ids=str)
@pytest.mark.parametrize("wrong", WRONG_FOR_BOTH, ids=str)
def test_error_of_both_batch_and_stream_is_raised_at_load(
    options_of_topic: dict[str, str], wrong: dict[str, str], end: dict[str, str]
) -> None:
    error = own_error(options_of_topic | wrong, streaming=False)
    with pytest.raises(OptionError) as caught:
        KlogDataSource(options_of_topic | wrong | end).schema()
    assert str(caught.value) == error
    for streaming in (False, True):
        assert refused(options_of_topic | wrong | end, streaming=streaming) == error


@pytest.mark.parametrize("wrong", WRONG_FOR_A_BATCH, ids=str)
def test_error_of_a_batch_does_not_mention_streams(
    options_of_topic: dict[str, str], wrong: dict[str, str]
) -> None:
    (name,) = wrong
    error = refused(options_of_topic | wrong, streaming=False)
    assert error.startswith(f"{name}: ")
    assert "stream" not in error


@pytest.mark.parametrize("end", ENDS[1:], ids=str)
def test_error_of_a_stream_mentions_its_end(
    options_of_topic: dict[str, str], end: dict[str, str]
) -> None:
    (name,) = end
    assert refused(options_of_topic | end, streaming=True).startswith(
        f"{name}: a stream has no end"
    )


def test_missing_topic_is_an_error_at_load_before_others(
    options_of_topic: dict[str, str],
) -> None:
    for end in (*ENDS, {"startingOffsets": "latest"}):
        with pytest.raises(OptionError, match="there is no topic nope"):
            KlogDataSource(options_of_topic | end | {"subscribe": "nope"}).schema()


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "latest", "startingTimestamp": "5"},
        {"endingOffsets": "earliest", "endingTimestamp": "5000"},
        {"endingOffsets": '{"t": {"0": 2}}'},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*ignored, because")
def test_right_options_are_read(options_of_topic: dict[str, str], options: dict[str, str]) -> None:
    read_as_spark_does(options_of_topic | options, streaming=False)


@pytest.mark.filterwarnings("error")
def test_load_of_a_stream_is_silent_about_batches(
    options_of_topic: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Spark does not say at `load()` what is loaded, and klog looks as for a batch."""
    set_checkpoint(Path(options_of_topic["path"]), "log-start-offset-checkpoint", {("t", 0): 2})
    options = options_of_topic | {
        "startingOffsets": '{"t": {"0": 1}}',
        "failOnDataLoss": "false",
        "maxOffsetsPerTrigger": "5",
    }
    stream = KlogDataSource(options)
    stream.schema()
    assert stream.streamReader(StructType([])).initialOffset() == {"t": {"0": 1}}
    assert caplog.messages == []
    batch = KlogDataSource(options)
    batch.schema()
    with pytest.warns(UserWarning, match="^maxOffsetsPerTrigger: ignored, as a batch has no trig"):
        reader = batch.reader(StructType([]))
    reader.partitions()
    (message,) = caplog.messages
    assert message.startswith("t-0: startingOffsets 1 is out of range, the log has offsets 2 to 3")


@pytest.mark.parametrize("has_schema", [False, True])
@pytest.mark.parametrize("is_streaming", [False, True])
def test_a_warning_about_options_is_given_once(
    options_of_topic: dict[str, str], is_streaming: bool, has_schema: bool
) -> None:
    """Spark asks for no schema if the user gives one, and makes each stream reader twice."""
    source = KlogDataSource(
        options_of_topic
        | {"startingOffsets": "earliest", "startingTimestamp": "5", "kafka.group.id": "g"}
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not has_schema:
            source.schema()
        travelled: KlogDataSource = pickle.loads(pickle.dumps(source))
        if is_streaming:
            pickle.dumps(travelled.streamReader(StructType([])))
            stream = travelled.streamReader(StructType([]))
            stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
        else:
            travelled.reader(StructType([])).partitions()
    assert [str(warning.message) for warning in caught] == [
        "klog reads files, not brokers: kafka.group.id have no effect",
        "startingOffsets: ignored, because startingTimestamp is set",
    ]


def test_an_assigned_partition_that_is_missing_is_one_warning(
    options_of_topic: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    del options_of_topic["subscribe"]
    options = options_of_topic | {"assign": '{"t": [0, 7]}'}
    for _ in range(2):
        caplog.clear()
        batch = KlogDataSource(options)
        batch.schema()
        batch.reader(StructType([])).partitions()
        (message,) = caplog.messages
        assert message.startswith("assign: there is no partition 7 of topic t")
        caplog.clear()
        source = KlogDataSource(options)
        source.schema()
        stream = source.streamReader(StructType([]))
        start = stream.initialOffset()
        for _ in range(2):
            stream.latestOffset(start, ReadAllAvailable())
        (message,) = caplog.messages
        assert message.startswith("assign: there is no partition 7 of topic t")


def test_a_stream_may_start_at_latest(options_of_topic: dict[str, str]) -> None:
    read_as_spark_does(options_of_topic | {"startingOffsets": "latest"}, streaming=True)


CREATES_A_TABLE = [
    {"external": "true", "location": "/r", "option.path": "/r", "option.subscribe": "t"},
    {"comment": "c", "a property": "of any name"},
    {"location": "/r", "option.subscribe": "t"},
    {},
]


@pytest.mark.parametrize("added", CREATES_A_TABLE, ids=str)
def test_a_catalog_table_is_created_with_the_columns_of_its_options(added: dict[str, str]) -> None:
    """What Spark 4.2.0 and 4.3.0 add to the options of a table, as seen there."""
    options = {"provider": "klog", "owner": "ann"} | added
    assert KlogDataSource(options).schema() == schema_text(DEFAULT_COLUMNS)
    headers = {"includeHeaders": "true", "option.includeHeaders": "true"}
    assert KlogDataSource(options | headers).schema() == schema_text(COLUMNS)
    assert KlogDataSource(options | {"option.COLUMNS": "value"}).schema() == "value binary"


def test_a_catalog_table_is_refused_without_options() -> None:
    source = KlogDataSource({})
    columns, text = StructType().add("value", "binary"), StructType().add("value", "string")
    for schema, step in ((columns, "SELECT"), (text, r"got string\): DROP TABLE t")):
        with pytest.raises(OptionError, match=step):
            source.reader(schema)
        with pytest.raises(OptionError, match=step):
            source.streamReader(schema).initialOffset()
    for write in (source.writer, source.streamWriter):
        with pytest.raises(OptionError, match="INSERT INTO t WITH"):
            write(columns, False)


def test_schema_of_spark_is_the_schema_of_the_rows(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(3)})
    source = KlogDataSource({"path": str(tmp_path), "subscribe": "t", "includeHeaders": "true"})
    fields = from_arrow_schema(arrow_schema(COLUMNS)).fields
    expected = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
    assert source.schema() == expected


@pytest.mark.parametrize("is_klog_root", [True, False])
def test_load_without_a_subscription_names_the_topics(tmp_path: Path, is_klog_root: bool) -> None:
    if is_klog_root:
        for topic in ("b", "a", "gone"):
            klog.open(tmp_path).create_topic(topic)
        klog.open(tmp_path).delete_topic("gone")
    else:
        for name in ("b-0", "a-0", "a-1"):
            write_log(tmp_path, {0: many(1)}, name)
    with pytest.raises(OptionError) as caught:
        KlogDataSource({"path": str(tmp_path)}).schema()
    assert str(caught.value) == (
        "subscribe, subscribePattern, assign: must set exactly one, got none; the topics here are "
        'a, b. Example: .option("subscribePattern", ".*") reads all'
    )


def test_load_of_many_topics_names_the_first(tmp_path: Path) -> None:
    for number in range(30):
        write_log(tmp_path, {0: many(1)}, f"t{number:02d}-0")
    with pytest.raises(OptionError, match=r"t18, t19, \.\.\.\. Example"):
        KlogDataSource({"path": str(tmp_path)}).schema()


def test_load_of_nothing_says_so_before_topics(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no directory"):
        KlogDataSource({"path": str(tmp_path / "nowhere")}).schema()
