# ruff: noqa: PLR0912  (one way to follow a branch)
"""What the evidence says of a quantity itself: its value, its extremes, its mean.

A rule offers a value only where the sentence names the quantity, so that an equal number elsewhere
grounds nothing.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from statistics import fmean

from libs.quant.grounding import words
from libs.quant.grounding.facts import CLOSE, DAY_CHANGE, VOLUME, Fact
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.sentence import Sentence, about_price

OHLC = ("close", "open", "high", "low")
_HIGHEST = re.compile(
    r"\b(?:high|highs|highest|peak\w*|most|largest|ranges?|runs?|between|to|up to)\b", re.IGNORECASE
)
_LOWEST = re.compile(
    r"\b(?:low|lows|lowest|least|smallest|ranges?|runs?|between|from)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Value:
    """A value that the evidence gives for a figure. `signed`: its sign must be said in words."""

    value: float
    unit: str
    signed: bool = False
    fact: Fact | None = None


Rule = Callable[[Figure, Sentence], Iterator[Value]]


def stated(figure: Figure, said: Sentence) -> Iterator[Value]:
    """A quantity as it stands in the evidence, now or on the session that is named."""
    concepts = _concepts(figure, said)
    session = said.session(figure)
    for concept in concepts:
        whole = concept in {"cash", "equity"}
        for ticker in (None,) if whole else said.tickers(figure) or (None,):
            yield from _at(ticker, concept, session, said, figure)


def _concepts(figure: Figure, said: Sentence) -> tuple[str, ...]:
    linked = said.linked(figure)
    if linked[:1] == (CLOSE,) or (not linked and figure.unit == "money"):
        held = "quantity" in said.spoken_of(figure) and re.search(
            r"\bat\s$", said.before(figure, 4)
        )
        return (*linked, CLOSE, *(("average_cost",) if held else ()))
    if linked and not (linked == (words.OTHER,) and figure.unit == "times"):
        return linked
    if figure.unit == "percent":
        move = about_price(said.spoken_of(figure)) and not said.has(words.NOT_NOW)
        return (DAY_CHANGE,) if move and said.direction(figure) else ()
    if figure.unit == "money":
        return (CLOSE,)
    if figure.unit == "number" and figure.step >= 1 and said.has(re.compile(r"\bshares\b")):
        return (VOLUME, "quantity")
    return (CLOSE,) if figure.unit == "number" and figure.step < 1 and not said.mentions else ()


def _at(
    ticker: str | None, concept: str, session: date | None, said: Sentence, figure: Figure
) -> Iterator[Value]:
    facts = said.facts
    rows = facts.rows.get(ticker or "", [])
    if session is not None and rows and concept in {*OHLC, VOLUME}:
        row = facts.row(ticker, session)
        if row:
            if concept in row:
                yield _value(
                    Fact(concept, row[concept], money_or_count(concept), ticker, "row", session)
                )
            if concept == CLOSE and not said.linked(figure):
                for name in ("high", "low"):
                    yield _value(Fact(name, row[name], "money", ticker, "row", session))
            return
    for fact in facts.now(ticker, concept):
        yield _value(fact)
    if not rows or concept not in {*OHLC, VOLUME}:
        return
    picked = []
    clause = said.before(figure, 30) + said.after(figure, 30)
    if words.PREVIOUS.search(clause) and len(rows) > 1:
        picked.append(rows[-2])
    if words.FIRST.search(said.text):
        picked.append(rows[0])
    if concept == "open" and not picked:
        picked.append(rows[-1])
    for day, row in picked:
        if concept in row:
            yield _value(Fact(concept, row[concept], money_or_count(concept), ticker, "row", day))


def money_or_count(concept: str) -> str:
    """The unit of a column of a history."""
    return "number" if concept == VOLUME else "money"


def _value(fact: Fact) -> Value:
    signed = fact.concept == DAY_CHANGE or fact.concept.startswith("momentum")
    return Value(fact.value, fact.unit, signed, fact)


def extremes(figure: Figure, said: Sentence) -> Iterator[Value]:
    """The highest or lowest of a column, of a session, or over several tickers."""
    concepts = set(said.linked(figure)) or {CLOSE}
    text = said.text
    columns = concepts & {*OHLC, VOLUME}
    if concepts & {"low", "high"} and mentioned(said, VOLUME) and figure.unit == "number":
        columns = {VOLUME}
    for ticker in said.tickers(figure):
        for name in columns:
            values = [value for _, value in said.facts.column(ticker, name)]
            if values and (_LOWEST.search(text) or name == "low"):
                yield Value(min(values), money_or_count(name))
            if values and (_HIGHEST.search(text) or name == "high"):
                yield Value(max(values), money_or_count(name))
        rows = said.facts.rows.get(ticker, [])
        ranged = re.search(
            r"\brange\b|\bbetween\b|\b(?:after|with) a (?:high|low)\b", text, re.IGNORECASE
        )
        if rows and (ranged or words.IN_A_SESSION.search(text)) and not mentioned(said, "bars"):
            for name in (
                ("low", "high") if not concepts & {"low", "high"} else concepts & {"low", "high"}
            ):
                if name in rows[-1][1]:
                    yield Value(rows[-1][1][name], "money")
    if said.about is None or not said.tickers(figure):
        for name in concepts - columns:
            values = [fact.value for fact in said.facts.having(name).values()]
            if len(values) > 1 and said.tickers(figure) == ():
                unit = next(iter(said.facts.having(name).values())).unit
                if _LOWEST.search(text):
                    yield Value(min(values), unit)
                if _HIGHEST.search(text):
                    yield Value(max(values), unit)


def asks_mean(said: Sentence, figure: Figure | None = None) -> bool:
    """Whether words ask for a mean, other than those that name a moving average or a cost.

    With a figure: the words right before it.
    """
    text = said.text
    for mention in said.mentions:
        text = text[: mention.start] + "#" * (mention.end - mention.start) + text[mention.end :]
    if figure is not None:
        ahead = [each.end for each in said.figures if each.end <= figure.start]
        text = text[ahead[-1] if ahead else 0 : figure.start]
    return bool(words.MEAN.search(text))


def means(figure: Figure, said: Sentence) -> Iterator[Value]:
    """The mean of a column, or of one quantity over several tickers; where words ask for a mean."""
    if not asks_mean(said):
        return
    linked = said.linked(figure)
    concepts = (
        linked or _concepts(figure, said) or tuple(c for m in said.mentions for c in m.concepts)
    )
    if figure.unit == "percent" and not linked:
        concepts = (DAY_CHANGE,)
    for concept in dict.fromkeys((*concepts, *said.spoken_of(figure))):
        for ticker in said.tickers(figure):
            values = [value for _, value in said.facts.column(ticker, concept)]
            if len(values) > 1:
                yield Value(fmean(values), money_or_count(concept))
        having = said.facts.having(concept)
        named = {name.ticker for name in said.named}
        chosen = (
            [fact for ticker, fact in having.items() if ticker in named] if len(named) > 1 else []
        )
        for group in (chosen, list(having.values())):
            if len(group) > 1:
                signed = concept == DAY_CHANGE or concept.startswith("momentum")
                yield Value(fmean(fact.value for fact in group), group[0].unit, signed)


def mentioned(said: Sentence, concept: str) -> bool:
    """Whether the sentence names this quantity and no other by the same words."""
    return any(
        concept in mention.concepts and len(mention.concepts) == 1 for mention in said.mentions
    )
