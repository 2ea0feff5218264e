"""Errors as PySpark's worker sends them: a sentence and its causes; a defect has its traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from klog.connector.spark_errors import (
    HIDE_TRACEBACK,
    FailedStreamReader,
    sentence_first,
    with_causes,
)
from klog.errors import CorruptRecordError, KlogError, OptionError
from tests.support.waiting import TIMEOUT_SECONDS

_WORKER = """
import io, sys
from types import SimpleNamespace
from pyspark.util import handle_worker_exception
from klog.connector.spark_errors import sentence_first
from klog.errors import OptionError

sys.modules["__main__"].__spec__ = SimpleNamespace(name={process!r})
try:
    with sentence_first():
        try:
            open("/no/such/file")
        except OSError as exc:
            raise {error} from exc
except Exception as exc:
    sent = io.BytesIO()
    handle_worker_exception(exc, sent)
    print(sent.getvalue()[8:].decode())
"""


def sent_to_spark(error: str, process: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _WORKER.format(error=error, process=process)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    return done.stdout.strip()


def chained(exc: Exception, cause: Exception) -> Exception:
    exc.__cause__ = cause
    return exc


def test_worker_sends_the_sentence_and_its_cause() -> None:
    assert sent_to_spark("OptionError('path: wrong. Fix it')", "pyspark.daemon") == (
        "klog.errors.OptionError: path: wrong. Fix it\n"
        "Caused by FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'"
    )


@pytest.mark.parametrize(
    ("error", "process"),
    [("TypeError('a defect')", "pyspark.daemon"), ("OptionError('path: wrong')", "my.program")],
)
def test_a_defect_and_a_process_of_the_user_keep_the_traceback(error: str, process: str) -> None:
    assert sent_to_spark(error, process).startswith("Traceback (most recent call last):")


def test_this_process_is_left_alone() -> None:
    error = chained(KlogError("gone"), OSError("full"))
    with pytest.raises(KlogError) as caught, sentence_first():
        raise error
    assert str(caught.value) == "gone"
    assert HIDE_TRACEBACK not in os.environ


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OptionError("a"), "a"),
        (chained(KlogError("a"), OSError("b")), "a\nCaused by OSError: b"),
        (chained(KlogError("a: b"), OSError("b")), "a: b"),
        (chained(KlogError("a"), OSError()), "a\nCaused by OSError"),
        (chained(KlogError("t-0: bad crc"), CorruptRecordError("bad crc", 7)), "t-0: bad crc"),
        (
            chained(KlogError("a"), chained(OSError("b"), ValueError("http://u:p@h/c?s=1"))),
            "a\nCaused by OSError: b\nCaused by ValueError: http://***@h/c?***",
        ),
    ],
    ids=["no cause", "cause", "quoted", "empty", "reason", "two"],
)
def test_causes(error: Exception, text: str) -> None:
    assert with_causes(error) == text


def test_failed_stream_reader_raises_its_error_in_each_method() -> None:
    reader = FailedStreamReader(OptionError("path: wrong"))
    calls: list[Callable[[], object]] = [
        reader.initialOffset,
        lambda: reader.latestOffset({}, None),
        reader.getDefaultReadLimit,
        reader.prepareForTriggerAvailableNow,
        lambda: reader.partitions({}, {}),
        lambda: reader.read(None),
    ]
    for call in calls:
        with pytest.raises(OptionError, match="path: wrong"):
            call()
