"""Kafka's protocol encoding: primitive types, and messages as schemas."""
