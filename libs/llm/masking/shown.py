"""The data of a task, and results of tools, as a masked arm sees them. Pure.

A value is shown by what it is. Names of tickers and sectors become codes, dates sessions, names of
facts the names that they are shown by; of other texts only words that contracts choose among pass.
Numbers go by the unit that their name ends with, as the keys of facts do: prices are put on the
ticker's scale, money of the account on that of its equity, ratios stay. A number without such a
unit is hidden, and what is about a ticker without a code.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from contracts.constraints import ENFORCED, constraints_of
from libs.facts.market import FIGURES, INDICATORS
from libs.llm.masking.codebook import PRESENT, Codebook
from libs.llm.masking.measures import (
    Priced,
    Scales,
    exact,
    part_of,
    plain,
    significant,
    usual_volume,
)
from libs.llm.masking.shown_facts import CANDIDATE_SOURCES, PERIODS
from libs.llm.masking.words import words_of_contracts

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
TICKER_WORDS = frozenset({"ticker", "tickers", "asset", "assets", "peers", "universe"})
PRICE_WORDS = frozenset({"price", "cost"})
PRESENT_PRICES = ("current_price", "price", "close")
RANGE = "atr"
"""Alone it is money a share; what ends with it is a multiple of it."""
ACCOUNT_WORDS = frozenset({"cash", "equity", "hold", "money", "risk"})
SAME_FOR_ALL = frozenset(
    {
        "ago",
        "allocation",
        RANGE,
        "confidence",
        "confirmations",
        "max",
        "mentions",
        "min",
        "pct",
        "reports",
        "risk",
        "score",
        "sentiment",
        "sessions",
        "shown",
    }
)
"""Units of numbers that say nothing of whose they are."""
OWN_WORDS = frozenset(
    {
        "bad_tool_arguments",
        "look_ahead",
        "ticker_limit",
        "tool_limit_reached",
        "tool_not_allowed",
        "tool_result_too_large",
    }
)
"""Errors whose sentence says what to do: the desk's own words, in which names can be replaced."""
MONEY_KEYS = {"amount", "currency"}
TABLE = frozenset({"columns", "rows"})


def task_shown(
    data: Mapping[str, JsonValue],
    codebook: Codebook,
    headlines: Mapping[str, int],
    fact_names: Mapping[str, str],
) -> dict[str, JsonValue]:
    """The data as it is shown. `headlines` counts those of each ticker; `fact_names` are names of
    facts as they are shown, by their own."""
    shown = _Shown(codebook, fact_names, scales_of(data)).whole(data)
    counted = {
        code: headlines[name] for name, code in codebook.tickers.items() if name in headlines
    }
    head: dict[str, JsonValue] = {"as_of": PRESENT, "masked": NOTE}
    if counted:
        head["headlines"] = dict(sorted(counted.items()))
    return {**(shown or {}), **head}


def result_shown(result: JsonValue, codebook: Codebook) -> dict[str, JsonValue]:
    """A tool's result as it is shown: of an error its code, and the desk's own words."""
    if not isinstance(result, dict):
        return {}
    error = result.get("error")
    if isinstance(error, dict):
        code = str(error.get("code", "error"))
        words = codebook.words(str(error.get("message", "")))
        return {"error": {"code": code, **({"message": words} if code in OWN_WORDS else {})}}
    shown = _Shown(codebook, {}, scales_of(result)).whole(result) or {}
    return {**shown, **_table(result, codebook)} if result.keys() >= TABLE else shown


def entities_in(data: JsonValue) -> Iterator[tuple[str, str]]:
    """The kind (`ticker`, `sector`, `name`) and name of every entity anywhere in a task's data."""
    if isinstance(data, list):
        for item in data:
            yield from entities_in(item)
    if not isinstance(data, dict):
        return
    for key, value in data.items():
        if kind := _kind(key, data):
            several = value if isinstance(value, list) else [value]
            yield from ((kind, item) for item in several if isinstance(item, str))
        if key == "constraints" and isinstance(value, dict):
            enforced = constraints_of(_texts(value))
            yield from (("ticker", item) for item in enforced.exclude_tickers)
            yield from (("sector", item) for item in enforced.exclude_sectors)
        yield from entities_in(value)


def _kind(key: str, around: Mapping[str, JsonValue]) -> str:
    parts = key.split("_")
    if parts[-1] in TICKER_WORDS:
        return "ticker"
    if parts[0] in {"sector", "sectors"}:
        return "sector"
    return "name" if key == "name" and "ticker" in around else ""


def history_volumes(result: Mapping[str, Any]) -> tuple[str, float] | None:
    """The ticker of a history and its usual volume."""
    columns, rows = result.get("columns") or [], result.get("rows") or []
    if "volume" not in columns or not rows:
        return None
    place = columns.index("volume")
    usual = usual_volume([float(row[place]) for row in rows])
    return None if usual is None else (str(result.get("ticker")), usual)


def _table(result: Mapping[str, Any], codebook: Codebook) -> dict[str, JsonValue]:
    """A history: prices in percent of its last close, volumes as multiples of the usual one."""
    columns, rows = result["columns"], result["rows"]
    _, usual = history_volumes(result) or ("", None)
    close = rows[-1][columns.index("close")] if rows else None

    def cell(column: str, value: object) -> JsonValue:
        if column == "session":
            return codebook.day(value)
        of = part_of(value, usual if column == "volume" else close)
        if of is None:
            return None
        return plain(round(of / 100, 2) if column == "volume" else of)

    return {
        "columns": list(columns),
        "rows": [[cell(name, v) for name, v in zip(columns, row, strict=True)] for row in rows],
    }


def _texts(value: Mapping[str, JsonValue]) -> dict[str, str]:
    return {key: str(text) for key, text in value.items()}


def scales_of(data: Mapping[str, JsonValue]) -> Scales:
    """The present prices that the data has, and the account's equity."""
    prices: dict[str, list[Priced]] = {}
    for ticker, priced in _prices_in(dict(data), ""):
        prices.setdefault(ticker, []).append(priced)
    portfolio = data.get("portfolio")
    account = portfolio if isinstance(portfolio, dict) else data
    return Scales(prices, _priced(account.get("equity"), str(account.get("currency", ""))))


def _prices_in(data: JsonValue, currency: str) -> Iterator[tuple[str, Priced]]:
    """The present prices by ticker; a number is in the currency of the object around it."""
    if isinstance(data, list):
        for item in data:
            yield from _prices_in(item, currency)
    if not isinstance(data, dict):
        return
    currency = str(data.get("currency") or currency)
    if isinstance(ticker := data.get("ticker"), str):
        for part in (
            data,
            data.get("foreign"),
            data.get("technical_indicators"),
            data.get("values"),
        ):
            if isinstance(part, dict):
                for key in PRESENT_PRICES:
                    if (priced := _priced(part.get(key), currency)) is not None:
                        yield ticker, priced
    for value in data.values():
        yield from _prices_in(value, currency)


def _priced(of: JsonValue, currency: str) -> Priced | None:
    """An amount above zero: money, or a number in that currency."""
    if isinstance(of, dict):
        return _priced(of.get("amount"), str(of.get("currency")))
    amount = exact(of)
    return Priced(amount, currency) if amount is not None and amount > 0 else None


@dataclass(frozen=True)
class _Shown:
    """Walks through data. `about` is the ticker of the object that it is in."""

    codebook: Codebook
    fact_names: Mapping[str, str]
    scales: Scales
    about: str = ""
    currency: str = ""

    def whole(self, data: Mapping[str, Any]) -> dict[str, JsonValue] | None:
        """An object: the fields that are shown, and what a holding comes to; None for one of a
        ticker without a code."""
        ticker = next((data[key] for key in ("ticker", "asset") if key in data), None)
        if ticker is not None and self.codebook.ticker(str(ticker)) is None:
            return None
        inside = _Shown(
            self.codebook,
            self.fact_names,
            self.scales,
            self.about if ticker is None else str(ticker),
            str(data.get("currency") or self.currency),
        )
        # A key in other letters than those of fields may be a name.
        named = {key: value for key, value in data.items() if key.islower() and key.isidentifier()}
        fields = {key: inside.value(key, value) for key, value in named.items()}
        if "average_cost" in data:
            fields["value"] = inside.holding(data)
        return {key: value for key, value in fields.items() if value is not None}

    def value(self, key: str, value: JsonValue) -> JsonValue:
        """A field's value as it is shown; None where it is not."""
        match value:
            case None | "":
                return None
            case bool():
                return value
            case dict():
                shown = self.structure(key, value)
                return None if shown == {} else shown
            case list():
                return self.several(key, value) or None
            case _:
                return self.single(key, value)

    def structure(self, key: str, value: Mapping[str, JsonValue]) -> JsonValue:
        """A field that is an object."""
        if value.keys() == MONEY_KEYS:
            return self.money(key, value["amount"], str(value["currency"]))
        if key == "constraints":
            return self.constraints(_texts(value))
        if key == "scores":
            return {name: value[name] for name in CANDIDATE_SOURCES if name in value}
        return self.whole(value)

    def several(self, key: str, values: Sequence[JsonValue]) -> JsonValue:
        """A list, without the items of which nothing is shown. One in the alphabet's order is put
        into that of the codes."""
        tickers = [_ticker_of(item) for item in values]
        if tickers == sorted(tickers):
            values = sorted(values, key=lambda item: self.codebook.ticker(_ticker_of(item)) or "")
        if key == "reasons":
            values = [item for item in values if isinstance(item, dict) and self.names(item)]
        shown = [self.value(key, item) for item in values]
        return [item for item in shown if item is not None]

    def names(self, reason: Mapping[str, JsonValue]) -> bool:
        """Whether a reason names a fact that is shown."""
        return str(reason.get("fact")) in self.fact_names

    def single(self, key: str, value: JsonValue) -> JsonValue:
        """A text or a number."""
        number = exact(value)
        if number is not None and not (isinstance(value, str) and self.codebook.ticker(value)):
            return self.number(key, value)
        text = str(value)
        if text in words_of_contracts():
            return text
        kind = _kind(key, {})
        if kind == "sector":
            return self.codebook.sector(text)
        coded = self.codebook.ticker(text) or self.fact_names.get(text)
        # A quarter ends with a month, which would tell the season.
        is_day = PERIODS.isdisjoint(key.split("_"))
        return coded or (self.codebook.day(text) if is_day else None)

    def number(self, key: str, value: JsonValue) -> JsonValue:
        """A number by the unit that its name ends with."""
        if key in FIGURES:
            number = exact(value)
            is_ratio = FIGURES[key][0] not in ("money", "shares") and number is not None
            return plain(significant(number)) if is_ratio and number is not None else None
        if key in INDICATORS:
            is_level = INDICATORS[key][1] == "money"
            return self.money("price", value, self.currency) if is_level else value
        unit = key.rpartition("_")[2]
        if unit in SAME_FOR_ALL and key != RANGE:
            return value
        return self.money(key, value, self.currency)

    def money(self, key: str, amount: JsonValue, currency: str) -> JsonValue:
        """Money a share on the scale of the ticker that the object is about, money of the account
        in percent of its equity."""
        unit = key.rpartition("_")[2]
        if key == RANGE or unit in PRICE_WORDS:
            share = self.scales.price(self.about, amount, currency)
        else:
            share = self.scales.money(amount, currency) if unit in ACCOUNT_WORDS else None
        return None if share is None else plain(share)

    def holding(self, data: Mapping[str, Any]) -> JsonValue:
        """The value of a position in percent of the equity: shares would tell the price."""
        quantity, price = exact(data.get("quantity")), _priced(data.get("price"), self.currency)
        if quantity is None or price is None:
            return None
        value = self.scales.money(quantity * price.amount, price.currency)
        return None if value is None else plain(value)

    def constraints(self, words: Mapping[str, str]) -> JsonValue:
        """Those that code enforces, names as codes; notes are left out."""
        stated = {key: text for key, text in words.items() if key in ENFORCED}
        enforced = constraints_of(stated)
        shown: dict[str, JsonValue] = {
            key: value
            for key, value in enforced.model_dump(mode="json").items()
            if key in stated and not isinstance(value, list)
        }
        lists = {
            "exclude_tickers": map(self.codebook.ticker, enforced.exclude_tickers),
            "exclude_sectors": map(self.codebook.sector, enforced.exclude_sectors),
        }
        for key, codes in lists.items():
            if known := sorted(code for code in codes if code is not None):
                shown[key] = [*known]
        return shown or None


def _ticker_of(item: JsonValue) -> str:
    """The ticker that an item of a list is, or is about; empty where there is none."""
    if isinstance(item, dict):
        item = item.get("ticker", item.get("asset"))
    return item if isinstance(item, str) else ""
