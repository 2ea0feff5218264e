"""`klog produce` and Kafka's console producer make the same records of the same lines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from klog.cli.line_reader import Lines, parse_line_format, read_lines
from klog.connector.embedded import open_log
from klog.errors import KlogError
from tests.corpus.clients import Client
from tests.support.kafka_classes import consume, java_errors, java_process
from tests.support.klog_command import Klog

if TYPE_CHECKING:
    from tests.support.kafka_broker import Broker

pytestmark = pytest.mark.kafka

Record: TypeAlias = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
CASES = 400
SEED = 20240601
WORDS = ("a", "ä€𝄞", ":", ",", "\t", "|", "N", "", " ", "b:c", "d:N")
ENDS = ("\n", "\r", "\r\n", "\n\n")


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    with java_process() as gateway:
        yield gateway


def random_lines(source: random.Random) -> tuple[dict[str, str], bytes]:
    """Return properties, and lines that often have separators and markers."""
    properties = {
        "parse.key": source.choice(["true", "false", "TRUE "]),
        "parse.headers": source.choice(["true", "true", "false"]),
        "ignore.error": source.choice(["true", "false"]),
    }
    for name, values in (
        ("null.marker", ["N", "a", ""]),
        ("key.separator", ["|", "::", ",", ""]),
        ("headers.delimiter", ["|", "!"]),
        ("headers.separator", ["a", "[,|]", r"\|", ",+"]),
        ("headers.key.separator", [" ", "::", "€"]),
    ):
        if source.random() < 0.3:
            properties[name] = source.choice(values)
    lines = []
    for _ in range(source.randrange(4)):
        lines += [*source.choices(WORDS, k=source.randrange(12)), source.choice(ENDS)]
    return properties, "".join(lines + source.choices(WORDS, k=2)).encode()


def as_klog_reads(properties: dict[str, str], text: bytes) -> list[Record] | None:
    """Return the records, or None if klog rejects the lines."""
    try:
        form, lines = parse_line_format(properties), Lines()
        batch = read_lines(lines.feed(text) + lines.finish(), 1, form)
    except KlogError:
        return None
    return [
        (
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"] or ()],
        )
        for row in batch.to_pylist()
    ]


def as_kafka_reads(java: Any, properties: dict[str, str], text: bytes) -> list[Record] | None:
    reader = java.jvm.org.apache.kafka.tools.LineMessageReader()
    result: list[Record] = []
    with java_errors() as java_error:
        try:
            reader.configure({"topic": "t", **properties})
            records = reader.readRecords(java.jvm.java.io.ByteArrayInputStream(text))
            while records.hasNext():
                record = records.next()
                headers = [(header.key(), header.value()) for header in record.headers().toArray()]
                result.append((record.key(), record.value(), headers))
        except java_error as exc:
            if "KafkaException" not in str(exc):
                raise
            return None
    return result


def test_lines_are_read_as_kafka_reads_them(java: Any) -> None:
    refused = 0
    for seed in range(SEED, SEED + CASES):
        properties, text = random_lines(random.Random(seed))
        expected = as_kafka_reads(java, properties, text)
        assert as_klog_reads(properties, text) == expected, (seed, properties, text)
        refused += expected is None
    assert CASES / 10 < refused < CASES * 9 / 10


def test_what_the_console_producer_writes(
    java: Any, broker: Broker, klog: Klog, tmp_path: Path
) -> None:
    text = "h:v,g:N\tk\tv\nN\tN\tN\r\n:\t\t\nä:ö\tü\tß\tx\rx:1\tlast\tline".encode()
    properties = ("parse.key=true", "parse.headers=true", "null.marker=N")
    named = [word for option in properties for word in ("--reader-property", option)]
    client = Client(broker)
    client.create("typed", "lines, as the console producer reads them")
    broker.tool(
        "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", broker.bootstrap,
        "--topic", "typed", *named, stdin=text,
    )  # fmt: skip
    _, records = consume(java, broker.bootstrap, [("typed", 0)], "read_uncommitted")
    expected = [
        (record.offset, record.key, record.value, list(record.headers)) for record in records
    ]
    assert len(expected) == 5
    log = open_log(tmp_path / "root", {})
    log.create_topic("typed")
    (tmp_path / "lines").write_bytes(text)
    result = klog(
        "produce", "--root", str(tmp_path / "root"), "--topic", "typed", *named,
        "--file", str(tmp_path / "lines"),
    )  # fmt: skip
    assert (result.code, result.err) == (0, "")
    table = log.scan("typed", columns=["offset", "key", "value", "headers"]).read_all()
    assert [
        (
            row["offset"],
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"] or ()],
        )
        for row in table.to_pylist()
    ] == expected
