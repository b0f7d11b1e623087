"""Alpaca's bars and corporate actions as raw bars with their splits and dividends. Pure.

A bar's `t` is midnight in New York. Prices are raw; splits and dividends come from the list of
corporate actions, by `ex_date`. That list holds coming ones too, and those of companies that had a
ticker before: neither gets into a frame.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import isfinite, prod
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from libs.market.errors import BadVendorData
from libs.market.replay.store import with_growth

NEW_YORK = ZoneInfo("America/New_York")
PRICES = ("open", "high", "low", "close")
ROWS = pl.Schema(
    {"symbol": pl.String, "date": pl.Date, **dict.fromkeys((*PRICES, "volume"), pl.Float64)}
)
ACTION_TYPES = ("forward_split", "reverse_split", "stock_dividend", "cash_dividend", "name_change")
RATE_NOISE = Fraction(6, 1_000_000)
"""Alpaca rounds rates to 5 digits: 1 for 15 is told as 0.06667."""
SPLIT_PARTS_MAX = 1_000
# No split worth the name moves the price less; no ordinary day moves it more.
_SPLIT_STEP_MIN = 1.4
_SPLIT_TOLERANCE = 1.15
_FIELDS = ("o", "h", "l", "c", "v")
_SHAPE = (KeyError, TypeError, AttributeError, ValueError)
_Change = tuple[float, float]
"""A factor of shares, and a dividend."""


@dataclass(frozen=True, slots=True)
class AlpacaEvent:
    """A split (`factor` new shares for one) or a cash dividend per share of a symbol; or one that
    cannot be read, and why (`broken`). `ex_date` is the first day there is where it has none."""

    symbol: str
    ex_date: date
    factor: float = 1.0
    dividend: float = 0.0
    broken: str = ""


@dataclass(frozen=True, slots=True)
class BarsPage:
    """The bars (ROWS) of a page, and why those of some symbols cannot be read."""

    rows: pl.DataFrame
    broken: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Renamed:
    """A change of a company's symbol, known from `on` on."""

    old: str
    new: str
    on: date


def rows_of(page: Mapping[str, Any], asked: Iterable[str]) -> BarsPage:
    """The bars of a page. Raises ValueError for those of a symbol that was not asked about."""
    if foreign := page.keys() - set(asked):
        raise ValueError(f"bars of {min(foreign)[:20]}, which was not requested")
    rows: list[tuple[Any, ...]] = []
    broken: dict[str, str] = {}
    for symbol, bars in page.items():
        try:
            rows += [(symbol, *_bar(bar)) for bar in bars]
        except _SHAPE as error:
            broken[symbol] = _brief(error)
    return BarsPage(pl.DataFrame(rows, schema=ROWS, orient="row"), broken)


def events_of(page: Mapping[str, Any]) -> Sequence[AlpacaEvent | Renamed]:
    """The splits, dividends and changes of symbols of a page of corporate actions. Raises KeyError,
    TypeError, ValueError where one does not say whose it is."""
    changes = page.get("name_changes") or ()
    found: list[AlpacaEvent | Renamed] = [
        _renamed(row, row["old_symbol"], row["new_symbol"]) for row in changes
    ]
    for group, made in _MADE.items():
        for row in page.get(group) or ():
            found.append(_event(row, made))
            renamed = row.get("new_symbol")
            if renamed and renamed != row["symbol"]:
                found.append(_renamed(row, row["symbol"], renamed))
    return found


def earlier_symbols(
    ticker: str, renames: Iterable[Renamed], as_of: date
) -> Sequence[tuple[str, date, date]]:
    """The symbols that the company of a ticker had up to as_of, each with its first day and the day
    after its last one; the newest first. Changes after as_of are not known yet."""
    known = [each for each in renames if each.on <= as_of]
    spans, symbol, until = [], ticker, date.max
    while True:
        taken = [each for each in known if each.new == symbol and each.on < until]
        last = max(taken, key=lambda each: each.on, default=None)
        spans.append((symbol, last.on if last else date.min, until))
        if last is None:
            return spans
        symbol, until = last.old, last.on


def frame_of(
    ticker: str,
    bars: pl.DataFrame,
    events: Iterable[AlpacaEvent],
    spans: Sequence[tuple[str, date, date]],
    as_of: date,
) -> pl.DataFrame:
    """The raw bars of one ticker up to as_of, with splits, dividends and growth: the form of a
    recorded ticker. Raises BadVendorData where they contradict themselves or each other."""
    what = f"prices of {ticker}"
    days = bars["date"]
    if days.is_empty():
        return with_growth(_with_events(bars, []))
    if days[-1] > as_of or not days.is_sorted() or days.n_unique() != len(days):
        raise BadVendorData(what, f"bars that do not ascend up to {as_of}", "Deskbus")
    low, high = pl.min_horizontal(PRICES), pl.max_horizontal(PRICES)
    positive = pl.all_horizontal(pl.col(name) > 0 for name in PRICES) & (pl.col("volume") >= 0)
    whole = bars.filter(positive & (pl.col("low") == low) & (pl.col("high") == high))
    if whole.is_empty() or whole["date"][-1] != days[-1]:
        raise BadVendorData(what, f"the bar of {days[-1]} contradicts itself", "Deskbus")
    own = [
        event
        for event in events
        for symbol, first, until in spans
        if event.symbol == symbol and first <= event.ex_date < until and event.ex_date <= as_of
    ]
    if wrong := next((event for event in own if event.broken), None):
        why = f"what happened on {wrong.ex_date}: {wrong.broken}"
        raise BadVendorData(what, why, "Deskbus")
    return with_growth(_with_events(whole, _checked(what, whole, own)))


def _with_events(bars: pl.DataFrame, events: Sequence[AlpacaEvent]) -> pl.DataFrame:
    """The bars with what happened at the open of each, or since the one before it."""
    days = bars["date"].to_list()
    splits, paid = [1.0] * len(days), [0.0] * len(days)
    for event in events:
        at = next((n for n, day in enumerate(days) if day >= event.ex_date), None)
        if at is not None and event.ex_date > days[0] - timedelta(days=1):
            splits[at] *= event.factor
            paid[at] += event.dividend
    return bars.select("date", *PRICES, "volume").with_columns(
        dividend=pl.Series(paid, dtype=pl.Float64),
        split_factor=pl.Series(splits, dtype=pl.Float64),
    )


def _checked(what: str, bars: pl.DataFrame, events: Sequence[AlpacaEvent]) -> Sequence[AlpacaEvent]:
    """The events, a split that is told twice once. Refuses a split that the prices do not show."""
    by_day: dict[date, set[float]] = {}
    for event in events:
        if event.factor != 1:
            by_day.setdefault(event.ex_date, set()).add(event.factor)
    closes, days = bars["close"], bars["date"].to_list()
    kept = [event for event in events if event.factor == 1]
    for ex_date, factors in by_day.items():
        if len(factors) > 1:
            raise BadVendorData(what, f"two different splits on {ex_date}", "Deskbus")
        factor = prod(factors)
        at = next((n for n, day in enumerate(days) if day >= ex_date), None)
        if at is not None and at > 0 and max(factor, 1 / factor) >= _SPLIT_STEP_MIN:
            moved = closes[at - 1] / closes[at]
            if max(moved, 1 / moved) < _SPLIT_TOLERANCE:
                why = f"the split of {ex_date} is not in its raw prices"
                raise BadVendorData(what, why, "Deskbus")
        kept.append(AlpacaEvent("", ex_date, factor=factor))
    return kept


def _session(text: Any) -> date:
    at = datetime.fromisoformat(_text(text))
    if at.tzinfo is None:
        raise ValueError(f"a time without a zone: {str(text)[:30]}")
    return at.astimezone(NEW_YORK).date()


def _bar(bar: Mapping[str, Any]) -> tuple[Any, ...]:
    return _session(bar["t"]), *(_number(bar[field]) for field in _FIELDS)


def _event(row: Mapping[str, Any], made: Callable[[Mapping[str, Any]], _Change]) -> AlpacaEvent:
    symbol = _text(row["symbol"])
    try:
        ex_date = date.fromisoformat(row["ex_date"])
    except _SHAPE as error:
        return AlpacaEvent(symbol, date.min, broken=_brief(error))
    try:
        factor, dividend = made(row)
    except _SHAPE as error:
        return AlpacaEvent(symbol, ex_date, broken=_brief(error))
    return AlpacaEvent(symbol, ex_date, factor, dividend)


def _renamed(row: Mapping[str, Any], old: Any, new: Any) -> Renamed:
    return Renamed(_text(old), _text(new), date.fromisoformat(row["process_date"]))


def _split(row: Mapping[str, Any]) -> _Change:
    return _ratio(_number(row["new_rate"]), _number(row["old_rate"])), 0.0


def _stock_dividend(row: Mapping[str, Any]) -> _Change:
    return 1 + _positive(_number(row["rate"])), 0.0


def _cash_dividend(row: Mapping[str, Any]) -> _Change:
    if row.get("currency") not in (None, "", "USD"):
        raise ValueError(f"a dividend in {str(row['currency'])[:8]}")
    return 1.0, _positive(_number(row["rate"]))


_MADE: Mapping[str, Callable[[Mapping[str, Any]], _Change]] = {
    "forward_splits": _split,
    "reverse_splits": _split,
    "stock_dividends": _stock_dividend,
    "cash_dividends": _cash_dividend,
}


def _brief(error: Exception) -> str:
    return f"{type(error).__name__} {str(error)[:80]}"


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 40:
        raise TypeError(f"no text: {str(value)[:30]}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise TypeError(f"no number: {str(value)[:30]}")
    return float(value)


def _positive(value: float) -> float:
    if value <= 0:
        raise ValueError(f"a rate of {value}")
    return value


def _ratio(new: float, old: float) -> float:
    """New shares for one old, as the whole parts that were meant where the rates are rounded."""
    told = Fraction(_positive(new)) / Fraction(_positive(old))
    meant = told.limit_denominator(SPLIT_PARTS_MAX)
    return float(meant if meant > 0 and abs(meant - told) <= RATE_NOISE else told)
