"""Write the golden files of the write plan again: `python -m tests.contracts.make_write_plan`.

A change of these files changes the contract (docs/write-plan.md): read the diff.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.contracts.write_plan_cases import CASES
from tests.contracts.write_plan_runner import run_case

FOLDER = Path(__file__).parent / "write_plan"


def golden_case(name: str) -> dict[str, Any]:
    """Return a case with its results."""
    case = CASES[name].fields()
    return case | run_case(case)


def main() -> None:
    """Write the file of each case, and remove all other files."""
    for path in FOLDER.glob("*.json"):
        path.unlink()
    for name in CASES:
        text = json.dumps(golden_case(name), indent=1, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
