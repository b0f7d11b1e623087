"""Sphinx's settings for the site; deploy/site/sources.py writes what it reads."""

from importlib.metadata import version as version_of
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

MARK = Path(__file__).parents[2] / "services/console/pages/static/mark.svg"

project = "Deskbus"
version = release = version_of("deskbus")
language = "en"

extensions = ["myst_parser"]
exclude_patterns = ["files/**"]
myst_heading_anchors = 6
highlight_language = "none"
smartquotes = False  # it makes a dash of the two before an option

html_theme = "pydata_sphinx_theme"
html_title = f"Deskbus {version}"
html_logo = html_favicon = str(MARK)
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("copy.js", {"defer": "defer"})]
html_context = {"default_mode": "auto"}
html_copy_source = html_show_sourcelink = html_show_copyright = html_use_index = False
html_sidebars = {"index": [], "**": ["sidebar-nav-bs"]}
html_theme_options = {
    "logo": {"text": "Deskbus"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": [],
    "footer_end": [],
}


def setup(app: Sphinx) -> None:
    """Blocks of CSV are shown as they are: Pygments has no lexer of it."""
    app.add_lexer("csv", TextLexer)
