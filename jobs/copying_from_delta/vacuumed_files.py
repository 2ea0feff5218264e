"""Files of a version that are not there any more: VACUUM has deleted them, or somebody else has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from klog.errors import DataLossError, OptionError
from klog.jobs.copying_from_delta.table_log import TableLog, restart_hint
from klog.jobs.shared.delta.delta_session import spark_errors

IGNORING_SETTINGS = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
"""With one of these, Spark leaves out rows that it cannot read, and says nothing."""
_LOST = re.compile(r"FILE_NOT_EXIST|FILE_NOT_FOUND|DELTA_UNSUPPORTED_TIME_TRAVEL")
_NO_FILE = "FileNotFoundException"
"""Java says so of any file, such as one of a shuffle, and if too many are open."""


def check_settings(settings: dict[str, str]) -> None:
    """Refuse a session that leaves out files that it cannot read.

    Args:
        settings: The settings of the session that `IGNORING_SETTINGS` names.

    Raises:
        OptionError: Files may be left out.
    """
    for name, text in settings.items():
        if text.lower() == "true":
            raise OptionError(
                f"{name}: must be false: rows of files that are gone would be left out and count "
                "as copied"
            )


@contextmanager
def vacuumed_files(table: TableLog, version: int) -> Iterator[None]:
    """Translate the error for files that a version needs and that are gone.

    Args:
        table: The table.
        version: The version that is copied.

    Raises:
        DataLossError: Files are gone.
    """
    try:
        yield
    except spark_errors() as exc:
        text = str(exc)
        is_lost = _LOST.search(text) or (_NO_FILE in text and table.path in text)
        if "klog.errors." in text or not is_lost:
            raise
        raise DataLossError(
            f"table {table.name}: files of version {version} are gone: VACUUM has deleted them "
            f"(delta.deletedFileRetentionDuration). {restart_hint(version + 1)}"
        ) from exc
