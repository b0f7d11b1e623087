"""One term an idea wherever a person reads: no word that the glossary has replaced comes back."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs/glossary.md"
TEMPLATES = ("services/console/pages/templates", "libs/report/strategies/templates")
MODULES = ("services", "libs")
PROMPTS = "services/*/prompts/*.md"
SCRIPTS = "services/console/pages/static"
SOURCES_MIN = 150
"""Files that are read, so that a folder which moves cannot empty the test."""
TERMS = """
as-of date: day of the present
approval: wait for your word; approved with less
backlog: what nobody has taken
benchmark Sharpe: of buy and hold; of buying and holding
buy-and-hold: buy and hold; buying and holding; beside cash and holding; holding holds
deflated Sharpe: probably no luck; hardly luck; not luck with
distance to a trigger: from being sold; of return left; what would sell them
figure with a source: figures are made up
halt: buys are free; free buys; no halt stands
held-out period: on days it had never seen
max drawdown: deepest fall; below the peak
out-of-sample accuracy: right out of sample; accuracy out of sample
overfitting: by heart
P&L: realised gain; unrealised gain; gain in all; how it came about; parts of the gain
paused: it rested before; rests until
rationale: picked because
remaining model budget: models may still use; budget of today
replay: run it again from its journal
reserved: held back
resume: go on
result: how it ended; what came out
risk-adjusted return: better paid risk; worse paid risk
sentiment: mood
stage reached: how far it came; how far they came
starting cash: began with
surfaced by: named for; named by
synthetic prices: made-up prices; made up
trial: the first one tried; as tried
vetoed: the rules left nothing; was, by the rule
unknown kind: there is no such; the desk says no; is not understood
must be a date: is no date; is no number; is no cycle id; is no JSON
"""
"""Of docs/glossary.md, each with the words that it replaces."""
REPLACED = {
    word: term for term, words in re.findall(r"(.+): (.+)", TERMS) for word in words.split("; ")
}
OTHER_MEANINGS: Mapping[tuple[str, str], str] = {
    ("libs/market/source.py", "made up"): "a word that a source's own description may have",
}
"""Where a replaced word means something else: file and word, with the reason."""

JINJA = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
LITERAL = re.compile(r"'([^']*)'|\"([^\"]*)\"")
COMMENT = re.compile(r"\{#.*?#\}|<script.*?</script>|<style.*?</style>", re.DOTALL)
TAG = re.compile(r"<[^<>]*>")
READ_ATTRIBUTE = re.compile(
    r"\b(?:title|aria-label|placeholder|alt|data-said|data-label)=\"([^\"]*)\""
)
JS_TEXT = re.compile(r"\"([^\"\n]*)\"|`([^`]*)`")
JS_HOLE = re.compile(r"\$\{[^{}]*\}")
CODE = re.compile(r"`[^`\n]*`")


def of_template(text: str) -> str:
    """What a template shows: text, attributes that are read out, string literals of expressions."""
    text = JINJA.sub(
        lambda each: " · ".join(a or b for a, b in LITERAL.findall(each[0])), COMMENT.sub(" ", text)
    )
    attributes = READ_ATTRIBUTE.findall(text)
    return "\n".join([TAG.sub(" ", text), *attributes])


def of_module(text: str) -> str:
    """The string literals of a module; of docstrings only a command's, which is its help."""
    nodes = list(ast.walk(ast.parse(text)))
    hidden: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden.add(id(node.value))
        # A key is a name for programs, not a text for people.
        if isinstance(node, ast.Subscript):
            hidden |= {id(each) for each in ast.walk(node.slice)}
        if isinstance(node, ast.Dict):
            hidden |= {id(key) for key in node.keys if key is not None}
        if isinstance(node, ast.Call) and _name(node) in {"get", "getattr"}:
            hidden |= {id(each) for each in node.args}
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_command(node):
            hidden -= {id(each.value) for each in node.body[:1] if isinstance(each, ast.Expr)}
    return "\n".join(
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden
    )


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    calls = (each for each in node.decorator_list if isinstance(each, ast.Call))
    return any(_name(each) in {"command", "callback"} for each in calls)


def of_script(text: str) -> str:
    """The string literals of a script."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
    return "\n".join(JS_HOLE.sub(" ", a or b) for a, b in JS_TEXT.findall(lines))


def of_page(text: str) -> str:
    """A page of the docs, samples included, without inline code: that names fields and files."""
    return CODE.sub(" ", text)


@pytest.fixture(scope="module")
def shown() -> Mapping[str, str]:
    """What is shown of every file that a person reads from, by its path."""
    return dict(read())


def read() -> Iterator[tuple[str, str]]:
    """Every file that a person reads from: its path, and what is shown of it."""
    for folder in TEMPLATES:
        for path in sorted((ROOT / folder).glob("*.html")):
            yield _named(path), of_template(path.read_text(encoding="utf-8"))
    for folder in MODULES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield _named(path), of_module(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / SCRIPTS).glob("*.js")):
        yield _named(path), of_script(path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.glob(PROMPTS)):
        yield _named(path), of_page(path.read_text(encoding="utf-8"))
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        yield _named(path), of_page(path.read_text(encoding="utf-8"))


def _named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def found(shown: str, words: Iterable[str]) -> Sequence[str]:
    """The replaced words in a text."""
    plain = " ".join(shown.split()).lower()
    return [
        word
        for word in words
        if word.lower() in plain
        and re.search(rf"(?<![\w-]){re.escape(word.lower())}(?![\w-])", plain)
    ]


@pytest.mark.slow
def test_no_word_that_the_glossary_replaces_is_shown_anywhere(shown: Mapping[str, str]) -> None:
    assert len(shown) >= SOURCES_MIN
    wrong = [
        f"{path}: {word!r}, say {REPLACED[word]}"
        for path, text in shown.items()
        for word in found(text, REPLACED)
        if (path, word) not in OTHER_MEANINGS
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_glossary_has_every_term() -> None:
    glossary = GLOSSARY.read_text(encoding="utf-8")
    assert [term for term in set(REPLACED.values()) if f"**{term}**" not in glossary] == []


@pytest.mark.slow
def test_every_other_meaning_is_still_there(shown: Mapping[str, str]) -> None:
    gone = [each for each in OTHER_MEANINGS if not found(shown[each[0]], [each[1]])]
    assert not gone


@pytest.mark.parametrize(
    ("text", "is_seen"),
    [
        (of_template("<td>Deepest\n fall</td>"), True),
        (of_template("{{ parts.tile('Deepest fall', s.fall | part) }}"), True),
        (of_template('<p title="the deepest fall">1%</p>'), True),
        (of_template("{# the deepest fall #}<p class='deepest fall'>{{ s.deepest }}</p>"), False),
        (of_module('x = f"deepest fall {a}"'), True),
        (of_module('@app.command()\ndef show():\n    """The deepest fall."""'), True),
        (
            of_module('def fall():\n    """The deepest fall."""\n    return a["deepest fall"]'),
            False,
        ),
        (of_script("note.textContent = `Deepest fall: ${value}.`;"), True),
        (of_script("// the deepest fall\nconst fall = 1;"), False),
        (of_page("Its deepest fall is small."), True),
        (of_page("The field `deepest fall` is small, the max drawdown too."), False),
    ],
)
def test_a_replaced_word_is_seen_where_a_person_reads_it(text: str, is_seen: bool) -> None:
    assert found(text, ["deepest fall"]) == ["deepest fall"] * is_seen


def test_amounts_are_rounded_in_one_place() -> None:
    """Python's format shows 31.095 as 31.09 and 0.125 as 0.12: libs/facts/amounts.py does not."""
    shown = ("libs/report", "services/console", "services/cli")
    files = [path for folder in shown for path in sorted((ROOT / folder).rglob("*.*"))]
    formatted = [
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.suffix in {".py", ".html"} and ",.2f" in path.read_text(encoding="utf-8")
    ]
    assert len(files) > SOURCES_MIN
    assert formatted == []
