"""The row of the option `engine`, of reads and of writes."""

from __future__ import annotations

from klog.connector.options import option_values as values
from klog.connector.options.option import Option, Use


def engine_option(use: Use, page_part: str, tasks: str, verb: str) -> Option[str]:
    """Return the row.

    Args:
        use: Whether it is of reads or of writes.
        page_part: The part of docs/engines.md that says which engine runs.
        tasks: What the tasks do.
        verb: What the JVM can do or not.
    """
    return Option(
        "engine",
        use,
        values.choice("auto", "python", "jvm", any_case=True),
        f"Which [engine](engines.md#{page_part}) runs the tasks that {tasks}. `auto`: the JVM if "
        f"the session has klog's jar and the JVM can {verb}, else Python. `jvm`: the JVM; if the "
        f"JVM cannot {verb}, that is an error.",
        default="auto",
        default_help="or the conf `spark.klog.engine`"
        if use is Use.READ
        else "or the confs `spark.klog.write.engine` and `spark.klog.engine`",
    )
