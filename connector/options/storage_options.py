"""The `storage.*` options: what the client of each store is made with.

The rule: neither the repr of these values, nor of what holds or pickles them, shows one. Whether an
option fits the scheme of a URL is seen when a store is made, as roots on two stores may share the
options of a job. A task has options that were parsed, so the table is imported for parsing alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

STORAGE_PREFIX = "storage."
FSSPEC_PREFIX = "fsspec."
"""After `storage.`: an option that goes to the file system of fsspec unchanged."""


@dataclass(frozen=True, slots=True, repr=False)
class StorageOptions:
    """The storage options of one root, checked.

    Attributes:
        values: Name, without `storage.`, and text of each option; sorted.
    """

    values: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        """Return which options are set, and no value."""
        return f"StorageOptions({', '.join(name for name, _ in self.values)})"


NO_STORAGE_OPTIONS = StorageOptions()
"""Clients find all that they need in the environment."""


def storage_of(storage: Mapping[str, object] | StorageOptions | None) -> StorageOptions:
    """Return the storage options that a caller of a job gives.

    Args:
        storage: Their texts by name, without `storage.`, or options that were parsed; None if
            there are no options.

    Raises:
        OptionError: As `parse_storage_options`.
    """
    return storage if isinstance(storage, StorageOptions) else storage_of_keywords(storage or {})


def storage_of_keywords(storage: Mapping[str, object]) -> StorageOptions:
    """Return the storage options that a Python caller gives as keywords, without `storage.`.

    Args:
        storage: The keywords.

    Raises:
        OptionError: As `parse_storage_options`.
    """
    from klog.connector.options.option import option_texts

    texts = option_texts(storage)
    return parse_storage_options({f"{STORAGE_PREFIX}{name}": text for name, text in texts.items()})


def parse_storage_options(options: Mapping[str, str]) -> StorageOptions:
    """Return the storage options among all options of a read or write.

    Args:
        options: All options, in any case.

    Raises:
        OptionError: A storage option is unknown or has no value. The message shows no value.
    """
    from klog.connector.options.storage_option_table import STORAGE_OPTIONS
    from klog.connector.options.unknown_options import unknown_option

    rows = {option.name: option for option in STORAGE_OPTIONS}
    values: dict[str, str] = {}
    for key, text in ((key.lower(), str(text)) for key, text in options.items()):
        if not key.startswith(STORAGE_PREFIX):
            continue
        name = key.removeprefix(STORAGE_PREFIX)
        if key in rows:
            rows[key].parse(text)
        elif not name.startswith(FSSPEC_PREFIX) or name == FSSPEC_PREFIX:
            names = sorted(row.removeprefix(STORAGE_PREFIX) for row in rows)
            raise unknown_option(name, "storage", names, prefix=STORAGE_PREFIX)
        values[name] = text
    return StorageOptions(tuple(sorted(values.items())))
