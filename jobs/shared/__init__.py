"""What several jobs use: commands, reports, tasks, segments. It imports no job."""
