"""The leaderboard as a table: columns that would be empty, or the same in each row, are left out.
Pure."""

from collections.abc import Callable, Sequence

from contracts.leaderboard import LeaderboardRow, LeaderboardView
from libs.facts import amounts
from libs.report import cutoff, links
from libs.report import view as cells
from libs.report.performance import win_rate
from libs.report.tones import Tone
from libs.report.view import BLANK, Cell, Column, NoRows, Row, Table

CellOf = Callable[[LeaderboardRow], Cell]
Figure = tuple[Column | str, CellOf]
DAYS = Column("Days", spare=6)
HEADS = ("Pipeline", "Account", "Equity", "Return")


def heading(view: LeaderboardView) -> str:
    """`240 sessions, from the close of Wed 2009-07-01 to Tue 2010-06-15`."""
    if not view.sessions:
        return ""
    count = amounts.count(view.sessions, "session")
    span = f"{amounts.session(view.first)} to {amounts.session(view.last)}"
    return f"{count}, from the close of {span}"


def board(view: LeaderboardView) -> Table:
    """The rows, the best return first."""
    shown = figures(view.rows)
    return cells.table(
        (*HEADS, *(column for column, _ in shown)),
        (_row(row, shown) for row in view.rows),
        title="Leaderboard",
        empty=NoRows(f"Nothing to compare yet: {view.message or 'no decision cycle has ended'}."),
    )


def notes(view: LeaderboardView) -> tuple[str, ...]:
    """The sentences below the board."""
    later = cutoff.fills_after(view.fills_after)
    absent = f"; no price for {' '.join(view.absent)}" if view.absent else ""
    return (
        view.message,
        f"not counted yet, as they came after {amounts.session(view.last)}: {later}"
        if later
        else "",
        f"buy-and-hold: equal parts of {' '.join(view.universe)}{absent}" if view.universe else "",
        "win rate: of closed round trips; hits: filled picks that moved the right way within 5 "
        f"sessions; prices: {view.market_source}"
        if view.sessions
        else "",
        *(
            f"{row.key}: {amounts.count(row.fallbacks, 'decision')} left out, as a stage was "
            "answered by its fallback"
            for row in view.rows
            if row.fallbacks
        ),
        *(
            f"{row.key} took turns: it decided for {', '.join(row.accounts)}"
            for row in view.rows
            if row.accounts not in {(), (row.account,)}
        ),
        f"returns are in each account's own currency: {', '.join(view.currencies)}"
        if len(view.currencies) > 1
        else "",
    )


def hidden(view: LeaderboardView) -> str:
    """`3 rows without trades or of throw-away accounts`; empty where all are shown."""
    rows = amounts.count(view.hidden, "row")
    return f"{rows} without trades or of throw-away accounts" if view.hidden else ""


def _row(row: LeaderboardRow, shown: Sequence[Figure]) -> Row:
    tone = None if _is_own(row) else Tone.QUIET
    account = row.account or ""
    return cells.row(
        cells.say(_name(row), tone),
        cells.say(account, link=links.performance(account)) if account else BLANK,
        cells.curve(row.curve) if row.curve else BLANK,
        cells.gain_percent(row.return_pct),
        *(cell_of(row).toned(tone) for _, cell_of in shown),
        key=row.key,
    )


def _name(row: LeaderboardRow) -> str:
    """The pipeline's name, with its provider where that has another name, and with the stages that
    its settings give to others."""
    others = row.providers if any(name != row.name for name in row.providers) else ()
    beside = ", ".join([*others, *(one.in_short for one in row.substitutes)])
    return f"{row.name} ({beside})" if beside else row.name


def figures(rows: Sequence[LeaderboardRow]) -> Sequence[Figure]:
    """The figures beside the return that any of the rows has."""
    same = len({row.sessions for row in rows}) < 2  # the head says how many
    return [
        (column, cell_of)
        for column, has, cell_of in _FIGURES
        if any(map(has, rows)) and not (same and column is DAYS)
    ]


def _is_own(row: LeaderboardRow) -> bool:
    return row.kind == "pipeline"


def _of(part: int, whole: int) -> Cell:
    return cells.say(f"{part:,} of {whole:,}") if whole else cells.unknown()


def _decisions(row: LeaderboardRow) -> Cell:
    failed = f" + {row.failed:,} failed" if row.failed else ""
    return cells.say(f"{row.decisions:,}{failed}") if _is_own(row) else cells.unknown()


def _cost(row: LeaderboardRow) -> Cell:
    if not _is_own(row):
        return cells.unknown()
    return cells.say(amounts.paid(row.usage.cost_usd, 2, sign="$"))


_FIGURES: Sequence[tuple[Column, Callable[[LeaderboardRow], bool], CellOf]] = (
    (
        Column("Sharpe", spare=8),
        lambda row: row.sharpe is not None,
        lambda row: cells.ratio(row.sharpe),
    ),
    (
        Column("Max drawdown", spare=9),
        lambda row: row.max_drawdown_pct is not None,
        lambda row: cells.percent(row.max_drawdown_pct),
    ),
    (
        Column("Win rate", right=True, spare=7),
        lambda row: row.closed > 0,
        lambda row: cells.say(win_rate(row.won, row.closed)) if row.closed else cells.unknown(),
    ),
    (
        DAYS,
        lambda row: row.sessions > 0,
        lambda row: cells.count(row.sessions),
    ),
    (
        Column("Model cost", right=True, spare=5),
        lambda row: row.usage.cost_usd != 0,
        _cost,
    ),
    (Column("Decisions", right=True, spare=4), _is_own, _decisions),
    (
        Column("Hits", right=True, spare=3),
        lambda row: row.judged > 0,
        lambda row: _of(row.hits, row.judged),
    ),
    (
        Column("Vetoed", right=True, spare=2),
        lambda row: row.picks > 0,
        lambda row: _of(row.vetoes, row.picks),
    ),
)
"""A column, whether a row has it, and its cell; the win rate is of closed round trips, days are the
sessions of the return."""
