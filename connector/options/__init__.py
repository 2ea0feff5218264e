"""The options of reads, writes and stores: one table, and what parses by it."""
