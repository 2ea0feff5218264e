"""The files that make a directory a klog root, by name; both kinds of root look for them.

    _klog/format.json      the directory is a klog root: created once, last of all
    _klog/adopting.json    the directory is a broker's that is being adopted, until `format.json`

The rule: a directory that has `_klog/` with neither file is neither a root nor a broker's. What the
files say, and who writes them, is in `commit_log/format_description.py` and `root_adoption.py`.
"""

from __future__ import annotations

from klog.connector.store.readable_store import ReadableStore, small_file_exists
from klog.errors import KlogError

KLOG = "_klog"
"""The folder of a root that has all of klog's files but segments and their indexes."""
TOPICS = "topics"
"""The folder of `_klog/` that has a folder for each topic."""
FORMAT_FILE = f"{KLOG}/format.json"
ADOPTING = "adopting.json"
ADOPTING_FILE = f"{KLOG}/{ADOPTING}"


def is_adoption_under_way(store: ReadableStore, path: str) -> bool:
    """Return whether a directory that has `_klog/` is still a broker's.

    Args:
        store: The store of the directory.
        path: The path of the directory.

    Raises:
        KlogError: The directory has just become a klog root.
    """
    if small_file_exists(store, f"{path}/{ADOPTING_FILE}"):
        return True
    if not small_file_exists(store, f"{path}/{FORMAT_FILE}"):
        return False
    raise KlogError(
        f"{path} was a broker's directory when it was opened, and has been adopted: it is a klog "
        "root now. Begin to read it again"
    )
