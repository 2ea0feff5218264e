"""Requests to a schema registry: time-outs, retries, several URLs, answers of a bounded size.

A request that gets no answer, or 429 or 5xx, is repeated with each URL in turn, with growing
pauses. Redirects are not followed, because the credentials would go with them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from klog.errors import RegistryError, SchemaNotFoundError
from klog.values.optional_libraries import import_library
from klog.values.registry_settings import Registry

MAX_RESPONSE_BYTES = 16 << 20
FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 2.0
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_IS_TEMPORARY = frozenset({429, 500, 502, 503, 504})


class _TemporaryError(Exception):
    """A request that may succeed if it is repeated."""


def request_json(
    registry: Registry,
    path: str,
    body: dict[str, Any] | None = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Any:
    """Send a request and return the decoded answer.

    Args:
        registry: The registry.
        path: What follows the base URL, such as `/schemas/ids/7`.
        body: What to post; None for a GET.
        sleep: Waits for some seconds.

    Raises:
        SchemaNotFoundError: The registry says 404.
        RegistryError: It refused the request, or did not answer.
    """
    pause = FIRST_PAUSE_SECONDS
    reason = ""
    for attempt in range(registry.retries + 1):
        if attempt:
            sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)
        for url in registry.urls:
            try:
                return _request(registry, url, path, body)
            except _TemporaryError as exc:
                reason = f"{url}: {exc}"
    raise RegistryError(
        f"schema registry: no answer to {path} after {registry.retries + 1} attempts. Last reason: "
        f"{reason}. Check the URL and the network, or set timeout_seconds and retries"
    )


def _request(registry: Registry, url: str, path: str, body: dict[str, Any] | None) -> Any:
    httpx = import_library("httpx")
    headers = {"Accept": f"{MEDIA_TYPE}, application/json"}
    content = None
    if body is not None:
        headers["Content-Type"] = MEDIA_TYPE
        content = json.dumps(body)
    if registry.token is not None:
        headers["Authorization"] = f"Bearer {registry.token}"
    auth = None if registry.user is None else (registry.user, registry.password)
    try:
        with (
            httpx.Client(
                auth=auth, verify=_certificates(registry), timeout=registry.timeout_seconds
            ) as client,
            client.stream(
                "GET" if body is None else "POST", url + path, headers=headers, content=content
            ) as response,
        ):
            return _answer(url, path, response.status_code, _bounded_body(url, response))
    except httpx.TimeoutException as exc:
        reason = f"no answer in {registry.timeout_seconds:g} s ({type(exc).__name__})"
        raise _TemporaryError(reason) from None
    except httpx.TransportError as exc:
        raise _TemporaryError(f"{type(exc).__name__}: {exc}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise RegistryError(f"schema registry {url}: {type(exc).__name__}: {exc}") from None


def _certificates(registry: Registry) -> Any:
    """Return what httpx verifies the server with."""
    if registry.ca_file is None:
        return True
    import ssl

    try:
        return ssl.create_default_context(cafile=registry.ca_file)
    except OSError as exc:
        raise RegistryError(f"ca_file: cannot read {registry.ca_file}: {exc}") from exc


def _bounded_body(url: str, response: Any) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise RegistryError(
                f"schema registry {url}: the answer is larger than {MAX_RESPONSE_BYTES >> 20} MiB. "
                "Check that the URL is a schema registry's"
            )
    return bytes(body)


def _answer(url: str, path: str, status: int, body: bytes) -> Any:
    if status in _IS_TEMPORARY:
        raise _TemporaryError(f"HTTP {status} {_message(body)}".rstrip())
    if status == 404:
        raise SchemaNotFoundError(
            f"schema registry {url}: {path} does not exist {_message(body)}".rstrip()
        )
    if status in (401, 403):
        raise RegistryError(
            f"schema registry {url}: HTTP {status} for {path}. Check user and password or token, "
            "and what they may read"
        )
    if status != 200:
        raise RegistryError(
            f"schema registry {url}: HTTP {status} for {path} {_message(body)}".rstrip()
        )
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise RegistryError(
            f"schema registry {url}: the answer to {path} is not JSON. Check that the URL is a "
            "schema registry's"
        ) from None


def _message(body: bytes) -> str:
    """Return what the registry says about an error, in brackets."""
    try:
        answer = json.loads(body)
        return f"({int(answer['error_code'])}: {str(answer['message'])[:300]})"
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
