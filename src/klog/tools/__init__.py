"""Kafka's own tools over files: the dump and the verifiable clients.

The rule: `klog.cli` imports tools, and no tool imports `klog.cli`. So what a command line reads and
both need is here: `--root` (`root_arguments`), options of a broker's clients (`kafka_options`) and
standard input (`stdin_reader`). How both print is in `klog.text_output`.
"""
