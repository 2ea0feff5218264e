"""What a copy of a Delta table did, or would do: a line for each version, one with the totals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from klog.jobs.shared.exit_codes import DONE
from klog.jobs.shared.report_fields import dataclass_json
from klog.text_output import labelled
from klog.url_secrets import without_passwords

SNAPSHOT = "SNAPSHOT"
"""The operation of a version that was copied as a snapshot."""


@dataclass(frozen=True, slots=True)
class CopiedVersion:
    """A version whose changes were copied; the fields are those of the JSON report.

    Attributes:
        version: The number of the version.
        operation: Delta's operation, or `SNAPSHOT` if the version was copied as a snapshot.
        records: How many records it became; None in a dry run.
        tombstones: How many of them have no value; None in a dry run.
    """

    version: int
    operation: str
    records: int | None = None
    tombstones: int | None = None


@dataclass(frozen=True, slots=True)
class FromDeltaReport:
    """What a copy did, or would do.

    Attributes:
        root: The root, as the caller gave it.
        topic: The topic.
        table: The table, as the caller gave it.
        dry_run: Whether nothing was written.
        start_version: The version that the topic was at before; None if it had none.
        end_version: The version that it is at now, or would be; None if it has none.
        versions: The versions with changes, at most the last 1,000.
        copied_versions: How many versions with changes there were.
        versions_without_changes: How many others there were.
        records: The records of all versions, as they were read. A version that another run has
            written at the same time counts, too.
        tombstones: The tombstones among them.
        seconds: How long the job took.
    """

    root: str
    topic: str
    table: str
    dry_run: bool
    start_version: int | None
    end_version: int | None
    versions: tuple[CopiedVersion, ...] = ()
    copied_versions: int = 0
    versions_without_changes: int = 0
    records: int = 0
    tombstones: int = 0
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Return 0: what fails ends the job with an error."""
        return DONE

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report: labels and values, the totals last."""
        for version in self.versions:
            yield labelled(
                {
                    "Version": version.version,
                    "Operation": version.operation,
                    "Records": _count(version.records),
                    "Tombstones": _count(version.tombstones),
                }
            )
        yield labelled(
            {
                "Topic": self.topic,
                "Table": without_passwords(self.table),
                "StartVersion": self.start_version,
                "EndVersion": self.end_version,
                **self._totals(),
                "WithoutChanges": f"{self.versions_without_changes:,}",
                "Seconds": f"{self.seconds:.3f}",
            }
        )

    def as_json(self) -> dict[str, Any]:
        """Return the report for machines, in camelCase."""
        fields = dataclass_json(self)
        hidden = {name: without_passwords(fields[name]) for name in ("root", "table")}
        versions = [dataclass_json(version) for version in self.versions]
        return {**fields, **hidden, "versions": versions, "seconds": round(self.seconds, 3)}

    def _totals(self) -> dict[str, object]:
        versions = f"{self.copied_versions:,}"
        if self.dry_run:
            return {"WouldCopyVersions": versions}
        return {
            "Versions": versions,
            "Records": f"{self.records:,}",
            "Tombstones": f"{self.tombstones:,}",
        }


def _count(number: int | None) -> str | None:
    return None if number is None else f"{number:,}"
