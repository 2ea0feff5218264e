"""obstore's client of S3, made from the storage options, the environment and the profile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from klog.connector.options.storage_option_table import S3
from klog.connector.options.storage_options import StorageOptions
from klog.connector.store.client_options import client_options
from klog.connector.store.s3_credentials import find_credentials, from_environment, read_profile
from klog.connector.store.secret_redaction import redact
from klog.errors import OptionError

if TYPE_CHECKING:
    from obstore.store import S3Store as Client

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a client tries a request.

    Attributes:
        max_retries: How often a failed request is sent again.
        timeout_seconds: How long one request may take.
    """

    max_retries: int
    timeout_seconds: int


def make_s3_client(bucket: str, storage: StorageOptions, retry_policy: RetryPolicy) -> Client:
    """Return a client of a bucket; nothing is sent yet.

    Args:
        bucket: The bucket.
        storage: The storage options.
        retry_policy: How often and how long the client tries.

    Raises:
        OptionError: An option is wrong, or obstore is not installed.
    """
    try:
        from obstore.exceptions import BaseError
        from obstore.store import S3Store as Client
    except ImportError as exc:
        raise OptionError(
            "path: s3:// needs a client that is not installed. Run pip install obstore"
        ) from exc
    options = client_options(storage, S3)
    profile = read_profile(options)
    credentials = find_credentials(options, profile)
    try:
        return Client(
            bucket,
            config=_config(bucket, options, profile),  # type: ignore[arg-type]
            client_options={
                "allow_http": _allows_http(options),
                "connect_timeout": timedelta(seconds=5),
                "read_timeout": timedelta(seconds=30),
                "timeout": timedelta(seconds=retry_policy.timeout_seconds),
            },
            retry_config={
                "max_retries": retry_policy.max_retries,
                "retry_timeout": timedelta(seconds=60),
            },
            credential_provider=(lambda: credentials) if credentials else None,  # type: ignore[arg-type]
        )
    except (BaseError, ValueError) as exc:
        raise OptionError(
            f"path: cannot use s3://{bucket}: {redact(str(exc), storage)}. Check the bucket's name "
            "and the storage options"
        ) from None


def _config(bucket: str, options: Mapping[str, Any], profile: Mapping[str, str]) -> dict[str, Any]:
    config: dict[str, Any] = {"disable_bulk_delete": True}
    region = options.get("region") or from_environment("AWS_REGION", "AWS_DEFAULT_REGION")
    if region or profile.get("region"):
        config["region"] = region or profile["region"]
    if options.get("skip_signature"):
        config["skip_signature"] = True
    if options.get("path_style") is False:
        config["virtual_hosted_style_request"] = True
    endpoint = (
        options.get("endpoint") or from_environment(*_ENDPOINTS) or profile.get("endpoint_url")
    )
    if endpoint:
        config["endpoint"] = _checked_endpoint(str(endpoint), bucket, options)
    return config


def _checked_endpoint(endpoint: str, bucket: str, options: Mapping[str, Any]) -> str:
    """Return an endpoint, with the bucket if it belongs there; obstore panics at a wrong one."""
    message = "storage.endpoint: must be a URL. Example: https://s3.eu-central-1.amazonaws.com"
    try:
        parts = urlsplit(endpoint)
        is_url = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise OptionError(message) from None
    if not is_url or not endpoint.isascii() or not endpoint.isprintable() or " " in endpoint:
        raise OptionError(message)
    if parts.username is not None or parts.password is not None:
        raise OptionError(
            "storage.endpoint: must not have a user. Set storage.access_key_id and "
            "storage.secret_access_key"
        )
    if parts.scheme == "http" and not _allows_http(options):
        raise OptionError(
            f"storage.endpoint: {endpoint} sends data in the clear. To allow that, set "
            "storage.allow_http=true"
        )
    if options.get("path_style") is False:
        return f"{parts.scheme}://{bucket}.{parts.netloc}{parts.path}".rstrip("/")
    return endpoint.rstrip("/")


def _allows_http(options: Mapping[str, Any]) -> bool:
    return bool(options.get("allow_http", os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true"))
