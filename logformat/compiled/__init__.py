"""Loops over records and keys that numba compiles, for so many that compiling is worth it.

The rule: a loop over records gives what its twin of numpy gives, or nothing. At whatever it does
not know it stops, and its twin, which takes its place, decides what it is or says what is wrong. It
reads nothing beyond the padding of what it was given. numba is optional: `pip install
klog[compiled]`.
"""
