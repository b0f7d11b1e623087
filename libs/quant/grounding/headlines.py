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
_QUOTED = re.compile(r"\b(?:a|the) headline\b|[\"“”]", re.IGNORECASE)
_LOSS = re.compile(r"\bloss(?:es)?\b", re.IGNORECASE)
_PARTITIVE = re.compile(r"^\s(?:out )?of\s(?:the\s|its\s)?(?:\d|[a-z]+\s)")
_PART_OF = re.compile(r"^\s*of (?:its|the|their) $")
_WHOLE = re.compile(r"\bof (?:its |the |their )?$")


def quoted(figure: Figure, said: Sentence) -> Iterator[Fact]:
    """The headline figures that a figure repeats, with the words around them."""
    owners = set(said.tickers(figure))
    for headline in said.facts.headlines:
        if owners and headline.ticker not in owners:
            continue
        told = _told(headline, said)
        for theirs in figures_of(headline.text):
            if _same(figure, theirs, headline, said) or (
                told > 1 and _equal(figure, theirs) and _wholly(figure, theirs, headline, said)
            ):
                yield Fact(
                    "headline", theirs.value, _fact_unit(theirs), headline.ticker, headline.place
                )


def siblings(said: Sentence) -> list[Fact]:
    """The other figures of the headlines that the sentence repeats a figure of."""
    places = {fact.place for fact in said.traced.values() if fact.concept == "headline"}
    mine = words.stems(said.text)
    return [
        Fact("headline", each.value, _fact_unit(each), headline.ticker, headline.place)
        for headline in said.facts.headlines
        if headline.place in places
        or (headline.ticker in said.everyone and mine & words.stems(headline.text))
        for each in figures_of(headline.text)
    ]


@lru_cache(maxsize=512)
def figures_of(text: str) -> tuple[Figure, ...]:
    """The figures of a headline, with number words and those in a hyphen ("five-year")."""
    opened = re.sub(r"\b(\w+)-(year|day|month|week)\b", r"\1 \2s", text)
    if len(opened) != len(text) + len(re.findall(r"\b\w+-(?:year|day|month|week)\b", text)):
        opened = text
    return figures(opened)


def _same(figure: Figure, theirs: Figure, headline: Headline, said: Sentence) -> bool:
    if not _equal(figure, theirs) or not _wholly(figure, theirs, headline, said):
        return False
    if figure.unit == "date":
        return True
    ours = _kind(figure)
    lost = bool(_LOSS.search(headline.text[max(0, theirs.start - 24) : theirs.start]))
    if ours == "money" and lost and not _LOSS.search(said.before(figure, 80)):
        return False
    if _is_whole(theirs, headline.text) and not _WHOLE.search(said.before(figure, 10)):
        return False
    parted = _PARTITIVE.match(said.after(figure, 12))
    small = figure.value <= SMALL_MAX or NOUNS.match(said.after(figure))
    if ours == "number" and small and not parted:
        # Small numbers are everywhere: the thing that is counted must be the headline's.
        counted = words.stems(" ".join(said.after(figure, 30).split()[:2]))
        return bool(counted & words.stems(headline.text))
    if said.has(_QUOTED):
        return True
    start = max(0, theirs.start - NEAR_CHARS)
    around = words.stems(headline.text[start : theirs.end + NEAR_CHARS])
    mine = words.stems(
        said.before(figure, NEAR_CHARS + 16) + " " + said.after(figure, NEAR_CHARS + 8)
    )
    unnamed = set(said.sought(figure)) <= {words.OTHER}
    return bool(around & mine) or unnamed


def _fact_unit(figure: Figure) -> str:
    return "number" if figure.unit in {"count", "year", "days"} else figure.unit


def _equal(figure: Figure, theirs: Figure) -> bool:
    if figure.unit == theirs.unit == "date":
        return (figure.year, figure.month, figure.day) == (theirs.year, theirs.month, theirs.day)
    if _kind(figure) != _kind(theirs) or not figure.says(theirs.value):
        return False
    return not (figure.currency and theirs.currency and figure.currency != theirs.currency)


def _wholly(figure: Figure, theirs: Figure, headline: Headline, said: Sentence) -> bool:
    """Whether "3 of 5" stands for "three of five", not for another three."""
    parted = _PARTITIVE.match(said.after(figure, 12))
    return not parted or bool(_PARTITIVE.match(headline.text[theirs.end :]))


def _told(headline: Headline, said: Sentence) -> int:
    """How many of a headline's figures a sentence has: two of them are no accident."""
    return len(
        {
            theirs.value
            for theirs in figures_of(headline.text)
            for figure in said.figures
            if figure.unit != "date" and _equal(figure, theirs)
        }
    )


def _kind(figure: Figure) -> str:
    return "number" if figure.unit in {"count", "year", "ratio"} else figure.unit


def _is_whole(theirs: Figure, text: str) -> bool:
    """Whether the headline speaks of a part of this figure: the 3,400 in "12% of its 3,400"."""
    return bool(re.search(r"%\s+of (?:its|the|their) $", text[: theirs.start]))
