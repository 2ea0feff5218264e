"""A broker's logs as `adopt` and `import-log` take them: topics, segments, tasks, entries."""
