"""Clients of HTTP for schema registries: one for each setting of a client, and deadlines.

The rule: a request ends at its deadline, also if the server sends a byte now and then. httpx bounds
each wait alone, so a deadline shuts the request's own connection. Connections are therefore not
kept; a client is, because it takes longer to read the certificates than to connect. Until there is
a connection, the limits are those of httpx: of each address of a host, and of its name's look-up.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections import OrderedDict
from contextlib import suppress
from types import TracebackType
from typing import Any

from klog.errors import RegistryRefusedError
from klog.values.optional_libraries import import_library
from klog.values.registry_settings import Registry

MAX_CLIENTS = 16
_CLIENTS: OrderedDict[tuple[int, str | None, float], Any] = OrderedDict()
_LOCK = threading.Lock()
_CONNECTED = (".connect_tcp.complete", ".start_tls.complete")
"""Ends of httpx's names of events; they begin with `connection`, or with `proxy`."""


def registry_client(registry: Registry) -> Any:
    """Return the client for a registry. It is safe for threads, and has no credentials.

    Args:
        registry: The registry.

    Raises:
        RegistryError: Its certificates cannot be read, or the environment has an invalid proxy.
    """
    key = os.getpid(), registry.ca_file, registry.timeout_seconds  # A fork needs its own.
    with _LOCK:
        if key not in _CLIENTS:
            _CLIENTS[key] = _new_client(registry)
            if len(_CLIENTS) > MAX_CLIENTS:
                _CLIENTS.popitem(last=False)
        _CLIENTS.move_to_end(key)
        return _CLIENTS[key]


class Deadline:
    """Shuts the connection of a request after some seconds; `trace` learns of the connection."""

    def __init__(self, seconds: float) -> None:
        """Take the seconds."""
        self.is_over = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        """Start the clock."""
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the clock."""
        self._timer.cancel()

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Take what httpx says that it does; its extension `trace` calls this."""
        if event.endswith(_CONNECTED):
            self._socket = info["return_value"].get_extra_info("socket")
            if self.is_over:
                self._end()

    def _end(self) -> None:
        self.is_over = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


def _new_client(registry: Registry) -> Any:
    httpx = import_library("httpx")
    certificates: Any = True
    if registry.ca_file is not None:
        try:
            certificates = ssl.create_default_context(cafile=registry.ca_file)
        except OSError as exc:
            raise RegistryRefusedError(f"ca_file: cannot read {registry.ca_file}: {exc}") from exc
    limits = httpx.Limits(max_keepalive_connections=0)
    try:
        return httpx.Client(verify=certificates, timeout=registry.timeout_seconds, limits=limits)
    except (ImportError, OSError, ValueError, httpx.InvalidURL) as exc:
        # The message of the cause may have the password of a proxy.
        raise RegistryRefusedError(
            f"schema registry: no client can be made ({type(exc).__name__}). Check HTTP_PROXY, "
            "HTTPS_PROXY, ALL_PROXY, NO_PROXY and SSL_CERT_FILE in the environment"
        ) from None
