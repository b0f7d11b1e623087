"""The leaderboard's columns in a trader's words; those that would be empty, or the same in
each row, are left out. Pure."""

from collections.abc import Callable, Sequence
from decimal import Decimal

from contracts.leaderboard import LeaderboardRow
from libs.facts import amounts

TextOf = Callable[[LeaderboardRow], str]
Column = tuple[str, TextOf]
DAYS = "Days"


def columns(rows: Sequence[LeaderboardRow]) -> Sequence[Column]:
    """The figures beside the return, each with its title, that any of the rows has."""
    same = len({row.sessions for row in rows}) < 2  # the head says how many
    return [
        (title, text_of)
        for title, has, text_of in _COLUMNS
        if any(map(has, rows)) and not (same and title == DAYS)
    ]


def _share(part: int, whole: int) -> str:
    return amounts.percent(Decimal(part * 100) / whole) if whole else amounts.UNKNOWN


def _ratio(value: Decimal | None) -> str:
    return amounts.UNKNOWN if value is None else f"{value:.2f}"


def _drawdown(row: LeaderboardRow) -> str:
    pct = row.max_drawdown_pct
    return amounts.UNKNOWN if pct is None else amounts.percent(pct)


def _is_own(row: LeaderboardRow) -> bool:
    return row.kind == "pipeline"


def _win_rate(row: LeaderboardRow) -> str:
    return f"{_share(row.won, row.closed)} of {row.closed:,}" if row.closed else amounts.UNKNOWN


def _hits(row: LeaderboardRow) -> str:
    return f"{row.hits:,} of {row.judged:,}" if row.judged else amounts.UNKNOWN


def _vetoed(row: LeaderboardRow) -> str:
    return f"{row.vetoes:,} of {row.picks:,}" if row.picks else amounts.UNKNOWN


def _decisions(row: LeaderboardRow) -> str:
    failed = f" + {row.failed:,} failed" if row.failed else ""
    return f"{row.decisions:,}{failed}" if _is_own(row) else amounts.UNKNOWN


def _cost(row: LeaderboardRow) -> str:
    return f"${amounts.money(row.usage.cost_usd)}" if _is_own(row) else amounts.UNKNOWN


_COLUMNS: Sequence[tuple[str, Callable[[LeaderboardRow], bool], TextOf]] = (
    ("Sharpe", lambda row: row.sharpe is not None, lambda row: _ratio(row.sharpe)),
    ("Max drawdown", lambda row: row.max_drawdown_pct is not None, _drawdown),
    ("Win rate", lambda row: row.closed > 0, _win_rate),
    (DAYS, lambda row: row.sessions > 0, lambda row: amounts.thousands(row.sessions)),
    ("Model cost", lambda row: row.usage.cost_usd > 0, _cost),
    ("Decisions", _is_own, _decisions),
    ("Hits", lambda row: row.judged > 0, _hits),
    ("Vetoed", lambda row: row.picks > 0, _vetoed),
)
"""Title, whether a row has it, and its words; the most telling ones first. The win rate is of
closed round trips; days are the sessions of the return."""
