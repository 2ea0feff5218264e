"""Random logs for properties: batches of producers that keep Kafka's rules."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.conformance.log_files import Writer

TRANSACTIONAL_IDS, IDEMPOTENT_IDS = (1, 2), (3, 4)


def steps() -> st.SearchStrategy[tuple[object, ...]]:
    """One batch, or the gap or leader epoch before the next one."""
    count = st.integers(1, 4)
    return st.one_of(
        st.tuples(st.just("plain"), count),
        st.tuples(st.just("txn"), st.sampled_from(TRANSACTIONAL_IDS), count),
        st.tuples(st.just("idem"), st.sampled_from(IDEMPOTENT_IDS), count),
        st.tuples(st.sampled_from(["commit", "abort"]), st.sampled_from(TRANSACTIONAL_IDS)),
        st.tuples(st.just("epoch"), st.integers(0, 5)),
    )


def logs(max_size: int = 12) -> st.SearchStrategy[list[bytes]]:
    """Batches of a log that begins at offset 0."""
    return st.lists(steps(), max_size=max_size).map(
        lambda steps_drawn: Writer().write(*steps_drawn)
    )
