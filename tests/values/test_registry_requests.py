"""How klog asks a registry: once an id, with time-outs and retries, and without showing secrets."""

from __future__ import annotations

import json
import pickle
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from klog.errors import OptionError, RegistryError, RegistryRefusedError, SchemaNotFoundError
from klog.values import schema_cache
from klog.values.registered_schemas import (
    Reference,
    latest_schema,
    referenced_schemas,
    schema_by_id,
    schema_id_of,
)
from klog.values.registry_client import Deadline
from klog.values.registry_requests import MAX_RESPONSE_BYTES, request_json
from klog.values.registry_settings import Registry
from klog.values.schema_cache import FAILURE_SECONDS, SchemaCache
from tests.support.kafka_broker import free_ports
from tests.support.schema_registry import SchemaRegistry, running_registry
from tests.support.waiting import wait_until


def settings(registry: SchemaRegistry, **options: Any) -> Registry:
    return Registry(registry.url, **{"retries": 0, **options})


class Clock:
    """A clock that a test sets."""

    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def test_an_id_is_asked_once(registry: SchemaRegistry) -> None:
    number = registry.register("t-value", '"string"')
    for _ in range(3):
        assert schema_by_id(settings(registry), number).text == '"string"'
    assert registry.requests == [f"GET /schemas/ids/{number}"]


def test_a_failure_is_kept_for_a_while(registry: SchemaRegistry) -> None:
    clock = Clock()
    cache = SchemaCache(clock)
    for _ in range(2):
        with pytest.raises(SchemaNotFoundError, match=r"schema id 1 is not in the registry http"):
            schema_by_id(settings(registry), 1, cache)
    assert len(registry.requests) == 1
    registry.register("t-value", '"string"')
    clock.seconds += FAILURE_SECONDS
    assert schema_by_id(settings(registry), 1, cache).text == '"string"'


def test_the_latest_version_is_asked_each_time(registry: SchemaRegistry) -> None:
    registry.register("t/a-value", '"int"')
    assert latest_schema(settings(registry), "t/a-value").text == '"int"'
    registry.register("t/a-value", '"long"')
    assert latest_schema(settings(registry), "t/a-value").text == '"long"'
    with pytest.raises(SchemaNotFoundError, match="subject none is not in the registry"):
        latest_schema(settings(registry), "none")


@pytest.mark.parametrize("status", [429, 500, 503, 0])
def test_a_temporary_failure_is_repeated(registry: SchemaRegistry, status: int) -> None:
    registry.register("t-value", '"int"')
    registry.failures += [status, status]
    pauses: list[float] = []
    answer = request_json(settings(registry, retries=2), "/schemas/ids/1", sleep=pauses.append)
    assert answer == {"schema": '"int"'}
    assert pauses == [0.1, 0.2]


def test_retries_end(registry: SchemaRegistry) -> None:
    registry.failures += [500] * 9
    with pytest.raises(RegistryError, match=r"no answer to /subjects after 3 attempts.*HTTP 500"):
        request_json(settings(registry, retries=2), "/subjects", sleep=lambda _: None)
    assert len(registry.requests) == 3


def test_a_slow_registry_is_not_waited_for(registry: SchemaRegistry) -> None:
    registry.delay_seconds = 0.5
    with pytest.raises(RegistryError, match=r"no answer in 0\.05 s"):
        request_json(settings(registry, timeout_seconds=0.05), "/subjects")


@pytest.mark.parametrize("drip_seconds", [0.02, 0.0005])
def test_an_answer_byte_by_byte_ends_at_the_deadline(
    registry: SchemaRegistry, drip_seconds: float
) -> None:
    """In the headers, and in the body."""
    registry.register("t-value", json.dumps("x" * 100_000))
    registry.drip_seconds = drip_seconds
    with pytest.raises(RegistryError, match=r"answer in 0\.2 s"):
        request_json(settings(registry, timeout_seconds=0.2), "/schemas/ids/1")


def test_an_answer_that_is_compressed_is_not_unpacked(registry: SchemaRegistry) -> None:
    registry.encoding = "gzip"
    with pytest.raises(RegistryRefusedError, match="is compressed"):
        request_json(settings(registry), "/subjects")


def test_only_a_registrys_own_codes_say_that_a_schema_is_lost(registry: SchemaRegistry) -> None:
    with pytest.raises(RegistryRefusedError, match="Check the path of the URL") as caught:
        schema_by_id(Registry(f"{registry.url}/v9", retries=0), 1)
    assert not isinstance(caught.value, SchemaNotFoundError)


def test_unknown_ids_are_asked_for_within_a_bound(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_cache, "MAX_UNKNOWN", 3)
    clock = Clock()
    started = clock.seconds
    cache = SchemaCache(clock, clock.sleep)
    for number in range(100, 109):
        with pytest.raises(SchemaNotFoundError, match="is not in the registry"):
            schema_by_id(settings(registry), number, cache)
    assert clock.seconds - started == 2 * FAILURE_SECONDS
    number = registry.register("t-value", '"int"')
    assert schema_by_id(settings(registry), number, cache).text == '"int"'
    assert clock.seconds - started == 3 * FAILURE_SECONDS


def test_answers_are_kept_within_a_bound(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_cache, "MAX_KEPT_BYTES", 250)
    cache = SchemaCache()
    for text in "abc":
        registry.register("t-value", json.dumps(text * 80))
    for number in (1, 2, 1, 3, 1, 2):
        schema_by_id(settings(registry), number, cache)
    assert [each[-1] for each in registry.requests] == ["1", "2", "3", "2"]


def test_a_slow_path_stops_no_other(registry: SchemaRegistry) -> None:
    registry.register("t-value", '"int"')
    with running_registry() as slow, ThreadPoolExecutor() as pool:
        slow.register("t-value", '"long"')
        slow.gate = Event()
        cache = SchemaCache()
        waiting = pool.submit(schema_by_id, settings(slow), 1, cache)
        try:
            wait_until(lambda: slow.requests, "a request")
            assert schema_by_id(settings(registry), 1, cache).text == '"int"'
            assert not waiting.done()
        finally:
            slow.gate.set()
        assert waiting.result().text == '"long"'


def test_an_invalid_proxy_is_one_error(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://ann:s3cr3t@h:port")
    with pytest.raises(RegistryRefusedError, match="Check HTTP_PROXY") as caught:
        request_json(settings(registry, timeout_seconds=7.5), "/subjects")
    assert "s3cr3t" not in str(caught.value)


def test_each_url_has_its_own_user() -> None:
    with running_registry(users={"ann": "a"}) as first, running_registry() as second:
        first.failures += [500]
        registry = Registry(f"{first.url.replace('//', '//ann:a@')},{second.url}", retries=0)
        assert request_json(registry, "/subjects") == []
        assert (len(first.requests), second.authorizations) == (1, [None])


def test_another_url_is_tried(registry: SchemaRegistry) -> None:
    registry.register("t-value", '"int"')
    (port,) = free_ports(1)
    urls = f"http://127.0.0.1:{port}, {registry.url}/"
    assert schema_by_id(Registry(urls, retries=0), 1).text == '"int"'


def test_no_registry_listens() -> None:
    (port,) = free_ports(1)
    with pytest.raises(RegistryError, match=r"no answer to /subjects after 1 attempts.*Connect"):
        request_json(Registry(f"http://127.0.0.1:{port}", retries=0), "/subjects")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is not a schema"),
        (b'{"schema": 5}', "is not a schema"),
        (b'{"schema": "x", "references": [{"name": "a"}]}', "is not a schema"),
        (b'{"schema": "x", "references": 7}', "is not a schema"),
        (b" " * (MAX_RESPONSE_BYTES + 1), "larger than 16 MiB"),
    ],
)
def test_another_answer_is_an_error(registry: SchemaRegistry, body: bytes, message: str) -> None:
    registry.body = body
    with pytest.raises(RegistryError, match=message):
        schema_by_id(settings(registry), 1)


def test_references_come_before_what_uses_them(registry: SchemaRegistry) -> None:
    registry.register("a", '"a"')
    registry.register("b", '"b"', references=[{"name": "A", "subject": "a", "version": 1}])
    both = [{"name": n.upper(), "subject": n, "version": 1} for n in ("b", "a")]
    number = registry.register("c", '"c"', references=both)
    schema = schema_by_id(settings(registry), number)
    assert schema.references == (Reference("B", "b", 1), Reference("A", "a", 1))
    assert list(referenced_schemas(settings(registry), schema)) == ["A", "B"]


def test_a_reference_to_a_deleted_subject_is_found(registry: SchemaRegistry) -> None:
    registry.register("a", '"a"')
    reference = {"name": "A", "subject": "a", "version": 1}
    number = registry.register("b", '"b"', references=[reference])
    registry.deleted["a"] = registry.subjects.pop("a")
    schema = schema_by_id(settings(registry), number)
    assert list(referenced_schemas(settings(registry), schema)) == ["A"]


def test_a_schema_is_registered_once(registry: SchemaRegistry) -> None:
    first = schema_id_of(settings(registry), "t-value", '"int"', "AVRO")
    assert schema_id_of(settings(registry), "t-value", '"int"', "AVRO") == first
    assert [each for each in registry.requests if each.endswith("versions")] == [
        "POST /subjects/t-value/versions"
    ]


SECRETS: dict[str, Callable[[str], Registry]] = {
    "user": lambda url: Registry(url, user="ann", password="pa:ss/w@rd", retries=0),
    "url": lambda url: Registry(url.replace("//", "//ann:pa%3Ass%2Fw%40rd@"), retries=0),
    "config": lambda url: Registry.from_config(
        {"schema.registry.url": url, "basic.auth.user.info": "ann:pa:ss/w@rd"}
    ),
    "prefixed config": lambda url: Registry.from_config(
        {"url": url, "schema.registry.basic.auth.user.info": "ann:pa:ss/w@rd"}
    ),
}


@pytest.mark.parametrize("kind", SECRETS)
def test_credentials_are_sent_and_not_shown(kind: str) -> None:
    with running_registry(users={"ann": "pa:ss/w@rd"}) as server:
        registry = SECRETS[kind](server.url)
        server.register("t-value", '"int"')
        assert schema_by_id(registry, 1).text == '"int"'
        assert "ann" not in repr(registry)
        assert "pa" not in repr(registry).replace("path", "")
        server.users["ann"] = "changed"
        with pytest.raises(RegistryRefusedError, match="HTTP 401") as caught:
            request_json(registry, "/subjects")
        assert "ss" not in str(caught.value).replace("password", "")
        assert pickle.loads(pickle.dumps(registry)) == registry


@pytest.mark.parametrize("token", ["SECRET\nX", "SÉCRET", " ", "\t"])
def test_a_token_that_no_header_can_have_is_not_shown(token: str) -> None:
    with pytest.raises(OptionError, match="printable ASCII") as caught:
        Registry("http://h", token=token)
    assert "CRET" not in str(caught.value)


def test_a_token_of_a_file_ends_with_a_line_feed() -> None:
    assert Registry("http://h", token="to-ken\n").token == "to-ken"


def test_a_token_is_sent_and_not_shown() -> None:
    with running_registry(token="to-ken") as server:
        registry = Registry(server.url, token="to-ken")
        assert request_json(registry, "/subjects") == []
        assert "to-ken" not in repr(registry)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": ""}, "must be a URL"),
        ({"url": "localhost:8081"}, "must be a URL that begins with http"),
        ({"url": "http://h:port"}, "its URL is invalid"),
        ({"url": "http://h/?token=x"}, "must not have a query"),
        ({"url": "http://h", "user": "a"}, "both user and password"),
        ({"url": "http://a:b@h", "token": "t"}, "not both"),
        ({"url": "http://h", "timeout_seconds": 0}, "timeout_seconds"),
        ({"url": "http://h", "retries": -1}, "retries"),
    ],
)
def test_wrong_settings(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Registry(**arguments)


@pytest.mark.parametrize("prefix", ["connection", "proxy"])
def test_a_deadline_learns_of_every_connection(prefix: str) -> None:
    """Through a proxy, httpx begins the names of its events otherwise."""
    ours, theirs = socket.socketpair()

    class Stream:
        def get_extra_info(self, name: str) -> socket.socket:
            assert name == "socket"
            return ours

    with ours, theirs, Deadline(0.0) as deadline:
        deadline.trace(f"{prefix}.start_tls.complete", {"return_value": Stream()})
        assert theirs.recv(1) == b""
