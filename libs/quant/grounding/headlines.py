# ruff: noqa: PLR0911  (a list of refusals, one a line)
"""Figures of headlines: grounded where the text says of them what the headline says."""

import re
from collections.abc import Iterator
from functools import lru_cache

from libs.quant.grounding import words
from libs.quant.grounding.counts import NOUNS
from libs.quant.grounding.facts import Fact, Headline
from libs.quant.grounding.figures import Figure, figures
from libs.quant.grounding.sentence import Sentence

NEAR_CHARS = 32
SMALL_MAX = 20
PART_CHARS = 14
_BEFORE = re.compile(r"\bto\s\S+(?:\s[a-z]+)?\sfrom\s$")
_CHANGED = re.compile(
    r"\b(?:raised|lifted|cut|lowered|new|now|latest|current)\b(?:(?!\bfrom\b)[^.;,\d])*$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\b(?:a|the) headline\b|[\"“”]", re.IGNORECASE)
_LOSS = re.compile(r"\bloss(?:es)?\b", re.IGNORECASE)
_PARTITIVE = re.compile(r"^\s(?:out )?of\s(?:the\s|its\s)?(?:\d|[a-z]+\s(?!\())")
_OF_THEM = re.compile(r"^\s(?:out )?of (?:them|these|those)\b", re.IGNORECASE)
_SMALL = re.compile(
    r"\b(?:out|of|its|the|to|or|and|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b|\d+"
)
_WHOLE = re.compile(r"\bof (?:its |the |their )?$")


def quoted(said: Sentence) -> Iterator[tuple[Figure, Fact]]:
    """The headline figures that the sentence's figures repeat, with the words around them."""
    for headline in said.facts.headlines:
        equal = [
            (figure, theirs)
            for theirs in figures_of(headline.text)
            for figure in said.figures
            if _equal(figure, theirs)
        ]
        # Two figures of one headline are no accident.
        told = {theirs.value for figure, theirs in equal if figure.unit != "date"}
        for figure, theirs in equal:
            owners = said.tickers(figure)
            if (owners and headline.ticker not in owners) or _is_of_another(figure, headline, said):
                continue
            if _wholly(figure, theirs, headline, said) and (
                len(told) > 1 or _same(figure, theirs, headline, said)
            ):
                yield figure, _fact(theirs, headline)


def _is_of_another(figure: Figure, headline: Headline, said: Sentence) -> bool:
    """Whether this tells why one quantity is absent, and the figure is of another that is."""
    absent = {
        each.text.partition(":")[0]
        for each in said.facts.headlines
        if each.ticker == headline.ticker and each.known_on is None
    }
    ahead = [each for each in said.mentions if each.end <= figure.start][-1:]
    spoken = absent & {name for each in ahead for name in each.concepts}
    name = headline.text.partition(":")[0]
    return bool(spoken) and "_" in name and name not in spoken


def is_refuted(figure: Figure, said: Sentence) -> bool:
    """Whether headlines count other numbers of the thing: "four weeks", where they say six."""
    things = _things(said.after(figure, 40))
    told = [
        theirs.value
        for headline in said.facts.headlines
        if headline.ticker in said.tickers(figure)
        for theirs in figures_of(headline.text)
        if theirs.unit in {"number", "count", "days"}
        and things & _things(headline.text[theirs.end : theirs.end + 40])
    ]
    return bool(told) and figure.value not in told


def _things(behind: str) -> frozenset[str]:
    """What is counted: the words behind a number, past "of its 11" and "to eight"."""
    behind = re.sub(r"^-(\w+)", r" \1s", behind)
    rest = _SMALL.sub(" ", re.split(r"[.,;]", behind)[0])
    return words.stems(" ".join(rest.split()[:2]))


def siblings(said: Sentence) -> list[Fact]:
    """The other figures of the headlines that the sentence repeats a figure of."""
    places = {fact.place for fact in said.traced.values() if fact.concept == "headline"}
    mine = words.stems(said.text)
    return [
        _fact(each, headline)
        for headline in said.facts.headlines
        if headline.place in places
        or (headline.ticker in said.everyone and mine & words.stems(headline.text))
        for each in figures_of(headline.text)
    ]


def is_earlier(base: Fact, top: Fact, said: Sentence) -> bool:
    """Whether a headline gives `base` as the earlier figure: "to $1.1 billion from $1.05"."""
    texts = [each.text for each in said.facts.headlines if each.place == base.place]
    for text in texts:
        for figure in figures_of(text):
            if text[: figure.start].endswith("from "):
                return figure.value == base.value
    return bool(texts) and top.place == base.place


@lru_cache(maxsize=512)
def figures_of(text: str) -> tuple[Figure, ...]:
    """The figures of a headline, with number words and those in a hyphen ("five-year")."""
    opened = re.sub(r"\b(\w+)-(year|day|month|week)\b", r"\1 \2s", text)
    if len(opened) != len(text) + len(re.findall(r"\b\w+-(?:year|day|month|week)\b", text)):
        opened = text
    return figures(opened)


def _same(figure: Figure, theirs: Figure, headline: Headline, said: Sentence) -> bool:
    """Whether a figure that is equal to a headline's is said of the same thing."""
    if figure.unit == "date":
        return True
    ours = _kind(figure)
    lost = bool(_LOSS.search(headline.text[max(0, theirs.start - 24) : theirs.start]))
    if ours == "money" and lost and not _LOSS.search(said.before(figure, 80)):
        return False
    if _is_whole(theirs, headline.text) and not _WHOLE.search(said.before(figure, 10)):
        return False
    if _BEFORE.search(headline.text[: theirs.start]) and _CHANGED.search(said.before(figure, 40)):
        # "raised to $95 from $85": the raised one is not what it was.
        return False
    if _is_small(figure, said):
        # Small numbers are everywhere: the thing that is counted must be the headline's.
        things = _things(said.after(figure, 40))
        if not things and figure.unit == "ratio":
            # "halted twice": what comes before it.
            told = headline.text[: theirs.start][-PART_CHARS:]
            return bool(words.stems(said.before(figure, PART_CHARS)) & words.stems(told))
        return bool(things & words.stems(headline.text[theirs.end :]))
    if said.has(_QUOTED):
        return True
    start = max(0, theirs.start - NEAR_CHARS)
    around = words.stems(headline.text[start : theirs.end + NEAR_CHARS])
    mine = words.stems(
        said.before(figure, NEAR_CHARS + 16) + " " + said.after(figure, NEAR_CHARS + 8)
    )
    unnamed = set(said.sought(figure)) <= {words.OTHER}
    return bool(around & mine) or unnamed


def _is_small(figure: Figure, said: Sentence) -> bool:
    """Whether a count is one that any text may have; not so a part and its whole together."""
    behind = said.after(figure, 12)
    parted = _PARTITIVE.match(behind) and not _OF_THEM.match(behind)
    small = figure.value <= SMALL_MAX or NOUNS.match(said.after(figure))
    return _kind(figure) == "number" and bool(small) and not parted


def _fact(theirs: Figure, headline: Headline) -> Fact:
    unit = "number" if theirs.unit in {"count", "year", "days"} else theirs.unit
    return Fact("headline", theirs.value, unit, headline.ticker, headline.place, headline.known_on)


def _equal(figure: Figure, theirs: Figure) -> bool:
    if figure.unit == theirs.unit == "date":
        return (figure.year, figure.month, figure.day) == (theirs.year, theirs.month, theirs.day)
    kinds = {_kind(figure), _kind(theirs)}
    amounts = kinds == {"money", "number"} and figure.step > 1 and theirs.step > 1
    if not (len(kinds) == 1 or amounts) or not figure.says(theirs.value):
        return False
    return not (figure.currency and theirs.currency and figure.currency != theirs.currency)


def _wholly(figure: Figure, theirs: Figure, headline: Headline, said: Sentence) -> bool:
    """Whether "3 of 5" stands for "three of five", not for three of another five."""
    if not _PARTITIVE.match(said.after(figure, 12)):
        return True
    if not _PARTITIVE.match(headline.text[theirs.end :]):
        return False
    ours = [each.value for each in said.figures if each.start >= figure.end][:1]
    whole = [each.value for each in figures_of(headline.text) if each.start >= theirs.end][:1]
    near = any(
        each.start - figure.end < PART_CHARS for each in said.figures if each.start >= figure.end
    )
    things = _things(said.after(figure, 40)) & _things(headline.text[theirs.end : theirs.end + 40])
    return not near or ours == whole or bool(things)


def _kind(figure: Figure) -> str:
    return "number" if figure.unit in {"count", "year", "ratio"} else figure.unit


def _is_whole(theirs: Figure, text: str) -> bool:
    """Whether the headline speaks of a part of this figure: the 3,400 in "12% of its 3,400"."""
    return bool(re.search(r"%\s+of (?:its|the|their) $", text[: theirs.start]))
