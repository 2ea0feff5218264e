"""Events of the verifiable producer and consumer: one JSON object per line, as in Kafka's tools.

The rule: an event begins with its time in ms and its name, and is flushed before the process goes
on. So the events of a killed process tell nothing that did not happen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import BinaryIO


class Events:
    """Prints events; `clock` returns milliseconds since the epoch."""

    def __init__(self, out: BinaryIO, clock: Callable[[], int]) -> None:
        """Print to `out`."""
        self._out, self._clock = out, clock

    def emit(self, name: str, **fields: object) -> None:
        """Print an event."""
        self.emit_all(name, [fields])

    def emit_all(self, name: str, events: Iterable[Mapping[str, object]]) -> None:
        """Print several events of one name and one timestamp."""
        common = {"timestamp": self._clock(), "name": name}
        self._out.writelines(
            json.dumps({**common, **fields}, ensure_ascii=False).encode() + b"\n"
            for fields in events
        )
        self._out.flush()
