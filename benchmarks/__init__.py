"""How fast klog reads, measured against its peers in the same run: `python -m benchmarks`.

A figure counts only next to another one of the same run, so ratios come first. `RESULTS.md` is the
output of one run.
"""
