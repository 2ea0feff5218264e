"""What a table of Spark's catalog must not keep, because Spark shows the options of a table.

The rule: secret is what klog keeps out of errors (`secret_redaction`), also in a URL, and what
Kafka's clients call a password. Each user of the catalog could see it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from klog.connector.options.storage_options import STORAGE_PREFIX
from klog.connector.store.secret_redaction import is_secret, url_secrets
from klog.errors import OptionError
from klog.url_secrets import without_passwords

_CLIENT_SECRET = re.compile(
    r"kafka\.(?:.*\.)?"
    r"(?:ssl\.keystore\.(?:key|certificate\.chain)|ssl\.truststore\.certificates"
    r"|(?!.*\.url$).*(?:password|passphrase|secret|token|jaas).*)"
)
"""Options of Kafka's clients that have the type PASSWORD there, and others with such a name.

klog does not use them. `sasl.oauthbearer.token.endpoint.url` is not secret.
"""
_INSTEAD = (
    "Leave it out: klog finds it where the cloud's own tools look, such as the environment "
    "(docs/stores.md). Or use CREATE TEMPORARY VIEW, which no catalog keeps"
)


def refuse_secrets(options: Mapping[str, str]) -> None:
    """Refuse the options of a table if one is secret.

    Args:
        options: The options of the table, by names in lower case.

    Raises:
        OptionError: One of them is secret. The message does not show its value.
    """
    for name, text in options.items():
        has_url_secret = bool(url_secrets(text)) or without_passwords(text) != text
        if _CLIENT_SECRET.fullmatch(name) or (name.startswith("kafka.") and has_url_secret):
            raise OptionError(f"{_shown(name)}. Leave it out: klog connects to no broker")
        if has_url_secret:
            reason = "and its URL has a password, a token or a query"
            raise OptionError(f"{_shown(name)}, {reason}. {_INSTEAD}")
        if name.startswith(STORAGE_PREFIX) and is_secret(name.removeprefix(STORAGE_PREFIX)):
            raise OptionError(f"{_shown(name)}. {_INSTEAD}")


def _shown(name: str) -> str:
    return f"{name}: a table must not keep a secret, because Spark's catalog shows it"
