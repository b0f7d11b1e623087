"""What a sentence may mean by a figure: quantities that it names, and one step from two of them.

A candidate is offered only where the words name all that it is made of. The price needs no name.
Two steps are never taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise, permutations
from statistics import fmean

from libs.quant.grounding import words
from libs.quant.grounding.facts import CLOSE, DAY_CHANGE, PRICES, VOLUME, Fact
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.headlines import siblings
from libs.quant.grounding.sentence import Sentence

PARTS_MAX = 40
"""Quantities of one sentence that are put together in pairs."""
Row = tuple[date, dict[str, float]]
REFERENCES = frozenset(
    {
        *("average_cost", "sma_20", "sma_50", "sma_200", "ema_12", "ema_26", "bollinger_upper"),
        *("bollinger_lower", "eps_estimate", "macd_signal", "equity", "revenue_ttm"),
        *("high", "low", "open"),
    }
)
"""What a price or result is measured from, where the words do not say which is the base."""
IMPLIED = frozenset({CLOSE, DAY_CHANGE, "market_cap"})
"""What a text may give without its name: "AAPL rose 2.6% to $584", "a $3 billion company"."""
MARKET_CAP_MIN = 1e7
ACCOUNT = ("cash", "equity", "invested", "position_value", "order_value")
WHOLES = frozenset({CLOSE, "equity", "market_cap", "revenue_ttm"})
"""What an amount is a share of, where a percentage stands beside it and no words say of what."""
HELD = frozenset({"quantity", "order_quantity", "shares_outstanding"})


LIKE = {
    **dict.fromkeys(("eps_ttm", "eps_next", "eps_estimate", "eps_actual"), "earnings"),
    **dict.fromkeys(("macd", "macd_signal", "macd_histogram"), "macd"),
    **dict.fromkeys(ACCOUNT, "account"),
    **dict.fromkeys(("profit_margin_pct", "operating_margin_pct"), "margin"),
    **dict.fromkeys(("momentum_1m_pct", "momentum_3m_pct", DAY_CHANGE), "move"),
    **{name: name for name in ("market_cap", "revenue_ttm", "atr_14", "volatility_3m_pct")},
    **{name: name for name in (VOLUME, "rsi_14", "pe_ratio", "debt_to_equity", "quantity")},
}
"""Quantities that can be compared; those of money that are not here are prices."""


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
    if tight == (words.OTHER,):
        return
    owners = said.tickers(figure) or (None,)
    offered = [*named(said, owners)]
    if figure.is_precise and not tight and not said.near(figure):
        # A percentage that has no name is a move of the day, or made of two quantities.
        offered += [
            fact
            for owner in (*owners, None)
            for fact in said.facts.of(owner)
            if fact.unit != "percent" or fact.concept == DAY_CHANGE
        ]
        offered += [fact for owner in owners for fact in _volumes(said, owner)]
    compared = REFERENCES & {*said.compared_with(figure)}
    if compared and not tight and (figure.unit == "percent" or words.BEYOND.match(said.after(figure))):
        # "19.9% under the 50-day" is measured, not stated.
        return
    if figure.unit == "money" and not said.sought(figure) and said.is_owned(figure):
        # "GOOG $332" is its price.
        offered = [fact for fact in offered if fact.concept in PRICES]
    for fact in offered:
        if tight and not _is_one_of(fact, tight):
            continue
        if not tight and _needs_name(fact, figure, said):
            continue
        if fact.ticker is None and fact.place == "extreme" and said.is_owned(figure):
            continue
        if fact.place == "before" and not said.starts(figure):
            continue
        if not _at_that_time(fact, figure, said):
            continue
        signed = fact.concept == DAY_CHANGE or fact.concept.startswith("momentum")
        yield Candidate(fact.value, fact.unit, (fact,), signed)


def _is_one_of(fact: Fact, tight: Sequence[str]) -> bool:
    """Whether a quantity is what is named; the low of a period may be that of its closes."""
    return fact.concept in tight or (fact.place == "extreme" and bool({"high", "low"} & {*tight}))


def _needs_name(fact: Fact, figure: Figure, said: Sentence) -> bool:
    """Whether a quantity without a name beside the figure is too bold a reading."""
    if fact.concept == CLOSE:
        return figure.unit not in {"money", "number"} or (
            figure.unit == "number" and figure.step >= 1 and not figure.is_precise
        )
    if fact.concept == "market_cap" and not said.names("market_cap"):
        return bool(said.sought(figure)) or figure.value < MARKET_CAP_MIN
    if fact.concept == DAY_CHANGE and not said.names(DAY_CHANGE):
        pointed = said.direction(figure) or figure.signed or not said.sought(figure)
        return not pointed or (said.has(words.NOT_NOW) and not said.has(words.IN_A_SESSION))
    return False


def _at_that_time(fact: Fact, figure: Figure, said: Sentence) -> bool:
    """A price of a session belongs to figures that the words date so, and only to them."""
    if said.asks_mean(figure) and not (
        fact.concept in said.tight(figure) and fact.unit != "number"
    ):
        return fact.place == "mean"
    if fact.place in {"extreme", "unnamed"} and fact.concept in {"high", "low"}:
        if said.sought(figure) == (CLOSE,) and words.CLOSES.search(said.before(figure)):
            return False
    days = said.sessions(figure)
    if fact.concept not in {*PRICES, VOLUME}:
        # What only as_of has is no figure of an earlier session.
        return not days or None in days or fact.unit != "money"
    return fact.place in {"mean", "extreme"} or not days or fact.session in days


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
    if said.about is None or len({*said.everyone}) > 1 or said.has(words.GROUP):
        yield from _over_tickers(said)


def _volumes(said: Sentence, ticker: str | None) -> Iterator[Fact]:
    """The volume of every session: unlike a price, an old one is not taken for today's."""
    for day, value in said.facts.column(ticker, VOLUME):
        yield Fact(VOLUME, value, "number", ticker, "unnamed", day)


def _sessions(said: Sentence, ticker: str) -> Iterator[Fact]:
    """Rows of the sessions that the words date, and the close before the last one."""
    rows = said.facts.rows.get(ticker, [])
    if not rows:
        return
    chosen = _dated(said, rows)
    for (day, row), (after, _) in pairwise(rows):
        if after in chosen:
            yield from _before(said, ticker, day, row, told=day in chosen)
    ranged = said.has(words.RANGE) or bool(said.days)
    for day, row in rows:
        if day not in chosen:
            continue
        for name, value in row.items():
            if name == CLOSE or said.names(name):
                yield Fact(name, value, _unit(name), ticker, "row", day)
            elif ranged and name in {"high", "low"}:
                yield Fact(name, value, _unit(name), ticker, "unnamed", day)


def _dated(said: Sentence, rows: Sequence[Row]) -> set[date]:
    """The sessions that the words mean; always the last."""
    chosen = {rows[-1][0], *said.days}
    if said.has(words.PREVIOUS):
        chosen |= {day for (day, _), (after, _) in pairwise(rows) if after in chosen}
    if said.has(words.FIRST):
        chosen.add(rows[0][0])
    if said.has(words.LISTED):
        chosen |= {day for day, _ in rows}
    elif said.has(words.LAST_FEW):
        counts = {count for each in said.numbers for count in (each, each + 1)}
        chosen |= {rows[-count][0] for count in counts if count <= len(rows)}
    return chosen


def _before(
    said: Sentence, ticker: str, day: date, row: Mapping[str, float], *, told: bool
) -> Iterator[Fact]:
    """What the last session is measured from: no price by itself unless "from" says it."""
    for name in (CLOSE, VOLUME):
        if name in row and (name == CLOSE or said.names(name)) and not told:
            yield Fact(name, row[name], _unit(name), ticker, "before", day)


def _summed(said: Sentence, ticker: str) -> Iterator[Fact]:
    """Extremes and means of the columns of a history."""
    for name in (*PRICES, VOLUME):
        values = [value for _, value in said.facts.column(ticker, name)]
        if len(values) < 2 or (name == VOLUME and not said.names(VOLUME)):
            continue
        if not said.has(words.IN_A_SESSION):
            yield from _extremes(said, ticker, name)
        if said.asks_mean() and (name == CLOSE or said.names(name)):
            for count in {len(values), *said.numbers}:
                if 2 <= count <= len(values):
                    yield Fact(name, fmean(values[-count:]), _unit(name), ticker, "mean")


def _extremes(said: Sentence, ticker: str, name: str) -> Iterator[Fact]:
    column = said.facts.column(ticker, name)
    for asked, names, pick in (
        (words.LOWEST, {"low", CLOSE, VOLUME}, min),
        (words.HIGHEST, {"high", CLOSE, VOLUME}, max),
    ):
        if said.has(asked) and name in names:
            day, value = pick(column, key=lambda each: each[1])
            yield Fact(name, value, _unit(name), ticker, "extreme", day)


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
            if said.about is not None:
                continue
            if said.has(words.LOWEST):
                yield Fact(concept, min(values), unit, None, "extreme")
            if said.has(words.HIGHEST):
                yield Fact(concept, max(values), unit, None, "extreme")


def _unit(concept: str) -> str:
    return "number" if concept == VOLUME else "money"


# --- one step ---


def derived(figure: Figure, said: Sentence) -> Iterator[Candidate]:
    """One step from two quantities that the sentence names or has said before."""
    tight, owners = said.tight(figure), said.tickers(figure)
    yield from _listed_mean(figure, said)
    told = tight and tight != (words.OTHER,) and not said.is_compared(figure)
    if told and not said.is_held(figure) and "shares_outstanding" not in tight:
        # A figure beside the name of a quantity is that quantity, and nothing made of it.
        return
    for top, base in permutations(_parts(figure, said), 2):
        if owners and top.ticker == base.ticker and top.ticker not in (*owners, None):
            continue
        if _may_meet(top, base, said):
            yield from _step(top, base, figure, said)


def _listed_mean(figure: Figure, said: Sentence) -> Iterator[Candidate]:
    """The mean of the figures that were just given, where the words ask for one."""
    if not said.asks_mean():
        return
    given = [
        *said.recalled,
        *(fact for each, fact in said.traced.items() if each.end <= figure.start),
    ]
    for concept in {fact.concept for fact in given} - {"headline"}:
        some = {fact.ticker: fact for fact in given if fact.concept == concept}
        if len(some) > 1:
            mean = fmean(fact.value for fact in some.values())
            yield Candidate(mean, given[0].unit, tuple(some.values()), signed=True)


def _parts(figure: Figure, said: Sentence) -> list[Fact]:
    """What a step may start from, each once."""
    facts = [fact for other, fact in said.traced.items() if other is not figure]
    facts += [*siblings(said), *said.recalled]
    facts += [
        fact
        for fact in named(said, said.everyone)
        if fact.concept != DAY_CHANGE or said.names(DAY_CHANGE)
    ]
    for ticker in (*said.everyone, None):
        facts += [fact for name in _implied(figure, said) for fact in said.facts.now(ticker, name)]
    # What is said of a session's range without its name is not put together with others.
    facts = [each for each in facts if each.place != "unnamed" or said.has(words.RANGE)]
    once = {(each.concept, each.value, each.ticker, each.session): each for each in facts}
    here = {CLOSE, *(name for mention in said.mentions for name in mention.concepts)}
    return sorted(once.values(), key=lambda each: each.concept not in here)[:PARTS_MAX]


def _implied(figure: Figure, said: Sentence) -> Iterator[str]:
    """Quantities that a step needs and that texts leave out."""
    if not said.has(words.IN_A_SESSION) and not said.has(words.NOT_NOW):
        yield "average_cost"
    if figure.unit in {"times", "ratio", "percent"} or said.names("revenue_ttm"):
        yield "market_cap"
        yield from ("equity", "position_value")
    if said.has(words.PER_SHARE):
        yield "shares_outstanding"
    if said.has(words.SURPRISE):
        yield from ("eps_estimate", "eps_actual")


def _may_meet(top: Fact, base: Fact, said: Sentence) -> bool:
    told = said.traced.values()
    if top.concept == base.concept == "headline" and top.place != base.place:
        return top in told and base in told
    if "before" in {top.place, base.place}:
        return top.concept == base.concept and top.ticker == base.ticker
    if top.ticker != base.ticker and None not in {top.ticker, base.ticker}:
        # Of two tickers the same quantity only, and the one that is spoken of.
        return top.concept == base.concept and (said.names(top.concept) or bool({top, base} & {*told}))
    return top.value != base.value


def _step(top: Fact, base: Fact, figure: Figure, said: Sentence) -> Iterator[Candidate]:
    parts = (top, base)
    share = words.OF.match(said.after(figure, 12)) or _kind(top) == _kind(base) == "account"
    part = top.concept in said.beside(figure) and base.concept in WHOLES - {top.concept}
    if top.unit == base.unit:
        if figure.unit == "percent" and (share or part):
            yield Candidate(top.value / base.value * 100, "percent", parts)
        elif figure.unit in {"times", "ratio"} or (
            figure.unit == "number" and (share or said.has(words.RATIO))
        ):
            yield Candidate(top.value / base.value, "times", parts)
    if not base.value:
        return
    alike = _kind(top) == _kind(base) or (
        top.unit == "money" and "headline" in {top.concept, base.concept}
    )
    if alike and top.unit == base.unit:
        if is_base(base, top, figure, said):
            change = top.value - base.value
            if figure.unit in {"percent", "ratio"} and top.unit != "percent" and not share:
                yield Candidate(change / abs(base.value) * 100, "percent", parts, signed=True)
            if _is_amount(figure, top.unit) and (top.unit != "percent" or said.changes(figure)):
                yield Candidate(change, top.unit, parts, signed=True)
        if _is_amount(figure, top.unit) and said.has(words.SUM):
            yield Candidate(top.value + base.value, figure.unit, parts)
    yield from _product(top, base, figure)


def _kind(fact: Fact) -> str:
    """What a quantity is like: only like quantities are added, compared and subtracted."""
    return LIKE.get(fact.concept, "price" if fact.unit == "money" else fact.unit)


def _is_amount(figure: Figure, unit: str) -> bool:
    if unit == "percent":
        return figure.unit in {"percent", "points"}
    if figure.unit == "points":
        return unit == "number"
    return figure.unit in {"money", "number"} and unit in {"money", "number"}


def _product(top: Fact, base: Fact, figure: Figure) -> Iterator[Candidate]:
    parts = (top, base)
    if figure.unit not in {"money", "number"}:
        return
    if top.concept == base.concept == "headline" and top.place == base.place:
        if base.unit == "percent":
            yield Candidate(top.value * base.value / 100, top.unit, parts)
        elif top.unit == "money" and base.unit == "number" and base.value:
            yield Candidate(top.value / base.value, "money", parts)
    if base.concept == CLOSE and top.unit == "money" and top.value > base.value:
        yield Candidate(top.value / base.value, "shares", parts)
    if top.concept == "revenue_ttm" and base.concept.endswith("margin_pct"):
        yield Candidate(abs(top.value * base.value / 100), "money", parts)
    if base.concept in HELD and top.unit == "money" and base.value:
        if top.concept in {"market_cap", "revenue_ttm"}:
            yield Candidate(top.value / base.value, "money", parts)
        else:
            yield Candidate(top.value * base.value, "money", parts)
    if {top.concept, base.concept} == {CLOSE, "atr_14"} and top.concept == CLOSE:
        yield Candidate(top.value - base.value, "money", parts)
        yield Candidate(top.value + base.value, "money", parts)


def is_base(base: Fact, top: Fact, figure: Figure, said: Sentence) -> bool:
    """Whether a change is of `base`: what follows "above", else what is earlier or a reference."""
    start, end = said.from_to
    if start is not None and start.value in {base.value, top.value}:
        return start.value == base.value and (end is None or end.value == top.value)
    if said.has(words.EITHER_BASE) or (
        top.concept in said.beside(figure) and base.concept == CLOSE
    ):
        return True
    compared = said.compared_with(figure)
    if not compared:
        return _earlier(base, top, said)
    if not (_is_one_of(base, compared) or _is_one_of(top, compared)):
        return "headline" in {base.concept, top.concept}
    if _is_one_of(top, compared):
        return _is_one_of(base, compared) and _earlier(base, top, said)
    return True


def _earlier(base: Fact, top: Fact, said: Sentence) -> bool:
    """Whether one quantity comes before another in time, or is what the other is measured from."""
    if base.concept != top.concept:
        return base.concept in REFERENCES or top.concept not in REFERENCES
    if base.ticker != top.ticker:
        return True
    if base.concept == "headline":
        return said.earlier_in_headline(base, top)
    if base.session and top.session and base.session != top.session:
        return base.session < top.session
    if {base.place, top.place} & {"mean", "extreme"}:
        return base.place in {"mean", "extreme"}
    return base.session is not None and top.session is None
