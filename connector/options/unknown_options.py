"""What an unknown option says: the nearest name that exists, or all of them if none is near."""

from __future__ import annotations

from collections.abc import Iterable

from klog.errors import OptionError, nearest_name


def unknown_option(name: str, kind: str, names: Iterable[str], prefix: str = "") -> OptionError:
    """Return the error for an option that does not exist.

    Args:
        name: The option as it was written, without the prefix.
        kind: What it was an option of, such as "read".
        names: The names that may be meant, all of options that work.
        prefix: What all names begin with. It says nothing about how near they are.
    """
    by_lower = {option.lower(): option for option in names}
    nearest = nearest_name(name.lower(), by_lower, cutoff=0.5)
    if nearest:
        step = f"Did you mean {prefix}{by_lower[nearest]}?"
    else:
        step = f"Use one of {', '.join(prefix + option for option in by_lower.values())}"
    return OptionError(f"{prefix}{name}: unknown {kind} option. {step}")
