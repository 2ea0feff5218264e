"""Who wrote a batch: written down once, the same for ever, on any machine."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.connector.sink.identity import Identity, attempt_id, identity_of

TEXT = st.text(max_size=20)
NUMBERS = st.integers(0, 1 << 40)


def by_the_page(name: str, task: int, number: int) -> Identity:
    """Follow the rule by hand: two numbers of 8 bytes, the name, the upper 62 bits of the hash."""
    said = task.to_bytes(8, "big") + (number // 32767).to_bytes(8, "big") + name.encode()
    bits = f"{int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), 'big'):064b}"
    return Identity(2**62 + int(bits[:62], 2), number % 32767)


@given(name=TEXT, task=NUMBERS, number=NUMBERS)
def test_it_is_what_the_page_says(name: str, task: int, number: int) -> None:
    found = identity_of(name, task, number)
    assert found == by_the_page(name, task, number)
    assert 2**62 <= found.producer_id < 2**63
    assert 0 <= found.epoch < 32767


def test_it_never_changes() -> None:
    """Files written by an older klog say so: another rule would be another writer.

    The digests are those of `b2sum -l 64`.
    """
    assert identity_of("orders-etl", 3, 32766) == Identity(7494580024217126325, 32766)
    assert identity_of("orders-etl", 3, 32767) == Identity(8044182483021543557, 0)
    assert attempt_id("a write", 0) == "ad32a8b2c18515f3"


@pytest.mark.parametrize(("task", "number"), [(-1, 0), (0, -1)])
def test_numbers_count_from_0(task: int, number: int) -> None:
    with pytest.raises(ValueError, match="there is no task"):
        identity_of("a", task, number)


@given(write_id=TEXT, attempts=st.sets(NUMBERS, max_size=50))
def test_attempts_of_one_write_have_names_of_their_own(write_id: str, attempts: set[int]) -> None:
    names = {attempt_id(write_id, attempt) for attempt in attempts}
    assert len(names) == len({attempt % (1 << 64) for attempt in attempts})
    assert all(len(name) == 16 and int(name, 16) >= 0 for name in names)
