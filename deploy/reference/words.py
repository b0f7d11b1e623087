"""How many words of the site are written by hand: `python -m deploy.reference.words [ROOT]`.

Counted is what a reader of docs/*.md reads as prose or in tables: all but pages and parts that are
made from the program, fenced blocks (code and its output) and comments. A word is what stands
between white space and has a letter or a digit. docs/decisions and docs/benchmarks are not on the
site.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS_MAX = 55_000
MADE_PAGE = re.compile(r"^<!-- made by ", re.MULTILINE)
NOT_WRITTEN = re.compile(
    # A part between two marks, as deploy.reference and `make readme` write it; a block; a comment.
    r"^<!-- (?P<made>[\w-]+): (?:begin|made by).*?^<!-- (?:end of (?P=made)|(?P=made): end) -->$"
    r"|^(?P<indent> *)(?P<fence>```+|~~~+).*?^(?P=indent)(?P=fence)"
    r"|<!--.*?-->",
    re.MULTILINE | re.DOTALL,
)


def written(text: str) -> int:
    """The words of a page that somebody wrote."""
    if MADE_PAGE.search(text):
        return 0
    return sum(any(map(str.isalnum, word)) for word in NOT_WRITTEN.sub("", text).split())


def by_page(root: Path = ROOT) -> Mapping[str, int]:
    """The words of each page of the site."""
    pages = (root / "docs").glob("*.md")
    return {page.name: written(page.read_text(encoding="utf-8")) for page in pages}


def main() -> None:
    """Print the pages, the longest first, and their sum."""
    counted = by_page(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
    longest = sorted(counted.items(), key=lambda each: -each[1])
    lines = [f"{words:6,}  {name}\n" for name, words in longest]
    sys.stdout.writelines([*lines, f"{sum(counted.values()):6,}  all; at most {WORDS_MAX:,}\n"])


if __name__ == "__main__":
    main()
