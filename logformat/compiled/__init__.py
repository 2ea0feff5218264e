"""Kernels: loops over records and keys that numba compiles.

The rule: a kernel does what numpy and Arrow do in its place, byte for byte, or nothing. When it
meets input that it does not know, it stops, and the caller takes the numpy path, which decides what
the input is or names what is wrong. A kernel reads nothing beyond the padding of its arguments.

numba is optional (`pip install klog[compiled]`). Functions of `logformat` take kernels as an
argument, and None means the numpy path; who calls them decides.
"""
