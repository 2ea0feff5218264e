"""`spark.read.format("klog")`: a broker's directory as a table, compared with the consumer."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from tests.connector.log_dirs import write_log
from tests.corpus import Digest, Record, scene
from tests.corpus.damage import copy, flip_bit
from tests.support import batch_bytes, legacy_bytes

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("engine")]

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, "
    "timestamp timestamp, timestampType int"
)


def load(spark: SparkSession, roots: list[Path], **options: Any) -> DataFrame:
    """Load a broker's log directories."""
    texts = {name: str(value) for name, value in options.items()}
    return spark.read.format("klog").options(**texts).load([str(root) for root in roots])


def as_tuples(frame: DataFrame) -> set[tuple[Any, ...]]:
    """Return rows in the form of `expected`."""
    rows = frame.withColumn("ms", expr("unix_millis(timestamp)")).drop("timestamp").collect()
    return {
        (
            row.topic,
            row.partition,
            row.offset,
            row.ms,
            row.timestampType,
            None if row.key is None else bytes(row.key),
            None if row.value is None else sha256(row.value).hexdigest(),
            tuple((h.key, None if h.value is None else bytes(h.value)) for h in row.headers or ()),
        )
        for row in rows
    }


def expected(records: list[Record]) -> set[tuple[Any, ...]]:
    """Return the consumer's account as plain tuples, values by their digest."""
    return {
        (
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            record.timestamp_type,
            record.key,
            record.value.sha256
            if isinstance(record.value, Digest)
            else None
            if record.value is None
            else sha256(record.value).hexdigest(),
            record.headers,
        )
        for record in records
    }


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("name", ["records", "transactions", "compacted-after", "killed", "jbod"])
def test_a_scene_reads_as_the_consumer_read_it(spark: SparkSession, name: str, level: str) -> None:
    corpus = scene(name)
    records = [
        r
        for r in corpus.records()
        if r.topic != "time.unfit" and (r.read_committed or level == "read_uncommitted")
    ]
    topics = ",".join(sorted({r.topic for r in records}))
    frame = load(
        spark, corpus.log_dirs, subscribe=topics, isolationLevel=level, includeHeaders="true"
    )
    assert as_tuples(frame) == expected(records)


def test_the_schema_is_that_of_sparks_kafka_source(spark: SparkSession) -> None:
    frame = load(spark, scene("records").log_dirs, subscribe="headers")
    assert_df_equality(frame.limit(0), spark.createDataFrame([], SCHEMA))
    headed = load(spark, scene("records").log_dirs, subscribe="headers", includeHeaders="true")
    assert headed.schema["headers"].dataType.simpleString() == (
        "array<struct<key:string,value:binary>>"
    )
    without = [
        r.offset for r in scene("records").records() if r.topic == "headers" and not r.headers
    ]
    rows = headed.where("headers is null").select("offset").collect()
    assert without
    assert [row.offset for row in rows] == without


def test_columns_shrink_the_schema(spark: SparkSession) -> None:
    frame = load(spark, scene("records").log_dirs, subscribe="segments", columns="offset,key")
    assert frame.columns == ["key", "offset"]
    assert frame.count() == sum(r.topic == "segments" for r in scene("records").records())


def test_a_window_of_offsets(spark: SparkSession) -> None:
    start, end = json.dumps({"segments": {"0": 100, "1": -2}}), '{"segments": {"0": 110, "1": 3}}'
    frame = load(
        spark, scene("records").log_dirs, subscribe="segments", startingOffsets=start,
        endingOffsets=end,
    )  # fmt: skip
    rows = frame.orderBy("partition", "offset").select("partition", "offset").collect()
    assert [tuple(row) for row in rows] == [(0, o) for o in range(100, 110)] + [
        (1, o) for o in range(3)
    ]


@pytest.mark.parametrize("minimum", [1, 7, 40])
def test_min_partitions_splits_and_loses_nothing(spark: SparkSession, minimum: int) -> None:
    frame = load(spark, scene("records").log_dirs, subscribe="segments", minPartitions=minimum)
    assert frame.rdd.getNumPartitions() >= minimum
    offsets = [tuple(r) for r in frame.select("partition", "offset").collect()]
    assert sorted(offsets) == sorted(
        (r.partition, r.offset) for r in scene("records").records() if r.topic == "segments"
    )


def test_a_dataframe_shows_the_log_as_of_its_load(spark: SparkSession, tmp_path: Path) -> None:
    root = copy(scene("records").partition_dir("batches.single", 0), tmp_path).parent
    log = next((root / "batches.single-0").glob("*.log"))
    content = log.read_bytes()
    ends = [0]
    while ends[-1] < len(content):
        ends.append(ends[-1] + 12 + int.from_bytes(content[ends[-1] + 8 : ends[-1] + 12], "big"))
    log.write_bytes(content[: ends[10]])
    frame = load(spark, [root], subscribe="batches.single")
    log.write_bytes(content)
    assert frame.count() == 10
    assert frame.union(frame).count() == 20
    assert frame.where("offset >= 5").count() == 5
    assert load(spark, [root], subscribe="batches.single").count() == 30


def test_older_formats_and_v2_in_one_segment(spark: SparkSession, tmp_path: Path) -> None:
    def records(first: int) -> list[batch_bytes.Record]:
        return [batch_bytes.Record(n, 1000 + n, b"k", b"%d" % n) for n in range(first, first + 10)]

    entries = [
        legacy_bytes.plain(records(0), 0),
        legacy_bytes.wrapper(records(10), 0, batch_bytes.LZ4),
        legacy_bytes.wrapper(records(20), 1, batch_bytes.GZIP),
        batch_bytes.batch(records(30), attributes=batch_bytes.ZSTD),
    ]
    write_log(tmp_path, {0: entries})
    window = {"startingOffsets": '{"t":{"0":15}}', "endingOffsets": '{"t":{"0":35}}'}
    frame = load(spark, [tmp_path], subscribe="t", minPartitions=4, **window)
    rows = frame.selectExpr(
        "offset", "cast(value as string)", "unix_millis(timestamp)", "timestampType"
    ).collect()
    assert sorted(tuple(row) for row in rows) == [
        (n, str(n), -1 if n < 20 else 1000 + n, -1 if n < 20 else 0) for n in range(15, 35)
    ]


def test_sql_view(spark: SparkSession) -> None:
    root = scene("records").log_dirs[0]
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW headed USING klog "
        f"OPTIONS (path '{root}', subscribe 'headers', includeHeaders 'true')"
    )
    assert spark.sql("SELECT count(*) n FROM headed").first() == (19,)


REFUSED = [
    ({"subscribe": "nope"}, "there is no topic nope; the topics here are"),
    ({"subscibe": "x"}, "Did you mean subscribe?"),
    ({}, "subscribe, subscribePattern, assign: must set exactly one"),
    ({"subscribe": "x", "startingOffsets": "{bad"}, "(not JSON: "),
    ({"subscribe": "x", "minPartitions": "many"}, "minPartitions: must be a whole number"),
    ({"subscribe": "x", "engine": "java"}, "engine: must be"),
]


@pytest.mark.parametrize("end", [{}, {"endingOffsets": "latest"}, {"endingTimestamp": "5"}])
@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_wrong_options_are_refused_at_load(
    spark: SparkSession, options: dict[str, str], words: str, end: dict[str, str]
) -> None:
    with pytest.raises(AnalysisException) as caught:
        load(spark, scene("records").log_dirs, **options, **end)
    assert words in str(caught.value)


REFUSED_AS_A_BATCH = [
    (
        {"startingOffsets": "latest", "endingTimestamp": "5"},
        "startingOffsets: must not be latest (-1)",
    ),
    ({"endingOffsets": "earliest"}, "endingOffsets: must not be earliest (-2)"),
    ({"endingOffsets": "newest"}, "got 'newest'. Example"),
    ({"endingTimestamp": "x"}, "endingTimestamp: must be a time in ms since 1970, an age"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED_AS_A_BATCH)
def test_error_of_a_batch_does_not_mention_streams(
    spark: SparkSession, options: dict[str, str], words: str
) -> None:
    with pytest.raises(AnalysisException) as caught:
        load(spark, scene("records").log_dirs, subscribe="x", **options).count()
    assert words in str(caught.value)
    assert "a stream has no end" not in str(caught.value)


@pytest.mark.parametrize("options", [{"endingOffsets": "newest"}, {"endingTimestamp": "5"}])
def test_error_of_a_stream_mentions_its_end(
    spark: SparkSession, options: dict[str, str], tmp_path: Path
) -> None:
    stream = spark.readStream.format("klog").options(subscribe="x", **options)
    rows = stream.load(str(scene("records").log_dirs[0]))
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    (name,) = options
    with pytest.raises(StreamingQueryException, match=f"{name}: a stream has no end"):
        writer.trigger(availableNow=True).start().awaitTermination()


def test_a_missing_root_is_refused_at_load(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="there is no directory /nowhere/at/all"):
        spark.read.format("klog").option("subscribe", "x").load("/nowhere/at/all")


def test_an_offset_out_of_range_is_refused(spark: SparkSession) -> None:
    frame = load(
        spark, scene("records").log_dirs, subscribe="x", startingOffsets='{"x": {"0": 999}}'
    )
    reason = r"x-0: startingOffsets 999 is after the end of the read at 1"
    with pytest.raises(AnalysisException, match=reason):
        frame.count()


def test_damage_names_the_file_and_other_partitions_stay_readable(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = tmp_path / "log"
    shutil.copytree(scene("records").log_dirs[0], root)
    spot = flip_bit(root / "segments-0")
    with pytest.raises(PythonException) as caught:
        load(spark, [root], subscribe="segments").count()
    for words in ("segments-0", str(spot.file), f"position {spot.position}", "CRC-32C"):
        assert words in str(caught.value)
    assert load(spark, [root], assign='{"segments": [1]}').count() == 40
