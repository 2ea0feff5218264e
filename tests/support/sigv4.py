"""AWS's signature, version 4, over one plain HTTP request, as an admin's tool sends it."""

from __future__ import annotations

import hashlib
import hmac
import urllib.request
from datetime import datetime, timezone
from urllib.parse import urlsplit

REGION = "us-east-1"


def send(
    method: str, url: str, keys: tuple[str, str], service: str, body: bytes = b"", kind: str = ""
) -> bytes:
    """Sign a request with an access key and its secret, send it, and return the answer's body.

    The query must be sorted. Raises `urllib.error.HTTPError` for an answer with an error status.
    """
    parts, now = urlsplit(url), f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
    digest = hashlib.sha256(body).hexdigest()
    headers = {"host": parts.netloc, "x-amz-content-sha256": digest, "x-amz-date": now}
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical_request = "\n".join([method, parts.path or "/", parts.query, lines, names, digest])
    scope = f"{now[:8]}/{REGION}/{service}/aws4_request"
    hashed = hashlib.sha256(canonical_request.encode()).hexdigest()
    key = f"AWS4{keys[1]}".encode()
    for part in scope.split("/"):
        key = _hmac(key, part)
    signature = _hmac(key, f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashed}").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys[0]}/{scope}, SignedHeaders={names}, "
        f"Signature={signature}"
    )
    if kind:
        headers["content-type"] = kind
    request = urllib.request.Request(url, body, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        content: bytes = answer.read()
    return content


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
