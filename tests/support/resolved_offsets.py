"""The offsets of a read, resolved before it is planned, as `load()` does."""

from __future__ import annotations

from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.options.read_options import ReadOptions
from klog.connector.snapshot import Root
from klog.connector.source.load_plan import ResolvedRange
from klog.connector.source.offset_ranges import batch_ranges
from klog.connector.source.subscription import subscribed_partitions
from klog.connector.system_clock import now_ms


def resolve_offsets(root: Root, options: ReadOptions) -> list[ResolvedRange]:
    """Return the offset ranges that the options mean, as of now."""

    def resolve_now() -> list[ResolvedRange]:
        snapshot = root.snapshot()
        logs = snapshot.open(subscribed_partitions(options.consumer_strategy, snapshot))
        return [offset_range.resolved() for offset_range in batch_ranges(logs, options, now_ms())]

    return retry_stale_listing(resolve_now)
