"""How Sphinx builds the site: `make docs`."""

project = "klog"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
html_theme = "furo"
myst_heading_anchors = 4
