# ruff: noqa: PLR0911  (a list of refusals, one a line)
"""What a sentence may mean by a figure: the quantities that it names.

A candidate is offered only where the words name what it is made of. The price needs no name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from statistics import fmean

from libs.quant.grounding import words
from libs.quant.grounding.facts import CLOSE, DAY_CHANGE, LEVELS, PRICES, VOLUME, Fact
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.sentence import Sentence

Row = tuple[date, dict[str, float]]
REFERENCES = LEVELS | {
    *("average_cost", "eps_estimate", "macd_signal", "equity", "revenue_ttm"),
    *("high", "low", "open"),
}
"""What a price or result is measured from, where the words do not say which is the base."""
IMPLIED = frozenset({CLOSE, DAY_CHANGE, "market_cap"})
"""What a text may give without its name: "AAPL rose 2.6% to $584", "a $3 billion company"."""
MULTIPLES = ("pe_ratio", "price_to_sales", "debt_to_equity")
"""What a figure in times is, where no name is near: "the most expensive (77x)"."""
MARKET_CAP_MIN = 1e7
TECHNICAL = ("sma", "ema", "bollinger", "band", "macd", "atr", "rsi", "bars", "position_cost")
"""What is never given without its name, as a price or an average cost may be."""

_INTRADAY = re.compile(r"\b(?:lowest low|highest high|intraday)\b[^.;]{0,12}$", re.IGNORECASE)
MOVED_TO = re.compile(r"(?:%|percent),?\s(?:[a-z]+,?\s){0,3}(?:to|at)\s$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that the evidence gives. `signed`: words must say its sign. `parts`: made of what."""

    value: float
    unit: str
    parts: tuple[Fact, ...]
    signed: bool = False


def stated(figure: Figure, said: Sentence) -> Iterator[Candidate]:
    """The quantities themselves that the words may mean."""
    tight = said.tight(figure)
    owners = said.tickers(figure) or (None,)
    offered = _offered(figure, said, tight, owners)
    compared = (REFERENCES | {CLOSE}) & {*said.compared_with(figure)}
    if compared and not tight and figure.unit == "percent":
        # "19.9% under the 50-day" is measured, not stated.
        return
    if (
        figure.unit == "money"
        and not tight
        and (
            (not said.sought(figure) and said.is_owned(figure))
            or MOVED_TO.search(said.before(figure))
        )
    ):
        # "GOOG $332" is its price, and so is what it "lost 1.81% to"; "GOOG $200bn" is its value.
        offered = [
            fact for fact in offered if fact.concept in {*PRICES, "market_cap", "position_value"}
        ]
    for fact in offered:
        if tight and not is_one_of(fact, tight):
            continue
        if not tight and _needs_name(fact, figure, said):
            continue
        if not (_is_over_all(fact, figure, said) and is_asked(fact, figure, said)):
            continue
        if fact.place == "before" and not said.starts(figure):
            continue
        if not tight and fact.concept in LEVELS and _named_later(fact, figure, said):
            continue
        if not at_that_time(fact, figure, said):
            continue
        signed = fact.concept == DAY_CHANGE or fact.concept.startswith("momentum")
        yield Candidate(fact.value, fact.unit, (fact,), signed)


def _offered(
    figure: Figure, said: Sentence, tight: Sequence[str], owners: Sequence[str | None]
) -> list[Fact]:
    """What the sentence names, and what a figure in this unit may be without a name."""
    offered = [*named(said, owners)]
    if figure.is_precise and not tight and not said.near(figure):
        # A percentage that has no name is a move of the day, or made of two quantities.
        offered += [
            fact
            for owner in owners
            for fact in said.facts.of(owner)
            if fact.concept == DAY_CHANGE
            or (fact.unit != "percent" and not fact.concept.startswith(TECHNICAL))
        ]
    if said.is_whole(figure):
        offered += said.facts.now(None, "equity")
    if figure.unit == "times" and not said.sought(figure):
        offered += [f for o in owners for name in MULTIPLES for f in said.facts.now(o, name)]
    if figure.unit == "number" and figure.step >= 1 and said.is_owned(figure):
        # "85 BRVO": so many of its shares.
        offered += [
            fact
            for name in ("quantity", "order_quantity")
            for o in owners
            for fact in said.facts.now(o, name)
        ]
    return offered


def is_one_of(fact: Fact, tight: Sequence[str]) -> bool:
    """Whether a quantity is what is named; the low of a period may be that of its closes."""
    return fact.concept in tight or (fact.place == "extreme" and bool({"high", "low"} & {*tight}))


def is_asked(fact: Fact, figure: Figure, said: Sentence) -> bool:
    """Whether words near a figure ask for an extreme, or for a session's range."""
    asked = {"extreme": (words.LOWEST, words.HIGHEST), "unnamed": (words.RANGE,)}
    patterns = asked.get(fact.place, ())
    # "at its high of $82 on volume of 3 million": the high is the price's.
    near = said.near_words(figure) if fact.concept == VOLUME else said.around(figure)
    return not patterns or any(each.search(near) for each in patterns)


def _is_over_all(fact: Fact, figure: Figure, said: Sentence) -> bool:
    """Whether what is summed up over tickers may be meant, and nothing less where all are."""
    if said.is_end_of_all(figure):
        values = [each.value for each in said.facts.having(fact.concept).values()]
        return bool(values) and fact.value in {min(values), max(values)}
    if fact.ticker is not None:
        return True
    if fact.place == "mean":
        return said.is_mean(figure)
    return fact.place != "extreme" or not (said.tickers(figure) and said.named_ahead(figure))


def _named_later(fact: Fact, figure: Figure, said: Sentence) -> bool:
    """Whether a quantity is only named behind a figure."""
    ahead = (*said.carried, *(each for each in said.mentions if each.start < figure.start))
    return all(fact.concept not in each.concepts for each in ahead)


def _needs_name(fact: Fact, figure: Figure, said: Sentence) -> bool:
    """Whether a quantity without a name beside the figure is too bold a reading."""
    if fact.concept == CLOSE:
        return figure.unit not in {"money", "number"} or (
            figure.unit == "number" and figure.step >= 1 and not figure.is_precise
        )
    if fact.concept == "market_cap" and not said.names("market_cap"):
        bound = {*said.sought(figure)} - ({words.OTHER} if figure.is_precise else set())
        return bool(bound) or figure.value < MARKET_CAP_MIN
    if fact.concept == DAY_CHANGE and not said.names(DAY_CHANGE):
        pointed = said.direction(figure) or figure.signed or not said.sought(figure)
        return not pointed
    return False


def at_that_time(fact: Fact, figure: Figure, said: Sentence) -> bool:
    """A price of a session belongs to figures that the words date so, and only to them."""
    if said.asks_mean(figure) and not (
        fact.concept in said.tight(figure) and fact.unit != "number"
    ):
        return fact.place == "mean" or fact.concept in {"average_cost", "atr_14"}
    closes = said.sought(figure) == (CLOSE,) and words.CLOSES.search(said.before(figure))
    if closes and fact.concept in {"high", "low"}:
        return False
    if fact.place == "extreme" and fact.concept == CLOSE and _INTRADAY.search(said.before(figure)):
        return False
    days = said.sessions(figure)
    if days and fact.place == "extreme" and fact.concept == CLOSE and not said.names(CLOSE):
        # "the high of March 15" is that session's, not the highest close.
        return False
    if not days and fact.place == "row" and _is_of_another_day(fact, figure, said):
        return False
    if fact.concept not in {*PRICES, VOLUME}:
        # What only as_of has is no figure of an earlier session.
        return not days or None in days or fact.unit != "money"
    return fact.place in {"mean", "extreme"} or not days or fact.session in days


def _is_of_another_day(fact: Fact, figure: Figure, said: Sentence) -> bool:
    """Whether a session is meant only by words that stand with another figure."""
    rows = said.facts.rows.get(fact.ticker or "", [])
    if not rows or fact.session == rows[-1][0]:
        return False
    around = said.before(figure, 40) + said.after(figure, 25)
    first = fact.session == rows[0][0] and words.FIRST.search(around)
    return not first and fact.session not in said.days_for(figure)


def named(said: Sentence, tickers: Sequence[str | None]) -> Iterator[Fact]:
    """The quantities of some tickers that a sentence names, dated and summed up as it asks."""
    for ticker in tickers:
        if ticker is not None:
            for fact in said.facts.of(ticker):
                bought = fact.concept == "average_cost" and said.names("quantity")
                if bought or fact.concept in IMPLIED or said.names(fact.concept):
                    yield fact
            yield from _sessions(said, ticker)
            yield from _summed(said, ticker)
    for fact in said.facts.of(None):
        if said.names(fact.concept):
            yield fact
    if said.about is None or said.asks_mean():
        yield from _over_tickers(said)


def _sessions(said: Sentence, ticker: str) -> Iterator[Fact]:
    """Rows of the sessions that the words date, and the close before the last one."""
    rows = said.facts.rows.get(ticker, [])
    if not rows:
        return
    chosen = _dated(said, rows)
    for (day, row), (after, _) in pairwise(rows):
        if after in chosen:
            yield from _before(said, ticker, day, row, told=day in chosen)
    ranged = said.has(words.RANGE)
    for day, row in rows:
        if day not in chosen:
            continue
        for name, value in row.items():
            if name == CLOSE or said.names(name):
                yield Fact(name, value, column_unit(name), ticker, "row", day)
            elif ranged and name in {"high", "low"}:
                yield Fact(name, value, column_unit(name), ticker, "unnamed", day)


def _dated(said: Sentence, rows: Sequence[Row]) -> set[date]:
    """The sessions that the words mean; always the last."""
    chosen = {rows[-1][0], *said.days, *([said.told_day] if said.told_day else [])}
    if said.has(words.FIRST):
        chosen.add(rows[0][0])
    return chosen


def _before(
    said: Sentence, ticker: str, day: date, row: Mapping[str, float], *, told: bool
) -> Iterator[Fact]:
    """What the last session is measured from: no price by itself unless "from" says it."""
    for name in (CLOSE, VOLUME):
        if name in row and (name == CLOSE or said.names(name)) and not told:
            yield Fact(name, row[name], column_unit(name), ticker, "before", day)


def _summed(said: Sentence, ticker: str) -> Iterator[Fact]:
    """Extremes and means of the columns of a history."""
    for name in (*PRICES, VOLUME):
        values = [value for _, value in said.facts.column(ticker, name)]
        if len(values) < 2 or (name == VOLUME and not said.names(VOLUME)):
            continue
        if not said.has(words.IN_A_SESSION):
            yield from _extremes(said, ticker, name)
        if said.asks_mean() and (said.names(name) or (name == CLOSE and not said.names(VOLUME))):
            for count in {len(values), *said.numbers}:
                if 2 <= count <= len(values):
                    yield Fact(name, fmean(values[-count:]), column_unit(name), ticker, "mean")


def _extremes(said: Sentence, ticker: str, name: str) -> Iterator[Fact]:
    column = said.facts.column(ticker, name)
    for asked, names, pick in (
        (words.LOWEST, {"low", CLOSE, VOLUME}, min),
        (words.HIGHEST, {"high", CLOSE, VOLUME}, max),
    ):
        if said.has(asked) and name in names:
            day, value = pick(column, key=lambda each: each[1])
            yield Fact(name, value, column_unit(name), ticker, "extreme", day)


def _over_tickers(said: Sentence) -> Iterator[Fact]:
    """One quantity over several tickers: its mean, its extremes."""
    moves = (DAY_CHANGE,) if said.asks_mean() else ()
    for concept in dict.fromkeys((*said.concepts, *moves)):
        having = said.facts.having(concept)
        every = [*having.values()]
        some = [fact for ticker, fact in having.items() if ticker in said.everyone]
        for group in (every, some):
            if len(group) < 2:
                continue
            values = [fact.value for fact in group]
            unit = group[0].unit
            if said.asks_mean():
                yield Fact(concept, fmean(values), unit, None, "mean")
            if said.has(words.SUM):
                yield Fact(concept, sum(values), unit, None, "sum")
            if said.about is not None:
                continue
            if said.has(words.LOWEST):
                yield Fact(concept, min(values), unit, None, "extreme")
            if said.has(words.HIGHEST):
                yield Fact(concept, max(values), unit, None, "extreme")


def column_unit(concept: str) -> str:
    """The unit of a column of a history: money, or number for its volume."""
    return "number" if concept == VOLUME else "money"
