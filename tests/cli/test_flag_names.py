"""Errors of a verb name the flags that were typed, for every verb and every option."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import klog
from klog.cli.flag_names import FLAGS, VARIABLES, in_flags
from klog.connector.options.option_table import OPTION_TABLE
from tests.support.command_root import Root
from tests.support.verb_parsers import VERBS

TWO_PATHS = ("import-log", "export-log", "import-files", "to-files")
WITH_FLAGS = [
    (verb, option, flag)
    for verb, parser in VERBS.items()
    for option, flags in FLAGS.items()
    if option != "path" or verb not in TWO_PATHS
    for flag in [next((flag for flag in flags if flag in parser._option_string_actions), None)]
    if flag is not None
]


def test_the_table_has_options_that_exist() -> None:
    names = {option.name for option in OPTION_TABLE} | {
        option.kafka_name for option in OPTION_TABLE
    }
    assert FLAGS.keys() <= names
    assert VARIABLES.keys() <= names


def test_every_flag_of_the_table_is_of_a_verb() -> None:
    flags = {flag for flags in FLAGS.values() for flag in flags}
    known = {name for parser in VERBS.values() for name in parser._option_string_actions}
    assert flags <= known


@pytest.mark.parametrize(("verb", "option", "flag"), WITH_FLAGS)
def test_an_error_of_each_verb(verb: str, option: str, flag: str) -> None:
    parser = VERBS[verb]
    message = f"{option}: must be a number, got 'x'. Set `{option}` to one"
    assert in_flags(message, parser) == f"{flag}: must be a number, got 'x'. Set `{flag}` to one"
    for form in parser._option_string_actions[flag].option_strings:
        for typed in ([verb, form, "x"], [verb, f"{form}=x"]):
            assert in_flags(message, parser, typed).startswith(f"{form}: must be")


@pytest.mark.parametrize("verb", VERBS)
def test_the_options_of_a_store_are_variables(verb: str) -> None:
    message = "Set storage.access_key_id and storage.secret_access_key, or AWS_PROFILE"
    expected = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
    assert in_flags(message, VERBS[verb]) == expected


@pytest.mark.parametrize(
    "message",
    [
        "a consumer may subscribe to topics, and assign partitions",
        "/data/startingOffsets/x.log: it is torn",
        "startingOffsetsOf: is not an option",
        "my-batch.size: is not a topic",
        "there is no topic map_bytes: create it",
        "t: unknown config x. Use one of compression.type, batch.size or subscribe",
    ],
)
def test_other_words_stay(message: str) -> None:
    for parser in VERBS.values():
        assert in_flags(message, parser) == message


@pytest.mark.parametrize(
    ("verb", "message", "expected"),
    [
        ("compact", "map_bytes: must be at least 5", "--map-bytes: must be at least 5"),
        (
            "produce",
            "transactional_id, transaction_version: must be set together",
            "--transactional-id, --transaction-version: must be set together",
        ),
        (
            "import-log",
            "open_transactions: must be 'abort'",
            "--open-transactions: must be 'abort'",
        ),
        ("compact", "path: cannot read nope:// here", "--root: cannot read nope:// here"),
        ("import-log", "path: cannot read nope:// here", "path: cannot read nope:// here"),
    ],
)
def test_an_argument_of_python_is_the_flag_of_its_words(
    verb: str, message: str, expected: str
) -> None:
    assert in_flags(message, VERBS[verb]) == expected


def test_what_a_command_line_cannot_do_is_left_out() -> None:
    message = (
        "t-0: offsets 2 to 5 are gone; read again, or set failOnDataLoss=false to go on with t"
    )
    assert in_flags(message, VERBS["consume"]) == "t-0: offsets 2 to 5 are gone; read again"


@pytest.fixture
def topic(on_root: Root) -> Root:
    log = klog.open(on_root.path)
    log.create_topic("t", partitions=2)
    log.create_topic("batch_size", partitions=1)
    log.append("t", pa.table({"value": ["a", "b"], "partition": pa.array([0, 1], pa.int32())}))
    return on_root


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (["consume", "-t", "u"], "-t: there is no topic u"),
        (["consume", "--topic", "u"], "--topic: there is no topic u"),
        (["consume", "--topic=u", "--partition", "0"], "--partition: there is no topic u"),
        (["consume", "-t", "t", "--partition", "7"], "there is no partition 7 of"),
        (["count", "--start", "x"], "--start: must be"),
        (["count", "--end", "x"], "--end: must be"),
        (["offsets", "--time", "x"], "--time: must be"),
        (["produce", "-t", "t", "--batch-size", "x"], "--batch-size: must be"),
        (["produce", "-t", "t", "--max-partition-memory-bytes", "x"], "--max-partition-memory-"),
        (["produce", "-t", "t", "--max-memory-bytes", "x"], "--max-memory-bytes: must be"),
        (["produce", "-t", "t", "--compression-codec", "x"], "--compression-codec: must be"),
        (["produce", "-t", "t", "--transactional-id", "x"], "--transactional-id and --transaction"),
        (["compact", "--map-bytes", "1"], "--map-bytes: must be at least"),
        (["compact", "--min-dirty-ratio", "2"], "--min-dirty-ratio: must be from 0 to 1"),
        (
            ["produce", "--topic=batch_size", "-p", "5"],
            "batch_size: line 1: there is no partition 5",
        ),
        (["consume", "-tbatch_size", "--partition=5"], "there is no partition 5 of topic batch_"),
        (["restore", "-t", "t", "--version", "99"], "topic t has no version 99"),
    ],
)
def test_errors_for_real(topic: Root, arguments: list[str], start: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("a\n")
    more = ["-l", str(lines)] if arguments[0] == "produce" else []
    assert topic.refuses(*arguments, *more).startswith(f"klog: {start}")
