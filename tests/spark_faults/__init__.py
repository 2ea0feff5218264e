"""Real Spark and real kills: each input record is there exactly once, whatever was killed.

Jobs (`job_driver.py`) run in driver processes (`drivers.py`). Faults happen in Spark's own Python
processes (`hooks/sitecustomize.py`), and klog has no hook for them. A fault that parks holds a job
at its step, so one SIGKILL or SIGSTOP hits many jobs, each at another step.
"""
