"""Members of groups of each newer kind that join on a real broker, are assigned and leave.

Consumers and share consumers are librdkafka's. Kafka Streams is the only client of a
streams group, so its heartbeats here are requests made with Kafka's classes.
"""

from __future__ import annotations

import json
import socket
import struct
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, Producer, ShareConsumer

from tests.corpus.clients import Client
from tests.support.kafka_broker import Broker
from tests.support.waiting import TIMEOUT_SECONDS, wait_until

TOPIC = "groups.read"
_LENGTH = struct.Struct(">i")


def consume_as_groups(broker: Broker, gateway: Any) -> None:
    """Make the broker write every kind of group record that it writes today."""
    client = Client(broker)
    client.create(TOPIC, "read by groups of every kind", partitions=3)
    producer = client.producer()
    _produce(producer)
    _as_consumers(broker)
    _as_a_share_consumer(broker, producer)
    _as_a_streams_client(broker, gateway)


def _produce(producer: Producer) -> bool:
    """Send a record with the current time; an old one would expire at once."""
    producer.produce(TOPIC, "value")
    return producer.flush(TIMEOUT_SECONDS) == 0


def _consumer(broker: Broker, group: str, protocol: str) -> Any:
    settings = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    return Consumer({"bootstrap.servers": broker.bootstrap, "log_level": 0, **settings})


def _as_consumers(broker: Broker) -> None:
    """Join by name and by regular expression, and one of the classic protocol with them."""
    with (
        closing(_consumer(broker, "consumers", "consumer")) as named,
        closing(_consumer(broker, "consumers", "consumer")) as matching,
        closing(_consumer(broker, "consumers", "classic")) as classic,
    ):
        named.subscribe([TOPIC])
        wait_until(lambda: named.poll(0.2) is not None, "a record for the group")
        named.commit(asynchronous=False)
        matching.subscribe(["^groups[.].*"])
        classic.subscribe([TOPIC])
        members = (named, matching, classic)
        wait_until(lambda: _all_assigned(members), "partitions for all members")


def _all_assigned(consumers: tuple[Any, ...]) -> bool:
    """Poll each consumer, and return whether each has a partition."""
    for consumer in consumers:
        consumer.poll(0.1)
    return all(consumer.assignment() for consumer in consumers)


def _as_a_share_consumer(broker: Broker, producer: Producer) -> None:
    """Read a record sent after the member joined: a share group begins at the end."""
    with ShareConsumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "sharers", "log_level": 0}
    ) as sharer:
        sharer.subscribe([TOPIC])
        wait_until(
            lambda: _produce(producer) and len(sharer.poll(0.5)) > 0, "a record for the share group"
        )


def _as_a_streams_client(broker: Broker, gateway: Any) -> None:
    join = {
        **_heartbeat(0),
        "rebalanceTimeoutMs": 300000,
        "topology": {"epoch": 1, "subtopologies": [SUBTOPOLOGY]},
        "activeTasks": [],
        "standbyTasks": [],
        "warmupTasks": [],
        "processId": "process",
        "userEndpoint": {"host": "h", "port": 65535},
        "clientTags": [{"key": "zone", "value": "a"}],
    }
    joined = _ask(broker, gateway, join)
    epoch = joined["memberEpoch"]
    _ask(broker, gateway, _heartbeat(epoch))
    _ask(broker, gateway, _heartbeat(-1))


SUBTOPOLOGY = {
    "subtopologyId": "0",
    "sourceTopics": [TOPIC],
    "sourceTopicRegex": [],
    "stateChangelogTopics": [],
    "repartitionSinkTopics": [],
    "repartitionSourceTopics": [],
    "copartitionGroups": [],
}


def _heartbeat(epoch: int) -> dict[str, Any]:
    return {
        "groupId": "streams",
        "memberId": "member",
        "memberEpoch": epoch,
        "endpointInformationEpoch": -1,
        "instanceId": None,
        "rackId": None,
        "rebalanceTimeoutMs": -1,
        "topology": None,
        "activeTasks": None,
        "standbyTasks": None,
        "warmupTasks": None,
        "processId": None,
        "userEndpoint": None,
        "clientTags": None,
        "taskOffsets": None,
        "taskEndOffsets": None,
        "shutdownApplication": False,
    }


def _ask(broker: Broker, gateway: Any, heartbeat: dict[str, Any]) -> dict[str, Any]:
    """Send a heartbeat of a streams group, and return the broker's answer."""
    kafka = gateway.jvm.org.apache.kafka.common
    node = gateway.jvm.com.fasterxml.jackson.databind.ObjectMapper().readTree(json.dumps(heartbeat))
    data = kafka.message.StreamsGroupHeartbeatRequestDataJsonConverter.read(node, 0)
    header = kafka.requests.RequestHeader(
        kafka.protocol.ApiKeys.STREAMS_GROUP_HEARTBEAT, 0, "tests", 1
    )
    builder = getattr(kafka.requests, "StreamsGroupHeartbeatRequest$Builder")
    request = bytes(builder(data).build(0).serializeWithHeader(header).array())
    host, port = broker.bootstrap.split(":")
    with socket.create_connection((host, int(port)), TIMEOUT_SECONDS) as connection:
        connection.sendall(_LENGTH.pack(len(request)) + request)
        with connection.makefile("rb") as stream:
            answer = stream.read(*_LENGTH.unpack(stream.read(_LENGTH.size)))
    # In front of the message are the correlation id and an empty buffer of tags.
    buffer = gateway.jvm.java.nio.ByteBuffer.wrap(answer[5:])
    accessor = kafka.protocol.ByteBufferAccessor(buffer)
    response = kafka.message.StreamsGroupHeartbeatResponseData(accessor, 0)
    shown = kafka.message.StreamsGroupHeartbeatResponseDataJsonConverter.write(response, 0)
    fields: dict[str, Any] = json.loads(shown.toString())
    assert fields["errorCode"] == 0, fields
    return fields
