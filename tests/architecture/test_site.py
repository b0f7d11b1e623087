"""The site of docs/: built strictly, four parts that lead to every page, a search, nothing from
elsewhere; how-to pages begin with what they are about; and few words in all."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from deploy.reference.words import WORDS_MAX, by_page, written
from deploy.site.sources import on_site, parts
from services.cli.main import ENTRIES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOREIGN = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?:https?:)?//[^>]*>")
"""What a page loads from elsewhere."""
SENTENCES_MAX = 3
IN_SHORT = re.compile(r"^# [^\n]+\n+\*\*In short\*\*: (?P<said>.+?)\n\n", re.DOTALL)
SENTENCE = re.compile(r"[.!?](?=\s|$)|:$")


def how_to() -> Iterator[str]:
    """The names of the how-to pages."""
    part = next(part for part in parts() if part.title == "How-to")
    return (name for group in part.groups for _, name in group.entries)


def test_the_parts_are_four_and_each_page_is_in_one() -> None:
    named = [name for part in parts() for group in part.groups for _, name in group.entries]
    assert [part.title for part in parts()] == ["Learn", "How-to", "Reference", "Explanation"]
    assert sorted(named) == sorted(
        {*(it.stem for it in DOCS.glob("*.md")), "messages"} - {"README"}
    )


@pytest.mark.parametrize("name", how_to())
def test_a_how_to_page_begins_in_short(name: str) -> None:
    begins = IN_SHORT.match((DOCS / f"{name}.md").read_text(encoding="utf-8"))
    assert begins, "the paragraph below its title begins with **In short**:"
    assert 1 <= len(SENTENCE.findall(re.sub("`[^`]*`", "code", begins["said"]))) <= SENTENCES_MAX


def test_the_words_written_by_hand_are_few() -> None:
    words = sum(by_page().values())
    assert words <= WORDS_MAX, "python -m deploy.reference.words"


def test_only_words_that_somebody_wrote_are_counted() -> None:
    page = """# Two words

<!-- table: made by `make contracts` -->

| not | these |

<!-- end of table -->

Three more: `deskbus up`

```
deskbus not counted
```

| five | - | 6 |
| --- | --- | --- |
"""
    assert written(page) == 2 + 4 + 2
    assert written("# Commands\n\n<!-- made by `make contracts` -->\n\nall of it\n") == 0


@pytest.mark.parametrize(
    ("text", "on_the_site"),
    [
        ("[halt](risk.md#stop-the-desk)", "[halt](/risk.md#stop-the-desk)"),
        ("[all](README.md)", "[all](/index.md)"),
        ("see docs/risk.md.", "see [docs/risk.md](/risk.md)."),
        ("[it](examples/subscribe.mjs)", "[it](/files/docs/examples/subscribe.mjs)"),
        ("[the document](../contracts/schemas/asyncapi.json)", "[the document](/messages.md)"),
        (
            "[why](decisions/0024-rooms.md)",
            '<abbr title="in the repository: docs/decisions/0024-rooms.md">why</abbr>',
        ),
        ("`[a](b.md)` and `docs/risk.md`", "`[a](b.md)` and `docs/risk.md`"),
        ("[here](#below), [there](https://ntfy.sh)", "[here](#below), [there](https://ntfy.sh)"),
    ],
)
def test_a_link_leads_somewhere_on_the_site(text: str, on_the_site: str) -> None:
    assert on_site(text) == on_the_site


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_leads_to_every_page(tmp_path: Path) -> None:
    # One test: a build takes ten seconds, and each worker would make its own.
    build = [sys.executable, "-m", "deploy.site", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert (done.returncode, done.stderr) == (0, "")

    named = {name for part in parts() for group in part.groups for _, name in group.entries}
    pages = {
        "index",
        *named,
        *(part.name for part in parts()),
        *(f"commands/{it}" for it in ENTRIES),
    }
    assert _reached(tmp_path) == pages
    built = {page.relative_to(tmp_path).as_posix() for page in tmp_path.rglob("*.html")}
    built = {name for name in built if not name.startswith("_static/")}
    assert built == {f"{name}.html" for name in (*pages, "search")}

    text = (tmp_path / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert set(index["docnames"]) == pages
    assert index["docnames"].index("risk") in index["titleterms"]["halt"]

    for name in built:
        assert FOREIGN.findall((tmp_path / name).read_text(encoding="utf-8")) == [], name


def _reached(site: Path) -> set[str]:
    """The pages to which the navigation leads from the first one."""
    reached, waiting = set[Path](), [site / "index.html"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
            links = {a["href"].partition("#")[0] for a in soup.select("nav a[href]")}
            waiting += [(page.parent / it).resolve() for it in links if it and "://" not in it]
    return {page.relative_to(site).with_suffix("").as_posix() for page in reached}
