"""`klog consume -s`: decoded keys and values, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from klog.connector.embedded import open_log
from tests.support.klog_command import Klog
from tests.support.schema_registry import running_registry
from tests.values.avro_rows import encoded, record

POINT = record(("x", "int"), ("label", ["null", "string"]))
FORMAT = r"%o %k %s\n"


@pytest.fixture
def root(tmp_path: Path) -> str:
    log = open_log(str(tmp_path / "root"), {})
    log.create_topic("t")
    keys = [b"\0\0\0\1", b"\xff\xff\xff\xff", None]
    values = ['{"a": 1.5, "s": "Zo\\u00eb"}', '["x"]', None]
    log.append("t", pa.table({"key": keys, "value": values}))
    return str(tmp_path / "root")


def consume(klog: Klog, root: str, *arguments: str) -> str:
    result = klog("consume", "--root", root, "--topic", "t", *arguments)
    assert (result.code, result.err) == (0, "")
    return result.out.decode()


def test_records_are_printed_as_json(klog: Klog, root: str) -> None:
    arguments = ["-s", "key=integer", "-s", "value=json"]
    assert consume(klog, root, *arguments, "-f", FORMAT) == (
        '0 1 {"a": 1.5, "s": "Zo\\u00eb"}\n1 -1 ["x"]\n2 NULL NULL\n'
    )
    assert consume(klog, root, *arguments, "--property", "print.key=true") == (
        '1\t{"a": 1.5, "s": "Zo\\u00eb"}\n-1\t["x"]\nnull\tnull\n'
    )


def test_json_has_the_objects(klog: Klog, root: str) -> None:
    text = consume(klog, root, "-s", "key=integer", "-s", "value=json", "--json")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["key"] for line in lines] == [1, -1, None]
    assert [line["value"] for line in lines] == [{"a": 1.5, "s": "Zoë"}, ["x"], None]


def test_json_is_printed_as_it_was_written(klog: Klog, root: str) -> None:
    """Numbers with all their digits, names twice, and null, which is not a tombstone."""
    text = '{"a":1.10, "b": 12345678901234567890.5, "c": 1e400, "s": "\\ud800", "a": [null]}'
    rows = [text, f"\n{text[:9]}\n{text[9:]}\r\n", " null "]
    open_log(root, {}).append("t", pa.table({"value": rows}))
    arguments = ["-s", "value=json", "-o", "2"]
    spaced = f"{text[:9]} {text[9:]}"
    assert consume(klog, root, *arguments, "-f", r"%s\n") == f"NULL\n{text}\n{spaced}\nnull\n"
    lines = consume(klog, root, *arguments, "--json").splitlines()
    assert [line.partition('"value": ')[2] for line in lines] == [
        "null}", f"{text}}}", f"{spaced}}}", "null}"
    ]  # fmt: skip


def test_one_format_for_both(klog: Klog, root: str) -> None:
    log = open_log(root, {})
    log.append("t", pa.table({"key": ["k"], "value": ["v"]}))
    arguments = ["-s", "string", "-o", "3"]
    assert consume(klog, root, *arguments, "-f", FORMAT) == "3 k v\n"
    assert json.loads(consume(klog, root, *arguments, "--json"))["value"] == "v"


def test_records_before_a_bad_one_are_printed(klog: Klog, root: str) -> None:
    open_log(root, {}).append("t", pa.table({"value": ["{", "5"]}))
    result = klog("consume", "--root", root, "--topic", "t", "-s", "value=json", "-f", r"%o %s\n")
    assert (result.code, result.out) == (1, b'0 {"a": 1.5, "s": "Zo\\u00eb"}\n1 ["x"]\n2 NULL\n')
    assert result.err.startswith("klog: t-0 offset 3: the value cannot be decoded: json: ")
    assert result.err.endswith("leave out -s. To go on after the record: -o 4\n")


def test_a_registry(klog: Klog, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_registry(users={"ann": "pa:ss"}) as registry:
        number = registry.register("t-value", json.dumps(POINT))
        row = b"\0" + number.to_bytes(4, "big") + encoded(POINT, {"x": 5, "label": None})[0]
        open_log(root, {}).append("t", pa.table({"value": [row]}))
        arguments = ["-s", "value=avro", "-o", "3", "-f", r"%s\n"]
        printed = '{"x": 5, "label": null}\n'
        monkeypatch.setenv("KLOG_REGISTRY_USER_INFO", "ann:pa:ss")
        assert consume(klog, root, *arguments, "-r", registry.url) == printed
        monkeypatch.delenv("KLOG_REGISTRY_USER_INFO")
        config = tmp_path / "registry.properties"
        config.write_text(
            f"# Confluent's names\nschema.registry.url={registry.url}\n"
            "basic.auth.user.info = ann:pa:ss\n"
        )
        assert consume(klog, root, *arguments, "--schema-registry-config", str(config)) == printed
        result = klog(
            "consume", "--root", root, "--topic", "t", *arguments, "--schema-registry", registry.url
        )
        assert (result.code, result.out) == (1, b"")
        assert "HTTP 401" in result.err


def test_a_schema_in_a_file(klog: Klog, root: str, tmp_path: Path) -> None:
    schema = tmp_path / "point.avsc"
    schema.write_text(json.dumps(POINT))
    data = encoded(POINT, {"x": 5, "label": "p"})
    open_log(root, {}).append("t", pa.table({"value": data}))
    arguments = ["-s", "value=avro", "--value-schema", str(schema), "-o", "3", "-f", r"%s\n"]
    assert consume(klog, root, *arguments) == '{"x": 5, "label": "p"}\n'


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-s", "avo"], 2, "Did you mean avro?"),
        (["-s", "kye=avro"], 2, "must be FORMAT, key=FORMAT or value=FORMAT"),
        (["-s", "string", "-s", "value=json"], 1, "-s: the value has two formats"),
        (["-s", "value=avro"], 1, "avro needs a schema"),
        (["-r", "http://localhost:1"], 1, "needs -s FORMAT"),
        (["--value-schema", "x", "-s", "key=string"], 1, "needs -s value=FORMAT"),
        (["-s", "value=avro", "--schema-registry-config", "none"], 1, "cannot read none"),
        (["-s", "value=avro", "-r", "localhost:8081"], 1, "begins with http"),
    ],
)
def test_wrong_arguments(
    klog: Klog, root: str, arguments: list[str], code: int, message: str
) -> None:
    result = klog("consume", "--root", root, "--topic", "t", *arguments)
    assert (result.code, result.out) == (code, b"")
    assert message in result.err
