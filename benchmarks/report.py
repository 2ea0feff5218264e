"""Print results as Markdown, ratios first.

The rule: a figure stands next to its target, and a ratio shows its range over the rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks import commits, decode, encode, legacy, memory, spark_read, spark_write
from benchmarks.logs import Shape
from benchmarks.peers import AIOKAFKA, KAFKA_PYTHON

MILLION = 1e6


def decode_table(results: Iterable[decode.Result]) -> str:
    """Compare klog's decoding with both peers'; rates are million records a second."""
    header = (
        "batch", "value", "codec", "klog / kafka-python", "target", "klog / aiokafka", "target",
        "klog", "kafka-python", "aiokafka",
    )  # fmt: skip
    rows = []
    for result in results:
        target = decode.AIOKAFKA_TARGETS[result.shape.batch].get(result.shape.codec)
        times = result.times
        has_peer = KAFKA_PYTHON in times.seconds
        rows.append(
            (
                *_shape(result.shape),
                str(times.ratio(decode.KLOG, KAFKA_PYTHON)) if has_peer else "-",
                f"{decode.KAFKA_PYTHON_TARGET:.0f}" if has_peer else "-",
                str(times.ratio(decode.KLOG, AIOKAFKA)),
                "-" if target is None else f"{target}",
                f"{times.rate(decode.KLOG) / MILLION:.2f}",
                f"{times.rate(KAFKA_PYTHON) / MILLION:.2f}" if has_peer else "-",
                f"{times.rate(AIOKAFKA) / MILLION:.2f}",
            )
        )
    return _table(header, rows)


def legacy_table(results: Iterable[legacy.Result]) -> str:
    """Compare klog's decoding of formats v0 and v1 with kafka-python's, in million records/s."""
    header = (
        "format", "entries", "value", "klog / kafka-python", "target",
        "klog", "kafka-python",
    )  # fmt: skip
    rows = []
    for result in results:
        times, shape = result.times, result.shape
        rows.append(
            (
                f"v{result.magic}",
                "plain" if shape.codec == "none" else f"{shape.codec} ({shape.batch_records})",
                f"{shape.value_bytes} B",
                str(times.ratio(decode.KLOG, KAFKA_PYTHON)),
                f"{legacy.KAFKA_PYTHON_TARGET:.0f}",
                *(f"{times.rate(name) / MILLION:.2f}" for name in (decode.KLOG, KAFKA_PYTHON)),
            )
        )
    return _table(header, rows)


def encode_table(results: Iterable[encode.Result]) -> str:
    """Compare klog's encoding with kafka-python's; rates are million records a second."""
    header = (
        "batch", "value", "codec", "klog / kafka-python", "target", "klog", "target",
        "codec alone", "kafka-python", "indexes add", "target",
    )  # fmt: skip
    rows = []
    for result in results:
        times = result.times
        has_peer = KAFKA_PYTHON in times.seconds
        targets = encode.TARGETS.get((result.batch, result.value_bytes, result.codec))
        ratio, rate = ("-", "-") if targets is None else targets
        rows.append(
            (
                f"{result.batch} ({result.batch_records})",
                f"{result.value_bytes} B",
                result.codec,
                str(times.ratio(encode.KLOG, KAFKA_PYTHON)) if has_peer else "-",
                ratio,
                f"{times.rate(encode.KLOG) / MILLION:.2f}",
                rate,
                *(
                    f"{times.rate(name) / MILLION:.2f}" if name in times.seconds else "-"
                    for name in (encode.CODEC, KAFKA_PYTHON)
                ),
                f"{100 * times.rate(encode.KLOG) / times.rate(encode.INDEXES):.1f} %",
                "5 %",
            )
        )
    return _table(header, rows)


def spark_table(results: Iterable[spark_read.Result]) -> str:
    """Compare klog's read with the ceiling and Parquet; rates are million rows a second."""
    header = (
        "batch", "value", "codec", "klog / ceiling", "target", "klog / Parquet",
        "fixed time", "klog / ceiling without it", "klog", "ceiling", "Parquet",
    )  # fmt: skip
    names = (spark_read.KLOG, spark_read.CEILING, spark_read.PARQUET)
    rows = []
    for result in results:
        times = result.times
        rows.append(
            (
                *_shape(result.shape),
                str(times.ratio(spark_read.KLOG, spark_read.CEILING)),
                f"{spark_read.CEILING_TARGET}",
                str(times.ratio(spark_read.KLOG, spark_read.PARQUET)),
                f"{times.median_seconds(spark_read.FIXED):.2f} s",
                str(times.ratio(spark_read.KLOG, spark_read.CEILING, spark_read.FIXED)),
                *(f"{times.rate(name) / MILLION:.2f}" for name in names),
            )
        )
    return _table(header, rows)


def memory_table(results: Iterable[memory.Result]) -> str:
    """Print the peak of the reading process; it includes that of the imports."""
    header = ("batch", "codec", "segment", "records", "tasks", "peak", "target", "of it imports")
    rows = [
        (
            result.batch,
            result.codec,
            f"{result.segment_bytes / (1 << 20):.0f} MiB",
            f"{result.records:,}",
            f"{result.tasks}",
            f"{result.peak_mib:.0f} MiB",
            f"{memory.TARGET_MIB} MiB",
            f"{result.imported_mib:.0f} MiB",
        )
        for result in results
    ]
    return _table(header, rows)


def commits_table(results: Iterable[commits.Result]) -> str:
    """Print the figures of the commit log, one a row."""
    header = ("what", "of", "figure", "target")
    rows = [
        (result.label, result.size, f"{result.figure:.4g} {result.unit}".strip(), result.target)
        for result in results
    ]
    return _table(header, rows)


def figures_table(results: Iterable[spark_write.Result]) -> str:
    """Print a figure a row."""
    header = ("what", "of", "figure", "target")
    return _table(
        header, [(result.label, result.of, result.figure, result.target) for result in results]
    )


def listing(facts: dict[str, str]) -> str:
    """Write facts as a list."""
    return "\n".join(f"* {name}: {fact}" for name, fact in facts.items())


def _shape(shape: Shape) -> tuple[str, str, str]:
    return f"{shape.batch} ({shape.batch_records})", f"{shape.value_bytes} B", shape.codec


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
