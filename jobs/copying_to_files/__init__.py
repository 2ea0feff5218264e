"""Copy topics to Parquet files: the plans, the files, the manifest."""
