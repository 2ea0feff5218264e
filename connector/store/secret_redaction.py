"""What is secret, and how errors show none of it.

The rule: a secret is in the options, in the client and nowhere else. Secret are the storage options
that the table of options calls so, all that goes to fsspec, some variables of the environment, and
what a URL has in it: password, query, fragment. In a message they are `***`, and an error whose own
text has one is not chained to the error that users see.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from urllib.parse import unquote

from klog.connector.options.storage_option_table import STORAGE_OPTIONS
from klog.connector.options.storage_options import FSSPEC_PREFIX, STORAGE_PREFIX, StorageOptions
from klog.url_secrets import without_passwords

SECRET_OPTIONS = frozenset(
    row.name.removeprefix(STORAGE_PREFIX) for row in STORAGE_OPTIONS if row.is_secret
)
_ENVIRONMENT = (
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_KEY", "AZURE_CLIENT_SECRET",
)  # fmt: skip
_MIN_CHARACTERS = 4
"""Shorter texts are not taken out: every "a" of a message would go."""


def redact(text: str, storage: StorageOptions, secrets: Iterable[str] = ()) -> str:
    """Return a text in which every secret is `***`.

    Args:
        text: A message.
        storage: The options whose secrets may be in it.
        secrets: Other secrets, such as those of a URL or a profile.
    """
    values = [*secrets, *(text for name, text in storage.values if is_secret(name))]
    values += [os.environ.get(name, "") for name in _ENVIRONMENT]
    for secret in values:
        if len(secret) >= _MIN_CHARACTERS:
            text = text.replace(secret, "***")
    return without_passwords(text)


def chainable(
    exc: Exception, storage: StorageOptions, secrets: Iterable[str] = ()
) -> Exception | None:
    """Return an error to chain another one to; None if its text has a secret.

    Args:
        exc: The error that a client raised.
        storage: The options whose secrets may be in its text.
        secrets: Other secrets.
    """
    return exc if redact(str(exc), storage, secrets) == str(exc) else None


def is_secret(name: str) -> bool:
    """Return whether a storage option may hold a secret.

    Args:
        name: The name of the option, without `storage.`.
    """
    return name in SECRET_OPTIONS or name.startswith(FSSPEC_PREFIX)


def url_secrets(url: str) -> tuple[str, ...]:
    """Return the secrets of a URL or of URLs chained in it, as written and unquoted.

    They are the password, the query or fragment, and each value in it.

    Args:
        url: The URL.
    """
    secrets = re.findall(r"://[^/\s:]*:([^/\s]*)@", url)
    for query in re.findall(r"://[^?#]*[?#](.+)", url):
        secrets += [query, *re.findall(r"=([^&#]+)", query)]
    return (*secrets, *map(unquote, secrets))
