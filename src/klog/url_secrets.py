"""Hide the secrets of URLs in what klog shows: errors, reports, warnings and output of commands.

The rule: user and password, the query and the fragment are `***`; the other parts stay. So does a
user without a password, but for http and https: in other schemes that is a name, such as the
container of `abfss://`. On S3 and HDFS a path may contain `?` and `#`, so there only text like
`?name=` begins a query. A text may come from a damaged file and be long: the time is linear in it.
"""

from __future__ import annotations

import re

_URL = re.compile(r"(?<=://)\S*")
_URL_IN_QUOTES = re.compile(r"""(?<=://)[^\s"<>]*""")
_PASSWORD_WITH_SLASH = re.compile(r"""[^/@:\["<>]*:(?!:)(?!\d+(?:/|$))[^"<>]*@""")
"""Not a port, not an IPv6 address, and not the `::` of a chained URL."""
_QUERY = re.compile(r"[?#]")
_QUERY_OF_NAMES = re.compile(r"[^?]*\?(?=[\w.~%-]*=)")
_WITH_TOKEN_AS_USER = ("http", "https")
_WITH_ANY_PATH = ("s3", "s3a", "hdfs")
_LONGEST_SCHEME = len("https")
_AFTER_URL = "]'`)}>,;:."


def without_passwords(text: str) -> str:
    """Hide what may be a secret in every URL of a text: user, password, query and fragment.

    Args:
        text: A message, with any number of URLs.

    Returns:
        The text, with `***` for each possible secret.
    """
    if "://" not in text:
        return text
    return _URL_IN_QUOTES.sub(_without_query, _URL.sub(_without_user, text))


def _without_user(match: re.Match[str]) -> str:
    return "://".join(_after_user(part, scheme) for scheme, part in _schemes_and_parts(match))


def _schemes_and_parts(match: re.Match[str]) -> list[tuple[str, str]]:
    """Return each part of a text between two `://`, and the end of what is before it."""
    parts = match[0].split("://")
    end = match.start() - len("://")
    before = [match.string[max(end - _LONGEST_SCHEME, 0) : end], *parts[:-1]]
    return list(zip((text[-_LONGEST_SCHEME:] for text in before), parts, strict=True))


def _after_user(part: str, scheme: str) -> str:
    host = part.partition("/")[0]
    if host.rfind("@") > host.find(":") >= 0:
        return f"***{part[host.rindex('@') :]}"
    if (user_info := _PASSWORD_WITH_SLASH.match(part)) is not None:
        return f"***@{part[user_info.end() :]}"
    end = _QUERY.split(host, maxsplit=1)[0].rfind("@")
    is_token = end >= 0 and scheme.lower().endswith(_WITH_TOKEN_AS_USER)
    return f"***{part[end:]}" if is_token else part


def _without_query(match: re.Match[str]) -> str:
    shown = ""
    for scheme, part in _schemes_and_parts(match):
        query = (
            _QUERY_OF_NAMES.match(part)
            if scheme.lower().endswith(_WITH_ANY_PATH)
            else _QUERY.search(part)
        )
        if query is not None:
            text = match[0]
            return f"{shown}{part[: query.end() - 1]}?***{text[len(text.rstrip(_AFTER_URL)) :]}"
        shown += f"{part}://"
    return match[0]
