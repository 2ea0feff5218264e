"""A proxy in front of a real S3 server that injects a fault into the n-th request.

The rule: it forwards requests byte for byte, so that signatures stay valid. A fault affects one
request, or all requests from that one on.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RESET = 0
HANG_SECONDS = 0.3
_OF_A_HOP = {"connection", "transfer-encoding", "keep-alive"}


@dataclass(frozen=True, slots=True)
class Wrong:
    """What the client gets instead of an answer, whether the server ran the request or not."""

    status: int
    code: str = ""
    applied: bool = False
    hangs: bool = False
    only: str = ""
    """The only method with the fault; other requests are not counted."""
    path: str = ""
    """Part of the paths with the fault, for any method after the first; others do not count."""
    to_the_end: bool = False

    def __str__(self) -> str:
        outcome = str(self.status) if self.status else "reset"
        return f"{outcome}{' late' * self.hangs} {'after' if self.applied else 'before'}"


@dataclass
class Proxy:
    """The fault and the requests so far; `endpoint` is the URL for clients."""

    server: tuple[str, int]
    endpoint: str = ""
    wrong: Wrong | None = None
    at: int = 0
    requests: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fail(self, wrong: Wrong | None, at: int = 0) -> None:
        """Inject this fault into the n-th request from now."""
        with self.lock:
            self.wrong, self.at = wrong, at
            self.requests.clear()

    def next(self, method: str, path: str) -> Wrong | None:
        """Count a request; return its fault."""
        with self.lock:
            wrong = self.wrong
            if wrong is None or wrong.path not in path:
                return None
            has_begun = bool(wrong.path and self.requests)
            if wrong.only not in ("", method) and not has_begun:
                return None
            self.requests.append(f"{method} {path}")
            number = len(self.requests) - 1
            return wrong if number == self.at or (wrong.to_the_end and number > self.at) else None


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy
    protocol_version = "HTTP/1.1"

    def _do(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        wrong = self.proxy.next(self.command, self.path)
        if wrong is None or wrong.applied:
            status, headers, body = self._forward(data)
        else:
            status, headers, body = 0, [], b""
        if wrong is not None:
            if wrong.hangs:
                time.sleep(HANG_SECONDS)
            if wrong.status == RESET:
                self.close_connection = True
                return
            body = f"<Error><Code>{wrong.code}</Code><Message>no</Message></Error>".encode()
            status, headers = wrong.status, []
        self._answer(status, headers, body)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _do  # noqa: N815

    def _forward(self, data: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(*self.proxy.server, timeout=60)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders(data)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.getheaders(), body

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        length = str(len(body))
        for name, value in headers:
            if name.lower() == "content-length":
                length = value if self.command == "HEAD" else length
            elif name.lower() not in _OF_A_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@contextmanager
def proxy_to(host: str, port: int) -> Iterator[Proxy]:
    """Run a proxy in front of a server."""

    class Handler(_Handler):
        proxy = Proxy((host, port))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Handler.proxy.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Handler.proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
