"""Options as their values are written: a word of a few, true or false, a whole number.

The rule: what cannot be read is an `OptionError` that names the option and what it may be; a name
that nobody knows is met with the nearest known one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from klog.errors import OptionError


def nearest(name: str, known: Iterable[str], listed: Iterable[str] = ()) -> str:
    """Say which known option was meant, or which there are (`listed`, else all)."""
    by_lower = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    if close:
        return f"did you mean {by_lower[close[0]]}?"
    return f"it knows {', '.join(listed or by_lower.values())}"


def choice(options: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    """Give the word chosen, in any case; the first one is the default."""
    value = options.get(name, words[0]).lower()
    if value not in words:
        raise OptionError(f"{name}: {options[name]!r} is none of {', '.join(words)}")
    return value


def boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Read true or false."""
    return choice(options, name, ("true", "false") if default else ("false", "true")) == "true"


def integer(options: Mapping[str, str], name: str) -> int | None:
    """Read a whole number; None where it is not given."""
    value = options.get(name)
    if value is None:
        return None
    try:
        return int(value.strip())
    except ValueError:
        raise OptionError(f"{name}: {value!r} is not a whole number") from None
