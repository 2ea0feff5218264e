"""Requests to a schema registry: deadlines, retries, several URLs, answers of a bounded size.

A request that gets no answer, or 429 or 5xx, is repeated with each URL in turn, with growing
pauses. Redirects are not followed, because the credentials would go with them. Only Confluent's own
codes say that a schema does not exist; any other 404 is one of a server that is not a registry.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from klog.errors import RegistryError, RegistryRefusedError, SchemaNotFoundError
from klog.values.optional_libraries import import_library
from klog.values.registry_client import Deadline, registry_client
from klog.values.registry_settings import Registry

MAX_RESPONSE_BYTES = 16 << 20
FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 2.0
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_IS_TEMPORARY = frozenset({429, 500, 502, 503, 504})
_IS_NOT_FOUND = frozenset({40401, 40402, 40403})
"""Confluent's codes for a subject, a version and a schema that does not exist."""


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
        SchemaNotFoundError: The registry says that the subject or schema does not exist.
        RegistryRefusedError: It refused the request, or is not a schema registry.
        RegistryError: It did not answer.
    """
    pause = FIRST_PAUSE_SECONDS
    reason = ""
    for attempt in range(registry.retries + 1):
        if attempt:
            sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)
        for url, login in zip(registry.urls, registry.logins, strict=True):
            try:
                return _request(registry, url, login, path, body)
            except _TemporaryError as exc:
                reason = f"{url}: {exc}"
    raise RegistryError(
        f"schema registry: no answer to {path} after {registry.retries + 1} attempts. Last reason: "
        f"{reason}. Check the URL and the network, or set timeout_seconds and retries"
    )


def _request(
    registry: Registry,
    url: str,
    login: tuple[str, str] | None,
    path: str,
    body: dict[str, Any] | None,
) -> Any:
    httpx = import_library("httpx")
    headers = {"Accept": f"{MEDIA_TYPE}, application/json", "Accept-Encoding": "identity"}
    content = None
    if body is not None:
        headers["Content-Type"] = MEDIA_TYPE
        content = json.dumps(body)
    if registry.token is not None:
        headers["Authorization"] = f"Bearer {registry.token}"
    client = registry_client(registry)
    with Deadline(registry.timeout_seconds) as deadline:
        try:
            with client.stream(
                "GET" if body is None else "POST",
                url + path,
                headers=headers,
                content=content,
                auth=login,
                extensions={"trace": deadline.trace},
            ) as response:
                answer = response.status_code, _bounded_body(url, response)
        except httpx.TransportError as exc:
            if deadline.is_over or isinstance(exc, httpx.TimeoutException):
                reason = f"no answer in {registry.timeout_seconds:g} s ({type(exc).__name__})"
            else:
                reason = f"{type(exc).__name__}: {exc}"
            raise _TemporaryError(reason) from None
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise RegistryRefusedError(
                f"schema registry {url}: {type(exc).__name__}: {exc}"
            ) from None
        if deadline.is_over:  # The end of the connection may be taken for that of the answer.
            raise _TemporaryError(f"an incomplete answer in {registry.timeout_seconds:g} s")
    return _answer(url, path, *answer)


def _bounded_body(url: str, response: Any) -> bytes:
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise RegistryRefusedError(
            f"schema registry {url}: its answer is compressed, although klog asks for a plain one. "
            "Check the proxy or gateway before the registry"
        )
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise RegistryRefusedError(
                f"schema registry {url}: the answer is larger than {MAX_RESPONSE_BYTES >> 20} MiB. "
                "Check that the URL is a schema registry's"
            )
    return bytes(body)


def _answer(url: str, path: str, status: int, body: bytes) -> Any:
    if status in _IS_TEMPORARY:
        raise _TemporaryError(f"HTTP {status} {_message(body)}".rstrip())
    if status == 404:
        if _error_code(body) in _IS_NOT_FOUND:
            raise SchemaNotFoundError(
                f"schema registry {url}: {path} does not exist {_message(body)}".rstrip()
            )
        raise RegistryRefusedError(
            f"schema registry {url}: HTTP 404 for {path} {_message(body)}".rstrip()
            + ". Check the path of the URL: it is not that of a schema registry"
        )
    if status in (401, 403):
        raise RegistryRefusedError(
            f"schema registry {url}: HTTP {status} for {path}. Check user and password or token, "
            "and what they may read"
        )
    if status != 200:
        raise RegistryRefusedError(
            f"schema registry {url}: HTTP {status} for {path} {_message(body)}".rstrip()
        )
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise RegistryRefusedError(
            f"schema registry {url}: the answer to {path} is not JSON. Check that the URL is a "
            "schema registry's"
        ) from None


def _error_code(body: bytes) -> int | None:
    try:
        return int(json.loads(body)["error_code"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _message(body: bytes) -> str:
    """Return what the registry says about an error, in brackets."""
    code = _error_code(body)
    if code is None:
        return ""
    return f"({code}: {str(json.loads(body).get('message', ''))[:300]})"
