"""The jobs' commands: the options of each, and the job that they run.

The rule: a command imports its job only when it runs. So `klog --help`, the help of a job and the
completion of a shell import neither Arrow nor Spark.
"""
