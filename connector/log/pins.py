"""Pins: a reader's lease on a version, for a plan that takes longer than the grace.

The rule: while a pin lasts, no segment goes that its version has. A reader whose role may not put
has none, and the grace alone protects it. One that cannot be read keeps everything.
"""

from __future__ import annotations

import json

from klog.connector.log.paths import (
    is_pin,
)
from klog.connector.log.topic_log import TopicLog
from klog.connector.store.files import SMALL_BYTES
from klog.errors import FileTooLargeError


def pin(log: TopicLog, pin_id: str, version: int, lease_ms: int) -> None:
    """Keep the segments of a version for a while, for a reader that takes longer than the grace."""
    said = {"version": version, "expiresMs": log.clock() + lease_ms}
    log.store.put(log.paths.pin(pin_id), [json.dumps(said).encode()])


def unpin(log: TopicLog, pin_id: str) -> None:
    """Give a pin back before it ends."""
    log.store.delete(log.paths.pin(pin_id))


def pinned_version(log: TopicLog) -> int | None:
    """Give the oldest version that a pin keeps; a pin that cannot be read keeps version 0."""
    now_ms = log.clock()
    return min((version for _, version, ends_ms in _pins(log) if ends_ms >= now_ms), default=None)


def _pins(log: TopicLog) -> list[tuple[str, int, int]]:
    """Read all pins: their names, versions and ends; one that cannot be read ends now."""
    found = []
    for name in filter(is_pin, log.names(log.paths.pins)):
        try:
            said = json.loads(log.store.read(f"{log.paths.pins}/{name}", SMALL_BYTES))
            found.append((name, int(said["version"]), int(said["expiresMs"])))
        except FileNotFoundError:
            continue
        except (ValueError, TypeError, KeyError, FileTooLargeError):
            found.append((name, 0, log.clock()))
    return found


def drop_pins(log: TopicLog, limit_ms: int) -> None:
    """Delete the pins of readers that never gave them back and were not renewed for long."""
    for name, _, ends_ms in _pins(log):
        if ends_ms < limit_ms:
            log.store.delete(f"{log.paths.pins}/{name}")
