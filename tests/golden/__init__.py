"""What brokers of several versions wrote, in every message format, and what Java read back.

The rule: nothing here was computed by klog. `broker-<version>/log` is a broker's own log dir, taken
after a clean stop; `truth/broker-<version>.*` is the account of the Java consumer of that same
version, at both isolation levels, taken from the running broker. Laid out as `tests.corpus` is,
and read by its `scene`. `python -m tests.golden.make_golden` makes all of it again.
"""

from __future__ import annotations

from pathlib import Path

from tests.corpus import Scene
from tests.corpus import scene as scene_of

ROOT = Path(__file__).parent
VERSIONS = ("2.8.2", "3.9.1", "4.2.0")


def scene(version: str) -> Scene:
    """Return the scene that the broker of a version left, one of VERSIONS."""
    return scene_of(f"broker-{version}", ROOT)
