"""The benefit of the doubt: what the evidence says of a ticker, where no words speak against it.

The other readings go from words to quantities, and a text may describe a quantity in words that no
table has. Its figure is then that of a quantity of its ticker all the same. So what no reading has
found is looked for once more from the evidence: any quantity of the ticker will do, or one step,
unless words beside the figure name another one. The more digits, the less an equal figure is an
accident; what is seldom given without its name (an average, a band) is believed only with it.
"""

import re
from collections.abc import Iterator
from datetime import date
from itertools import permutations
from statistics import fmean

from libs.quant.grounding import words
from libs.quant.grounding.candidates import (
    REFERENCES,
    TECHNICAL,
    Candidate,
    at_that_time,
    column_unit,
    is_asked,
)
from libs.quant.grounding.facts import CLOSE, DAY_CHANGE, PRICES, VOLUME, Fact
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.sentence import Sentence
from libs.quant.grounding.steps import earlier, kind

STEP_DIGITS = 2
"""Digits that a figure must have to be a step which no words ask for."""
OWN_CHARS = 8
"""How near behind a name its own figure stands."""
PERIODIC = ("momentum_1m_pct", "momentum_3m_pct", "volatility_3m_pct")
"""What is of a period: "over three months" says of which one, or only since when."""
_STATED = frozenset({"money", "number", "percent"})
_STEPPED = _STATED | {"points"}
_EXTREMES = (words.RANGE, words.LOWEST, words.HIGHEST)
_OTHERS = re.compile(
    r"\b(?:others?|rest|exclud\w+|aside|besides|except|without|remaining|apart)\b", re.IGNORECASE
)


def quantities(figure: Figure, said: Sentence) -> Iterator[Candidate]:
    """Every quantity of the figure's ticker, unless the words before it name another.

    A figure of few digits is believed only where the text names its quantity somewhere.
    """
    if figure.unit not in _STATED or said.tight(figure) == (words.OTHER,):
        return
    if figure.unit == "percent" and {*said.compared_with(figure)} & (REFERENCES | {CLOSE}):
        # "19.9% under the 50-day" is measured, not stated.
        return
    bound = {*said.sought(figure)} - {words.OTHER}
    if figure.unit == "percent" and bound & {*PERIODIC}:
        bound |= {name for name in PERIODIC if said.names(name)}
    for ticker in said.tickers(figure):
        for fact in (*said.facts.of(ticker), *_of_sessions(ticker, figure, said)):
            if not figure.is_precise and fact.concept not in said.topics:
                continue
            if bound and fact.concept not in bound:
                continue
            if fact.concept.startswith(TECHNICAL) and not _is_named(fact, figure, said):
                continue
            if not (is_asked(fact, figure, said) and at_that_time(fact, figure, said)):
                continue
            if fact.unit != "money" or figure.unit != "percent":
                signed = fact.concept == DAY_CHANGE or fact.concept.startswith("momentum")
                yield Candidate(fact.value, fact.unit, (fact,), signed)


def _is_named(fact: Fact, figure: Figure, said: Sentence) -> bool:
    """Whether a quantity is named before a figure, or behind it without a figure of its own."""
    own = [each.start for each in said.figures if each.start > figure.start]
    behind = [each for each in said.mentions if each.start > figure.start]
    taken = [each for each in behind if any(0 <= start - each.end < OWN_CHARS for start in own)]
    free = [each for each in (*said.carried, *said.mentions) if each not in taken]
    return any(fact.concept in each.concepts for each in free)


def _of_sessions(ticker: str, figure: Figure, said: Sentence) -> Iterator[Fact]:
    """Prices and volumes of the days that the words tell, and the extremes that they ask for."""
    rows = said.facts.rows.get(ticker, [])
    told: set[date | None] = {day for day in said.sessions(figure) if day}
    dated = told or {*said.days, said.told_day}
    for day, row in rows:
        if day in dated:
            yield from (_of_day(name, value, ticker, "row", day) for name, value in row.items())
    if len(rows) > 1 and any(map(said.has, _EXTREMES)):
        for name in (*PRICES, VOLUME):
            column = sorted(said.facts.column(ticker, name), key=lambda each: each[1])
            for day, value in column[:1] + column[-1:]:
                yield _of_day(name, value, ticker, "extreme", day)


def over_groups(figure: Figure, said: Sentence) -> Iterator[Candidate]:
    """A mean or an end of a quantity over a group of tickers, where words beside it ask for one."""
    if figure.unit not in _STATED or said.tight(figure) == (words.OTHER,):
        return
    near = said.near_words(figure)
    ends = said.about is None and any(pattern.search(near) for pattern in _EXTREMES)
    mean = said.is_mean(figure)
    moves = (DAY_CHANGE,) if figure.unit == "percent" else ()
    for concept in dict.fromkeys((*said.concepts, *moves)) if mean or ends else ():
        every = [*said.facts.having(concept).values()]
        for group in _groups(every, said) if mean else ():
            if len(group) > 1:
                value = fmean(fact.value for fact in group)
                yield Candidate(value, group[0].unit, tuple(group), signed=True)
        if ends and len(every) > 1:
            for fact in (f(every, key=lambda each: each.value) for f in (min, max)):
                yield Candidate(fact.value, fact.unit, (fact,), signed=True)


def _groups(every: list[Fact], said: Sentence) -> Iterator[list[Fact]]:
    """All that have a quantity, who rose, who fell, who is held; all but one where words say so."""
    yield every
    yield [fact for fact in every if fact.value > 0]
    yield [fact for fact in every if fact.value < 0]
    held = said.facts.having("average_cost")
    yield [fact for fact in every if fact.ticker in held]
    yield [fact for fact in every if fact.ticker in said.so_far]
    if said.has(_OTHERS):
        yield from ([fact for fact in every if fact is not left] for left in every)


def steps(figure: Figure, said: Sentence) -> Iterator[Candidate]:
    """One step between two figures that the sentence gives, or between one and the price."""
    digits = re.sub(r"\D", "", figure.text).lstrip("0")
    if figure.unit not in _STEPPED or len(digits) < STEP_DIGITS:
        return
    if said.tight(figure) == (words.OTHER,):
        return
    given = [fact for each, fact in said.traced.items() if each is not figure]
    for ticker in said.tickers(figure):
        given += said.facts.now(ticker, CLOSE)[:1]
    once = {(fact.concept, fact.value, fact.ticker): fact for fact in given}
    for top, base in permutations(once.values(), 2):
        if top.unit == base.unit != "percent" and base.value and _are_alike(top, base):
            yield from _step(top, base, figure, said)


def _are_alike(one: Fact, two: Fact) -> bool:
    """Whether two quantities are of one kind, and of one ticker or the same; or of a headline."""
    same = one.ticker == two.ticker or one.concept == two.concept
    return (same and kind(one) == kind(two)) or "headline" in {one.concept, two.concept}


def _step(top: Fact, base: Fact, figure: Figure, said: Sentence) -> Iterator[Candidate]:
    change, parts = top.value - base.value, (top, base)
    compared = said.compared_with(figure)
    based = base.concept in compared or (top.concept not in compared and earlier(base, top, said))
    if figure.unit == "percent":
        if based:
            yield Candidate(change / abs(base.value) * 100, "percent", parts, signed=True)
        if abs(top.value) < abs(base.value):
            yield Candidate(top.value / base.value * 100, "percent", parts)
    elif based or not compared:
        yield Candidate(change, top.unit, parts, signed=True)


def _of_day(name: str, value: float, ticker: str, place: str, day: date) -> Fact:
    return Fact(name, value, column_unit(name), ticker, place, day)
