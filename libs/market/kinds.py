"""The kinds of market data that may come from sources of their own."""

from collections.abc import Sequence

from libs.market.choice import DataKind
from libs.market.mixed import MixedMarket
from libs.market.source import MarketData, SourceLabel

MADE_UP = " (synthetic)"
"""Stands behind the name of a source of made-up data."""


def label_of(market: MarketData, kind: DataKind) -> SourceLabel:
    """The label of whoever answers this kind of question."""
    return market.label_of(kind) if isinstance(market, MixedMarket) else market.label


def answered_by(market: MarketData, kinds: Sequence[DataKind]) -> str:
    """The source of an answer in words; where it rests on several, each with what it gave."""
    labels = {kind: label_of(market, kind) for kind in kinds}
    if len({label.name for label in labels.values()}) == 1:
        return _marked(labels[kinds[0]])
    return ", ".join(f"{_marked(label)} ({kind})" for kind, label in labels.items())


def _marked(label: SourceLabel) -> str:
    return f"{label.name}{MADE_UP}" if label.synthetic else label.name
