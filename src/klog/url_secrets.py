"""Hide the secrets of URLs in what klog shows: errors, reports, warnings and output of commands.

The rule: user and password, the query and the fragment are `***`; the other parts stay.
"""

from __future__ import annotations

import re

_USER_AND_PASSWORD = re.compile(r"(?<=://)[^/\s]*:[^/\s]*@")
_TOKEN_AS_USER = re.compile(r"(?<=http://)[^/\s?#]*@|(?<=https://)[^/\s?#]*@")
"""In other schemes, a user without a password is a name, such as the container of `abfs://`."""
_QUERY = re.compile(
    r"""((?<!s3)(?<!s3a)(?<!hdfs)://[^\s"<>?#]*(?=[?#])|://[^\s"<>?]*(?=\?[\w.~%-]*=))"""
    r"""[?#][^\s"<>]*?(?=[]'`)}>,;:.]*(?:[\s"<>]|$))""",
    re.MULTILINE,
)
"""From `?` or `#` to the end of a URL: a signature, such as S3's and Azure's, or a token.

On S3 and HDFS a path may contain both characters, so there only text like a query matches.
"""


def without_passwords(text: str) -> str:
    """Hide what may be a secret in every URL of a text: user, password, query and fragment.

    Args:
        text: A message, with any number of URLs.

    Returns:
        The text, with `***` for each possible secret.
    """
    if "://" not in text:
        return text
    text = _USER_AND_PASSWORD.sub("***@", text)
    return _QUERY.sub(r"\1?***", _TOKEN_AS_USER.sub("***@", text))
