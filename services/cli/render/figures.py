"""A company's reported figures, as a person reads them: each with its unit and its age."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from libs.facts import amounts
from libs.quant.ticks import priced

MILLION = 1_000_000
_HUNDREDTH = Decimal("0.01")

Written = Callable[[float, str], str]
"""A number and the figures' currency as text."""


def _plain(value: float, _: str) -> str:
    return f"{amounts.rounded(value, _HUNDREDTH):,f}"


def _a_share(value: float, currency: str) -> str:
    return amounts.price(priced(value, currency))


def _millions(value: float, currency: str) -> str:
    return f"{value / MILLION:,.0f} million {currency}".rstrip()


def _shares(value: float, _: str) -> str:
    return f"{value / MILLION:,.1f} million"


def _percent(value: float, _: str) -> str:
    return amounts.percent(value)


def _change(value: float, _: str) -> str:
    return amounts.gain_percent(value)


FIGURES: Mapping[str, tuple[str, Written]] = {
    "eps_ttm": ("earnings per share, trailing year", _a_share),
    "eps_fiscal_year": ("earnings per share, fiscal year", _a_share),
    "pe_ratio": ("price / earnings", _plain),
    "market_cap": ("market value", _millions),
    "shares_outstanding": ("shares outstanding", _shares),
    "revenue_ttm": ("revenue, trailing year", _millions),
    "revenue_growth_pct": ("revenue growth", _change),
    "profit_margin_pct": ("profit margin", _percent),
    "operating_margin_pct": ("operating margin", _percent),
    "profit_growth_pct": ("profit growth", _change),
    "debt_to_equity": ("debt / equity", _plain),
    "dividend_per_share_ttm": ("dividends per share, trailing year", _a_share),
    "dividend_yield_pct": ("dividend yield", _percent),
}
"""The figures in the order of showing: what each is called, and how it is written."""


def shown(result: Mapping[str, Any]) -> RenderableType:
    """The answer of `get_fundamentals`: whose figures, the figures, why others are absent, and what
    a reader has to know of them."""
    figures = result["figures"]
    if figures is None:
        return Text(result["note"], style="yellow")
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    grid.add_column(justify="right", no_wrap=True)
    for name, (label, written) in FIGURES.items():
        if (value := figures.get(name)) is not None:
            grid.add_row(label + _year(name, figures), written(value, figures["currency"]))
    notes = Text("\n").join(
        [
            *(
                Text(f"{_called(name)}: none; {why}", "dim")
                for name, why in figures["absent"].items()
            ),
            *(Text(note, "yellow") for note in figures["notes"]),
        ]
    )
    return Group(_head(result), grid, notes) if notes else Group(_head(result), grid)


def _head(result: Mapping[str, Any]) -> Text:
    figures = result["figures"]
    age = amounts.count(figures["age_days"], "day")
    parts = [f"period to {figures['period_end']}, {age} old"]
    if figures.get("filed"):
        parts.append(f"{figures['form']} filed {figures['filed']} ({figures['accession']})")
    parts.append(f"known {figures['known_at'][:16].replace('T', ' ')} UTC")
    if result.get("sector"):
        parts.append(str(result["sector"]))
    return Text("; ".join(parts))


def _year(name: str, figures: Mapping[str, Any]) -> str:
    """Which fiscal year a figure is of, and how old."""
    if name != "eps_fiscal_year" or not figures.get("fiscal_year_end"):
        return ""
    age = amounts.count(figures["fiscal_year_age_days"], "day")
    return f" to {figures['fiscal_year_end']} ({age} old)"


def _called(name: str) -> str:
    return FIGURES[name][0] if name in FIGURES else name
