"""Write topics: plan on the driver, stage rows in tasks, commit on the driver.

A write goes through these files:

write_plan.py          what all tasks of a write have in common
write_settings.py      how rows become segments; compression.py: the codec
task_writer.py         a task: rows to topics, and the message to the commit
  dead_letters.py      rejected rows as records of the topic for dead letters
  topic_writer.py      rows of a topic: checked, partitioned, encoded
    write_columns.py     the columns that a write takes
    row_checks.py        which rows a topic takes
    write_rows.py        rows in uniform types, checked
    partitioning.py      which partition a row goes to
    segment_staging.py   batches of a partition as segments on the store
    batch_spool.py       batches that wait for their segment
write_commit.py        each topic of a write in one commit
topic_state_cache.py   the states of topics that this process has loaded
write_contract.py      the plan and the messages as plain dicts (docs/write-plan.md)
spark_writers.py       Spark's interfaces
"""
