"""Where the keys of S3 come from: options, the environment, the profiles of AWS's own tools.

The rule: options win, then the environment, then the profile (`AWS_PROFILE`, else `default`) of the
shared files. If none of them has keys, obstore looks for a web identity and for the role of a
container or an instance. A session token belongs to its keys: one of the environment is never sent
with keys from elsewhere.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from klog.connector.options.storage_option_table import S3
from klog.connector.options.storage_options import StorageOptions
from klog.connector.store.client_options import client_options
from klog.errors import OptionError

_WITHOUT_PROFILE_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")
"""Variables that win over the keys of a profile that no option names."""
_PROFILE_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "token",
}
"""Field of a profile: obstore's name for it."""


def current_keys(storage: StorageOptions) -> tuple[str, ...]:
    """Return the keys that a new client would have, to compare them with those of an older one.

    Args:
        storage: The storage options.

    Raises:
        OptionError: As `read_profile` and `find_credentials`.
    """
    options = client_options(storage, S3)
    credentials = find_credentials(options, read_profile(options))
    if credentials is not None:
        return tuple(str(credentials[name]) for name in _PROFILE_KEYS.values())
    return tuple(os.environ.get(name.upper(), "") for name in _PROFILE_KEYS)


def find_credentials(
    options: Mapping[str, Any], profile: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the keys of the options or of the profile; None if obstore has to find them.

    Args:
        options: The options of S3's client.
        profile: What `read_profile` returned for them.

    Raises:
        OptionError: One of the two keys is set without the other.
    """
    if bool(options.get("access_key_id")) != bool(options.get("secret_access_key")):
        raise OptionError(
            "storage.access_key_id, storage.secret_access_key: must be set together, or not at all "
            "to use the keys of the environment"
        )
    keys: Mapping[str, Any] = options
    if not options.get("access_key_id"):
        keys = {name: profile.get(field) for field, name in _PROFILE_KEYS.items()}
    if not keys.get("access_key_id") or options.get("skip_signature"):
        return None
    return {**{name: keys.get(name) for name in _PROFILE_KEYS.values()}, "expires_at": None}


def read_profile(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of the profile that the options name, or of the default one.

    The keys of a profile that no option names are left out if the environment has keys.

    Args:
        options: The options of S3's client.

    Raises:
        OptionError: The profile that an option names has no keys, or a file is not one of profiles.
    """
    profile = str(options.get("profile", ""))
    name = profile or os.environ.get("AWS_PROFILE") or "default"
    fields: dict[str, str] = {}
    for variable, default_path, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        file = Path(os.environ.get(variable) or default_path).expanduser()
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            # Neither the lines nor the parser's message may be shown: they have the keys.
            raise OptionError(
                f"storage.profile: {file} is not a file of profiles. Correct it, or set "
                "storage.access_key_id"
            ) from None
        if parser.has_section(section):
            fields.update(parser.items(section))
    if not profile and from_environment(*_WITHOUT_PROFILE_KEYS):
        return {field: text for field, text in fields.items() if field not in _PROFILE_KEYS}
    if profile and not {"aws_access_key_id", "aws_secret_access_key"} <= fields.keys():
        raise OptionError(
            f"storage.profile: {profile} has no access keys in the shared files of AWS. For the "
            "keys of a role or of single sign-on, run `aws configure export-credentials --format "
            "env`"
        )
    return fields


def from_environment(*names: str) -> str:
    """Return the first variable that is set and not empty; "" if there is none."""
    return next((os.environ[name] for name in names if os.environ.get(name)), "")
