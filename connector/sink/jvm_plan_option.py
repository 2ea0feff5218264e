"""How the shim says that a plan of a write is for the JVM: by an option, all that Spark hands over.

The rule: only the shim sets this option, and no user does. Spark makes a data source for
each write from its options, so there is nothing else that could carry it. (docs/adr/0021.)
"""

from __future__ import annotations

from collections.abc import Mapping

PLANNED_FOR, JVM = "klog.plannedfor", "jvm"


def without_plan_for(options: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """Return the user's options, and whether the plan is for the JVM.

    Args:
        options: The options as Spark hands them over.
    """
    own = {
        name: text for name, text in options.items() if (name.lower(), text) != (PLANNED_FOR, JVM)
    }
    return own, len(own) < len(options)
