"""Kafka's compression codecs: one batch's records, decompressed and compressed."""
