"""Spark imports `pyspark_klog` into every planning process: it must be light and never fail.

Each case runs in its own process, because an import cannot be undone.
"""

from __future__ import annotations

import subprocess
import sys

from tests.support.waiting import TIMEOUT_SECONDS

HEAVY = "{'fsspec', 'numpy', 'pandas', 'pyarrow', 'lz4', 'zstandard', 'cramjam', 'google_crc32c'}"


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_import_loads_nothing() -> None:
    code = "import sys; before = set(sys.modules); import pyspark_klog; "
    assert run(code + "print(sorted(set(sys.modules) - before))") == "['pyspark_klog']"


def test_asking_for_the_class_loads_nothing_heavy() -> None:
    code = (
        f"import sys, pyspark_klog; pyspark_klog.DefaultSource; print({HEAVY} & {{*sys.modules}})"
    )
    assert run(code) == "set()"


def test_spark_finds_what_it_looks_for() -> None:
    code = (
        "from pkgutil import iter_modules; from pyspark.sql.datasource import DataSource; "
        "assert 'pyspark_klog' in {module.name for module in iter_modules()}; "
        "import pyspark_klog; assert issubclass(pyspark_klog.DefaultSource, DataSource); "
        "print(pyspark_klog.DefaultSource.name())"
    )
    assert run(code) == "klog"


def test_without_pyspark_there_is_no_class_and_no_failure() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None; import pyspark_klog; "
        "print(hasattr(pyspark_klog, 'DefaultSource'))"
    )
    assert run(code) == "False"


def test_a_broken_klog_is_no_failure_and_its_reason_can_be_had() -> None:
    code = (
        "import sys; sys.modules['klog'] = None; import pyspark_klog\n"
        "assert not hasattr(pyspark_klog, 'DefaultSource')\n"
        "try: pyspark_klog.DefaultSource\n"
        "except AttributeError as exc: print(exc, type(exc.__cause__).__name__)"
    )
    output = run(code)
    assert output.startswith("format('klog') cannot be loaded: ")
    assert output.endswith(" ModuleNotFoundError")
