"""The site, built by Sphinx from sources that `sources.write` makes; a warning is an error."""

import tempfile
from pathlib import Path

from sphinx.cmd.build import main

from deploy.site import sources

HERE = Path(__file__).parent


def build(out: Path) -> int:
    """Write the site into a folder; 0 where nothing was wrong. Else the errors are on stderr."""
    with tempfile.TemporaryDirectory(prefix="site-") as folder:
        pages, trees = Path(folder, "pages"), Path(folder, "trees")
        sources.write(pages)
        strict = ("--fail-on-warning", "--keep-going", "--nitpicky", "--quiet")
        return main(
            [*strict, "-b", "html", "-c", str(HERE), "-d", str(trees), str(pages), str(out)]
        )
