"""What `verify` looks at, one idea a module: none knows of Spark, and each works on one segment."""
