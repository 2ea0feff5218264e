"""Events of the verifiable producer and consumer: JSON objects, a line each, as Kafka's tell them.

The rule: an event has its time in ms and its name first, and is flushed before what comes after it
is done. So whoever reads the events of a process that was killed knows nothing that was not so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import BinaryIO


class Events:
    """Tells events; `clock` gives milliseconds since the epoch."""

    def __init__(self, out: BinaryIO, clock: Callable[[], int]) -> None:
        """Take where they go."""
        self._out, self._clock = out, clock

    def tell(self, name: str, **fields: object) -> None:
        """Tell one."""
        self.tell_all(name, [fields])

    def tell_all(self, name: str, each: Iterable[Mapping[str, object]]) -> None:
        """Tell several of one name, of one moment."""
        common = {"timestamp": self._clock(), "name": name}
        self._out.writelines(
            json.dumps({**common, **fields}, ensure_ascii=False).encode() + b"\n" for fields in each
        )
        self._out.flush()
