"""Files in the directory of a topic that the manifest does not list, and never will.

The rule: a file belongs to the plan whose id its name has. It is an orphan if that plan is done and
its entry does not list the file. So no clock decides, a file of the plan that is under way is never
one, and a file with another name is not klog's. An orphan comes to be only if a run was killed and
the log lost records of its plan before the next run, by a compaction or by retention; or if such a
run was stopped and woke up after the next one. Its records were in the log when they were copied,
and no other file has them.
"""

from __future__ import annotations

from collections.abc import Iterator

from klog.connector.store.readable_store import ReadableStore
from klog.connector.store.temporary_names import TEMPORARY_NAME
from klog.jobs.shared.files_manifest import MANIFEST, FilesManifest
from klog.jobs.shared.parquet_paths import parse_file_name


def find_orphans(manifest: FilesManifest) -> list[str]:
    """Return the paths of orphans, and of temporary files of killed runs, sorted.

    Args:
        manifest: The manifest of the topic.
    """
    listed: set[str] = set()
    done: set[str] = set()
    for entry in manifest.files_entries():
        listed.update(file.path for file in entry.files)
        done.add(entry.plan_id)
    orphans = []
    for path in _walk(manifest.store, manifest.directory, ""):
        name = path.rpartition("/")[2]
        temporary = TEMPORARY_NAME.fullmatch(name)
        file_name = parse_file_name(temporary["name"] if temporary else name)
        if file_name is not None and file_name.plan_id in done and path not in listed:
            orphans.append(f"{manifest.directory}/{path}")
    return orphans


def _walk(store: ReadableStore, directory: str, prefix: str) -> Iterator[str]:
    """Yield the paths of all files of a topic, relative to its directory."""
    try:
        entries = store.entries(f"{directory}/{prefix}".rstrip("/"))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name == MANIFEST or entry.link:
            continue
        path = f"{prefix}{entry.name}"
        if entry.is_directory:
            yield from _walk(store, directory, f"{path}/")
        else:
            yield path
