"""Which Delta goes with which Spark, as a table."""

from __future__ import annotations

import pytest

from klog.errors import KlogError, OptionError, StoreError, StoreRefusedError
from klog.jobs.shared.delta.delta_session import _translated, check_pair, delta_package

MADE_FOR_4_2 = "file:/jars/delta-spark_4.2_2.13-4.4.0.jar"


@pytest.mark.parametrize(
    ("spark", "jar"),
    [
        ("4.2.0", MADE_FOR_4_2),
        ("4.2.1", MADE_FOR_4_2.replace("4.4.0", "4.4.1-SNAPSHOT")),
        ("4.3.0", "file:/jars/delta-spark_4.3_2.13-4.5.0.jar"),
        ("4.2.0", "file:/vendor/runtime.jar"),
        ("4.2.0", ""),
    ],
)
def test_pairs_that_pass(spark: str, jar: str) -> None:
    check_pair(spark, jar)


@pytest.mark.parametrize(
    ("spark", "jar", "message"),
    [
        ("4.3.0", MADE_FOR_4_2, "delta-spark 4.4.0 for Spark 4.2 does not work with Spark 4.3.0"),
        ("4.20.0", MADE_FOR_4_2, "does not work with Spark 4.20.0"),
        ("4.2.0", "/jars/delta-spark_2.13-4.0.0.jar", "delta-spark 4.0.0 does not work with Spark"),
    ],
)
def test_pairs_that_are_refused(spark: str, jar: str, message: str) -> None:
    with pytest.raises(OptionError) as exc:
        check_pair(spark, jar)
    assert message in str(exc.value)
    assert "Use delta-spark 4.4.0 with Spark 4.2" in str(exc.value)


def test_the_package_of_a_spark() -> None:
    assert delta_package("4.2.1") == "io.delta:delta-spark_4.2_2.13:4.4.0"
    with pytest.raises(OptionError, match=r"Spark 4\.3\.0: no Delta is known to work with it"):
        delta_package("4.3.0")


@pytest.mark.parametrize(
    ("cause", "error_class"),
    [
        ("java.net.SocketTimeoutException: Read timed out", StoreError),
        ("java.net.ConnectException: Connection refused", StoreError),
        ("software.amazon.awssdk.core.exception.ApiCallTimeoutException: no answer", StoreError),
        ("java.nio.file.AccessDeniedException: s3a://b/t: 403", StoreRefusedError),
        ("org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException: No AWS", StoreRefusedError),
        ("java.net.URISyntaxException: Illegal character", KlogError),
        ("software.amazon.awssdk.core.exception.SdkClientException: bad region", KlogError),
        ("java.lang.IllegalStateException: about ConnectException: no", KlogError),
    ],
)
def test_an_error_of_a_tables_store_has_its_class(cause: str, error_class: type[KlogError]) -> None:
    assert type(_translated("topic t", None, cause)) is error_class


def test_what_spark_says_comes_without_its_trace() -> None:
    """A SQLSTATE of a cause is after the trace."""
    trace = "\n\tat a.b(c.scala:1)\nCaused by: x: [Y] disk. SQLSTATE: 58030"
    for text, expected in (
        (f"Job aborted: disk full{trace}", "Job aborted: disk full"),
        (f"[Z] no. SQLSTATE: 42K09;\n'Plan{trace}", "[Z] no. SQLSTATE: 42K09"),
        ("plain", "plain"),
    ):
        assert str(_translated("topic t", None, text)) == f"topic t: {expected}"
