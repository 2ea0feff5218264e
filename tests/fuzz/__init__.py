"""The decoders under a coverage-guided fuzzer: targets, seeds, and the inputs worth keeping."""
