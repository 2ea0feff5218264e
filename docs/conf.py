"""How Sphinx makes the site: `make docs`. docs/adr/0026-the-site.md says why Sphinx and Furo."""

from __future__ import annotations

import re

from docutils.nodes import document
from pygments.lexers.special import TextLexer
from sphinx.addnodes import desc_addname
from sphinx.application import Sphinx

from klog import __version__

project = "klog"
release = version = __version__
html_title = f"klog {__version__}"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["klog.css"]
html_copy_source = html_show_sourcelink = html_show_copyright = html_show_sphinx = False
myst_heading_anchors = 4
"""Headings have the anchors that a Git host gives them."""
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
default_role = "code"
"""What docstrings put between single backticks is code."""

_PAGE = re.compile(r"\bdocs/([\w-]+)\.md\b")
_INNER = "klog.connector."
_MODULE = re.compile(r"\b(?:\w+\.)+(?=[A-Z])")
_FUNCTION = re.compile(r"<function (\w+)>")


def link_pages(*arguments: object) -> None:
    """Let a docstring that names a page of docs/ lead there; the last argument has its lines."""
    lines = arguments[-1]
    assert isinstance(lines, list)
    lines[:] = [_PAGE.sub(r":doc:`\1`", line) for line in lines]


def shorten_types(*arguments: object) -> None:
    """Show the types of attributes without their modules, as signatures show types."""
    lines = arguments[-1]
    assert isinstance(lines, list)
    lines[:] = [
        _MODULE.sub("", line) if line.lstrip().startswith(":type:") else line for line in lines
    ]


def edit_signature(
    _app: Sphinx,
    kind: str,
    name: str,
    _object: object,
    _options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str, str | None] | None:
    """Hide constructors of classes that only klog creates; show the names of default functions."""
    if kind in ("class", "exception") and name != "klog.values.Registry":
        return "", None
    return None if signature is None else (_FUNCTION.sub(r"\1", signature), returns)


def hide_modules_of_reports(_app: Sphinx, tree: document) -> None:
    """Show reports of jobs without their modules, from which nobody imports them."""
    for node in [*tree.findall(desc_addname)]:
        name = node.astext()
        if name.startswith(_INNER) or (name.startswith("klog.jobs.") and name.count(".") > 3):
            node.parent.remove(node)


def setup(app: Sphinx) -> None:
    """Show bytes in hexadecimal as text, and let docstrings link to pages."""
    app.add_lexer("hex", TextLexer)
    app.connect("doctree-read", hide_modules_of_reports)
    app.connect("autodoc-process-signature", edit_signature)
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("autodoc-process-docstring", shorten_types)
