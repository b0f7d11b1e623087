# ruff: noqa: PLR0912  (one way to follow a branch)
"""What follows from two quantities by one step: a difference, a percentage, a ratio, a product.

As in `follows`, the sentence must name what a value is made of. Two steps are never taken.
"""

import re
from collections.abc import Iterator

from libs.quant.grounding import words
from libs.quant.grounding.facts import CLOSE, VOLUME, Fact, Facts
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.follows import Value, mentioned, money_or_count
from libs.quant.grounding.headlines import siblings
from libs.quant.grounding.sentence import Sentence, about_price

TRACED_MAX = 6
"""Traced figures of one sentence that others may follow from."""
_OF = re.compile(r"^\s*(?:is\s|a\s|was\s)?(?:of|on)\s", re.IGNORECASE)
_COMPARED = re.compile(
    r"^\W*(?:or\s[$€£\d.]+\s|(?:a|per) share\s|percentage points\s|points\s|away\s)*"
    r"(?:above|over|below|under|beneath|higher|lower|more|less|cheaper|dearer|on|from|ahead|up on|"
    r"off)\b",
    re.IGNORECASE,
)
_OFF_HIGH = re.compile(r"^\s(?:below|under|off|from) (?:its|the) (?:\S+ )?high\b", re.IGNORECASE)
_IT = re.compile(r"^[\w\s$€£]{1,30}\b(?:it|that|this|them)\b", re.IGNORECASE)
_WORTH = re.compile(
    r"\b(?:worth|value of|holding is|positions? (?:is|are)|invested|in all)\b", re.IGNORECASE
)
_POSITIONS = re.compile(r"\b(?:positions|invested|holdings)\b", re.IGNORECASE)
_PER_SHARE = re.compile(r"\ba share\b|\bper share\b", re.IGNORECASE)


def compared(figure: Figure, said: Sentence) -> Iterator[Value]:
    """Percent or difference against a quantity that is named: "1.8% below its average"."""
    if figure.unit not in {"percent", "money", "points", "number", "times"}:
        return
    right = said.after(figure, 50)
    ticker = next(iter(said.tickers(figure)), None)
    for base, after in _pairs(figure, said, ticker, right):
        yield from _between(base, after, figure)


def _pairs(
    figure: Figure, said: Sentence, ticker: str | None, right: str
) -> Iterator[tuple[Fact, Fact]]:
    facts = said.facts
    if _COMPARED.match(right):
        end = figure.end + len(right)
        bases = [
            m
            for m in said.mentions
            if figure.start <= m.start <= end and m.concepts != (words.OWN,)
        ][:2]
        ahead = [m for m in said.mentions if m.end <= figure.start]
        ours = [*(c for m in ahead[-2:] for c in m.concepts), CLOSE]
        if _IT.match(right):
            bases = ahead[-2:]
        for mention in bases:
            for name in mention.concepts:
                for base in facts.now(ticker, name):
                    for other in dict.fromkeys(ours):
                        if other != name:
                            yield from ((base, after) for after in facts.now(ticker, other)[:1])
        for rival in said.others(figure):
            for concept in dict.fromkeys((*said.linked(figure), CLOSE)):
                pair = (facts.now(rival, concept), facts.now(ticker, concept))
                yield from ((base, after) for base in pair[0][:1] for after in pair[1][:1])
    names = {concept for mention in said.mentions for concept in mention.concepts}
    for base_name, after_name in COMPARABLE:
        if base_name in names and (after_name in names or after_name == CLOSE):
            for base in facts.now(ticker, base_name):
                yield from ((base, after) for after in facts.now(ticker, after_name)[:1])
    if not said.has(words.IN_A_SESSION) and about_price(
        [c for c in said.spoken_of(figure) if c != "quantity"]
    ):
        # A gain that is not said to be of a day may be that of the holding.
        for base in facts.now(ticker, "average_cost"):
            yield from ((base, after) for after in facts.now(ticker, CLOSE)[:1])
    if (
        re.search(r"\bbeats?\b|\bmiss(?:ed)?\b|\bsurprise\b", said.text, re.IGNORECASE)
        or "eps_next" in names
    ):
        for base_name, after_name in (("eps_estimate", "eps_actual"), ("eps_actual", "eps_next")):
            for base in facts.now(ticker, base_name):
                yield from ((base, after) for after in facts.now(ticker, after_name)[:1])


# Quantities that a text may compare without saying "above" or "below": the base comes first.
COMPARABLE = (
    ("average_cost", CLOSE),
    ("sma_200", "sma_50"),
    ("macd_signal", "macd"),
    ("profit_margin_pct", "operating_margin_pct"),
    ("bollinger_lower", "bollinger_upper"),
)


def _between(base: Fact, after: Fact, figure: Figure) -> Iterator[Value]:
    if base.unit != after.unit:
        return
    difference = after.value - base.value
    if figure.unit == "percent" and base.unit != "percent" and base.value:
        yield Value(difference / abs(base.value) * 100, "percent", True)
    elif (figure.unit in {"points", "percent"} and base.unit == "percent") or (
        figure.unit in {"money", "number"} and base.unit != "percent"
    ):
        yield Value(difference, figure.unit, True)


def moved(figure: Figure, said: Sentence) -> Iterator[Value]:
    """A move between two sessions: of a day, since a date or the first session, or over all."""
    concept = VOLUME if mentioned(said, VOLUME) and not mentioned(said, CLOSE) else CLOSE
    off_high = _OFF_HIGH.match(said.after(figure))
    spoken = about_price(said.spoken_of(figure)) or off_high
    if figure.unit not in {"percent", "money", "number"} or not spoken:
        return
    for ticker in said.tickers(figure):
        column = said.facts.column(ticker, concept)
        if len(column) < 2:
            continue
        now = Fact(concept, column[-1][1], money_or_count(concept), ticker, "row")
        starts = []
        if said.has(words.IN_A_SESSION) or said.has(words.PREVIOUS):
            starts.append(column[-2][1])
        if said.has(
            re.compile(
                r"\bsessions\b|\bsince\b|\bfirst\b|\bfrom\b|\bclose to close\b", re.IGNORECASE
            )
        ):
            starts.append(column[0][1])
        for each in said.figures:
            if each.unit == "date" and (day := said.resolve(each)):
                starts += [value for session, value in column if session == day]
        if off_high:
            highs = (said.facts.column(ticker, name) for name in ("high", "close"))
            starts += [max(value for _, value in each) for each in highs if each]
        for start in starts:
            yield from _between(
                Fact(concept, start, money_or_count(concept), ticker, "row"), now, figure
            )
        if said.has(re.compile(r"\bopened\b", re.IGNORECASE)):
            opened = said.facts.column(ticker, "open")[-1][1]
            yield from _between(Fact("open", opened, "money", ticker, "row"), now, figure)


def shares_of(figure: Figure, said: Sentence) -> Iterator[Value]:
    """A percentage or multiple of a named quantity: "1.9% of the close", "6.7 times sales"."""
    if figure.unit not in {"percent", "times", "ratio", "number"}:
        return
    ticker = next(iter(said.tickers(figure)), None)
    right = said.after(figure, 45)
    factor = 100.0 if figure.unit == "percent" else 1.0
    near = [m for m in said.mentions if 0 <= m.start - figure.end <= 40]
    ours = [m for m in said.mentions if m.end <= figure.start]
    tops = [f for m in ours[-3:] for c in m.concepts for f in _facts_of(said.facts, ticker, c)]
    if re.search(r"\bof which\s$", said.before(figure, 10)):
        for top in (
            f for m in near[:1] for c in m.concepts for f in _facts_of(said.facts, ticker, c)
        ):
            yield from (
                Value(top.value / each.value * factor, figure.unit) for each in tops if each.value
            )
    if (
        _OF.match(right)
        or figure.unit in {"ratio", "times"}
        or re.search(r"\byields?\b", said.text)
    ):
        bottoms = [
            f for m in near[:1] for c in m.concepts for f in _facts_of(said.facts, ticker, c)
        ]
        behind = [m for m in said.mentions if m.start >= figure.end]
        if _OF.match(right) and not tops:
            tops = [
                f for m in behind[1:3] for c in m.concepts for f in _facts_of(said.facts, ticker, c)
            ]
        if re.search(r"\byields?\b", said.text):
            bottoms += said.facts.now(ticker, CLOSE)
        for bottom in bottoms:
            for top in (*tops, *said.traced.values()):
                if top.concept != bottom.concept and bottom.value:
                    yield Value(top.value / bottom.value * factor, figure.unit)
    if figure.unit == "number" and said.has(
        re.compile(r"\bprice[-/ ]to[-/ ]sales\b|\bp/s\b", re.IGNORECASE)
    ):
        for top in said.facts.now(ticker, "market_cap"):
            yield from (
                Value(top.value / each.value, "times")
                for each in said.facts.now(ticker, "revenue_ttm")
                if each.value
            )
    if figure.unit in {"times", "ratio"}:
        for mention in near[:1]:
            for concept in mention.concepts:
                for bottom in said.facts.now(ticker, concept):
                    yield from (
                        Value(top.value / bottom.value, "times")
                        for top in said.facts.now(ticker, "market_cap")
                        if bottom.value and concept != "market_cap"
                    )
        yield from _times_another(said)


def _facts_of(facts: Facts, ticker: str | None, concept: str) -> list[Fact]:
    return facts.now(ticker, concept) or facts.now(None, concept)


def _times_another(said: Sentence) -> Iterator[Value]:
    """One quantity of two tickers: "twice that of IBM"."""
    named = list(dict.fromkeys(name.ticker for name in said.named))
    if len(named) < 2:
        return
    concepts = [c for m in said.mentions for c in m.concepts] or [CLOSE]
    if said.has(re.compile(r"\bcosts?\b", re.IGNORECASE)):
        concepts = [CLOSE]
    for concept in dict.fromkeys(concepts):
        tops, bottoms = said.facts.now(named[0], concept), said.facts.now(named[1], concept)
        for top in tops[:1]:
            yield from (
                Value(top.value / each.value, "times") for each in bottoms[:1] if each.value
            )


def products(figure: Figure, said: Sentence) -> Iterator[Value]:
    """What a holding is worth, what is invested, an amount a share, a margin in money."""
    if figure.unit not in {"money", "number"}:
        return
    facts = said.facts
    for ticker in said.tickers(figure):
        held = facts.now(ticker, "quantity")
        prices = facts.now(ticker, CLOSE)
        if held and prices and (said.has(_WORTH) or _POSITIONS.search(said.text)):
            yield Value(held[0].value * prices[0].value, "money")
        if said.has(_PER_SHARE) or said.has(re.compile(r"\beuros a share\b")):
            for top in (*facts.now(ticker, "revenue_ttm"), *facts.now(ticker, "market_cap")):
                yield from (
                    Value(top.value / each.value, "money")
                    for each in facts.now(ticker, "shares_outstanding")
                )
        margins = {
            "profit_margin_pct": r"\bnet\b|\bmargin\b|\bprofit\b",
            "operating_margin_pct": r"\boperating\b",
        }
        for name, cue in margins.items():
            if said.has(re.compile(cue, re.IGNORECASE)) and said.linked(figure) != ("revenue_ttm",):
                for margin in facts.now(ticker, name):
                    yield from (
                        Value(abs(each.value * margin.value / 100), "money")
                        for each in facts.now(ticker, "revenue_ttm")
                    )
    if said.has(_POSITIONS):
        for equity in facts.now(None, "equity"):
            yield from (
                Value(equity.value - cash.value, "money") for cash in facts.now(None, "cash")
            )


def under_the_close(figure: Figure, said: Sentence) -> Iterator[Value]:
    """A level that the sentence derives itself: "one ATR under the close"."""
    match = re.search(
        r"\b(?:one|1) ATR (?P<side>under|below|above|over)\b", said.text, re.IGNORECASE
    )
    if match is None or figure.unit not in {"money", "number"}:
        return
    sign = 1 if match["side"].lower() in {"above", "over"} else -1
    for ticker in said.tickers(figure):
        for close in said.facts.now(ticker, CLOSE)[:1]:
            yield from (
                Value(close.value + sign * atr.value, "money")
                for atr in said.facts.now(ticker, "atr_14")
            )


def among_traced(figure: Figure, said: Sentence) -> Iterator[Value]:
    """What follows from two figures of the same sentence that were traced themselves."""
    facts: list[tuple[Figure | None, Fact]] = []
    facts += [(each, fact) for each, fact in said.traced.items() if each is not figure]
    facts = facts[:TRACED_MAX]
    facts += [(None, fact) for fact in siblings(said)[:TRACED_MAX]]
    ticker = next(iter(said.tickers(figure)), None)
    if said.is_told(figure):
        return
    if said.has(
        re.compile(
            r"\bupside|below the price|above the price|market value|revenue|\bprice\b",
            re.IGNORECASE,
        )
    ):
        for name in (CLOSE, "market_cap", "revenue_ttm", "eps_ttm"):
            facts += [(None, fact) for fact in said.facts.now(ticker, name)[:1]]
    for first, one in facts:
        for second, two in facts:
            if one is two or (first is None and second is None):
                continue
            yield from _of_two(figure, said, one, two, first)


def _of_two(
    figure: Figure, said: Sentence, one: Fact, two: Fact, first: Figure | None
) -> Iterator[Value]:
    of_what = _OF.match(said.after(figure, 20))
    if figure.unit == "percent" and one.unit == two.unit and one.value and two.value:
        if of_what:
            yield Value(one.value / two.value * 100, "percent")
        elif _is_base(one, two, first, said):
            yield Value((two.value - one.value) / abs(one.value) * 100, "percent", True)
    elif figure.unit in {"money", "number"} and one.unit == two.unit != "percent":
        if figure.unit == one.unit and _is_base(one, two, first, said):
            yield Value(two.value - one.value, figure.unit, True)
    elif figure.unit in {"money", "number"} and "percent" in {one.unit, two.unit}:
        yield Value(abs(one.value * two.value / 100), figure.unit)
    if {one.unit, two.unit} == {"money", "number"}:
        money, number = (one, two) if one.unit == "money" else (two, one)
        if number.value and figure.unit == "money":
            yield Value(money.value * number.value, "money")
            yield Value(money.value / number.value, "money")
    if figure.unit in {"times", "ratio"} and two.value and one.unit == two.unit:
        yield Value(one.value / two.value, "times")


def _is_base(one: Fact, two: Fact, first: Figure | None, said: Sentence) -> bool:
    """The earlier figure is the base, and the price is where a target is compared with it."""
    if (one.concept == CLOSE and two.concept == "headline") or (one.session and not two.session):
        return True
    if first is None:
        return two.concept == "headline"
    origin = re.search(r"\bfrom\s$", said.before(first, 8), re.IGNORECASE)
    others = [each for each, fact in said.traced.items() if fact is two]
    if origin:
        return True
    return all(
        not re.search(r"\bfrom\s$", said.before(each, 8), re.IGNORECASE)
        and each.start > first.start
        for each in others
    )
