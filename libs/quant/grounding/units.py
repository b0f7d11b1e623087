# ruff: noqa: PLR0911  (one unit a line)
"""Which figure may be which quantity, by its unit and family."""

from collections.abc import Sequence

from libs.quant.grounding import words
from libs.quant.grounding.facts import unit_of
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.words import Mention

SHARES = frozenset({"volume", "quantity", "quantity_after", "order_quantity", "shares_outstanding"})
"""What is counted in shares, and so in whole numbers."""


def kin(concepts: Sequence[str]) -> tuple[str, ...]:
    """Quantities with those of their family; a name of several is its own."""
    if len(concepts) > 1:
        return tuple(concepts)
    families = {concept.partition("_")[0] for concept in concepts}
    every = (*concepts, "macd_signal", "macd_histogram", "sma_50", "sma_200", "ema_26")
    return tuple(each for each in every if each.partition("_")[0] in families)


def fits(figure: Figure, mention: Mention) -> bool:
    """Whether a figure in this unit may be the quantity that a mention names."""
    return any(unit_fits(figure, concept) for concept in mention.concepts)


def unit_fits(figure: Figure, concept: str) -> bool:
    """Whether a figure in this unit may be this quantity."""
    if concept in {words.OTHER, words.OWN}:
        return concept == words.OTHER or figure.unit not in {"money", "times"}
    unit = unit_of(concept)
    match figure.unit:
        case "percent":
            return unit == "percent" or concept == "debt_to_equity"
        case "money":
            return unit == "money"
        case "number" if concept in SHARES and figure.step < 1:
            return False
        case "number" | "count":
            return unit != "percent" or abs(figure.value) < 100
        case "times":
            return concept in {"pe_ratio", "price_to_sales", "debt_to_equity"}
        case "ratio":
            return concept == "debt_to_equity"
        case _:
            return False
