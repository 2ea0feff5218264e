"""Spark finds `format("klog")` here: it imports every `pyspark_*` and asks for `DefaultSource`.

The rule: the import loads nothing and never fails, as one module that fails takes every Python
data source of the user's Spark with it. The class comes when asked for; where it cannot be
loaded, the module has no such attribute, and the reason is the error's cause.
"""


def __getattr__(name: str) -> object:
    if name == "DefaultSource":
        try:
            from klog.connector.datasource import KlogDataSource
        except Exception as exc:
            raise AttributeError(f"format('klog') cannot be loaded: {exc}") from exc
        return KlogDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
