"""The leaderboard: how pipelines did, beside cash and holding, on the same sessions."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from contracts.message import Message
from contracts.stages import Substitute
from contracts.types import Currency, Day, Name, ShortText, Text, Ticker, Usage, Value

ROWS_MAX = 100
CURVE_POINTS_MAX = 120
KEY_PATTERN = r"^[a-z][a-z0-9_-]{0,39}@[a-z][a-z0-9_-]{0,39}$"
RowKey = Annotated[str, StringConstraints(pattern=KEY_PATTERN)]
"""A row of the board, as `rules@main`: the pipeline and the account that it trades."""


class LeaderboardQuery(Message):
    """How did these pipelines do, or these rows, by decisions of these days?

    Where neither is named: all, but for throw-away accounts and those that never traded, which are
    asked for with `everything`. Rows that are named are compared however little they share.
    """

    since: Day | None = Field(default=None, description="First session to compare.")
    until: Day | None = Field(default=None, description="Last session to compare.")
    pipelines: tuple[Name, ...] = Field(
        default=(), max_length=ROWS_MAX, description="Only these pipelines."
    )
    rows: tuple[RowKey, ...] = Field(
        default=(), max_length=ROWS_MAX, description="Only these rows, e.g. `rules@main`."
    )
    everything: bool = Field(
        default=False,
        description="Include accounts of `deskbus run` and accounts that never traded.",
    )


class LeaderboardRow(Value):
    """One pipeline on one account, or what it is compared with.

    `account` is the one that it trades; where pipelines take turns, the one whose turns they take,
    and `accounts` are all that it decided for. Figures are over the board's sessions; of a row that
    is not `compared`, over its own, of which there are `sessions`. Those that no return is known
    for are None. `sharpe` is of daily returns, a year. `won` of `closed` round trips ended with a
    gain after fees. `hits` of `judged` picks went the way they were picked for, five sessions
    later. `vetoes` of `picks` were left nothing of by the reviewer or the rules. `decisions` count
    cycles that ended as they should, `failed` the others; `fallbacks` more, whose decision rests on
    a fallback, are in no figure but tokens and cost, which are of all. `substitutes` are the stages
    that its settings give to another provider. `curve` is
    what 1 became: by the view's `days` where the row is compared.
    """

    name: Name
    kind: Literal["pipeline", "cash", "buy_and_hold"]
    providers: tuple[Name, ...] = ()
    account: Name | None = None
    accounts: tuple[Name, ...] = ()
    compared: bool = True
    sessions: int = 0
    return_pct: Decimal | None = None
    sharpe: Decimal | None = None
    max_drawdown_pct: Decimal | None = None
    closed: int = 0
    won: int = 0
    hits: int = 0
    judged: int = 0
    picks: int = 0
    vetoes: int = 0
    decisions: int = 0
    failed: int = 0
    fallbacks: int = 0
    substitutes: tuple[Substitute, ...] = ()
    usage: Usage = Usage()
    curve: tuple[Decimal, ...] = Field(default=(), max_length=CURVE_POINTS_MAX)

    @property
    def key(self) -> str:
        """`rules@main`; the name alone of what is no pipeline."""
        return f"{self.name}@{self.account}" if self.account else self.name


class LeaderboardView(Message):
    """The board: best return first, then rows that are not compared, then who has no return.

    The sessions counted are the `sessions` ones after `first` up to `last` that every compared row
    has a return of; `days` are those that curves have a point of, the first close among them.
    Nothing later is in any figure: `fills_after` is how many fills of the compared accounts are.
    `universe` is what buy-and-hold has, `absent` what had no price. `hidden` rows are not shown:
    throw-away accounts and those that never traded.
    """

    first: date | None = None
    last: date | None = None
    sessions: int = 0
    fills_after: int = 0
    rows: tuple[LeaderboardRow, ...] = ()
    days: tuple[date, ...] = Field(default=(), max_length=CURVE_POINTS_MAX)
    hidden: int = 0
    universe: tuple[Ticker, ...] = ()
    absent: tuple[Ticker, ...] = ()
    currencies: tuple[Currency, ...] = ()
    market_source: ShortText = ""
    message: Text = ""
