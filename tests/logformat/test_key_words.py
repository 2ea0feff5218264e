"""Words of keys as columns: each key has its own words, in order, whatever the other keys are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.key_words import key_words

LENGTHS = st.integers(0, 40) | st.sampled_from([0, 8, 16])
LISTS = st.lists(LENGTHS, max_size=80) | st.tuples(LENGTHS, st.integers(1, 80)).map(
    lambda pair: [pair[0]] * pair[1]
)


@pytest.mark.parametrize("word", [np.uint32, np.uint64])
@given(lengths=LISTS, skipped=st.integers(0, 3))
def test_words_of_each_key_are_its_bytes(word: type, lengths: list[int], skipped: int) -> None:
    size = np.dtype(word).itemsize
    keys = [bytes((at + 7 * number) % 251 for at in range(n)) for number, n in enumerate(lengths)]
    array = pa.array([b"x"] * skipped + keys, pa.large_binary())[skipped:]
    keys_of_words: list[bytes] = []
    for block in key_words(array, word):
        words = [b""] * len(block.lengths)
        for column in block.columns():
            for key, value in enumerate(column.tolist()):
                words[key] += value.to_bytes(size, "little")
        for key, remaining in block.remaining():
            words[key] += remaining.tobytes()
        for key, value in enumerate(block.tails().tolist()):
            words[key] += value.to_bytes(size, "little")
        order = block.in_input_order(np.arange(len(words), dtype=word))
        keys_of_words += [words[key][: int(block.lengths[key])] for key in order.tolist()]
        assert all(not any(words[key][int(n) :]) for key, n in enumerate(block.lengths))
    assert keys_of_words == keys
