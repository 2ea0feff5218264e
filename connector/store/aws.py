"""obstore's S3 client, made from `storage.*` and from where AWS's own tools look.

What is given wins; then the environment, the profile (`AWS_PROFILE` or `default`) of the shared
files, and, by obstore itself, a web identity, a container's or an instance's role.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from klog.connector.store.storage import Storage
from klog.errors import OptionError

if TYPE_CHECKING:
    from obstore.store import S3Store

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_BEFORE_PROFILES = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")
_PROFILES_OWN = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "token",
}


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long a client tries."""

    retries: int
    request_seconds: int


def found_keys(storage: Storage) -> tuple[str, ...]:
    """Give the keys that a client made now would have, to tell them from those of an earlier one.

    Raises `OptionError` as `s3_client` does.
    """
    said = storage.of_client("s3")
    found = _credential(said, _profile(said))
    if found is not None:
        return tuple(str(found[name]) for name in ("access_key_id", "secret_access_key", "token"))
    return tuple(os.environ.get(name.upper(), "") for name in _PROFILES_OWN)


def s3_client(bucket: str, storage: Storage, patience: Patience) -> S3Store:
    """Make a client for a bucket; nothing is sent yet.

    Raises `OptionError` for what cannot be meant, and where obstore is not installed.
    """
    try:
        from obstore.exceptions import BaseError
        from obstore.store import S3Store
    except ImportError as exc:
        raise OptionError(
            "path: s3:// needs a client that is not installed: pip install 'klog[s3]'"
        ) from exc
    said = storage.of_client("s3")
    profile = _profile(said)
    credential = _credential(said, profile)
    config: dict[str, Any] = {"disable_bulk_delete": True}
    region = said.get("region") or _from_environment("AWS_REGION", "AWS_DEFAULT_REGION")
    if region or profile.get("region"):
        config["region"] = region or profile["region"]
    if said.get("skip_signature"):
        config["skip_signature"] = True
    endpoint = said.get("endpoint") or _from_environment(*_ENDPOINTS) or profile.get("endpoint_url")
    if said.get("path_style") is False:
        config["virtual_hosted_style_request"] = True
    if endpoint:
        config["endpoint"] = _checked(str(endpoint), bucket, said)
    try:
        return S3Store(
            bucket,
            config=config,  # type: ignore[arg-type]
            client_options={
                "allow_http": _allows_http(said),
                "connect_timeout": timedelta(seconds=5),
                "read_timeout": timedelta(seconds=30),
                "timeout": timedelta(seconds=patience.request_seconds),
            },
            retry_config={
                "max_retries": patience.retries,
                "retry_timeout": timedelta(seconds=60),
            },
            credential_provider=(lambda: credential) if credential else None,  # type: ignore[arg-type]
        )
    except (BaseError, ValueError) as exc:
        raise OptionError(f"path: cannot use s3://{bucket}: {storage.redacted(str(exc))}") from None


def _checked(endpoint: str, bucket: str, said: Mapping[str, str | bool]) -> str:
    """Check an endpoint, which obstore would not survive; put the bucket in if it belongs there."""
    wrong = "storage.endpoint: is no URL; give one like https://s3.eu-central-1.amazonaws.com"
    try:
        parts = urlsplit(endpoint)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise OptionError(wrong) from None
    if not whole or not endpoint.isascii() or not endpoint.isprintable() or " " in endpoint:
        raise OptionError(wrong)
    if parts.username is not None or parts.password is not None:
        raise OptionError("storage.endpoint: holds a user; use storage.access_key_id")
    if parts.scheme == "http" and not _allows_http(said):
        raise OptionError(
            f"storage.endpoint: {endpoint} sends data in the clear; if that is meant, set "
            "storage.allow_http=true"
        )
    if said.get("path_style") is False:
        return f"{parts.scheme}://{bucket}.{parts.netloc}{parts.path}".rstrip("/")
    return endpoint.rstrip("/")


def _allows_http(said: Mapping[str, str | bool]) -> bool:
    return bool(said.get("allow_http", os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true"))


def _from_environment(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _credential(
    said: Mapping[str, str | bool], profile: Mapping[str, str]
) -> dict[str, Any] | None:
    """Give the keys that were said or that the profile holds; None leaves it to obstore.

    A token belongs to its keys: one of the environment is never sent with keys from elsewhere.
    """
    if bool(said.get("access_key_id")) != bool(said.get("secret_access_key")):
        raise OptionError(
            "storage.access_key_id, storage.secret_access_key: give both, or neither to use "
            "what the environment has"
        )
    keys: Mapping[str, Any] = said
    if not said.get("access_key_id"):
        keys = {ours: profile.get(theirs) for theirs, ours in _PROFILES_OWN.items()}
    if not keys.get("access_key_id") or said.get("skip_signature"):
        return None
    found = {name: keys.get(name) for name in ("access_key_id", "secret_access_key", "token")}
    return {**found, "expires_at": None}


def _profile(said: Mapping[str, str | bool]) -> dict[str, str]:
    """Read the profile that was named or is the default: without its keys where others come first.

    Raises `OptionError` where one was named that has no keys.
    """
    named = str(said.get("profile", ""))
    name = named or os.environ.get("AWS_PROFILE") or "default"
    found: dict[str, str] = {}
    for variable, path, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        file = Path(os.environ.get(variable) or path).expanduser()
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            # Neither its lines nor the parser's words may be shown: they hold the keys.
            raise OptionError(f"storage.profile: {file} is not a file of profiles") from None
        if parser.has_section(section):
            found.update(parser.items(section))
    if not named and _from_environment(*_BEFORE_PROFILES):
        return {key: value for key, value in found.items() if key not in _PROFILES_OWN}
    if named and not {"aws_access_key_id", "aws_secret_access_key"} <= found.keys():
        raise OptionError(
            f"storage.profile: {named} has no access keys in the shared files of AWS. What a role "
            "or single sign-on gives, `aws configure export-credentials --format env` says"
        )
    return found
