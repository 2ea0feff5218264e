"""What several jobs use: commands, reports, tasks, segments, printing. It imports no job."""
