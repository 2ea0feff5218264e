"""The registry of the tests answers confluent-kafka's own client as Confluent's registry does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from tests.support.schema_registry import SchemaRegistry, running_registry

POINT = '{"type":"record","name":"Point","fields":[{"name":"x","type":"int"}]}'


@pytest.fixture
def client(registry: SchemaRegistry) -> Iterator[Any]:
    settings = {"url": registry.url, "max.retries": 0}
    running = SchemaRegistryClient(settings)
    yield running
    running.close()


def test_a_schema_is_registered_and_found(client: Any) -> None:
    number = client.register_schema("t-value", Schema(POINT, "AVRO"))
    assert client.get_schema(number).schema_str == POINT
    latest = client.get_latest_version("t-value")
    assert (latest.schema_id, latest.version, latest.subject) == (number, 1, "t-value")
    assert client.lookup_schema("t-value", Schema(POINT, "AVRO")).schema_id == number
    assert client.get_subjects() == ["t-value"]
    assert client.get_versions("t-value") == [1]
    assert client.register_schema("other", Schema(POINT, "AVRO")) == number
    assert client.delete_subject("other") == [1]


def test_references_are_returned(client: Any) -> None:
    client.register_schema("point", Schema(POINT, "AVRO"))
    references = [SchemaReference("Point", "point", 1)]
    number = client.register_schema("line", Schema('["null","Point"]', "AVRO", references))
    (reference,) = client.get_schema(number).references
    assert (reference.name, reference.subject, reference.version) == ("Point", "point", 1)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda client: client.get_schema(99), 40403),
        (lambda client: client.get_latest_version("none"), 40401),
        (lambda client: client.lookup_schema("none", Schema(POINT, "AVRO")), 40401),
    ],
)
def test_what_is_missing_has_confluents_codes(client: Any, call: Any, code: int) -> None:
    with pytest.raises(SchemaRegistryError) as caught:
        call(client)
    assert (caught.value.http_status_code, caught.value.error_code) == (404, code)


def test_basic_authentication() -> None:
    with running_registry(users={"ann": "secret"}) as registry:
        settings = {"url": registry.url, "max.retries": 0}
        good = SchemaRegistryClient({**settings, "basic.auth.user.info": "ann:secret"})
        bad = SchemaRegistryClient({**settings, "basic.auth.user.info": "ann:wrong"})
        assert good.get_subjects() == []
        with pytest.raises(SchemaRegistryError) as caught:
            bad.get_subjects()
        assert caught.value.http_status_code == 401
        good.close()
        bad.close()
