"""Producer ids never change: files of an older klog have those of the same rule."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.connector.commit_log.segment_path import attempt_id
from klog.connector.producer_ids import ProducerIdentity, producer_identity

TEXT = st.text(max_size=20)
NUMBERS = st.integers(0, 1 << 40)


def documented_identity(name: str, task: int, number: int) -> ProducerIdentity:
    """Hash two numbers of 8 bytes and the name, and take the upper 62 bits."""
    data = task.to_bytes(8, "big") + (number // 32767).to_bytes(8, "big") + name.encode()
    bits = f"{int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), 'big'):064b}"
    return ProducerIdentity(2**62 + int(bits[:62], 2), number % 32767)


@given(name=TEXT, task=NUMBERS, number=NUMBERS)
def test_producer_identity_follows_the_documented_rule(name: str, task: int, number: int) -> None:
    identity = producer_identity(name, task, number)
    assert identity == documented_identity(name, task, number)
    assert 2**62 <= identity.producer_id < 2**63
    assert 0 <= identity.epoch < 32767


def test_producer_identity_never_changes() -> None:
    """A file written by an older klog has these: with another rule it would be of another writer.

    The digests are those of `b2sum -l 64`.
    """
    assert producer_identity("orders-etl", 3, 32766) == ProducerIdentity(7494580024217126325, 32766)
    assert producer_identity("orders-etl", 3, 32767) == ProducerIdentity(8044182483021543557, 0)
    assert attempt_id("a write", 0) == "ad32a8b2c18515f3"


@pytest.mark.parametrize(("task", "number"), [(-1, 0), (0, -1)])
def test_numbers_count_from_0(task: int, number: int) -> None:
    with pytest.raises(ValueError, match="must be from 0"):
        producer_identity("a", task, number)


@given(write_id=TEXT, attempts=st.sets(NUMBERS, max_size=50))
def test_attempts_of_one_write_have_distinct_ids(write_id: str, attempts: set[int]) -> None:
    ids = {attempt_id(write_id, attempt) for attempt in attempts}
    assert len(ids) == len({attempt % (1 << 64) for attempt in attempts})
    assert all(re.fullmatch("[0-9a-f]{16}", attempt) for attempt in ids)
