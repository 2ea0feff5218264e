"""A store that refuses is another error than one that does not answer: a retry helps only then."""

from __future__ import annotations

import errno
import json
import os

import pytest

from klog.connector.store.hdfs_errors import hdfs_error
from klog.connector.store.local_errors import translate_errors
from klog.connector.store.s3_errors import is_permanent
from klog.connector.store.webhdfs_store import RemoteError, _translated_error
from klog.errors import StoreError, StoreRefusedError

REFUSED, UNANSWERED = StoreRefusedError, StoreError


@pytest.mark.parametrize(
    ("number", "error_class"),
    [
        *((getattr(errno, name), REFUSED) for name in ("EACCES", "EPERM", "EROFS", "ENOSPC")),
        *((getattr(errno, name), REFUSED) for name in ("EDQUOT", "EFBIG", "ELOOP")),
        *((getattr(errno, name), UNANSWERED) for name in ("EIO", "ETIMEDOUT", "ESTALE", "EMFILE")),
    ],
)
def test_local_disk(number: int, error_class: type[StoreError]) -> None:
    with pytest.raises(StoreError) as caught, translate_errors("/a", "written"):
        raise OSError(number, os.strerror(number))
    assert type(caught.value) is error_class


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        *((f"status code: {status} x", True) for status in (301, 400, 401, 403, 404, 405, 413)),
        *((f"status code: {status} x", False) for status in (408, 409, 412, 429, 500, 503)),
        ("status code: 501 Not Implemented", True),
        ("status code: 400 Bad Request: <Error><Code>RequestTimeout</Code></Error>", False),
        ("status code: 400 Bad Request: <Error><Code>ExpiredToken</Code></Error>", True),
        ("Generic S3 error: kind: Connect, connection refused", False),
        ("Generic S3 error: operation timed out", False),
    ],
)
def test_s3(answer: str, expected: bool) -> None:
    assert is_permanent(Exception(answer)) is expected


HADOOP = [
    ("AccessControlException", REFUSED),
    ("DSQuotaExceededException", REFUSED),
    ("NSQuotaExceededException", REFUSED),
    ("SafeModeException", UNANSWERED),
    ("StandbyException", UNANSWERED),
]


@pytest.mark.parametrize(("exception", "error_class"), HADOOP)
def test_hdfs(exception: str, error_class: type[StoreError]) -> None:
    answer = f'RPCError("org.apache.hadoop.{exception}", "no")'
    assert type(hdfs_error("/a", "written", RuntimeError(answer))) is error_class


@pytest.mark.parametrize(("exception", "error_class"), HADOOP)
def test_webhdfs(exception: str, error_class: type[StoreError]) -> None:
    body = {"RemoteException": {"exception": exception, "message": "no"}}
    error = _translated_error("/a", "written", RemoteError(403, json.dumps(body).encode()))
    assert type(error) is error_class


def test_webhdfs_without_an_answer() -> None:
    assert type(_translated_error("/a", "read", TimeoutError())) is UNANSWERED
