"""What docs/values.md supposes: a schema registry, Avro values with its prefix, and JSON values."""

from __future__ import annotations

import atexit
import io
import json
from contextlib import ExitStack
from pathlib import Path

import fastavro
import pyarrow as pa
from pyspark.sql import SparkSession

import klog
from tests.pages.page_scene import Scene
from tests.support.schema_registry import running_registry

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": "double"},
        {"name": "city", "type": ["null", "string"], "default": None},
    ],
}
CITIES = ("Rome", "Oslo", None)
CLICKS = ('{"id": 1, "page": "/home"}', '{"id": "two", "page": "/cart"}', '{"id": 3, "page": "/"}')

_SERVERS = ExitStack()
atexit.register(_SERVERS.close)


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Start the registry, and write `orders` in Avro and `payments` and `clicks` in JSON."""
    registry = _SERVERS.enter_context(running_registry())
    schema_id = registry.register("orders-value", json.dumps(ORDER))
    root = folder / "data/klog"
    log = klog.open(root)
    orders = [_order(schema_id, number) for number in range(3)]
    keys = [f"k{number}" for number in range(3)]
    payments = [json.dumps({"id": number, "amount": number + 0.5}) for number in range(3)]
    for topic, values in (("orders", orders), ("payments", payments), ("clicks", CLICKS)):
        log.create_topic(topic)
        log.append(topic, pa.table({"key": keys, "value": pa.array(values)}))
    return Scene(
        {"klog": klog, "root": str(root)},
        {"http://registry:8081": registry.url},
    )


def _order(schema_id: int, number: int) -> bytes:
    """Return a record in Avro, after Confluent's prefix."""
    data = io.BytesIO()
    data.write(b"\0" + schema_id.to_bytes(4, "big"))
    order = {"id": number, "amount": number * 10.0, "city": CITIES[number]}
    fastavro.schemaless_writer(data, fastavro.parse_schema(ORDER), order)
    return data.getvalue()
