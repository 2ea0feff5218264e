"""A Spark session without klog's jar, in a process of its own: the shared session has the jar.

A Java process that runs cannot lose a jar. So a test sends expressions to another process, which
answers each with its value or its error: `python -m tests.support.plain_session`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tests.support.project import PROJECT


class PlainSession:
    """The session; a context manager."""

    def __init__(self, folder: Path) -> None:
        """Start the process; its catalog is in a folder."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.plain_session", str(folder)],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> PlainSession:
        """Return the session."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self._process.communicate()

    def run(self, expression: str) -> str:
        """Return the value of a Python expression about `spark`, as `repr` writes it.

        Args:
            expression: The expression.

        Raises:
            ValueError: The expression raises an error, with this text.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(expression) + "\n")
        self._process.stdin.flush()
        is_value, text = json.loads(self._process.stdout.readline())
        if not is_value:
            raise ValueError(text)
        return str(text)


def main() -> None:
    """Answer the expressions that come on stdin, a line each."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.warehouse.dir", f"{sys.argv[1]}/warehouse").getOrCreate()
    for line in sys.stdin:
        try:
            answer = (True, repr(eval(json.loads(line), {"spark": spark})))
        except PySparkException as exc:
            answer = (False, str(exc))
        print(json.dumps(answer), flush=True)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main()
