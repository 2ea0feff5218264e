"""Real Spark, real kills: each input record is found exactly once, whatever ended in between.

Jobs (`jobs.py`) run in driver processes (`drivers.py`); faults happen in Spark's own Python
processes (`hooks/sitecustomize.py`), and klog has no hook for them. A fault that parks holds a job
at its step, so that one SIGKILL, or one SIGSTOP, meets many jobs, each at another step.
"""
