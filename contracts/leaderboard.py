"""The leaderboard: how pipelines did, beside cash and holding, on the same sessions."""

from datetime import date
from decimal import Decimal
from typing import Literal

from pydantic import Field

from contracts.message import Message
from contracts.types import Currency, Name, ShortText, Text, Ticker, Usage, Value

ROWS_MAX = 100


class LeaderboardQuery(Message):
    """How did these pipelines do (all of them where none is named), by decisions of these days?"""

    since: date | None = None
    until: date | None = None
    pipelines: tuple[Name, ...] = Field(default=(), max_length=ROWS_MAX)


class LeaderboardRow(Value):
    """One pipeline, or what it is compared with, over the board's sessions.

    `return_pct` and `max_drawdown_pct` are None where it has no return yet. `hits` of `judged`
    picks went the way they were picked for, five sessions later. `vetoes` of `picks` were left
    nothing of by the reviewer or the rules. `decisions` count cycles that ended as they should,
    `failed` the others; tokens and cost are of both.
    """

    name: Name
    kind: Literal["pipeline", "cash", "buy_and_hold"]
    providers: tuple[Name, ...] = ()
    accounts: tuple[Name, ...] = ()
    return_pct: Decimal | None = None
    max_drawdown_pct: Decimal | None = None
    hits: int = 0
    judged: int = 0
    picks: int = 0
    vetoes: int = 0
    decisions: int = 0
    failed: int = 0
    usage: Usage = Usage()


class LeaderboardView(Message):
    """The board: best return first, then who has none.

    The sessions counted are the `sessions` ones after `first` up to `last` that every compared
    pipeline has a return of; `universe` is what buy-and-hold has, `absent` what had no price.
    """

    first: date | None = None
    last: date | None = None
    sessions: int = 0
    rows: tuple[LeaderboardRow, ...] = ()
    universe: tuple[Ticker, ...] = ()
    absent: tuple[Ticker, ...] = ()
    currencies: tuple[Currency, ...] = ()
    market_source: ShortText = ""
    message: Text = ""
