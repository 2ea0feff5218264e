"""Which schema registry to ask, and as whom: `klog.values.Registry`.

The rule: no credential is in what a person sees, which are `repr`, errors, logs and plans. A user
and a password in a URL are taken out of it, and are sent to that URL alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from klog.errors import OptionError

TIMEOUT_SECONDS = 10.0
RETRIES = 3
MAX_TIMEOUT_SECONDS = 600.0
MAX_RETRIES = 20


@dataclass(frozen=True, slots=True)
class Registry:
    """The address and the credentials of a schema registry with Confluent's REST API.

    klog does not show credentials in `repr`, errors, logs or query plans.

    Attributes:
        url: The base URL, or several with commas between them. klog tries them in this order. If a
            URL contains a user and a password, klog sends them only to that URL.
        user: The user for basic authentication.
        password: The password of this user.
        token: A bearer token, instead of a user and a password.
        ca_file: The path of a PEM file with the certificates that klog trusts; None for those of
            the system.
        timeout_seconds: The time limit of a request in seconds, from the connection to the complete
            answer; above 0, at most 600.
        retries: How often klog repeats a request without an answer, or with status 429 or 5xx; 0 to
            20.
        logins: The user and the password of each URL, which klog fills in.
    """

    url: str
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    timeout_seconds: float = TIMEOUT_SECONDS
    retries: int = RETRIES
    logins: tuple[tuple[str, str] | None, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the values. Raises `OptionError`."""
        if not isinstance(self.url, str):
            raise OptionError("registry: must be a URL, such as http://localhost:8081")
        urls = [_without_user(url) for url in filter(None, map(str.strip, self.url.split(",")))]
        if not urls:
            raise OptionError("registry: must be a URL, such as http://localhost:8081")
        object.__setattr__(self, "url", ",".join(url for url, _ in urls))
        if self.token is not None:
            object.__setattr__(self, "token", self.token.strip())
            if not (self.token.isascii() and self.token.isprintable() and self.token):
                # The error has none of it.
                raise OptionError("registry: the token must be printable ASCII. Check its source")
        if (self.user is None) != (self.password is None):
            raise OptionError("registry: set both user and password, or neither of them")
        login = None if self.user is None else (self.user, self.password or "")
        logins = tuple(login or of_url for _, of_url in urls)
        object.__setattr__(self, "logins", logins)
        if self.token is not None and any(logins):
            raise OptionError("registry: set a token, or a user and a password, not both")
        if not 0 < self.timeout_seconds <= MAX_TIMEOUT_SECONDS:
            raise OptionError(f"timeout_seconds: must be above 0, at most {MAX_TIMEOUT_SECONDS:g}")
        if not 0 <= self.retries <= MAX_RETRIES:
            raise OptionError(f"retries: must be 0 to {MAX_RETRIES}, got {self.retries}")

    @property
    def urls(self) -> list[str]:
        """Return the base URLs as a list."""
        return self.url.split(",")

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> Registry:
        """Create a registry from the properties of a Confluent client.

        Args:
            config: The properties `schema.registry.url`, `basic.auth.user.info` (`user:password`),
                `bearer.auth.token` and `ssl.ca.location`. Each may have the prefix
                `schema.registry.`. klog ignores all other properties.

        Returns:
            The registry.

        Raises:
            klog.OptionError: The URL is missing, or a property is invalid.
        """
        prefix = "schema.registry."
        values = {name.removeprefix(prefix): value for name, value in config.items()}
        if not values.get("url"):
            raise OptionError("schema.registry.url: is missing. Example: http://localhost:8081")
        user, separator, password = values.get("basic.auth.user.info", "").partition(":")
        if user and not separator:
            raise OptionError("basic.auth.user.info: must be user:password")
        return cls(
            values["url"],
            user=user or None,
            password=password if user else None,
            token=values.get("bearer.auth.token") or None,
            ca_file=values.get("ssl.ca.location") or None,
        )


def as_registry(registry: Registry | str | None) -> Registry | None:
    """Return a registry from its URL.

    Args:
        registry: A registry, its URL, or None for no registry.
    """
    if registry is None or isinstance(registry, Registry):
        return registry
    return Registry(registry)


def _without_user(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return a URL without its user and password, and these."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        raise OptionError("registry: its URL is invalid") from None  # It may have a password.
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OptionError("registry: must be a URL that begins with http:// or https://")
    if parts.query or parts.fragment:
        raise OptionError("registry: its URL must not have a query or a fragment")
    login = None
    if parts.username is not None:
        login = unquote(parts.username), unquote(parts.password or "")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return urlunsplit((parts.scheme, host + port, parts.path.rstrip("/"), "", "")), login
