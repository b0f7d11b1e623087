"""An account against its limits: what is used, what was cut, and which setting to change. Pure."""

from collections.abc import Mapping
from decimal import Decimal

from contracts.message import MAIN_ACCOUNT
from contracts.plugins import rule_words
from contracts.risk_use import LimitPreview, LimitUse, LimitValue, RiskView
from contracts.types import Money
from libs.facts import amounts
from libs.report import view
from libs.report.tones import Tone
from libs.report.view import Column, NoRows, Table, Text

NEAR = Decimal(80)
"""From so many percent of a limit on it is said to be near."""
PCT, SESSIONS, POINTS, SHARES = "%", "session", "of 10", "share"
LIMITS: Mapping[str, tuple[str, str]] = {
    "gross_exposure_pct_max": ("Everything held, of equity", PCT),
    "sector_pct_max": ("One sector, of equity", PCT),
    "position_pct_max": ("One position, of equity", PCT),
    "cluster_pct_max": ("What moves together, of equity", PCT),
    "volatility_pct_max": ("Volatility of a year", PCT),
    "risk_per_trade_pct_max": ("Loss of one trade at its stop, as bought", PCT),
    "daily_loss_pct_max": ("Loss of the day, of equity", PCT),
    "order_pct_max": ("One order, of equity", PCT),
    "price_move_pct_max": ("Price moved since the finding", PCT),
    "risk_score_max": ("Risk score of a share", POINTS),
    "cooling_off_sessions": ("No buy after a sale", SESSIONS),
    "report_sessions": ("No buy before a report", SESSIONS),
    "position_shares_min": ("Least buy", SHARES),
    "position_value_min": ("Least buy, in money", ""),
}
"""The limits in the order in which they are shown: in words, and the unit."""
EXAMPLE = "position_pct_max"


def heading(of: RiskView) -> tuple[Text, ...]:
    """The figures that no limit holds, and a halt."""
    stops = f"{_money(of.at_stops, of)} is lost if every stop fills at its price"
    bare = f"; {_money(of.unprotected, of)} has no stop"
    return (
        *view.notes(of.halted, tone=Tone.BAD),
        *view.notes(stops + (bare if of.unprotected else "")),
    )


def table(of: RiskView, account: str) -> Table:
    """A row for each limit, its use first."""
    own = None if account == MAIN_ACCOUNT else account
    by_name = {it.limit: it for it in of.limits}
    return view.table(
        (
            "Limit",
            Column("Used", right=True),
            Column("Allowed", right=True),
            Column("Share", right=True, spare=2),
            Column("Most of it, or as last measured", wraps=True, spare=3),
            Column("Setting", spare=1),
        ),
        (
            (
                words,
                _used(by_name[name], unit),
                _amount(by_name[name].allowed, unit),
                _share(by_name[name]),
                _of(by_name[name]),
                setting(name, own),
            )
            for name, (words, unit) in LIMITS.items()
            if name in by_name
        ),
        notes=view.notes(f"change one: deskbus config set {setting(EXAMPLE, own)} 20"),
    )


def bars(of: RiskView) -> tuple[tuple[str, LimitUse, str, str], ...]:
    """The limits whose use is known, in words: name, use, `24% of 40%`, and what uses the most."""
    by_name = {it.limit: it for it in of.limits}
    return tuple(
        (words, use, f"{_amount(use.used, unit)} of {_amount(use.allowed, unit)}", use.by)
        for name, (words, unit) in LIMITS.items()
        if (use := by_name.get(name)) is not None and use.used is not None
    )


def setting(limit: str, account: str | None) -> str:
    """The setting of a limit of all accounts (None), or of one account's own."""
    return f"limits.{limit}" if account is None else f"accounts.{account}.limits.{limit}"


def amount_of(limit: str, value: LimitValue) -> str:
    """The value of a limit with its unit; `true` or `false` of a switch."""
    if isinstance(value, bool):
        return str(value).lower()
    return _amount(value, LIMITS[limit][1] if limit in LIMITS else "")


def loosens(limit: str, before: LimitValue, value: LimitValue) -> bool:
    """Whether the rules allow more by the new value: by more of a most, by less of all others."""
    return value > before if limit.endswith("_max") else value < before


def preview(
    limit: str, before: LimitValue, then: LimitValue, seen: Mapping[str, LimitPreview]
) -> tuple[Table, Table]:
    """What another value of a limit would mean, by account: its use, and the buys of the newest
    decision."""
    of_each = [amount_of(limit, value) for value in (before, then)]
    use = view.table(
        (
            "Account",
            Column("Used", right=True),
            *(Column(f"Of {it}", right=True) for it in of_each),
            Column("Most of it, or as last measured", wraps=True, spare=1),
        ),
        (
            (
                account,
                _used(it.use, LIMITS[limit][1]),
                _share(it.use),
                _share(it.use.model_copy(update={"allowed": then})),
                _of(it.use),
            )
            for account, it in seen.items()
            if it.use is not None
        ),
    )
    buys = view.table(
        (
            "Newest decision",
            "Buy",
            *(Column(f"Shares by {it}", right=True) for it in of_each),
            Column("Why", wraps=True, spare=1),
        ),
        (
            (
                f"{account}, {amounts.session(it.decided_on)}",
                buy.ticker,
                view.shares(buy.shares),
                view.shares(buy.then),
                buy.reason,
            )
            for account, it in seen.items()
            for buy in it.buys
            if it.decided_on is not None
        ),
        empty=NoRows(_unchanged(seen)),
    )
    return use, buys


def _unchanged(seen: Mapping[str, LimitPreview]) -> str:
    judged = sum(it.judged for it in seen.values())
    if not judged:
        return "No buy of a newest decision is on record to be judged by it."
    return f"Of {amounts.count(judged, 'buy')} of the newest decisions it changes none."


def share_of(use: LimitUse) -> Decimal | None:
    """How much of the limit is used, in percent; None where nothing is measured."""
    if use.used is None:
        return None
    return use.used * 100 / use.allowed if use.allowed else Decimal(100 if use.used else 0)


def tone_of(use: LimitUse) -> Tone | None:
    """Bad where it is reached, a warning where it is near."""
    share = share_of(use)
    if share is None or share < NEAR:
        return None
    return Tone.BAD if share >= 100 else Tone.WARN


def _money(amount: Decimal, of: RiskView) -> str:
    return amounts.money(Money(amount=amount, currency=of.currency or "USD"))


def _used(use: LimitUse, unit: str) -> view.Cell:
    if use.used is None:
        return view.unknown()
    return view.say(_amount(use.used, unit), tone_of(use))


def _share(use: LimitUse) -> view.Cell:
    share = share_of(use)
    return view.BLANK if share is None else view.say(f"{share:.0f}%", tone_of(use))


def _of(use: LimitUse) -> str:
    if use.measured_on is not None:
        return f"{amounts.session(use.measured_on)}: {use.measured}"
    return use.by


def _amount(amount: Decimal, unit: str) -> str:
    if unit == PCT:
        return f"{amount.normalize():f}%"
    if unit in {SESSIONS, SHARES}:
        return amounts.count(int(amount), unit)
    return f"{amount.normalize():f} {unit}" if unit else amounts.figure(amount)


def cuts(of: RiskView) -> Table:
    """The rules that cut or vetoed, the most frequent first."""
    return view.table(
        (
            "Rule",
            "Cut",
            "Vetoed",
            "Newest",
            "Ticker",
            Column("Why", wraps=True, spare=2),
            Column("Cycle", spare=1),
        ),
        (
            (
                rule_words(it.rule),
                view.count(it.cut),
                view.count(it.vetoed),
                view.day(it.as_of),
                it.ticker or "",
                it.reason,
                view.decision(it.cycle_id, it.pipeline),
            )
            for it in of.cuts
        ),
        empty=NoRows("No rule cut anything."),
    )
