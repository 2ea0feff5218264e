"""Decode values: Avro and Protobuf to Arrow on one core, JSON in Spark.

The rule: a flat record of ten fields, as a producer writes it after a registry's prefix; the peers
do the same without columns (fastavro, Protobuf's own parser), or without klog's check of each row
(Spark's `from_json`). In turns; a ratio is taken within a round, and above 1 klog is faster.
"""

from __future__ import annotations

import datetime
import io
import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import fastavro
import pyarrow as pa
from google.protobuf import message_factory

from benchmarks.compared import compared
from benchmarks.spark_read import session
from benchmarks.spark_write import Result
from benchmarks.timing import Times, Work, interleaved
from klog.values.avro_decoder import AvroDecoder
from klog.values.avro_schema import load_avro_schema
from klog.values.confluent_framing import prefix
from klog.values.json_decoder import JsonDecoder
from klog.values.protobuf_decoder import ProtobufDecoder
from klog.values.protobuf_schema import load_protobuf_schema
from klog.values.registry_settings import Registry
from tests.support.schema_registry import running_registry

BATCH_ROWS = 10_000
"""As Spark sends them to Python."""
KLOG, FASTAVRO = "klog", "fastavro alone"
PREFIXED, RESOLVED = "klog, by a registry's ids", "klog, by ids to another schema"
PARSER = "Protobuf's parser alone"
SPARK, SPARK_CHECKED = "from_json", "from_json with a corrupt record column"
SPARK_KLOG, SPARK_KLOG_NULL = "klog", "klog, on_error null"
DDL = (
    "id bigint, customer string, amount double, quantity int, paid boolean, note string, "
    "country string, created bigint, day int, status string"
)
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "quantity", "type": "int"},
        {"name": "paid", "type": "boolean"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "country", "type": "string"},
        {"name": "created", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID"]}},
    ],
}
READER = {
    **AVRO,
    "fields": [*AVRO["fields"][:9], {"name": "channel", "type": "string", "default": "web"}],
}
PROTO = """syntax = "proto3";
message Order {
  int64 id = 1; string customer = 2; double amount = 3; int32 quantity = 4; bool paid = 5;
  optional string note = 6; string country = 7; int64 created = 8; int32 day = 9;
  Status status = 10;
  enum Status { NEW = 0; PAID = 1; }
}"""


def run(records: int, rounds: int) -> Iterator[Result]:
    """Measure each format; a twentieth of the records for those in Python."""
    few = max(records // 20, 1)
    yield from _avro(few, rounds)
    yield from _protobuf(few, rounds)
    yield from _json(records, rounds)


def orders(count: int) -> Iterator[dict[str, Any]]:
    """Return records with ten fields."""
    epoch = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    for number in range(count):
        created = epoch + datetime.timedelta(milliseconds=number)
        yield {
            "id": number * 7919, "customer": f"customer-{number}", "amount": number * 1.5,
            "quantity": number % 50, "paid": number % 2 == 0, "country": "NL",
            "note": None if number % 3 else "leave it at the door", "created": created,
            "day": created.date(), "status": ("NEW", "PAID")[number % 2],
        }  # fmt: skip


def _avro(count: int, rounds: int) -> Iterator[Result]:
    parsed = fastavro.parse_schema(AVRO)
    rows = []
    for order in orders(count):
        file = io.BytesIO()
        fastavro.schemaless_writer(file, parsed, order)
        rows.append(file.getvalue())

    def read_each() -> int:
        read = fastavro.schemaless_reader
        return len([read(io.BytesIO(row), parsed, None) for row in rows])

    with running_registry() as server:
        id_bytes = prefix(server.register("t-value", json.dumps(AVRO)))
        prefixed = [id_bytes + row for row in rows]
        registry = Registry(server.url)
        same, other = load_avro_schema(AVRO), load_avro_schema(READER)
        works = {
            FASTAVRO: read_each,
            KLOG: _in_batches(AvroDecoder(same), rows),
            PREFIXED: _in_batches(AvroDecoder(same, registry), prefixed),
            RESOLVED: _in_batches(AvroDecoder(other, registry), prefixed),
        }
        times = interleaved(works, rounds, time.process_time)
    yield from _results("avro", times, FASTAVRO, "0.53")


def _protobuf(count: int, rounds: int) -> Iterator[Result]:
    schema = load_protobuf_schema(PROTO)
    message = message_factory.GetMessageClass(schema.descriptor("Order"))
    rows = []
    for order in orders(count):
        order["created"] = int(order["created"].timestamp() * 1000)
        order["day"] = order["day"].toordinal()
        rows.append(message(**order).SerializeToString())

    def parse_each() -> int:
        return len([message.FromString(row) for row in rows])

    works = {PARSER: parse_each, KLOG: _in_batches(ProtobufDecoder(schema, "Order"), rows)}
    yield from _results("protobuf", interleaved(works, rounds, time.process_time), PARSER, "")


def _json(count: int, rounds: int) -> Iterator[Result]:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import DataType

    from klog import values

    texts = [json.dumps({**o, "created": n, "day": n}).encode() for n, o in enumerate(orders(1000))]
    spark = session()
    arrow_type = to_arrow_type(DataType.fromDDL(DDL))  # While there is a session.
    try:
        sample = spark.createDataFrame([(text,) for text in texts], "value binary")
        copies = spark.range(0, max(count // 1000, 1), 1, 2)
        df = copies.crossJoin(sample).select("value").cache()
        rows = df.count()
        text = F.col("value").cast("string")
        options = {"columnNameOfCorruptRecord": "corrupt"}
        checked = F.from_json(text, f"{DDL}, corrupt string", options)
        frames = {
            SPARK: df.select(F.from_json(text, DDL).alias("value")),
            SPARK_CHECKED: df.select(checked.alias("value")),
            SPARK_KLOG: values.decode(df, value="json", value_schema=DDL),
            SPARK_KLOG_NULL: values.decode(df, value="json", value_schema=DDL, on_error="null"),
        }
        actions = {name: partial(_to_noop, frame) for name, frame in frames.items()}
        yield from compared("json in Spark", rows, actions, rounds)
    finally:
        spark.stop()
    column = [text for _ in range(max(count // 20_000, 1)) for text in texts]
    works = {KLOG: _in_batches(JsonDecoder(arrow_type), column)}
    times = interleaved(works, rounds, time.process_time)
    yield Result("json without Spark: million records/s", KLOG, f"{times.rate(KLOG) / 1e6:.2f}")


def _in_batches(decoder: Any, rows: list[bytes]) -> Work:
    starts = range(0, len(rows), BATCH_ROWS)
    batches = [pa.array(rows[start : start + BATCH_ROWS], pa.binary()) for start in starts]

    def decode() -> int:
        return sum(len(decoder.decode_array(batch).values) for batch in batches)

    return decode


def _to_noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _results(kind: str, times: Times, peer: str, target: str) -> Iterator[Result]:
    for name in times.records:
        yield Result(f"{kind}: million records/s", name, f"{times.rate(name) / 1e6:.2f}")
        if name != peer:
            ratio = times.ratio(name, peer)
            yield Result(f"{kind}: rate / {peer}", name, str(ratio), target)
