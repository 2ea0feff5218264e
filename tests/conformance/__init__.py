"""Kafka's own unit tests as tables: what goes in, what Kafka's classes answer, held to klog.

The rule: `ids.txt` names every case, by a section (one test class of Kafka's, or several of one
subject; 13.1 to 13.9 are what Kafka's classes wrote, 26 is what its loader was seen to do) and a
name. Each is a `Case` in one of the tables, or a `NotApplicable` with the reason why it does not
apply to klog. A case is data: `run(*args)` must equal `expect`, and the same few functions run
hundreds of cases.
"""
