"""A check as plain JSON: the full result, the snapshot of it, flags, and the three formats. Pure.

The snapshot and the flags take any dict, however damaged: whoever reads them decides by them, and
must get an answer that says what is wrong rather than none.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from contracts.account import OpenOrder
from contracts.exit_signal import ExitFormat
from contracts.types import plainly
from libs.quant.exits.rules import Fired, NotEvaluated
from libs.quant.sizing import is_whole
from libs.quant.ticks import quoted
from libs.runtime.errors import listed
from services.exit_signal.logic import Assessment, ExitSizing, SellablePart, Signal, traded

Json = dict[str, Any]

SIGNALS_MAX = 5
"""Signals in a snapshot: those that fired first, then those that could not be evaluated."""
ACTIONS_MAX = 3
"""Actions in a snapshot: a sale, its stop, and one more."""
TEXT_CHARS_MAX = 2_000
COUNT_MAX = 10**15
"""More shares than any company has; a JSON reader that counts in floats still has it exactly."""
SUCCESS, ERROR = "success", "error"
SEVERITIES: Final = {"error": 0, "warning": 1, "info": 2, "success": 3}
"""The order of flags."""


# --- the full result --------------------------------------------------------------------------


def result_of(
    named: Mapping[str, str],
    held: SellablePart,
    orders: Sequence[OpenOrder],
    assessment: Assessment,
    warnings: Sequence[str] = (),
) -> Json:
    """Everything that a check found. `named` holds ticker, account and as_of; `warnings` is what
    the positions' own rules say that cannot be meant.

    Signals are in the order of `_weight`. Amounts are strings, exact to the last digit; shares,
    severities and percentages are numbers.
    """
    sizing = assessment.sizing
    return {
        "status": SUCCESS,
        **named,
        "overall_assessment": assessment.summary,
        "signals": sorted(map(_signal, assessment.signals), key=_weight),
        "trade_eligible": sizing is not None,
        "recommended_actions": _actions(named["ticker"], held, sizing) if sizing else [],
        "position": _position(held, orders),
        "sizing": _sizing(sizing, held) if sizing else None,
        "not_sold": assessment.not_sold or None,
        **({"warnings": list(warnings)} if warnings else {}),
    }


def error_of(named: Mapping[str, str], code: str, error: str) -> Json:
    """A check that could not be made, and why."""
    return {"status": ERROR, **named, "error": error, "error_code": code}


def _signal(signal: Signal) -> Json:
    rule, finding = signal.rule, signal.finding
    body: Json = {
        "rule_name": rule.name,
        "triggered": isinstance(finding, Fired),
        "severity": round(finding.severity, 4) if isinstance(finding, Fired) else 0.0,
        "is_primary": rule.is_primary,
    }
    if isinstance(finding, NotEvaluated):
        return {**body, "status": ERROR, "detail": finding.reason, "values": {}}
    values = {name: round(number(value), 6) for name, value in finding.values.items()}
    return {**body, "status": "ok", "detail": finding.detail, "values": values}


def _position(held: SellablePart, orders: Sequence[OpenOrder]) -> Json:
    position = held.position
    return {
        "shares": in_json(held.shares),
        "average_cost": str(position.average_cost.amount),
        "price": str(position.price.amount),
        "currency": position.price.currency,
        "value": str(position.value),
        "opened_on": position.opened_on.isoformat() if position.opened_on else None,
        "open_orders": [_order(order) for order in orders],
    }


def _order(order: OpenOrder) -> Json:
    body: Json = {
        "side": order.side.value,
        "quantity": in_json(order.quantity),
        "order_type": order.type.value,
    }
    if order.stop_price is None:
        return body
    price = order.stop_price
    return {**body, "stop_price": str(price.amount), "stop_currency": price.currency}


def _sizing(sizing: ExitSizing, held: SellablePart) -> Json:
    stop = sizing.stop_price
    return {
        "sell_pct": float(sizing.sell_pct),
        "sell_quantity": in_json(sizing.quantity),
        "remaining": in_json(sizing.remaining),
        "reason": sizing.reason,
        "stop_price": None if stop is None else str(stop),
        "stop_currency": None if stop is None else traded(held.position).currency,
        "no_stop": sizing.no_stop or None,
    }


def _actions(ticker: str, held: SellablePart, sizing: ExitSizing) -> list[Json]:
    sale = {
        "action": "sell",
        "ticker": ticker,
        "quantity": in_json(sizing.quantity),
        "order_type": "market",
        "reason": sizing.reason,
    }
    if sizing.stop_price is None:
        return [sale]
    price = traded(held.position)
    stop = {
        "action": "stop",
        "ticker": ticker,
        "quantity": in_json(sizing.remaining),
        "order_type": "stop",
        "stop_price": str(sizing.stop_price),
        "stop_currency": price.currency,
        "time_in_force": "gtc",
        "reason": f"on what remains, once the sale is filled; the price is {quoted(price)}",
    }
    return [sale, stop]


# --- the snapshot -----------------------------------------------------------------------------


def snapshot_of(result: Mapping[str, Any]) -> Json:
    """The snapshot to decide by: compact, capped, and fit for JSON whatever the result holds."""
    return _capped(_condensed(result))


def _capped(condensed: Json) -> Json:
    limited = {
        "signals": condensed["signals"][:SIGNALS_MAX],
        "recommended_actions": condensed["recommended_actions"][:ACTIONS_MAX],
    }
    return {**condensed, **limited}


def _condensed(result: Mapping[str, Any]) -> Json:
    """The snapshot with every signal: flags judge by what a cap would leave out too."""
    status = text(result.get("status"), ERROR)
    ticker = text(result.get("ticker"), "unknown")
    overall = text(result.get("overall_assessment"), "UNKNOWN")
    common = {"ticker": ticker, "status": status}
    if status != SUCCESS:
        why = text(result.get("error"), "unknown error")
        return {
            **common,
            "verdict": f"Exit signal check failed for {ticker}: {why}",
            "overall_assessment": overall,
            "signal_count": 0,
            "signals": [],
            "trade_eligible": False,
            "recommended_actions": [],
        }
    signals = sorted(map(_short_signal, rows(result.get("signals"))), key=_weight)
    actions = [_short_action(row, ticker) for row in rows(result.get("recommended_actions"))]
    eligible = result.get("trade_eligible") is True
    shares = count(row(result.get("position")).get("shares"))
    sizing = row(result.get("sizing"))
    sold = count(sizing.get("sell_quantity"))
    sells = f" — sell {_plain(sold)} of {_plain(shares)} shares" if eligible and actions else ""
    return {
        **common,
        "verdict": f"{ticker}: {overall}{sells}",
        "overall_assessment": overall,
        "signal_count": len(signals),
        "signals": signals,
        "trade_eligible": eligible,
        "recommended_actions": actions,
        "shares": shares,
        "sell_quantity": sold,
        "stop_price": text(sizing.get("stop_price"), "") or None,
        "stop_currency": text(sizing.get("stop_currency"), "") or None,
        **({"not_sold": not_sold} if (not_sold := text(result.get("not_sold"), "")) else {}),
    }


def _weight(signal: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    """The order of signals: what fired, what could not be evaluated, the rest; primary ones first
    of each."""
    fired = signal["triggered"] is True
    return not fired, signal["status"] != ERROR, not signal["is_primary"]


def _short_signal(signal: Mapping[str, Any]) -> Json:
    return {
        "rule_name": text(signal.get("rule_name"), "unknown"),
        "triggered": signal.get("triggered") is True,
        "severity": min(max(number(signal.get("severity")), 0.0), 1.0),
        "is_primary": signal.get("is_primary") is True,
        "status": text(signal.get("status"), "ok"),
    }


def _short_action(action: Mapping[str, Any], ticker: str) -> Json:
    return {
        "action": text(action.get("action"), "unknown"),
        "ticker": text(action.get("ticker"), ticker),
        "quantity": count(action.get("quantity")),
        "order_type": text(action.get("order_type"), "unknown"),
    }


# --- flags ------------------------------------------------------------------------------------


def flags_of(snapshot: Mapping[str, Any]) -> list[Json]:
    """The flags to look at first, by severity: errors, warnings, information, success."""
    if text(snapshot.get("status"), ERROR) != SUCCESS:
        why = text(snapshot.get("verdict"), "Exit signal evaluation failed")
        return [_flag("signal_error", "error", why)]
    signals = rows(snapshot.get("signals"))
    overall = text(snapshot.get("overall_assessment"), "")
    flags = [*_failed(signals), *_overall(overall, signals), *_recommended(snapshot)]
    return sorted(flags, key=lambda flag: SEVERITIES[flag["severity"]])


def _failed(signals: Sequence[Mapping[str, Any]]) -> list[Json]:
    names = [text(s.get("rule_name"), "unknown") for s in signals if s.get("status") == ERROR]
    if not names:
        return []
    rules = "Rule" if len(names) == 1 else "Rules"
    sentence = f"{rules} failed to evaluate: {', '.join(names)}"
    return [_flag("rule_evaluation_error", "warning", sentence)]


def _overall(overall: str, signals: Sequence[Mapping[str, Any]]) -> list[Json]:
    primary = _triggered(signals, is_primary=True) or ["momentum"]
    fired = [*primary, *(_triggered(signals, is_primary=False) or ["regime"])]
    both = "Both " if len(fired) == 2 else ""
    plural = "s" if len(primary) > 1 else ""
    # The longer beginning first: STRONG EXIT is no plain EXIT.
    table = (
        ("STRONG EXIT", "strong_exit", "warning",
         f"{both}{listed(fired)} signals triggered — strong exit signal"),
        ("EXIT", "exit_signal", "warning",
         f"Primary {listed(primary)} signal{plural} triggered — exit recommended"),
        ("MONITOR", "monitor", "info", "Secondary signal triggered — monitoring, no action yet"),
        ("HOLD", "hold", "success", "No exit signals triggered — position holds"),
        ("ERROR", "primary_rule_error", "error",
         "Primary rule failed — cannot determine exit status"),
    )  # fmt: skip
    for beginning, flag, severity, message in table:
        if overall.startswith(beginning):
            return [_flag(flag, severity, message)]
    return []


def _triggered(signals: Sequence[Mapping[str, Any]], *, is_primary: bool) -> Sequence[str]:
    """The rules of one sort that fired."""
    return [
        text(signal.get("rule_name"), "unknown")
        for signal in signals
        if signal.get("triggered") is True and (signal.get("is_primary") is True) is is_primary
    ]


def _recommended(snapshot: Mapping[str, Any]) -> list[Json]:
    sold, shares = count(snapshot.get("sell_quantity")), count(snapshot.get("shares"))
    if snapshot.get("trade_eligible") is not True or sold <= 0:
        return []
    share = sold / shares * 100 if shares > 0 else 0.0
    sentence = f"Recommended: sell {_plain(sold)} shares ({share:.0f}% of position)"
    return [_flag("trade_recommended", "info", sentence)]


def _flag(name: str, severity: str, message: str) -> Json:
    return {"flag": name, "severity": severity, "message": message}


# --- the formats ------------------------------------------------------------------------------


def shaped(result: Json, shape: ExitFormat, saved: Json | None = None) -> Json:
    """The result as it was asked for. `saved` is what became of its file, where one was wanted:
    `file_path`, and `file_error` where it could not be written.
    """
    if shape is ExitFormat.FULL:
        return {**result, "format": shape.value, **(saved or {})}
    condensed = _condensed(result)
    if shape is ExitFormat.AGENT:
        body: Json = {
            "status": SUCCESS if condensed["status"] == SUCCESS else ERROR,
            "format": shape.value,
            "snapshot": _capped(condensed),
            "flags": flags_of(condensed),
            "file_path": None,
        }
        return {**body, **_of(result, "error", "error_code", "warnings"), **(saved or {})}
    return {
        **_of(condensed, "ticker", "status", "verdict", "overall_assessment", "trade_eligible"),
        **_of(condensed, "shares", "sell_quantity", "stop_price", "stop_currency"),
        **_of(result, "account", "as_of", "error", "error_code", "warnings"),
        **(_of(result, "not_sold") if result.get("not_sold") else {}),
        "format": shape.value,
        **(saved or {}),
    }


def _of(whole: Json, *names: str) -> Json:
    return {name: whole[name] for name in names if name in whole}


# --- whatever it is, as JSON ------------------------------------------------------------------


def number(value: Any, default: float = 0.0) -> float:
    """A finite float; the default for what is none, text that reads as one included."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return default
    try:
        parsed = float(value)
    except (ValueError, OverflowError):
        return default
    return parsed if math.isfinite(parsed) else default


def in_json(shares: Decimal) -> int | float:
    """A number of shares: of up to 15 digits, which a float has exactly."""
    return int(shares) if is_whole(shares) else float(shares)


def _plain(shares: float) -> str:
    """A number of shares without an exponent."""
    return plainly(Decimal(str(shares)))


def count(value: Any) -> int | float:
    """Shares from 0 to COUNT_MAX, 0 for what is none."""
    held = min(max(number(value), 0.0), COUNT_MAX)
    return int(held) if held == int(held) else held


def text(value: Any, default: str) -> str:
    """Text that JSON can carry, cut to TEXT_CHARS_MAX; the default for what is none."""
    if not isinstance(value, str):
        return default
    # A lone surrogate is no character, and no UTF-8 can say it.
    return value[:TEXT_CHARS_MAX].encode(errors="replace").decode()


def row(value: Any) -> Mapping[str, Any]:
    """A mapping; an empty one for what is none."""
    return value if isinstance(value, Mapping) else {}


def rows(value: Any) -> Sequence[Mapping[str, Any]]:
    """The mappings in a list; none for what is no list."""
    return (
        [row for row in value if isinstance(row, Mapping)]
        if isinstance(value, list | tuple)
        else []
    )
