"""The data of a task as a masked arm sees it. Pure.

Contracts keep their fields' names. What stands in no table is left out, so that a new field is
hidden until somebody has thought about it; free text stands in none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from contracts.account import AccountLimits
from contracts.constraints import ENFORCED, constraints_of
from libs.llm.masking.codebook import PRESENT, Codebook
from libs.llm.masking.measures import Priced, Scales, exact, plain
from libs.llm.masking.shown_facts import CANDIDATE_SOURCES
from libs.llm.masking.shown_results import indicators_shown

PROBE_NOTE = (
    "Names, dates and levels are hidden. S and three digits is a company, G and two digits a "
    "sector: use these codes as tickers. T-12 is the twelfth session before the present, T+5 the "
    "fifth after it. Prices are in percent of the company's present close, which is 100; money of "
    "the account is in percent of its equity. Texts, headlines among them, are left out: they are "
    "counted, and their tone is in the sentiment scores."
)
"""The words about itself of a task that asks who and when it is."""
NOTE = f"{PROBE_NOTE} Nobody asks you who or when it is."
"""The words of any other task."""
TICKERS = frozenset({"ticker", "asset"})
TICKER_LISTS = frozenset({"assets", "universe", "sector_peers", "vetoed_tickers", "tickers"})
DATES = frozenset(
    {
        "pick_date",
        "analysis_date",
        "on",
        "since",
        "opened_on",
        "priced_on",
        "sold_on",
        "review_by",
    }
)
KEPT = frozenset(
    {
        *AccountLimits.model_fields,
        *CANDIDATE_SOURCES,
        "allocation_pct",
        "assets_max",
        "confidence",
        "fundamental_score",
        "has_reports",
        "horizon_sessions",
        "measured_risk",
        "mentions",
        "risk_pct",
        "risk_score",
        "score",
        "sessions",
        "sessions_ago",
        "stop_atr",
        "technical_score",
        "tickers_max",
    }
)
"""Numbers that are the same whoever they are of."""
VOCABULARY: Mapping[str, frozenset[str]] = {
    "action": frozenset({"buy", "sell"}),
    "side": frozenset({"buy", "sell"}),
    "speaks": frozenset({"for", "against"}),
    "signal": frozenset({"bullish", "bearish", "neutral", "uncertain"}),
    "slot": frozenset({"confirmed", "kept", "free"}),
    "market_mood": frozenset({"positive", "negative", "neutral", "unknown"}),
    "kind": frozenset({"headline", "filing", "report", "announced"}),
}
"""Words that a field may have; any other word is left out."""
PRICES = frozenset({"current_price", "atr", "average_cost", "price", "stop_price"})
"""Money a share."""
MONEY = frozenset({"cash", "equity", "hold", "risk", "money"})
"""Money of the account."""
FACT_NAMES = frozenset({"fact", "beside"})
WITHIN = frozenset(
    {
        "signal_digest",
        "candidates",
        "scores",
        "sentiment_report",
        "unscored",
        "portfolio",
        "positions",
        "open_orders",
        "cooling_off",
        "limits",
        "budgets",
        "plan",
        "quant_report",
        "research_report",
        "report",
        "reasons",
        "catalyst_event",
        "daily_picks",
        "picks",
        "sell_recommendations",
        *TICKER_LISTS,
    }
)
"""Objects, and lists of them, that are looked into."""
SORTED = frozenset({"positions", "open_orders", "cooling_off", "universe", "sector_peers"})
"""Lists that come by ticker: by code the alphabet tells nothing."""


def task_shown(
    data: Mapping[str, JsonValue],
    codebook: Codebook,
    headlines: Mapping[str, int],
    fact_names: Mapping[str, str],
) -> dict[str, JsonValue]:
    """The data as it is shown. `headlines` counts those of each ticker; `fact_names` are names of
    facts as they are shown, by their own."""
    shown = _Shown(codebook, fact_names, _scales_of(data)).whole(data)
    counted = {
        code: headlines[name] for name, code in codebook.tickers.items() if name in headlines
    }
    head: dict[str, JsonValue] = {"as_of": PRESENT, "masked": NOTE}
    return {**head, **({"headlines": dict(sorted(counted.items()))} if counted else {}), **shown}


def entities_in(data: JsonValue) -> Iterator[tuple[str, str]]:
    """The kind (`ticker`, `sector`, `name`) and name of every entity anywhere in a task's data."""
    if isinstance(data, list):
        for item in data:
            yield from entities_in(item)
    if not isinstance(data, dict):
        return
    for key, value in data.items():
        yield from _entities_at(key, value, data)
        yield from entities_in(value)


def _entities_at(
    key: str, value: JsonValue, around: Mapping[str, JsonValue]
) -> Iterator[tuple[str, str]]:
    if key in TICKERS and isinstance(value, str):
        yield "ticker", value
    elif key in TICKER_LISTS and isinstance(value, list):
        yield from (("ticker", item) for item in value if isinstance(item, str))
    elif key == "sector" and isinstance(value, str):
        yield "sector", value
    elif key == "sectors_analyzed" and isinstance(value, list):
        yield from (("sector", item) for item in value if isinstance(item, str))
    elif key == "name" and TICKERS & around.keys() and isinstance(value, str):
        yield "name", value
    elif key == "constraints" and isinstance(value, dict):
        enforced = constraints_of(_words(value))
        yield from (("ticker", item) for item in enforced.exclude_tickers)
        yield from (("sector", item) for item in enforced.exclude_sectors)


def _words(value: Mapping[str, JsonValue]) -> dict[str, str]:
    return {key: str(text) for key, text in value.items()}


def _scales_of(data: Mapping[str, JsonValue]) -> Scales:
    """The present prices that the task's own contracts have, and the account's equity."""
    prices: dict[str, list[Priced]] = {}
    for ticker, amount, currency in _prices_in(dict(data)):
        number = exact(amount)
        if number is not None and number > 0:
            prices.setdefault(ticker, []).append(Priced(number, currency))
    portfolio = data.get("portfolio")
    equity = _priced(portfolio.get("equity")) if isinstance(portfolio, dict) else None
    return Scales(prices, equity)


def _priced(money: JsonValue) -> Priced | None:
    amount = exact(money.get("amount")) if isinstance(money, dict) else None
    return Priced(amount, str(money["currency"])) if isinstance(money, dict) and amount else None


def _prices_in(data: JsonValue) -> Iterator[tuple[str, object, str]]:
    if isinstance(data, list):
        for item in data:
            yield from _prices_in(item)
    if not isinstance(data, dict):
        return
    ticker = data.get("ticker")
    if isinstance(ticker, str):
        if "current_price" in data:
            yield ticker, data["current_price"], str(data.get("currency"))
        price, foreign = _priced(data.get("price")), data.get("foreign")
        if price is not None:
            yield ticker, price.amount, price.currency
        own = _priced(foreign.get("price")) if isinstance(foreign, dict) else None
        if own is not None:
            yield ticker, own.amount, own.currency
    for value in data.values():
        yield from _prices_in(value)


@dataclass(frozen=True)
class _Shown:
    """Walks through a task's data. `about` is the ticker of the object that it is in."""

    codebook: Codebook
    fact_names: Mapping[str, str]
    scales: Scales
    about: str = ""
    currency: str = ""

    def whole(self, data: Mapping[str, Any]) -> dict[str, JsonValue]:
        """An object: the fields that are shown, and what a holding comes to."""
        ticker = next((str(data[key]) for key in ("ticker", "asset") if key in data), self.about)
        inside = _Shown(
            self.codebook,
            self.fact_names,
            self.scales,
            ticker,
            str(data.get("currency", self.currency)),
        )
        fields = {key: inside.shown(key, value) for key, value in data.items()}
        if "average_cost" in data:
            fields["value"] = inside.holding(data)
        return {key: value for key, value in fields.items() if value is not None}

    def holding(self, data: Mapping[str, Any]) -> JsonValue:
        """The value of a position in percent of the equity: shares would tell the price."""
        quantity, price = exact(data.get("quantity")), _priced(data.get("price"))
        if quantity is None or price is None:
            return None
        value = self.scales.money(quantity * price.amount, price.currency)
        return None if value is None else plain(value)

    def shown(self, key: str, value: JsonValue) -> JsonValue:
        """A field's value as it is shown; None where it is not."""
        match value:
            case None | "" | []:
                return None
            case dict():
                return self.structure(key, value)
            case list() if key == "sectors_analyzed":
                return self.codes([self.codebook.sector(str(item)) for item in value])
            case list():
                return self.several(key, value) if key in WITHIN else None
            case _:
                show = _SINGLE.get(key)
                return None if show is None else show(self, key, value)

    def structure(self, key: str, value: Mapping[str, JsonValue]) -> JsonValue:
        """A field that is an object."""
        if key == "constraints":
            return self.constraints(value)
        if key == "technical_indicators":
            return indicators_shown(value, value.get("close")) or None
        if key in PRICES | MONEY:
            return self.amount(key, value)
        return (self.whole(value) or None) if key in WITHIN else None

    def several(self, key: str, values: Sequence[JsonValue]) -> JsonValue:
        """A list, without the items of which nothing is shown."""
        if all(isinstance(value, str) for value in values):
            return self.codes([self.codebook.ticker(str(value)) for value in values], key in SORTED)
        items = [self.whole(value) for value in values if isinstance(value, dict)]
        if key in SORTED:
            items.sort(key=lambda item: str(item.get("ticker", item.get("asset", ""))))
        if key == "reasons":
            items = [item for item in items if "fact" in item]
        return [item for item in items if item] or None

    def codes(self, codes: Sequence[str | None], is_sorted: bool = True) -> JsonValue:
        """Codes in their order, or the code's."""
        known = [code for code in codes if code is not None]
        return list(sorted(known) if is_sorted else known) or None

    def ticker(self, _: str, value: JsonValue) -> JsonValue:
        """A ticker's code."""
        return self.codebook.ticker(str(value))

    def sector(self, _: str, value: JsonValue) -> JsonValue:
        """A sector's code."""
        return self.codebook.sector(str(value))

    def day(self, _: str, value: JsonValue) -> JsonValue:
        """A date as a session."""
        return self.codebook.day(value)

    def fact(self, _: str, value: JsonValue) -> JsonValue:
        """A fact's name as it is shown."""
        return self.fact_names.get(str(value))

    def word(self, key: str, value: JsonValue) -> JsonValue:
        """A word of the field's vocabulary."""
        return value if str(value) in VOCABULARY[key] else None

    def number(self, _: str, value: JsonValue) -> JsonValue:
        """A number as it is."""
        return value if isinstance(value, bool) or exact(value) is not None else None

    def price(self, _: str, value: JsonValue) -> JsonValue:
        """Money a share, in the currency of the object."""
        return self.on_scale(value, self.currency)

    def amount(self, key: str, money: Mapping[str, JsonValue]) -> JsonValue:
        """An amount with its currency, on the ticker's scale or the account's."""
        value, currency = money.get("amount"), str(money.get("currency"))
        if key in PRICES:
            return self.on_scale(value, currency)
        share = self.scales.money(value, currency)
        return None if share is None else plain(share)

    def on_scale(self, value: object, currency: str) -> JsonValue:
        """Money a share, on the scale of the ticker that the object is about."""
        share = self.scales.price(self.about, value, currency)
        return None if share is None else plain(share)

    def constraints(self, words: Mapping[str, JsonValue]) -> JsonValue:
        """Those that code enforces, names as codes; notes are left out."""
        stated = {key: text for key, text in _words(words).items() if key in ENFORCED}
        enforced = constraints_of(stated)
        shown: dict[str, JsonValue] = {
            key: value
            for key, value in enforced.model_dump(mode="json").items()
            if key in stated and not isinstance(value, list)
        }
        lists = {
            "exclude_tickers": [self.codebook.ticker(name) for name in enforced.exclude_tickers],
            "exclude_sectors": [self.codebook.sector(name) for name in enforced.exclude_sectors],
        }
        shown |= {key: named for key, codes in lists.items() if (named := self.codes(codes))}
        return shown or None


Way = Callable[[_Shown, str, JsonValue], JsonValue]
_SINGLE: Mapping[str, Way] = {
    **dict.fromkeys(TICKERS, _Shown.ticker),
    "sector": _Shown.sector,
    **dict.fromkeys(DATES, _Shown.day),
    **dict.fromkeys(FACT_NAMES, _Shown.fact),
    **dict.fromkeys(VOCABULARY, _Shown.word),
    **dict.fromkeys(KEPT, _Shown.number),
    **dict.fromkeys(PRICES, _Shown.price),
}
"""Fields that are no objects and no lists, with the way that each is shown."""
