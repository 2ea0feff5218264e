"""Write the golden files of the slice again: `python -m tests.contracts.make_slices`.

A change of these files is a change of the contract (docs/slice.md): read the diff.
"""

from __future__ import annotations

import json
import shutil
from typing import Any

from tests.contracts.all_slice_cases import CASES
from tests.contracts.slice_case import FILES, Files
from tests.contracts.slice_runner import FOLDER


def golden_case(name: str, *, is_dry: bool = True) -> dict[str, Any]:
    """Return the fields of a case's file; write its segments unless `is_dry`."""
    return CASES[name](Files(name, is_dry=is_dry)).fields()


def main() -> None:
    """Write the file of each case, and remove all other files."""
    shutil.rmtree(FILES, ignore_errors=True)
    for path in FOLDER.glob("*.json"):
        path.unlink()
    for name in CASES:
        text = json.dumps(golden_case(name, is_dry=False), indent=1, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
