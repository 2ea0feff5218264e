"""Links in a root on local disk: files are read and written through them, never deleted.

The rule: the path of a root may have links. Below the root a link leads to files that may belong to
something else, whatever their names are. So nothing is deleted that is a link or that is reached
through one.
"""

from __future__ import annotations

import os
from pathlib import Path


def link_below(root: str, path: str) -> str:
    """Return the first link on the way from a root to a path; "" without any.

    Args:
        root: The root. If it is empty, or the path is not below it, the way begins at "/".
        path: The path, which may be a link itself.
    """
    directory = root if path.startswith(f"{root}/") else ""
    way = path[len(root) :] if directory else str(Path(path).absolute())
    for name in filter(None, way.split("/")):
        directory = f"{directory}/{name}"
        if os.path.islink(directory):  # noqa: PTH114 - paths are text here
            return directory
    return ""
