"""Delta tables on Spark with delta-spark: what the jobs to and from them share."""
