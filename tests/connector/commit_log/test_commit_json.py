"""Commits as JSON: a commit is read as it was written, and malformed ones are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.connector.commit_log.commit import Actions, Commit, Topic, WriterTransaction
from klog.connector.commit_log.commit_json import decode_commit, encode_commit
from klog.connector.commit_log.format_versions import MAX_FORMAT
from klog.errors import UnsupportedFormatError
from klog.logformat.broker_files.file_names import MAX_OFFSET
from tests.support.segment_entry import entry_of

TOPIC = "orders"
FILE = "orders-1/00000000000000000005-0000000002-0badcafe.log"
ENTRY = entry_of(
    FILE,
    1,
    5,
    9,
    codec="zstd",
    producer_ids=[1 << 62],
    torn_bytes=7,
    aborted=[1234, 5, 8, 1235, 2, 99],
)
FULL = Commit(
    version=3,
    write_id="w1",
    timestamp_ms=1_700_000_000_000,
    operation="append",
    engine="klog 0.1.0",
    actions=Actions(
        add=(ENTRY,),
        remove=("orders-0/00000000000000000000.log",),
        create_topic=Topic("an id", 2),
        delete_topic=True,
        partitions=4,
        config={"cleanup.policy": "compact", "retention.ms": None},
        log_start={0: 3},
        explicit_log_end={0: 3},
        cleaned_to={1: 9},
        vacuum_version=2,
        writer_transaction=WriterTransaction("writer", 7, "query", "run", ("run 0",)),
        purge=(FILE,),
        asserted_log_end={1: 9},
    ),
)
numbers = st.integers(0, MAX_OFFSET)


def changed(**fields: Any) -> bytes:
    return json.dumps({**json.loads(encode_commit(FULL)), **fields}).encode()


def test_a_commit_is_read_as_it_was_written() -> None:
    assert decode_commit(encode_commit(FULL), TOPIC, 3) == FULL


@pytest.mark.parametrize(
    ("actions", "form"),
    [
        (Actions(add=({**ENTRY, "torn_bytes": 0, "aborted": []},)), 1),
        (Actions(add=({**ENTRY, "torn_bytes": 0},)), 2),
        (Actions(add=({**ENTRY, "aborted": []},)), 2),
        (Actions(explicit_log_end={0: 3}), 2),
    ],
)
def test_a_commit_has_the_lowest_format_that_says_it(actions: Actions, form: int) -> None:
    fields = json.loads(encode_commit(replace(FULL, actions=actions)))
    assert fields["format"] == form
    if form == 1:
        assert not {"aborted", "tornBytes"} & set(fields["add"][0])
        assert (
            decode_commit(encode_commit(replace(FULL, actions=actions)), TOPIC, 3).actions
            == actions
        )


@pytest.mark.parametrize("aborted", [[1], [1, 2], [1, 5, 4], [-1, 1, 2], [1, 2, "3"], 3, None])
def test_aborted_transactions_are_three_numbers_each(aborted: Any) -> None:
    entry = {**json.loads(encode_commit(FULL))["add"][0], "aborted": aborted}
    with pytest.raises(UnsupportedFormatError, match="aborted of a segment is"):
        decode_commit(changed(add=[entry]), TOPIC, 3)


@given(
    st.dictionaries(st.integers(0, 9999), numbers),
    st.dictionaries(st.text(max_size=9), st.none() | st.text(max_size=9)),
    numbers,
    st.text(max_size=20),
)
def test_every_number_and_text_comes_back(
    log_start: dict[int, int], config: dict[str, str | None], time_ms: int, write_id: str
) -> None:
    actions = Actions(log_start=log_start, config=config, asserted_log_end=log_start)
    commit = Commit(0, write_id, time_ms, "retain", "klog", actions)
    assert decode_commit(encode_commit(commit), TOPIC, 0) == commit


def test_fields_of_a_later_klog_are_kept() -> None:
    commit = decode_commit(changed(openTransaction={"id": "x"}), TOPIC, 3)
    assert commit.unknown_fields == {"openTransaction": {"id": "x"}}
    assert json.loads(encode_commit(commit))["openTransaction"] == {"id": "x"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"format": MAX_FORMAT + 1, "since": "9.1.0"}, "install klog 9.1.0 or newer"),
        ({"format": True}, "its format is True"),
        ({"version": 4}, "it says that it is version 4"),
        ({"operation": "twist"}, "operation 'twist'"),
        ({"timestampMs": -1}, "timestampMs is -1"),
        ({"timestampMs": 1.5}, "timestampMs is 1.5"),
        ({"writeId": None}, "writeId is None"),
        ({"add": [{}]}, "partition of a segment is None"),
        ({"add": 5}, "add is 5"),
        ({"remove": ["../../etc/passwd"]}, "is not a segment of orders"),
        ({"remove": ["other-0/00000000000000000000.log"]}, "is not a segment of orders"),
        ({"remove": ["https://host/orders-0/00000000000000000000.log"]}, "is not a segment"),
        ({"setLogStart": {"-1": 5}}, "setLogStart is of partition '-1'"),
        ({"setLogStart": {"1": "5"}}, "setLogStart is '5'"),
        ({"post": {"1": 5}}, "post is 5"),
        ({"setHorizon": 10**12}, "setHorizon is 1000000000000"),
        ({"writeId": "\ud800"}, r"writeId is '\\ud800'"),
        ({"setConfig": {"\ud800": "x"}}, r"setConfig is '\\ud800'"),
        ({"timestampMs": "x" * 10**6}, f"timestampMs is '{'x' * 100}'$"),
        ({"sidecar": f"{3:020d}-{'0' * 16}-{5:012d}-{'0' * 8}.parquet"}, "a sidecar, and add"),
    ],
)
def test_a_malformed_commit_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsupportedFormatError, match=words.replace("[", r"\[")):
        decode_commit(changed(**fields), TOPIC, 3)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("file", "orders-1/../x.log", "is not a segment of orders-1"),
        ("file", FILE.replace("orders-1", "orders-2"), "is not a segment of orders-1"),
        ("baseOffset", 9, "from offset 9 to 9"),
        ("origin", "thin air", "thin air from offset"),
        ("sizeBytes", -1, "sizeBytes of a segment is -1"),
        ("producerIds", ["1"], "producerIds of a segment"),
        ("producerIds", [1] * 100_001, "producerIds of a segment"),
        ("codec", "\ud800", "codec of a segment"),
        ("codec", "x" * 70_000, f"codec of a segment is '{'x' * 100}'$"),
    ],
)
def test_what_is_no_segment_is_refused(field: str, value: Any, words: str) -> None:
    entry = {**json.loads(encode_commit(FULL))["add"][0], field: value}
    with pytest.raises(UnsupportedFormatError, match=words):
        decode_commit(changed(add=[entry]), TOPIC, 3)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(json.loads(encode_commit(FULL)))), json_values))
def test_any_json_is_a_commit_or_refused(fields: dict[str, Any]) -> None:
    try:
        decode_commit(changed(**fields), TOPIC, 3)
    except UnsupportedFormatError:
        return


@given(st.binary(max_size=60))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(UnsupportedFormatError):
        decode_commit(data, TOPIC, 3)
