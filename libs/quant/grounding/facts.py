"""What the evidence says: quantities, dates and headlines, each with its ticker, field and time."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from pydantic import JsonValue

FACTS_MAX = 20_000
"""Quantities read from one agent's results; 250 kB of them hold about 15,000."""
DEPTH_MAX = 6

CLOSE, VOLUME, DAY_CHANGE = "close", "volume", "day_change_pct"
PRICES = (CLOSE, "open", "high", "low")
LEVELS = frozenset(
    {"sma_20", "sma_50", "sma_200", "ema_12", "ema_26", "bollinger_upper", "bollinger_lower"}
)
"""What the price is held against, and seldom each other."""
HISTORY = "rows"
# The same quantity under another key, or in another part of a result.
SAME = {"price": CLOSE, "bollinger_middle": "sma_20"}
WITHIN = {
    ("upcoming", "eps_estimate"): "eps_next",
    ("entries", "eps_estimate"): "eps_next",
    ("last_reported", "eps_estimate"): "eps_estimate",
    ("open_orders", "quantity"): "order_quantity",
    ("upcoming", "report_date"): "report_next",
    ("entries", "report_date"): "report_next",
    ("last_reported", "report_date"): "report_last",
    ("upcoming", "period_end"): "period_next",
    ("entries", "period_end"): "period_next",
    ("last_reported", "period_end"): "period_last",
    ("figures", "known_at"): "figures_known",
    ("upcoming", "known_at"): "estimate_known",
    ("entries", "known_at"): "estimate_known",
    ("items", "known_at"): "headline_date",
    ("cash", "amount"): "cash",
    ("equity", "amount"): "equity",
    ("average_cost", "amount"): "average_cost",
    ("price", "amount"): CLOSE,
    ("tickers", "current_price"): CLOSE,
}
# In money or shares, beside the keys that end in a unit.
MONEY = frozenset(
    {
        *("close", "open", "high", "low", "sma_20", "sma_50", "sma_200", "ema_12", "ema_26"),
        *("bollinger_upper", "bollinger_lower", "atr_14", "macd", "macd_signal", "macd_histogram"),
        *("market_cap", "revenue_ttm", "eps_ttm", "eps_next", "eps_estimate", "eps_actual"),
        *("average_cost", "cash", "equity", "position_value", "position_cost", "order_value"),
        *("invested", "net_income", "operating_income", "band_width"),
    }
)
REPORTED = "figures"
"""The part of a result that holds a company's own figures, which have a currency of their own."""
# What follows from two quantities by one step and has a name of its own.
Step = Callable[[float, float], float | None]
OWN_NAMES: tuple[tuple[str, str, tuple[str, str], Step], ...] = (
    ("price_to_sales", "number", ("market_cap", "revenue_ttm"), lambda a, b: a / b if b else None),
    ("earnings_yield_pct", "percent", ("eps_ttm", CLOSE), lambda a, b: a / b * 100 if b else None),
    ("net_income", "money", ("revenue_ttm", "profit_margin_pct"), lambda a, b: a * b / 100),
    (
        "operating_income",
        "money",
        ("revenue_ttm", "operating_margin_pct"),
        lambda a, b: a * b / 100,
    ),
    ("band_width", "money", ("bollinger_upper", "bollinger_lower"), lambda a, b: a - b),
    ("position_value", "money", ("quantity", CLOSE), lambda a, b: a * b),
    ("position_cost", "money", ("quantity", "average_cost"), lambda a, b: a * b),
    ("quantity_after", "number", ("quantity", "order_quantity"), lambda a, b: a + b),
    ("order_value", "money", ("order_quantity", CLOSE), lambda a, b: a * b),
    ("invested", "money", ("equity", "cash"), lambda a, b: a - b),
)
NEWS = frozenset({"items", "headlines"})
ABSENT = "absent"
"""Why a quantity is not there, by its name; may be told on."""
SAID = frozenset(
    {
        *("reasoning", "summary", "news_summary", "earnings_outlook", "catalyst", "rationale"),
        *("research_notes", "notes"),
    }
)
"""Words of an earlier report, quoted as a headline is."""
_DATE = re.compile(r"^\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"^-?\d{1,18}(\.\d{1,9})?$")


@dataclass(frozen=True, slots=True)
class Given:
    """One tool result: its id, the tool's name, and what it answered."""

    id: str
    tool: str
    result: JsonValue


@dataclass(frozen=True, slots=True)
class Fact:
    """A number of the evidence. `unit` is money, percent or number; `place` is where it stands."""

    concept: str
    value: float
    unit: str
    ticker: str | None
    place: str
    session: date | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """Words of a third party about a ticker, and when they became known."""

    ticker: str | None
    text: str
    known_on: date | None
    place: str


@dataclass
class Facts:
    """All that one agent was given, by what a text may ask of it."""

    as_of: date | None = None
    tickers: set[str] = field(default_factory=set)
    values: dict[tuple[str | None, str], list[Fact]] = field(
        default_factory=lambda: defaultdict(list)
    )
    dates: dict[tuple[str | None, str], list[date]] = field(
        default_factory=lambda: defaultdict(list)
    )
    rows: dict[str, list[tuple[date, dict[str, float]]]] = field(default_factory=dict)
    columns: dict[tuple[str, str], list[tuple[date, float]]] = field(default_factory=dict)
    headlines: list[Headline] = field(default_factory=list)
    counts: dict[tuple[str | None, str], int] = field(default_factory=dict)
    sectors: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    currencies: dict[tuple[str | None, bool], set[str]] = field(
        default_factory=lambda: defaultdict(set)
    )
    sources: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    by_ticker: dict[str | None, list[Fact]] | None = None
    size: int = 0

    def now(self, ticker: str | None, concept: str) -> list[Fact]:
        """What a quantity of a ticker is at as_of."""
        return self.values.get((ticker, concept), [])

    def of(self, ticker: str | None) -> list[Fact]:
        """All quantities of a ticker at as_of; of the account and the whole with None."""
        if self.by_ticker is None:
            self.by_ticker = defaultdict(list)
            for (owner, _), facts in self.values.items():
                self.by_ticker[owner] += facts
        return self.by_ticker.get(ticker, [])

    def having(self, concept: str) -> dict[str, Fact]:
        """The quantity by ticker, of all that have it."""
        return {
            ticker: facts[0]
            for (ticker, name), facts in self.values.items()
            if name == concept and ticker is not None
        }

    def row(self, ticker: str | None, session: date) -> dict[str, float]:
        """One session of a ticker's history; empty where there is none."""
        rows = self.rows.get(ticker or "", [])
        return next((values for day, values in rows if day == session), {})

    def column(self, ticker: str | None, concept: str) -> list[tuple[date, float]]:
        """One column of a ticker's history, oldest first."""
        key = (ticker or "", concept)
        if key not in self.columns:
            rows = self.rows.get(key[0], [])
            self.columns[key] = [(day, row[concept]) for day, row in rows if concept in row]
        return self.columns[key]


def read(results: Sequence[Given]) -> Facts:
    """The facts of some results. What a tool answered with an error, or as null, is none."""
    facts = Facts()
    for given in results:
        if not isinstance(given.result, dict):
            continue
        error = given.result.get("error")
        if error is None:
            _read_result(given, given.result, facts)
        elif isinstance(error, dict):
            # Why a tool could not answer may be told on.
            facts.headlines.append(Headline(None, str(error.get("message")), None, given.id))
    for ticker in (*sorted(facts.tickers), None):
        for name, unit, parts, value in OWN_NAMES:
            known = [facts.now(ticker, part)[:1] for part in parts]
            if all(known) and (found := value(*(each[0].value for each in known))) is not None:
                _keep(Fact(name, found, unit, ticker, "computed"), facts)
    return facts


def _read_result(given: Given, result: Mapping[str, JsonValue], facts: Facts) -> None:
    facts.as_of = facts.as_of or day_of(result.get("as_of"))
    ticker = _ticker(result, None)
    if ticker is not None:
        facts.sources[given.tool].append(ticker)
    _read_object(result, ticker, "", given.id, facts, 0)
    if isinstance(result.get("columns"), list) and isinstance(result.get("rows"), list):
        _read_history(result, ticker or "", facts)


def _read_object(
    value: Mapping[str, JsonValue],
    ticker: str | None,
    part: str,
    place: str,
    facts: Facts,
    depth: int,
) -> None:
    ticker = _ticker(value, ticker)
    if ticker is not None:
        facts.tickers.add(ticker)
    currency = value.get("currency")
    if isinstance(currency, str):
        facts.currencies[ticker, part == REPORTED].add(currency)
    name = value.get("name")
    if isinstance(name, str) and ticker is not None:
        facts.names[name.partition(" ")[0]] = ticker
    sector = value.get("sector")
    if isinstance(sector, str) and ticker is not None:
        facts.sectors[ticker] = sector
    if part in NEWS and isinstance(value.get("title"), str):
        text = f"{value['title']}. {value.get('summary') or ''}"
        known = day_of(value.get("known_at") or value.get("published_at"))
        facts.headlines.append(Headline(ticker, text, known, place))
    for key, item in value.items():
        _read_item(key, item, ticker, part, f"{place}/{key}", facts, depth)


def _read_item(
    key: str, item: JsonValue, ticker: str | None, part: str, place: str, facts: Facts, depth: int
) -> None:
    concept = WITHIN.get((part, key), SAME.get(key, key))
    match item:
        case bool():
            return
        case int() | float():
            _keep(Fact(concept, float(item), unit_of(concept), ticker, place), facts)
        case str() if _NUMBER.match(item):
            _keep(Fact(concept, float(item), unit_of(concept), ticker, place), facts)
        case str() if key in SAID or part == ABSENT:
            facts.headlines.append(Headline(ticker, f"{key}: {item}", None, place))
        case str() if (day := day_of(item)) is not None:
            facts.dates[ticker, concept].append(day)
        case dict() if depth < DEPTH_MAX:
            _read_object(item, ticker, key, place, facts, depth + 1)
        case list() if key != HISTORY and depth < DEPTH_MAX:
            known = facts.counts.get((ticker, key), 0)
            facts.counts[ticker, key] = known + len(item)
            for index, each in enumerate(item):
                if isinstance(each, dict):
                    _read_object(each, ticker, key, f"{place}/{index}", facts, depth + 1)


def _read_history(result: Mapping[str, JsonValue], ticker: str, facts: Facts) -> None:
    columns, rows = result["columns"], result["rows"]
    if not isinstance(columns, list) or not isinstance(rows, list):
        return
    read_rows = []
    for row in rows[: FACTS_MAX // max(1, len(columns))]:
        if isinstance(row, list) and row and len(row) == len(columns) and (day := day_of(row[0])):
            values = {
                str(name): float(item)
                for name, item in zip(columns, row, strict=True)
                if isinstance(item, int | float)
            }
            read_rows.append((day, values))
    known = facts.rows.get(ticker, [])
    facts.rows[ticker] = sorted(dict([*known, *read_rows]).items(), key=lambda each: each[0])


def _keep(fact: Fact, facts: Facts) -> None:
    facts.size += 1
    if facts.size <= FACTS_MAX:
        facts.values[fact.ticker, fact.concept].append(fact)


def _ticker(value: Mapping[str, JsonValue], outer: str | None) -> str | None:
    ticker = value.get("ticker")
    return ticker if isinstance(ticker, str) else outer


def unit_of(concept: str) -> str:
    """Money, percent or number."""
    if concept.endswith("_pct"):
        return "percent"
    return "money" if concept in MONEY else "number"


def day_of(value: JsonValue) -> date | None:
    """The day that a date or time starts with."""
    if not isinstance(value, str) or not _DATE.match(value):
        return None
    try:
        return date.fromisoformat(value[:10])
    except ValueError:
        return None
