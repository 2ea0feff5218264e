"""Libraries that only some formats need: each is an extra of klog, imported when it is used."""

from __future__ import annotations

import importlib
from typing import Any

from klog.errors import OptionError

EXTRA_OF_LIBRARY = {
    "fastavro": "avro",
    "google.protobuf": "protobuf",
    "grpc_tools": "proto-text",
    "httpx": "registry",
}


def import_library(name: str) -> Any:
    """Import a library of an extra.

    Args:
        name: A module of the library, such as `google.protobuf.message_factory`.

    Returns:
        The module.

    Raises:
        OptionError: The library is not installed; the message names the extra.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        for library, extra in EXTRA_OF_LIBRARY.items():
            if name == library or name.startswith(f"{library}."):
                raise OptionError(
                    f"{library} is not installed. Run: pip install 'klog[{extra}]'"
                ) from exc
        raise
