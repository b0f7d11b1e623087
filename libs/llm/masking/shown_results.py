"""Tool results as a masked arm sees them: one function a tool, in a table. Pure.

A result of a tool that is not in the table is not shown, nor a field that no function names.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from libs.facts.market import INDICATORS
from libs.llm.masking.codebook import PRESENT, Codebook
from libs.llm.masking.measures import exact, part_of, plain, significant, usual_volume
from libs.llm.masking.shown_facts import RATIOS

Result = Mapping[str, Any]
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
HIDDEN = "hidden from a masked arm"
INVARIANT = frozenset(name for name, (_, unit, _) in INDICATORS.items() if unit != "money")
"""Indicators that have no level."""


def result_shown(tool: str, result: JsonValue, codebook: Codebook) -> JsonValue:
    """The result as it is shown."""
    if not isinstance(result, dict):
        return {}
    if "error" in result:
        return {"error": _error(result["error"], codebook)}
    show = RESULTS.get(tool)
    return {} if show is None else _without_none(show(result, codebook))


def _error(error: JsonValue, codebook: Codebook) -> JsonValue:
    """Its code; and the desk's own words, not those of a source."""
    if not isinstance(error, dict):
        return {"code": "error"}
    code = str(error.get("code", "error"))
    if code not in OWN_WORDS:
        return {"code": code}
    return {"code": code, "message": codebook.words(str(error.get("message", "")))}


def _without_none(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: item for key, item in value.items() if item is not None}


def _part(value: object, whole: object) -> JsonValue:
    share = part_of(value, whole)
    return None if share is None else plain(share)


def _digits(value: object) -> JsonValue:
    number = exact(value)
    return None if number is None else plain(significant(number))


def _close(result: Result, codebook: Codebook) -> dict[str, JsonValue]:
    return {
        "ticker": codebook.ticker(str(result.get("ticker"))),
        "session": codebook.day(result.get("session")),
        "price": _part(result.get("price"), result.get("price")),
        "day_change_pct": result.get("day_change_pct"),
    }


def indicators_shown(values: Mapping[str, Any], close: object) -> dict[str, JsonValue]:
    """Indicators by name, levels in percent of the close."""
    return {
        name: value if name in INVARIANT else _part(value, close)
        for name, value in values.items()
        if name in INDICATORS and exact(value) is not None
    }


def _indicators(result: Result, codebook: Codebook) -> dict[str, JsonValue]:
    values = result.get("values") or {}
    return {
        "ticker": codebook.ticker(str(result.get("ticker"))),
        "session": codebook.day(result.get("session")),
        "values": indicators_shown(values, values.get("close")),
        "absent": sorted(result.get("absent") or {}),
    }


def history_volumes(result: Result) -> tuple[str, float] | None:
    """The ticker of a history and its usual volume."""
    columns, rows = result.get("columns") or [], result.get("rows") or []
    if "volume" not in columns or not rows:
        return None
    place = columns.index("volume")
    usual = usual_volume([float(row[place]) for row in rows])
    return None if usual is None else (str(result.get("ticker")), usual)


def _history(result: Result, codebook: Codebook) -> dict[str, JsonValue]:
    columns, rows = result["columns"], result["rows"]
    if not rows:
        return {"ticker": codebook.ticker(str(result.get("ticker"))), "rows": []}
    close = rows[-1][columns.index("close")]
    usual = usual_volume([float(row[columns.index("volume")]) for row in rows])

    def cell(column: str, value: object) -> JsonValue:
        if column == "session":
            return codebook.day(value)
        if column == "volume":
            times = part_of(value, usual)
            return None if times is None else plain(round(times / 100, 2))
        return _part(value, close)

    return {
        "ticker": codebook.ticker(str(result.get("ticker"))),
        "columns": list(columns),
        "rows": [[cell(name, v) for name, v in zip(columns, row, strict=True)] for row in rows],
    }


def _fundamentals(result: Result, codebook: Codebook) -> dict[str, JsonValue]:
    figures = result.get("figures") or {}
    return {
        "ticker": codebook.ticker(str(result.get("ticker"))),
        "sector": codebook.sector(str(result.get("sector", "unknown"))),
        "figures": {
            name: _digits(figures[name]) for name in sorted(RATIOS) if figures.get(name) is not None
        },
    }


def _counted(result: Result, codebook: Codebook) -> dict[str, JsonValue]:
    """How many texts there are, and of when the newest is: none of them is shown."""
    items = result.get("items") or []
    newest = codebook.day(items[0].get("known_at")) if items else None
    return {
        "ticker": codebook.ticker(str(result.get("ticker"))),
        "items": len(items),
        "newest": newest,
        "texts": HIDDEN,
    }


def _earnings(result: Result, codebook: Codebook) -> dict[str, JsonValue]:
    upcoming, last = result.get("upcoming") or {}, result.get("last_reported") or {}
    return {
        "ticker": codebook.ticker(str(result.get("ticker"))),
        "upcoming": codebook.day(upcoming.get("report_date")),
        "last_reported": codebook.day(last.get("report_date")),
        "surprise_pct": _surprise(last),
    }


def _surprise(report: Result) -> JsonValue:
    actual, estimate = exact(report.get("eps_actual")), exact(report.get("eps_estimate"))
    if actual is None or not estimate:
        return None
    return plain(significant((actual - estimate) * 100 / abs(estimate)))


def _calendar(result: Result, codebook: Codebook) -> dict[str, JsonValue]:
    entries: list[JsonValue] = [
        {"ticker": code, "report_date": codebook.day(entry.get("report_date"))}
        for entry in result.get("entries") or []
        if (code := codebook.ticker(str(entry.get("ticker")))) is not None
    ]
    return {"entries": entries}


def _listings(result: Result, _: Codebook) -> dict[str, JsonValue]:
    return {"matches": len(result.get("matches") or []), "names": HIDDEN}


def _account(result: Result, codebook: Codebook) -> dict[str, JsonValue]:
    """The own account with its equity as 100."""
    equity = result.get("equity")
    positions = [_position(row, equity, codebook) for row in result.get("positions") or []]
    orders: list[dict[str, JsonValue]] = [
        {"ticker": codebook.ticker(str(row.get("ticker"))), "side": row.get("side")}
        for row in result.get("open_orders") or []
    ]
    return {
        "as_of": PRESENT,
        "cash": _part(result.get("cash"), equity),
        "equity": _part(equity, equity),
        "positions": _by_code(positions),
        "open_orders": _by_code(orders),
    }


def _by_code(rows: Sequence[dict[str, JsonValue]]) -> list[JsonValue]:
    ordered = sorted(rows, key=lambda row: f"{row.get('ticker')} {row.get('side', '')}")
    return [*ordered]


def _position(row: Result, equity: object, codebook: Codebook) -> dict[str, JsonValue]:
    quantity, price = exact(row.get("quantity")), exact(row.get("price"))
    value = None if quantity is None or price is None else quantity * price
    return _without_none(
        {
            "ticker": codebook.ticker(str(row.get("ticker"))),
            "value": _part(value, equity),
            "average_cost": _part(row.get("average_cost"), price),
            "price": _part(price, price),
            "sector": codebook.sector(str(row.get("sector", "unknown"))),
            "priced_on": codebook.day(row.get("priced_on")),
        }
    )


RESULTS: Mapping[str, Callable[[Result, Codebook], dict[str, JsonValue]]] = {
    "get_stock_price": _close,
    "get_technical_indicators": _indicators,
    "get_stock_history": _history,
    "get_fundamentals": _fundamentals,
    "get_filings": _counted,
    "get_news": _counted,
    "get_earnings": _earnings,
    "get_earnings_calendar": _calendar,
    "search_eu_stocks": _listings,
    "get_portfolio": _account,
}
"""The function that shows each tool's results."""
