"""Kafka's own unit tests as tables: what goes in, what Kafka's classes answer, held to klog.

The rule: `ids.txt` names every case, by the section and the name it has in the notes on Kafka's
tests; each is a `Case` in one of the tables, or a `NotApplicable` that says why klog has nothing to
hold it to. A case is data: its `given` is handed to `run`, the same few functions for hundreds of
cases, and what comes back must equal `expect`.
"""
