"""`klog offsets` on a broker's directory prints the lines of kafka-get-offsets on that broker."""

from __future__ import annotations

import pytest

from klog.cli import main
from tests.corpus.clients import EPOCH_2024, Client, Sent, batch
from tests.corpus.transactions import end_in_log
from tests.support.kafka_broker import Broker
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka

TOPIC = "get.offsets"


@pytest.fixture(scope="module")
def log_dir(broker: Broker) -> str:
    """Write two topics of records and transactions, one partition empty."""
    client = Client(broker)
    client.create(TOPIC, "times and a transaction", {"retention.ms": "-1"}, 3)
    client.create(f"{TOPIC}.b", "one record", {"retention.ms": "-1"})
    plain, writer = client.producer(), client.transactional("get-offsets")
    for number in (0, 5, 3):
        batch(plain, TOPIC, [Sent(b"k", b"v", EPOCH_2024 + 1000 * number)], 0)
    batch(plain, f"{TOPIC}.b", [Sent(b"k", b"v")])
    writer.begin_transaction()
    batch(writer, TOPIC, [Sent(b"k", b"v", EPOCH_2024 + 9000)] * 4, 1)
    end_in_log(client, writer, TOPIC, 1, commit=False)
    client.delete_records(TOPIC, 0, 1)
    return str(broker.log_dirs[0])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--topic", f"{TOPIC}.*"),
        ("--topic", f"{TOPIC}.*", "--time", "earliest"),
        ("--topic", TOPIC, "--partitions", "0,2"),
        ("--topic", TOPIC, "--time", "max-timestamp"),
        ("--topic", f"{TOPIC}.b", "--time", "-3"),
        ("--topic", TOPIC, "--time", str(EPOCH_2024 + 4000)),
        ("--topic-partitions", f"{TOPIC}:1-,{TOPIC}.b", "--time", "-1"),
        ("--topic-partitions", f"{TOPIC}:-2", "--time", "-2"),
    ],
    ids=" ".join,
)
def test_the_lines_are_the_same(
    broker: Broker, log_dir: str, arguments: tuple[str, ...],
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:  # fmt: skip
    expected = broker.tool(
        "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", broker.bootstrap, *arguments
    )
    assert expected

    def are_the_same() -> bool:
        assert main(["offsets", "--root", log_dir, *arguments]) == 0
        return capsysbinary.readouterr().out.decode() == expected

    # A broker checkpoints high watermarks and log starts every five seconds.
    wait_until(are_the_same, f"from klog:\n{expected}")
