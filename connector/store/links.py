"""Links in a root on local disk: what lies there is read and written through them, never deleted.

The rule: whoever gives a root may give it by a link. Below it a link leads to files that may be
somebody else's, whatever their names are, so that nothing is deleted that is a link or that is
reached through one.
"""

from __future__ import annotations

import os
from pathlib import Path


def link_below(root: str, path: str) -> str:
    """Return the first link on the way from `root` to `path`, which may be one; "" without any.

    With an empty `root`, and for a path that is not below it, the way begins at "/".
    """
    at = root if path.startswith(f"{root}/") else ""
    way = path[len(root) :] if at else str(Path(path).absolute())
    for name in filter(None, way.split("/")):
        at = f"{at}/{name}"
        if os.path.islink(at):  # noqa: PTH114 - paths are text here
            return at
    return ""
