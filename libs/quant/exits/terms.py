"""Terms of single positions, as `exit_signals.toml` beside deskbus.toml states them.

    [default]                      every position
    stop_pct = 8

    [position.AAPL]                AAPL, of whatever account
    stop_price = 95.00
    [position.AAPL.stop_loss]
    pct = 15

    [position."growth/AAPL"]       AAPL of the account growth

The most particular entry that names something wins.
"""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic import model_validator as checked

from contracts.account import POSITION_SHARES_MIN, POSITION_VALUE_MIN
from contracts.types import Amount, Name, Ticker

BASKET_MAX = 500
LEAST_GAP_PCT = 0.5
"""Selling and buying back costs about 0.2% by fee and slippage (5 basis points each, both ways),
and the open is seldom where the close was: a month that is worse by less than half a point cannot
pay for it."""
STOPS = {"stop_price", "stop_pct"}

Percentage = Annotated[Decimal, Field(gt=0, le=100, decimal_places=4)]
_TICKER = TypeAdapter[str](Ticker)
_ACCOUNT = TypeAdapter[str](Name)


def _key(value: Any) -> str:
    """`TICKER` or `account/TICKER`, the ticker in capitals."""
    account, _, ticker = str(value).rpartition("/")
    try:
        if account:
            return f"{_ACCOUNT.validate_python(account)}/{_TICKER.validate_python(ticker)}"
        return _TICKER.validate_python(ticker)
    except ValidationError:
        raise ValueError("name a position by TICKER or account/TICKER") from None


Key = Annotated[str, BeforeValidator(_key)]


class TermsPart(BaseModel):
    """A mistyped name is refused: a rule that silently does nothing protects nobody."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SellTerms(TermsPart):
    """The terms of every further rule: whether it decides by itself, and how much it sells."""

    primary: bool = True
    sell_pct: Percentage = Decimal(100)


class StopLoss(SellTerms):
    """Fires at `pct` percent below the average cost."""

    pct: Annotated[float, Field(gt=0, lt=100)]


class TakeProfit(SellTerms):
    """Fires at `pct` percent above the average cost."""

    pct: Annotated[float, Field(gt=0, le=10_000)]
    sell_pct: Percentage = Decimal(50)


class HoldPeriod(SellTerms):
    """Fires once the position was held for `sessions` sessions."""

    sessions: Annotated[int, Field(ge=1, le=10_000)]


class TrailingStop(SellTerms):
    """Fires at `pct` percent below the highest close since the position was opened."""

    pct: Annotated[float, Field(gt=0, lt=100)]


class Momentum(TermsPart):
    """Fires where the last month is `least_gap_pct` percentage points or more below the mean."""

    least_gap_pct: Annotated[float, Field(ge=0, le=100)] = LEAST_GAP_PCT


class ExitTerms(TermsPart):
    """The terms of one position. Both ways to name a stop at once are refused.

    `stop_price` is in the currency that the ticker trades in; `stop_pct` is percent below as_of's
    close. The basket of the regime is what the account holds, where none is named. A sale that
    would leave fewer than `rest_shares_min` shares, or less than `rest_value_min` in the account's
    currency, sells all.
    """

    momentum: Momentum = Momentum()
    rest_shares_min: int = Field(default=POSITION_SHARES_MIN, ge=0, le=1_000_000)
    rest_value_min: Amount = Field(default=POSITION_VALUE_MIN, ge=0)

    basket: tuple[Ticker, ...] = Field(default=(), max_length=BASKET_MAX)
    stop_price: Decimal | None = Field(default=None, gt=0, max_digits=20, decimal_places=6)
    stop_pct: Annotated[float, Field(gt=0, lt=100)] | None = None
    stop_loss: StopLoss | None = None
    take_profit: TakeProfit | None = None
    hold_period: HoldPeriod | None = None
    trailing_stop: TrailingStop | None = None

    @checked(mode="after")
    def _one_stop(self) -> Self:
        if self.stop_price is not None and self.stop_pct is not None:
            raise ValueError("name stop_price or stop_pct, not both")
        return self


class TermsFile(TermsPart):
    """The whole file, or what of it concerns some positions."""

    default: ExitTerms = ExitTerms()
    position: dict[Key, ExitTerms] = Field(default_factory=dict, max_length=5_000)

    def only(self, account: str, tickers: Collection[str]) -> "TermsFile":
        """The terms of these positions of the account."""
        keys = {*tickers, *(f"{account}/{ticker}" for ticker in tickers)}
        entries = {key: entry for key, entry in self.position.items() if key in keys}
        return self.model_copy(update={"position": entries})

    def named(self, account: str) -> Mapping[str, str]:
        """By ticker that the file names for the account: the place that names it."""
        tickers = dict.fromkeys(self.default.basket, "default.basket")
        for key, entry in self.position.items():
            owner, _, ticker = key.rpartition("/")
            if owner in ("", account):
                tickers |= dict.fromkeys(entry.basket, f"position.{key}.basket")
                tickers[ticker] = f"position.{key}"
        return tickers

    def owners(self) -> Mapping[str, str]:
        """By account that the file names: the first place that names it."""
        places = {key.rpartition("/")[0]: f"position.{key}" for key in reversed(self.position)}
        return {account: place for account, place in places.items() if account}

    def of(self, account: str, ticker: str) -> ExitTerms:
        """The terms of one position."""
        merged: dict[str, Any] = {}
        entries = (
            self.default,
            self.position.get(ticker),
            self.position.get(f"{account}/{ticker}"),
        )
        for entry in entries:
            terms = {} if entry is None else entry.model_dump(exclude_unset=True)
            if STOPS & terms.keys():
                merged = {name: value for name, value in merged.items() if name not in STOPS}
            merged |= terms
        return ExitTerms.model_validate(merged)
