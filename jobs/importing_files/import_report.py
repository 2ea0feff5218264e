"""What an import of files did, or would do: a line for each file that was left, and the totals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from klog.jobs.importing_files.import_plan import LeftFile
from klog.jobs.importing_files.import_task import ImportedFile
from klog.jobs.importing_files.source_files import SourceFile
from klog.jobs.shared.exit_codes import DONE, REFUSED
from klog.jobs.shared.report_fields import camel_case, dataclass_json
from klog.text_output import labelled
from klog.url_secrets import without_passwords

_CHANGED = "the file has another size than when it was imported"
_CHANGED_STEP = "give new records in a new file; under another name it is imported again"
_GROWN = "the file changed while it was imported, and was left out"
_GROWN_STEP = "move files into the directory when they are complete, then run the job again"
_DELETED = "the file was deleted before it was read"
_DELETED_STEP = "to import it, put it back and run the job again"


@dataclass(frozen=True, slots=True)
class ImportFilesReport:
    """What an import did, or would do.

    Attributes:
        root: The root.
        topic: The topic.
        source: The directory of the files.
        dry_run: Whether nothing was written.
        files: The files that this run has imported, or would import.
        changed: Files that were imported before, and have another size now: they are left.
        left: Files that changed or were deleted while they were imported: they are left out.
        seconds: How long it took.
    """

    root: str
    topic: str
    source: str
    dry_run: bool
    files: tuple[ImportedFile, ...]
    changed: tuple[SourceFile, ...] = ()
    left: tuple[LeftFile, ...] = ()
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Return 1 if a file was left, else 0."""
        return REFUSED if self.changed or self.left else DONE

    def lines(self) -> Iterator[str]:
        """Yield a line for each file that was left, then the totals."""
        for file in self.changed:
            yield labelled({"File": file.path, "Failed": _CHANGED, "Next": _CHANGED_STEP})
        for left in self.left:
            failed, step = (_DELETED, _DELETED_STEP) if left.is_deleted else (_GROWN, _GROWN_STEP)
            yield labelled({"File": left.path, "Failed": failed, "Next": step})
        label = "WouldImport" if self.dry_run else "Imported"
        yield labelled(
            {
                "Topic": self.topic,
                label: f"{len(self.files):,} files",
                "Records": None if self.dry_run else f"{self._records:,}",
                "Bytes": f"{self._size_bytes:,}",
                "Failed": len(self.changed) + len(self.left) or None,
                "Seconds": f"{self.seconds:.3f}",
            }
        )

    def as_json(self) -> dict[str, Any]:
        """Return the report for machines, in camelCase."""
        values = {
            "root": without_passwords(self.root),
            "topic": self.topic,
            "from": without_passwords(self.source),
            "dry_run": self.dry_run,
            "files": [dataclass_json(file) for file in self.files],
            "changed": [_sized(file) for file in self.changed],
            "left": [dataclass_json(file) for file in self.left],
            "records": None if self.dry_run else self._records,
            "size_bytes": self._size_bytes,
            "seconds": round(self.seconds, 3),
        }
        return camel_case(values)

    @property
    def _records(self) -> int:
        return sum(file.records or 0 for file in self.files)

    @property
    def _size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def _sized(file: SourceFile) -> dict[str, Any]:
    return {"path": file.path, "sizeBytes": file.size_bytes}
