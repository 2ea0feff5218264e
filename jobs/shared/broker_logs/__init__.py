"""A broker's logs, for `adopt` and `import-log`: topics, segments, tasks, entries."""
