"""Kafka's own Java classes, called from Python: one Java process over the jars of one version.

The rule: the process ends with the `with` block, and with the test process (its standard input
closes). The calls go through py4j, which PySpark includes; bytes arrive as bytes, null as None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import py4j.java_gateway
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError, get_return_value

from tests.corpus import Bounds, Record
from tests.support.consumer_records import RecordMapper
from tools.jars import jars, java

JAVA_OPTIONS = (
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)
POLL_MILLISECONDS = 1000
TIMEOUT_POLLS = 60
SERIALIZATION = "org.apache.kafka.common.serialization"
Where = tuple[str, int]


@contextmanager
def java_process(component: str = "kafka", options: Sequence[str] = JAVA_OPTIONS) -> Iterator[Any]:
    """Yield the py4j gateway to a Java process with the jars of a component of `tools/jars.py`."""
    port, token, process = launch_gateway(
        jarpath=_py4j_jar(),
        classpath=f"{jars(component)}/*",
        javaopts=list(options),
        java_path=str(java()),
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True, auto_field=True)
    gateway = JavaGateway(gateway_parameters=parameters)
    try:
        yield gateway
    finally:
        gateway.shutdown()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@contextmanager
def java_errors() -> Iterator[type[Exception]]:
    """Yield the class that a call raises for Java's exceptions, even after PySpark patched py4j.

    A Spark session makes py4j convert the errors of every Java process with Spark's classes.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(py4j.java_gateway, "get_return_value", get_return_value)
        yield Py4JJavaError


def consume(
    gateway: Any, bootstrap: str, partitions: Iterable[Where], level: str
) -> tuple[dict[Where, Bounds], list[Record]]:
    """Read partitions from start to end with the Java consumer, at one isolation level.

    In the bounds, the high watermark and the last stable offset are both the end at this level.
    """
    jvm = gateway.jvm
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
        _properties(
            gateway,
            {
                "bootstrap.servers": bootstrap,
                "enable.auto.commit": "false",
                "auto.offset.reset": "none",
                "isolation.level": level,
                "key.deserializer": f"{SERIALIZATION}.ByteArrayDeserializer",
                "value.deserializer": f"{SERIALIZATION}.ByteArrayDeserializer",
            },
        )
    )
    try:
        spots = {
            where: jvm.org.apache.kafka.common.TopicPartition(*where)
            for where in sorted(partitions)
        }
        java_partitions = _list(gateway, spots.values())
        starts, ends = (
            consumer.beginningOffsets(java_partitions),
            consumer.endOffsets(java_partitions),
        )
        consumer.assign(java_partitions)
        consumer.seekToBeginning(java_partitions)
        bounds = {
            where: Bounds(int(starts[spot]), int(ends[spot]), int(ends[spot]))
            for where, spot in spots.items()
        }
        return bounds, _poll(gateway, consumer, spots, bounds)
    finally:
        consumer.close()


def _poll(
    gateway: Any, consumer: Any, spots: Mapping[Where, Any], bounds: Mapping[Where, Bounds]
) -> list[Record]:
    wait = gateway.jvm.java.time.Duration.ofMillis(POLL_MILLISECONDS)
    mapper = RecordMapper(gateway)
    records: list[Record] = []
    pending = list(spots)
    for _ in range(TIMEOUT_POLLS):
        records += mapper.records(consumer.poll(wait))
        pending = [
            where
            for where, spot in spots.items()
            if int(consumer.position(spot)) < bounds[where].high_watermark
        ]
        if not pending:
            return sorted(
                records, key=lambda record: (record.topic, record.partition, record.offset)
            )
    raise RuntimeError(f"{TIMEOUT_POLLS} polls did not reach the end of {pending}")


class JavaProducer:
    """The Java producer of a version; each flush sends one batch."""

    def __init__(self, gateway: Any, bootstrap: str, **settings: str) -> None:
        self._gateway = gateway
        self._jvm = gateway.jvm
        dotted = {name.replace("_", "."): value for name, value in settings.items()}
        self.java = self._jvm.org.apache.kafka.clients.producer.KafkaProducer(
            _properties(
                gateway,
                {
                    "bootstrap.servers": bootstrap,
                    "linger.ms": "30000",
                    "key.serializer": f"{SERIALIZATION}.ByteArraySerializer",
                    "value.serializer": f"{SERIALIZATION}.ByteArraySerializer",
                    **dotted,
                },
            )
        )

    def batch(
        self,
        topic: str,
        partition: int,
        records: Iterable[tuple[bytes | None, bytes | None, int, Any]],
    ) -> int:
        """Send (key, value, timestamp in ms, headers), wait, and return the last one's offset."""
        futures = [self.java.send(self._record(topic, partition, *record)) for record in records]
        self.java.flush()
        return max(int(record.get().offset()) for record in futures)

    def _record(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Iterable[tuple[str, bytes | None]],
    ) -> Any:
        common = self._jvm.org.apache.kafka.common.header.internals
        java_headers = [common.RecordHeader(name, content) for name, content in headers]
        # py4j makes a Java long only of numbers too large for an int, as today's timestamps are.
        return self._jvm.org.apache.kafka.clients.producer.ProducerRecord(
            topic, partition, timestamp, key, value, _list(self._gateway, java_headers)
        )

    def close(self) -> None:
        """Close the producer."""
        self.java.close()


def _properties(gateway: Any, settings: Mapping[str, str]) -> Any:
    properties = gateway.jvm.java.util.Properties()
    for name, value in settings.items():
        properties.setProperty(name, value)
    return properties


def _list(gateway: Any, values: Iterable[Any]) -> Any:
    java_list = gateway.jvm.java.util.ArrayList()
    for value in values:
        java_list.add(value)
    return java_list


def _py4j_jar() -> str:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    (jar,) = (Path(spec.origin).parent / "jars").glob("py4j-*.jar")
    return str(jar)
