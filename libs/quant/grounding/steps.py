# ruff: noqa: PLR0911  (one way to be the base a line)
"""One step from two quantities: a difference, a change, a share, a ratio, a product, a mean.

A step is offered from quantities that the sentence names or gives as figures; words of a change are
not asked for, but none may speak against it. Two steps are never taken.
"""

import re
from collections.abc import Iterator
from itertools import permutations

from libs.quant.grounding import words
from libs.quant.grounding.candidates import MOVED_TO, REFERENCES, Candidate, is_one_of, named
from libs.quant.grounding.compared import HELD_AGAINST
from libs.quant.grounding.facts import CLOSE, DAY_CHANGE, LEVELS, VOLUME, Fact
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.headlines import is_earlier, siblings
from libs.quant.grounding.sentence import Sentence

STARTS_MAX = 40
"""Quantities of one sentence that are put together in pairs."""
ACCOUNT = ("cash", "equity", "invested", "position_value", "order_value")
SHARED_OF = frozenset({CLOSE, "equity", "market_cap", "revenue_ttm"})
"""What an amount is a share of, where a percentage stands beside it and no words say of what."""
_BARE = re.compile(r"^\s(?:lower|higher|below|above|under)\s?(?:[,.;)]|$)", re.IGNORECASE)
"""Behind a level that is given, measured from where the price stands: "at 88.93, 1.1% lower"."""
_SINCE = re.compile(r"^\ssince\b", re.IGNORECASE)
FAR = 100.0
"""An amount of a headline is not held against one that differs by this factor."""
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


def derived(figure: Figure, said: Sentence) -> Iterator[Candidate]:
    """One step from two quantities that the sentence names or has said before."""
    tight, owners = said.tight(figure), said.tickers(figure)
    if figure.unit == "money" and MOVED_TO.search(said.before(figure)):
        # Where a move ends stands in the evidence.
        return
    told = (
        tight
        and tight != (words.OTHER,)
        and not (said.is_compared(figure) and not HELD_AGAINST.match(said.after(figure, 10)))
    )
    distant = said.is_compared(figure) or said.names("atr_14")
    if tight == (words.OTHER,) and figure.unit == "money" and not distant:
        # "a target of $95" stands in a headline, or in nothing.
        return
    if words.PER_SHARE.search(said.before(figure, 16)):
        # "sales per share are $61" are made of the sales.
        told = False
    held = tight != ("order_value",) and said.is_held(figure)
    moved = DAY_CHANGE in tight
    if told and not held and not moved and "shares_outstanding" not in tight:
        # A figure beside the name of a quantity is that quantity, and nothing made of it.
        return
    rival, measured = said.held_against(figure)
    for top, base in permutations(_parts(figure, said), 2):
        if owners and not {top.ticker, base.ticker} & {*owners, None}:
            continue
        if rival and not (base.ticker == rival and top.concept in measured):
            continue
        if top.ticker != base.ticker and top.concept in tight and not said.is_compared(figure):
            # "65 shares" are shares of one, and no difference of two.
            continue
        if _may_meet(top, base, said):
            yield from _step(top, base, figure, said)


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
    ranged, mean = said.has(words.RANGE), words.MEAN.search(said.around(figure))
    facts = [
        each
        for each in facts
        if (each.place != "unnamed" or ranged) and (each.place != "mean" or mean)
    ]
    once = {(each.concept, each.value, each.ticker, each.session): each for each in facts}
    here = {CLOSE, *(name for mention in said.mentions for name in mention.concepts)}
    return sorted(once.values(), key=lambda each: each.concept not in here)[:STARTS_MAX]


def _implied(figure: Figure, said: Sentence) -> Iterator[str]:
    """Quantities that a step needs and that texts leave out."""
    if not said.has(words.IN_A_SESSION):
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
    if None in {top.ticker, base.ticker} and {top.place, base.place} & {"mean", "extreme"}:
        # What is summed up over tickers is held against one of them.
        return top.concept == base.concept
    if top.concept == base.concept == "headline" and top.place != base.place:
        return top in told and base in told
    if "before" in {top.place, base.place}:
        other = base if top.place == "before" else top
        alike = top.concept == base.concept and top.ticker == base.ticker
        return (
            alike and other.place not in {"before", "extreme", "mean"} and _follows(top, base, said)
        )
    if {top.concept, base.concept} <= LEVELS and not _are_levels(top, base, said):
        return False
    if top.ticker != base.ticker and None not in {top.ticker, base.ticker}:
        # Of two tickers the same quantity only, and the one that is spoken of.
        return top.concept == base.concept and (
            said.names(top.concept)
            or bool({top, base} & {*told})
            or (top.concept == CLOSE and {top.ticker, base.ticker} <= {*said.everyone, said.about})
        )
    if top.concept == base.concept in {"high", "low"} and not {top, base} & {*told}:
        # A distance is the price's, where the sentence gives neither of two highs.
        return False
    if top.concept == base.concept:
        return top.value != base.value and top.place != "unnamed"
    return True


def _follows(top: Fact, base: Fact, said: Sentence) -> bool:
    """Whether one is of the session right after the other's; without a day it is the last."""
    days = [day for day, _ in said.facts.rows.get(top.ticker or "", [])]
    places = sorted(days.index(each.session or days[-1]) for each in (top, base))
    return places[1] - places[0] == 1


def _are_levels(top: Fact, base: Fact, said: Sentence) -> bool:
    """Whether two levels are held against each other: a band's edges, or one is spoken of first."""
    if top.ticker != base.ticker:
        return False
    if top.concept.startswith("bollinger") and base.concept.startswith("bollinger"):
        return True
    alone = [each for each in said.mentions if len(each.concepts) == 1]
    subjects = [each for each in alone if not words.BEHIND.search(said.text[: each.start])]
    return any({top.concept, base.concept} & {*each.concepts} for each in subjects)


def _step(top: Fact, base: Fact, figure: Figure, said: Sentence) -> Iterator[Candidate]:
    parts = (top, base)
    if _SINCE.match(said.after(figure, 10)) and top.concept in {"high", "low", "open"}:
        # "lost 8.9% since February 20": until now.
        return
    share = (
        words.OF.match(said.after(figure, 12))
        or said.restates(figure)
        or kind(top) == kind(base) == "account"
    )
    # "11.4% of the stake" is a share or a loss, where it does not say of what.
    unnamed = words.OF.match(said.after(figure, 12)) and not said.compared_with(figure)
    both = figure.unit == "percent" and _are_told(parts, said) and not said.direction(figure)
    part = top.concept in said.beside(figure) and base.concept in SHARED_OF - {top.concept}
    if top.unit == base.unit and base.value:
        if figure.unit == "percent" and (share or part or both) and _is_whole(base, figure, said):
            yield Candidate(top.value / base.value * 100, "percent", parts)
        elif _is_ratio(top, base) and (
            figure.unit in {"times", "ratio"}
            or (figure.unit == "number" and (share or words.RATIO.search(said.clause(figure))))
        ):
            yield Candidate(top.value / base.value, "times", parts)
    if not base.value:
        return
    alike = kind(top) == kind(base) or (
        top.unit == "money"
        and "headline" in {top.concept, base.concept}
        and 1 / FAR < abs(top.value / base.value) < FAR
    )
    if alike and top.unit == base.unit:
        if is_base(base, top, figure, said):
            change = top.value - base.value
            if (
                figure.unit in {"percent", "ratio"}
                and top.unit != "percent"
                and (not share or unnamed)
            ):
                yield Candidate(change / abs(base.value) * 100, "percent", parts, signed=True)
            if _is_amount(figure, top.unit) and (top.unit != "percent" or said.changes(figure)):
                yield Candidate(change, top.unit, parts, signed=True)
        if _is_amount(figure, top.unit) and words.SUM.search(said.clause(figure)):
            yield Candidate(top.value + base.value, figure.unit, parts)
    yield from _product(top, base, figure, said)


def _are_told(parts: tuple[Fact, ...], said: Sentence) -> bool:
    """Whether the sentence gives all of some quantities."""
    told = {(fact.concept, fact.value) for fact in said.traced.values()}
    return {(each.concept, each.value) for each in parts} <= told


def _is_whole(base: Fact, figure: Figure, said: Sentence) -> bool:
    """Whether a share may be of this: of what follows "of", where that has a name."""
    whole = said.compared_with(figure) if words.OF.match(said.after(figure, 12)) else ()
    return not whole or is_one_of(base, whole)


def _is_ratio(top: Fact, base: Fact) -> bool:
    """Whether one quantity is so many times another: of one kind, or a known multiple."""
    pair = {top.concept, base.concept}
    return (
        kind(top) == kind(base)
        or "headline" in pair
        or (top.concept, base.concept) == ("market_cap", "revenue_ttm")
        or {kind(top), kind(base)} == {"price", "earnings"}
    )


def kind(fact: Fact) -> str:
    """What a quantity is like: only like quantities are added, compared and subtracted."""
    return LIKE.get(fact.concept, "price" if fact.unit == "money" else fact.unit)


def _is_amount(figure: Figure, unit: str) -> bool:
    if unit == "percent":
        return figure.unit == "points" or figure.text.endswith(("bps", "points"))
    if figure.unit == "points":
        return unit in {"money", "number"}
    return figure.unit in {"money", "number"} and unit in {"money", "number"}


def _product(top: Fact, base: Fact, figure: Figure, said: Sentence) -> Iterator[Candidate]:
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
        if top.concept in {"market_cap", "revenue_ttm", "headline"}:
            if words.PER_SHARE.search(said.before(figure, 20) + said.after(figure, 20)):
                yield Candidate(top.value / base.value, "money", parts)
        elif top.concept == _price_of(base, figure, said):
            yield Candidate(top.value * base.value, "money", parts)
    if (top.concept, base.concept) == (CLOSE, "atr_14"):
        told = said.direction(figure)
        yield from (
            Candidate(top.value + sign * base.value, "money", parts)
            for sign in (-1, 1)
            if sign == (told or sign)
        )


def _price_of(held: Fact, figure: Figure, said: Sentence) -> str:
    """What shares are multiplied by: what was paid where the words speak of it, else the price."""
    paid = held.concept == "quantity" and "position_cost" in said.sought(figure)
    return "average_cost" if paid else CLOSE


def is_base(base: Fact, top: Fact, figure: Figure, said: Sentence) -> bool:
    """Whether a change is of `base`: what follows "above", else what is earlier or a reference."""
    compared, rival = said.compared_with(figure), said.rival(figure)
    start, end = said.from_to
    told = not compared
    if start and (start.value in {base.value, top.value} or (told and kind(start) == kind(base))):
        reached = top.concept in {start.concept, CLOSE} or _is_goal(top, figure, said)
        reached = reached if end is None else top.value == end.value
        return start.value == base.value and reached
    if top.ticker != base.ticker and rival:
        return base.ticker == rival
    distance = _is_amount(figure, top.unit) and words.GAP.search(said.clause(figure))
    if (distance and not compared) or words.EITHER_BASE.search(said.clause(figure)):
        return True
    if not compared:
        stands = base.concept == CLOSE != top.concept and _BARE.match(said.after(figure, 20))
        # Beyond what has no name here lies an amount, whichever of the two is measured from.
        beyond = _is_amount(figure, top.unit) and words.BEYOND.match(said.after(figure))
        return bool(stands or beyond) or earlier(base, top, said)
    if not (is_one_of(base, compared) or is_one_of(top, compared)):
        return words.OTHER in compared and "headline" in {base.concept, top.concept}
    if is_one_of(top, compared):
        return is_one_of(base, compared) and earlier(base, top, said)
    return True


def _is_goal(top: Fact, figure: Figure, said: Sentence) -> bool:
    """Whether a way leads to a level: "from $28.21 it is a $0.51 drop to the lower band"."""
    behind = [each for each in said.mentions if each.start >= figure.end][:1]
    return any(top.concept in LEVELS & {*each.concepts} for each in behind)


def earlier(base: Fact, top: Fact, said: Sentence) -> bool:
    """Whether one quantity comes before another in time, or is what the other is measured from."""
    if base.ticker == top.ticker and base.session and top.session and base.session != top.session:
        return base.session < top.session
    if base.concept != top.concept:
        return base.concept in REFERENCES or top.concept not in REFERENCES
    if base.ticker != top.ticker:
        return True
    if base.concept == "headline":
        return is_earlier(base, top, said)
    return base.session is not None and top.session is None
