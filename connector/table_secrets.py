"""What a table of Spark's catalog must not keep, because Spark shows the options of a table.

The rule: secret is what klog keeps out of errors (`secret_redaction`), and what Kafka's clients
call a password. Each user of the catalog could see it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from klog.connector.options import option_table as table
from klog.connector.options.storage_options import STORAGE_PREFIX
from klog.connector.store.secret_redaction import is_secret, url_secrets
from klog.errors import OptionError

_CLIENT_SECRET = re.compile(r"kafka\..*(password|passphrase|secret|token|jaas|keystore\.key).*")
"""Options of Kafka's clients that have the type PASSWORD there; klog does not use them."""
_PATHS = {table.READ_PATH.name, table.READ_PATHS.name}
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
        if name.startswith(STORAGE_PREFIX) and is_secret(name.removeprefix(STORAGE_PREFIX)):
            raise OptionError(f"{_shown(name)}. {_INSTEAD}")
        if name in _PATHS and url_secrets(text):
            raise OptionError(f"{_shown(name)}, and its URL has a password or a query. {_INSTEAD}")
        if _CLIENT_SECRET.fullmatch(name):
            raise OptionError(f"{_shown(name)}. Leave it out: klog connects to no broker")


def _shown(name: str) -> str:
    return f"{name}: a table must not keep a secret, because Spark's catalog shows it"
