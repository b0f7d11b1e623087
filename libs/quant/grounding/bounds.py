# ruff: noqa: RUF001  (dashes are read)
"""Bounds: whether "above 580" or "between 50 and 56" is true of what it speaks of."""

import re
from collections.abc import Collection, Iterator

from libs.quant.grounding import words
from libs.quant.grounding.facts import CLOSE, DAY_CHANGE
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.sentence import Sentence

_NONE = re.compile(r"\b(?:no|none|nobody|neither|never|not|nothing)\b", re.IGNORECASE)
_REACHES = re.compile(r"\b(?:reach(?:es|ed|ing)?|as high as)\s$", re.IGNORECASE)
"""After "none", a bound: "none of their RSI readings reaching 32"."""
_ORDER = re.compile(
    r"\b(?:accumulate|buy|add|sell|trim|exit|enter|re-?enter|reduce)\b[^.,;:\d]*$", re.IGNORECASE
)
"""Before the price of an order, which must stand in the evidence: nothing lies beyond it yet."""
_NO_BOUND = re.compile(
    r"\b(?:no|not|nowhere|never) \w+ than\s$|\d\S*\s(?:\([^()]*\)\s)?[<>]=?\s?$|[-=–]>\s?$"
)
"""An arrow, or a sign between two figures: "81.79 > 76.61 (20d)" says what both are."""
FAR = 2.0
"""A bound that is further from a value than this factor says nothing of it."""


def holds(figure: Figure, said: Sentence) -> bool | None:
    """Whether "above 580" is true of all that it speaks of; None where the figure is no bound."""
    side = _side(figure, said)
    if side is None:
        return None
    between = words.BETWEEN.search(said.before(figure, 40))
    if between and figure.step < 1:
        # "between 50.2 and 55.9" gives the lowest and the highest, "between 50 and 56" bounds.
        is_end = _is_end(figure, said, side)
        if is_end or figure.unit == "number":
            return is_end
    every = between or words.ALL.search(said.text)
    none = _NONE.search(said.before(figure))
    owners = said.everyone if every or none else said.tickers(figure)
    owners = owners or said.everyone or tuple(said.facts.tickers)
    for name in _bounded(figure, said):
        values = [value for owner in owners for value in _values(name, figure, said, owner)]
        held = [(value - figure.value) * side > 0 for value in values]
        if held and (not any(held) if none else all(held) if every else any(held)):
            return True
    return False


def is_order(figure: Figure, said: Sentence) -> bool:
    """Whether a figure is the price of an order: "buy below $90"."""
    return figure.unit == "money" and bool(_ORDER.search(said.before(figure, 40)))


def is_bound(figure: Figure, said: Sentence) -> bool:
    """Whether words say that something lies above or below a figure."""
    return _side(figure, said) is not None


def _side(figure: Figure, said: Sentence) -> int | None:
    """1 for a bound that lies below what it speaks of, -1 for one above it."""
    before = said.before(figure, 40)
    if _NO_BOUND.search(before) or is_order(figure, said) or said.is_named_behind(figure):
        return None
    if words.BOUND_ABOVE.search(before) or (_NONE.search(before) and _REACHES.search(before)):
        return 1
    if words.BOUND_BELOW.search(before):
        return -1
    if figure.unit == "money" or not words.BETWEEN.search(before):
        return None
    return -1 if re.search(r"\d\S*\sand\s$", before) else 1


def _is_end(figure: Figure, said: Sentence, side: int) -> bool:
    """Whether a figure is the lowest or highest of what is named, over the tickers spoken of."""
    facts = said.facts
    groups: list[Collection[str]] = [facts.tickers, facts.having("average_cost")]
    for group in groups:
        for name in _bounded(figure, said):
            having = facts.having(name)
            values = [having[owner].value for owner in group if owner in having]
            sizes = [value if figure.signed else abs(value) for value in values]
            if len(sizes) > 1 and figure.says((min if side > 0 else max)(sizes)):
                return True
    return False


def _bounded(figure: Figure, said: Sentence) -> tuple[str, ...]:
    """What a bound may speak of: what is named, else the price or its change."""
    sought = said.sought(figure)
    if figure.unit == "percent":
        return (*sought, DAY_CHANGE)
    return sought or (CLOSE,)


def _values(name: str, figure: Figure, said: Sentence, owner: str) -> Iterator[float]:
    """A quantity of one ticker, or its distance from what a comparison names; not far off."""
    compared = said.compared_with(figure)
    if figure.unit == "percent" and compared:
        for base in (fact for each in compared for fact in said.facts.now(owner, each)[:1]):
            for top in said.facts.now(owner, CLOSE)[:1]:
                yield abs(top.value - base.value) / abs(base.value) * 100 if base.value else 0.0
        return
    for fact in said.facts.now(owner, name)[:1]:
        value = fact.value if figure.signed else abs(fact.value)
        if figure.unit == "percent" or abs(figure.value) / FAR < value < abs(figure.value) * FAR:
            yield value
