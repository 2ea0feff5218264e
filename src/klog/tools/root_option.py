"""The option `--root` of the verbs, as a parent of their parsers."""

from __future__ import annotations

import argparse

from klog.jobs.shared.common_options import add_root_option


def root_parser(help_text: str) -> argparse.ArgumentParser:
    """Return a parser with `--root` only, as a parent of the parsers of verbs."""
    parser = argparse.ArgumentParser(add_help=False)
    add_root_option(parser, help_text, repeatable=True)
    return parser
