"""The `storage.*` options: one vocabulary, and what each store's client calls it, in one table.

The rule: a secret is in here and in the client, and nowhere else. Neither the repr of these values,
nor of what holds or pickles them, nor an error's message shows one.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from klog.errors import OptionError, without_passwords

PREFIX = "storage."
FSSPEC = "fsspec."

TABLE: dict[str, dict[str, str]] = {
    # obstore's S3Store; `connector/store/aws.py` turns the last four into what it means by them.
    "s3": {
        "endpoint": "endpoint",
        "region": "region",
        "access_key_id": "access_key_id",
        "secret_access_key": "secret_access_key",
        "session_token": "token",
        "profile": "profile",
        "anonymous": "skip_signature",
        "path_style": "path_style",
        "allow_http": "allow_http",
    },
    # adlfs
    "azure": {
        "account_name": "account_name",
        "account_key": "account_key",
        "sas_token": "sas_token",
        "tenant_id": "tenant_id",
        "client_id": "client_id",
        "client_secret": "client_secret",
    },
    # gcsfs, whose `token` is a token or the path of a service account's file
    "gcs": {
        "service_account_path": "token",
        "token": "token",
        "endpoint": "endpoint_url",
    },
    # The user of the RPC, where Kerberos does not say who it is.
    "hdfs": {"user": "user"},
}
"""Client: our word: the client's own."""

BOOLEANS = {"anonymous", "path_style", "allow_http"}
SECRETS = {
    "secret_access_key", "session_token", "account_key", "sas_token", "client_secret", "token",
}  # fmt: skip
_SECRETS_OF_THE_ENVIRONMENT = (
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_KEY", "AZURE_CLIENT_SECRET",
)  # fmt: skip

CLIENTS = {
    "s3": "s3", "s3a": "s3", "abfs": "azure", "abfss": "azure", "az": "azure", "adl": "azure",
    "gs": "gcs", "gcs": "gcs", "hdfs": "hdfs", "webhdfs": "hdfs",
}  # fmt: skip
"""Scheme: client."""
EXTRAS = {**CLIENTS, "http": "http", "https": "http"}
"""Scheme: what of `pip install klog[...]` brings the client."""

WORDS = sorted({word for words in TABLE.values() for word in words})


@dataclass(frozen=True, slots=True, repr=False)
class Storage:
    """What was given as `storage.*`, without the prefix, checked.

    Whether a word fits the scheme is seen when a store is made: roots on two stores may share one.
    """

    given: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        """Show which words were given, and no value."""
        return f"Storage({', '.join(word for word, _ in self.given)})"

    def of_client(self, client: str) -> dict[str, str | bool]:
        """Give what was said to one client, by the names that it has for it."""
        names = TABLE[client]
        return {
            names[word]: _boolean(word, value) if word in BOOLEANS else value
            for word, value in self.given
            if word in names
        }

    def of_fsspec(self, scheme: str) -> dict[str, Any]:
        """Give what fsspec's file system of a scheme is made with.

        `storage.fsspec.<name>` goes there as JSON where it is JSON, else as text.
        """
        client = CLIENTS.get(scheme)
        found: dict[str, Any] = dict(self.of_client(client)) if client else {}
        for word, value in self.given:
            if word.startswith(FSSPEC):
                found[word.removeprefix(FSSPEC)] = _json_or_text(value)
        return found

    def refuse_fsspec(self, scheme: str) -> None:
        """Raise `OptionError` where a word is for fsspec and the scheme is not read through it."""
        for word, _ in self.given:
            if word.startswith(FSSPEC):
                raise OptionError(
                    f"{PREFIX}{word}: {scheme}:// is not read through fsspec; leave it out, or "
                    f"use one of {_listed(CLIENTS.get(scheme))}"
                )

    def redacted(self, text: str, found: Iterable[str] = ()) -> str:
        """Take out of a text every secret, those that were `found` elsewhere and those of URLs."""
        secrets = [*found, *(value for word, value in self.given if _is_secret(word))]
        secrets += [os.environ.get(name, "") for name in _SECRETS_OF_THE_ENVIRONMENT]
        for secret in secrets:
            if len(secret) > 3:  # else every "a" of the text goes
                text = text.replace(secret, "***")
        return without_passwords(text)

    def cause(self, exc: Exception, found: Iterable[str] = ()) -> Exception | None:
        """Give what to chain to an error: nothing where it would show a secret."""
        return exc if self.redacted(str(exc), found) == str(exc) else None


NOTHING_GIVEN = Storage()
"""All that is needed comes from the environment."""


def storage_of(options: Mapping[str, str]) -> Storage:
    """Take the `storage.*` options out of all that were given, whatever the case of their names.

    Raises `OptionError` for a word that no client has, and never says a value.
    """
    lower = {key.lower(): str(value) for key, value in options.items()}
    words = {
        key.removeprefix(PREFIX): value for key, value in lower.items() if key.startswith(PREFIX)
    }
    for word in words:
        if word not in WORDS and not (word.startswith(FSSPEC) and word != FSSPEC):
            close = difflib.get_close_matches(word, WORDS, n=1, cutoff=0.5)
            hint = f"did you mean {PREFIX}{close[0]}?" if close else f"it knows {_listed(None)}"
            raise OptionError(f"{PREFIX}{word}: klog has no such option; {hint}")
    for word in BOOLEANS & words.keys():
        _boolean(word, words[word])
    return Storage(tuple(sorted(words.items())))


def _is_secret(word: str) -> bool:
    """Tell whether a value may be a secret; all that goes to fsspec may be."""
    return word in SECRETS or word.startswith(FSSPEC)


def _listed(client: str | None) -> str:
    words = sorted(TABLE[client]) if client else WORDS
    return ", ".join(PREFIX + word for word in words)


def _boolean(word: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise OptionError(f"{PREFIX}{word}: is neither true nor false")
    return value.lower() == "true"


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
