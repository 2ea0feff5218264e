"""Kafka's own tools over files: the dump, the verifiable clients, and the options they share."""
