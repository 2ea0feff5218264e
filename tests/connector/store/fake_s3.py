"""An S3 server of a few lines, in this process, that fails as a test asks.

It has objects and listings of them, in pages of at most 1,000 names as S3 has. Queued answers come
before its own. It can ignore the condition of a PUT, as some servers that speak S3 do, refuse keys,
and answer 403 for a missing object, as S3 does to users who may not list.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

from klog.connector.options.storage_options import StorageOptions, parse_storage_options

RESET, HANG = 0, 1
"""In the place of a status: the connection is closed, or no answer comes for a while."""
HANG_SECONDS = 3
PAGE_NAMES = 1000
"""The largest page of a listing of S3's."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request, which was `applied` or not."""

    status: int
    body: str = ""
    applied: bool = False


def error(status: int, code: str, *, applied: bool = False, more: str = "") -> Answer:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message>{more}</Error>"
    return Answer(status, body, applied)


def tag_of(data: bytes) -> str:
    return f'"{zlib.crc32(data):08x}"'


@dataclass
class FakeS3:
    endpoint: str
    ignores_conditions: bool = False
    expired: set[str] = field(default_factory=set)
    """Access keys that are refused."""
    hides_absent: bool = False
    page_names: int = PAGE_NAMES
    answers: deque[Answer] = field(default_factory=deque)
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def storage(self, **more: str) -> StorageOptions:
        options = {"endpoint": self.endpoint, "allow_http": "true", "region": "us-east-1"}
        if "profile" not in more:
            options |= {"access_key_id": "AKID", "secret_access_key": "canary-of-a-secret"}
        return parse_storage_options(
            {f"storage.{word}": value for word, value in (options | more).items()}
        )

    def put(self, path: str, data: bytes, absent: bool) -> Answer:
        with self.lock:
            if absent and not self.ignores_conditions and path in self.objects:
                return error(412, "PreconditionFailed")
            self.objects[path] = data
        return Answer(200)

    def listing(self, bucket: str, query: str) -> str:
        """List one page of a level below a prefix, from after a key or a page if one is given."""
        parameters = dict(parse_qsl(query))
        prefix, after = parameters.get("prefix", ""), parameters.get("start-after", "")
        after = max(after, parameters.get("continuation-token", ""))
        with self.lock:
            sizes = {
                unquote(path)[len(bucket) + 1 :]: len(self.objects[path]) for path in self.objects
            }
        names = {
            prefix + "".join(key[len(prefix) :].partition("/")[:2])
            for key in sizes
            if key.startswith(prefix) and key > after
        }
        following = sorted(name for name in names if name > after)
        page = following[: self.page_names]
        listed = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            if name.endswith("/")
            else f"<Contents><Key>{escape(name)}</Key><Size>{sizes[name]}</Size>"
            "<ETag>1</ETag><LastModified>2026-11-21T10:00:00.000Z</LastModified></Contents>"
            for name in page
        )
        if len(following) > len(page):
            token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
            listed += f"<IsTruncated>true</IsTruncated>{token}"
        return f"<?xml version='1.0'?><ListBucketResult>{listed}</ListBucketResult>"

    def request_counts(self) -> Counter[str]:
        """Return the number of requests since the last call, by kind."""
        with self.lock:
            counts = Counter(
                "LIST" if "list-type=2" in request else request.split()[0]
                for request in self.requests
            )
            self.requests.clear()
        return counts


class _Handler(BaseHTTPRequestHandler):
    fake: FakeS3
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # else head and body go apart, and the second waits for an ACK

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        queued = self._queued()
        if queued is None or queued.applied:
            own = self.fake.put(self.path, data, self.headers.get("If-None-Match") == "*")
        else:
            own = Answer(200)
        self._answer(queued or own, b"")

    def do_GET(self) -> None:
        queued = self._queued()
        path, _, query = self.path.partition("?")
        if "list-type=2" in query:
            self._answer(queued or Answer(200, self.fake.listing(path, query)), b"")
            return
        data = self.fake.objects.get(path)
        absent = error(403, "AccessDenied") if self.fake.hides_absent else error(404, "NoSuchKey")
        own = absent if data is None else self._own(data)
        self._answer(queued or own, data or b"")

    def _own(self, data: bytes) -> Answer:
        if self.headers.get("If-Match", tag_of(data)) != tag_of(data):
            return error(412, "PreconditionFailed")
        if "Range" not in self.headers:
            return Answer(200)
        if self._range(len(data))[0] >= len(data):
            size = f"<ActualObjectSize>{len(data)}</ActualObjectSize>"
            return error(416, "InvalidRange", more=size)
        return Answer(206)

    def _range(self, size_bytes: int) -> tuple[int, int]:
        """Return the range of the request, cut at the end of the object."""
        start, last = self.headers["Range"].removeprefix("bytes=").split("-")
        return int(start), min(int(last) + 1, size_bytes)

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        """Refuse an upload in parts."""
        self._answer(self._queued() or error(501, "NotImplemented"), b"")

    def do_DELETE(self) -> None:
        queued = self._queued()
        if queued is None:
            with self.fake.lock:
                self.fake.objects.pop(self.path, None)
        self._answer(queued or Answer(204), b"")

    def _queued(self) -> Answer | None:
        with self.fake.lock:
            self.fake.requests.append(f"{self.command} {self.path}")
            self.fake.headers.append(dict(self.headers.items()))
            signed = self.headers.get("Authorization", "")
            if any(f"Credential={key}/" in signed for key in self.fake.expired):
                return error(400, "ExpiredToken")
            return self.fake.answers.popleft() if self.fake.answers else None

    def _answer(self, answer: Answer, data: bytes) -> None:
        if answer.status == HANG:
            time.sleep(HANG_SECONDS)
        if answer.status in (RESET, HANG):
            self.close_connection = True
            return
        body = answer.body.encode() if answer.body else data
        self.send_response(answer.status)
        if answer.status == 206:
            start, end = self._range(len(body))
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(body)}")
            body = body[start:end]
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", tag_of(data))
        self.send_header("Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@contextmanager
def fake_s3(*, ignores_conditions: bool = False) -> Iterator[FakeS3]:
    class Handler(_Handler):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Handler.fake = FakeS3(f"http://127.0.0.1:{server.server_port}", ignores_conditions)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Handler.fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
