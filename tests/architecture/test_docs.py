"""The docs lead somewhere: every link and heading it names exists, every page is in the index, and
pages that are made from the program are as the program is."""

import re
from functools import cache
from pathlib import Path

import pytest

from deploy.reference import cli_pages
from deploy.reference.pages import MADE, rewritten
from libs.quant.exits.terms import TermsFile
from libs.runtime.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
NAMED_PAGE = re.compile(r"(?<![\w/.-])(docs/[\w/-]+\.md)(?:#([\w-]+))?")
LINK = re.compile(r"\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)?)\)")
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)
GROUPS = frozenset(
    {
        "You have to do something",
        "Start",
        "Trade",
        "Research",
        "Bring your own",
        "Operate",
        "Integrate",
        "Security",
        "Working on it",
        "Known limits",
    }
)
"""Of a version in the changelog, by what a reader does."""
SOURCES = ("contracts/", "libs/", "services/", "tests/", "deploy/", "benchmarks/", "docs/")
EXAMPLE = "contracts/filing.py"
"""What a reader of docs/extending.md writes."""
OF_TODAY = [
    page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "decisions"
]
"""Pages that speak of the tree as it is."""
TABLE = re.compile(r"(?:`|^)\[([a-z_]+)(?:\.[^\]\n]+)?\](?:`|$)", re.MULTILINE)
IN_BRACKETS = frozenset({"key", "clock_back"})
"""In brackets and backquotes, but no tables: what stands in a key's place, an error's code."""
ELSEWHERE = ("http://", "https://", "mailto:")


def links(page: Path) -> list[str]:
    """Where a page leads, outside of its code."""
    text = CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
    return [link for link in LINK.findall(text) if not link.startswith(ELSEWHERE)]


@cache
def anchors(page: Path) -> frozenset[str]:
    """The names of a page's headings, as GitHub makes them: later ones of a name have a number."""
    names: dict[str, int] = {}
    every = set()
    for heading in HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = names.get(slug, 0)
        names[slug] = count + 1
        every.add(f"{slug}-{count}" if count else slug)
    return frozenset(every)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    lost = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    reached, waiting = set(), [docs / "README.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        if page.name != "README.md":
            continue  # an index leads on; a page's own links are no map
        named = ((page.parent / link.partition("#")[0]).resolve() for link in links(page))
        waiting += [found for found in named if found.suffix == ".md" and found not in reached]
    listed = {page for page in PAGES if docs in page.parents}
    assert sorted(page.relative_to(docs).as_posix() for page in listed - reached) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_what_is_made_from_code_is_what_code_says(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert text == rewritten(name, text), "run `make contracts`"


@pytest.mark.parametrize("name", ["errors.md", "sql.md"])
def test_a_page_without_the_marks_of_its_table_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="needs the two lines"):
        rewritten(name, f"# {name}")


def test_each_command_has_a_page_for_the_site() -> None:
    assert all(text.startswith("#") for text in cli_pages.pages().values())


def test_each_page_and_heading_of_docs_that_is_named_anywhere_is_there(tracked: list[Path]) -> None:
    """In messages, comments, settings and other pages: docs/risk.md, docs/risk.md#stop-the-desk."""
    lost = {}
    for path in tracked:
        text = path.read_bytes().decode("utf-8", errors="replace")
        for name, anchor in NAMED_PAGE.findall(text):
            page = ROOT / name
            if not page.is_file() or (anchor and anchor not in anchors(page)):
                lost[f"{name}#{anchor}"] = path.relative_to(ROOT).as_posix()
    assert lost == {}


def test_common_errors_are_errors() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    common = text.partition("## The common ones")[2].partition("## All codes")[0]
    named = {
        code
        for row in re.findall(r"^\| (`.*?) \|", common, re.MULTILINE)
        for code in re.findall(r"`(\w+)`", row)
    }
    source = "".join(
        path.read_text() for top in ("libs", "services") for path in (ROOT / top).rglob("*.py")
    )
    assert sorted(code for code in named if f'"{code}"' not in source) == []


def test_a_group_of_a_version_stands_once_in_the_changelog() -> None:
    # A merge that keeps both sides brings groups back that were brought together.
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for version in text.split("\n## ")[1:]:
        groups = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert len(groups) == len(set(groups)), version.partition("\n")[0]
        assert set(groups) <= GROUPS, "a version is grouped by what a reader does"


@pytest.mark.parametrize("page", OF_TODAY, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_tests_and_sources_that_a_page_names_are_there(page: Path) -> None:
    """Names in backquotes: a test's file wherever it is, a source by its path from the root."""
    files = {path.relative_to(ROOT).as_posix() for path in sources()}
    names = {path.rpartition("/")[2] for path in files}
    named = re.findall(r"`([\w/]+\.py)`", FENCE.sub("", page.read_text(encoding="utf-8")))
    absent = [
        name
        for name in named
        if (name.startswith(SOURCES) and name not in {*files, EXAMPLE})
        or (name.startswith("test_") and name not in names)
    ]
    assert absent == []


@pytest.mark.parametrize("page", OF_TODAY, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_tables_of_settings_that_a_page_names_are_there(page: Path) -> None:
    """In backquotes or in TOML: of deskbus.toml, or of exit_signals.toml."""
    text = page.read_text(encoding="utf-8")
    tables = {*Settings.model_fields, *TermsFile.model_fields, *IN_BRACKETS}
    assert set(TABLE.findall(text)) - tables == set()


@cache
def sources() -> tuple[Path, ...]:
    """Every Python file of ours."""
    return tuple(path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
