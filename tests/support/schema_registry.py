"""A small schema registry with the paths of Confluent's REST API, for tests.

It keeps schemas in memory. tests/values/test_schema_registry.py holds it to the client of
confluent-kafka. It can be told to fail, to be slow, and to lose a schema. Compatibility is not
checked.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.waiting import TIMEOUT_SECONDS

_NUMBERS = itertools.count()
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


class ApiError(Exception):
    """An answer with a status and Confluent's code of the error."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass
class SchemaRegistry:
    """The schemas, and what the server does instead of answering."""

    url: str = ""
    users: dict[str, str] = field(default_factory=dict)
    token: str | None = None
    has_descriptors: bool = True
    """Whether `format=serialized` returns descriptors, as Confluent's server does."""
    delay_seconds: float = 0.0
    gate: threading.Event | None = None
    """What answers wait for."""
    failures: list[int] = field(default_factory=list)
    """The statuses of the next answers; 0 closes the connection without an answer."""
    body: bytes | None = None
    """Sent instead of every answer, with the status 200."""
    requests: list[str] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    deleted: dict[str, list[int]] = field(default_factory=dict)
    """The subjects that were deleted, whose versions are still there for references."""
    drip_seconds: float = 0.0
    """The pause before each byte of an answer."""
    encoding: str | None = None
    """The header Content-Encoding."""

    def pause(self) -> None:
        """Wait as long as an answer is to be late."""
        time.sleep(self.delay_seconds)
        if self.gate is not None:
            self.gate.wait()

    def register(self, subject: str, schema: str, kind: str = "AVRO", references: Any = ()) -> int:
        """Add a schema to a subject and return its id, which the same schema has everywhere."""
        value: dict[str, Any] = {"schema": schema, "references": list(references)}
        if kind != "AVRO":
            value["schemaType"] = kind
        known = [number for number, each in self.schemas.items() if each == value]
        number = known[0] if known else len(self.schemas) + 1
        self.schemas[number] = value
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def lose(self, number: int) -> None:
        """Remove a schema, as a topic `_schemas` that lost a record does."""
        self.schemas[number] = {}

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        for allowed, pattern, respond in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match and method == allowed:
                return respond(self, *map(unquote, match.groups()), query=query, body=body)
        raise ApiError(404, 404, "HTTP 404 Not Found")

    def entry(self, number: int, query: dict[str, list[str]]) -> dict[str, Any]:
        value = self.schemas.get(number)
        if not value:
            raise ApiError(404, 40403, f"Schema {number} not found")
        is_text = value.get("schemaType") == "PROTOBUF" and " " in value["schema"]
        if is_text and self.has_descriptors and query.get("format") == ["serialized"]:
            return {**value, "schema": self._descriptor(value)}
        return {name: each for name, each in value.items() if each}

    def version(self, subject: str, version: str, query: dict[str, list[str]]) -> dict[str, Any]:
        versions = self.subjects.get(subject)
        if query.get("deleted") == ["true"]:
            versions = versions or self.deleted.get(subject)
        if not versions:
            raise ApiError(404, 40401, f"Subject '{subject}' not found.")
        index = len(versions) if version in ("latest", "-1") else int(version)
        if not 0 < index <= len(versions):
            raise ApiError(404, 40402, f"Version {version} not found.")
        number = versions[index - 1]
        names = {"subject": subject, "version": index, "id": number}
        return {**names, **self.entry(number, query)}

    def _descriptor(self, value: dict[str, Any]) -> str:
        texts = {each["name"]: self._referenced(each) for each in value["references"]}
        return base64.b64encode(descriptor(value["schema"], texts)).decode()

    def _referenced(self, reference: dict[str, Any]) -> str:
        entry = self.version(reference["subject"], str(reference["version"]), {})
        return str(entry["schema"])


def descriptor(text: str, imported: dict[str, str] | None = None) -> bytes:
    """Return the serialized FileDescriptorProto of a .proto text."""
    from google.protobuf import descriptor_pb2
    from grpc_tools import __path__ as tools

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, each in {**(imported or {}), "default.proto": text}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(each)
        subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{tools[0]}/_proto",
             f"--descriptor_set_out={folder}/out", "default.proto"],
            check=True, capture_output=True, timeout=TIMEOUT_SECONDS,
        )  # fmt: skip
        (file,) = descriptor_pb2.FileDescriptorSet.FromString((folder / "out").read_bytes()).file
        return bytes(file.SerializeToString())


def _post_version(registry: SchemaRegistry, subject: str, query: Any, body: Any) -> Any:
    kind = body.get("schemaType", "AVRO")
    return {"id": registry.register(subject, body["schema"], kind, body.get("references") or ())}


def _look_up(registry: SchemaRegistry, subject: str, query: Any, body: Any) -> Any:
    if subject not in registry.subjects:
        raise ApiError(404, 40401, f"Subject '{subject}' not found.")
    for place, number in enumerate(registry.subjects[subject], 1):
        entry = registry.schemas[number]
        if entry and _canonical(entry["schema"]) == _canonical(body["schema"]):
            return {"subject": subject, "version": place, "id": number, **entry}
    raise ApiError(404, 40403, "Schema not found")


def _canonical(schema: str) -> Any:
    try:
        return json.loads(schema)
    except ValueError:
        return schema


def _delete(registry: SchemaRegistry, subject: str, query: Any, body: Any) -> Any:
    registry.deleted[subject] = registry.subjects.pop(subject, [])
    return list(range(1, len(registry.deleted[subject]) + 1))


_ROUTES: list[tuple[str, str, Callable[..., Any]]] = [
    ("GET", "/subjects", lambda r, query, body: sorted(r.subjects)),
    ("GET", "/schemas/types", lambda r, query, body: ["JSON", "PROTOBUF", "AVRO"]),
    ("GET", "/schemas/ids/([0-9]+)", lambda r, number, query, body: r.entry(int(number), query)),
    ("GET", "/subjects/([^/]+)/versions",
     lambda r, s, query, body: list(range(1, len(r.subjects[s]) + 1))),
    ("GET", "/subjects/([^/]+)/versions/(latest|-?[0-9]+)",
     lambda r, s, v, query, body: r.version(s, v, query)),
    ("POST", "/subjects/([^/]+)/versions", _post_version),
    ("POST", "/subjects/([^/]+)", _look_up),
    ("DELETE", "/subjects/([^/]+)", _delete),
]  # fmt: skip


class Dripping:
    """A file of a connection, which writes a byte now and then."""

    def __init__(self, file: Any, seconds: float) -> None:
        self.file, self.seconds = file, seconds

    def write(self, data: bytes) -> None:
        for byte in data:
            time.sleep(self.seconds)
            self.file.write(bytes([byte]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@contextmanager
def running_registry(**settings: Any) -> Iterator[SchemaRegistry]:
    """Run a registry on a free port of this machine."""
    registry = SchemaRegistry(**settings)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._respond("GET")

        def do_POST(self) -> None:
            self._respond("POST")

        def do_DELETE(self) -> None:
            self._respond("DELETE")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
            pass

        def _respond(self, method: str) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            path = self.path.removeprefix(base)
            registry.requests.append(f"{method} {path}")
            registry.authorizations.append(self.headers.get("Authorization"))
            registry.pause()
            status = registry.failures.pop(0) if registry.failures else 200
            if status == 0:
                self.close_connection = True
                return
            with suppress(ConnectionError):  # A client that does not wait for the whole answer.
                self._send(*_answer(registry, method, path, self.headers, body, status))

        def _send(self, status: int, data: bytes) -> None:
            if registry.drip_seconds:
                self.wfile = Dripping(self.wfile, registry.drip_seconds)  # type: ignore[assignment]
            self.send_response(status)
            self.send_header("Content-Type", MEDIA_TYPE)
            self.send_header("Content-Length", str(len(data)))
            if registry.encoding:
                self.send_header("Content-Encoding", registry.encoding)
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    # A path of its own: klog keeps the answers of a URL, and a port may be used again.
    base = f"/registry-{next(_NUMBERS)}"
    registry.url = f"http://127.0.0.1:{server.server_port}{base}"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(
    registry: SchemaRegistry, method: str, target: str, headers: Any, body: Any, status: int
) -> tuple[int, bytes]:
    if not _is_allowed(registry, headers.get("Authorization", "")):
        return 401, json.dumps({"error_code": 401, "message": "Unauthorized"}).encode()
    if status != 200:
        return status, json.dumps({"error_code": status * 100, "message": "told to fail"}).encode()
    if registry.body is not None:
        return 200, registry.body
    parts = urlsplit(target)
    try:
        answer = registry.answer(method, parts.path, parse_qs(parts.query), body)
    except ApiError as exc:
        return exc.status, json.dumps({"error_code": exc.code, "message": str(exc)}).encode()
    return 200, json.dumps(answer).encode()


def _is_allowed(registry: SchemaRegistry, authorization: str) -> bool:
    if registry.token is not None:
        return authorization == f"Bearer {registry.token}"
    logins = [f"{user}:{password}".encode() for user, password in registry.users.items()]
    allowed = ["Basic " + base64.b64encode(login).decode() for login in logins]
    return authorization in allowed if allowed else True
