"""What docs/migrating.md supposes: the default scene, and a broker's log directory."""

from __future__ import annotations

from tests.pages.broker_directory import scene_with_broker as prepare

__all__ = ["prepare"]
