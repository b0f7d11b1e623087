"""Results of a strategy's run: training, backtest, and the assessment.

A figure that is not defined (a win rate without a trade, a Sharpe ratio without variation) is None,
never a stand-in. `libs/quant` says by which formula each is computed.
"""

from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from contracts.gate import Fraction, GateResult
from contracts.message import Contract
from contracts.reasons import Reasoned
from contracts.strategy import (
    EPOCHS_MAX,
    FEATURES_MAX,
    FOLDS_MAX,
    STRATEGY_UNIVERSE_MAX,
    Period,
)
from contracts.types import Currency, ShortText, Text, Ticker, Value

SESSIONS_MAX = 5_000
TRADES_SHOWN_MAX = 200
PRICED_TICKERS_MAX = 6
PRICES_SHOWN_MAX = 20_000
"""Closes of all tickers shown: what a message has room for."""

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Loss = Annotated[float, Field(ge=0)]
Points = Annotated[tuple[Text, ...], Field(min_length=2, max_length=4)]


class FoldResult(Value):
    """One step of the walk forward: learned on `train`, tried on `test`, which lies after it."""

    train: Period
    test: Period
    train_rows: int = Field(ge=1)
    test_rows: int = Field(ge=1)
    accuracy: Fraction
    base_rate: Fraction
    log_loss: Loss
    base_log_loss: Loss


class TrainingResult(Contract):
    """A trained model and how well it did out of sample.

    `accuracy`, `base_rate`, `log_loss` and `base_log_loss` are means over the folds' tests; the
    base rate is the accuracy of always saying what was more frequent in the fold's training rows,
    its log-loss that of always giving their frequency. `initial_loss` and `final_loss` are the
    first and last training loss of the final fit (for logistic regression and boosting the first is
    the base rate's), and `loss_curve` is what lies between.
    """

    strategy_name: ShortText
    accuracy: Fraction
    base_rate: Fraction
    log_loss: Loss
    base_log_loss: Loss
    initial_loss: Loss
    final_loss: Loss
    loss_curve: tuple[float, ...] = Field(min_length=2, max_length=EPOCHS_MAX + 1)
    folds: tuple[FoldResult, ...] = Field(min_length=1, max_length=FOLDS_MAX)
    features: tuple[ShortText, ...] = Field(min_length=1, max_length=FEATURES_MAX)
    rows: int = Field(ge=1)
    seed: int = Field(ge=0)
    spec_sha256: Sha256
    data_sha256: Sha256
    model_sha256: Sha256
    gate: GateResult | None = None

    @property
    def skill(self) -> float:
        """Accuracy over the base rate."""
        return self.accuracy - self.base_rate

    @property
    def loss_decrease(self) -> float:
        """The part of the first loss that training took away; 0 where there was none to take."""
        return loss_decrease(self.initial_loss, self.final_loss)


def loss_decrease(initial: float, final: float) -> float:
    """(initial - final) / initial, and 0 where initial is not above 0."""
    return (initial - final) / initial if initial > 0 else 0.0


class TradeShown(Value):
    """One round trip of a ticker, with costs in both prices; still open where `exit` is None."""

    ticker: Ticker
    side: Literal["long", "short"]
    quantity: float
    entry: date
    entry_price: float
    exit: date | None = None
    exit_price: float | None = None
    profit: float
    return_pct: float


class PricesShown(Value):
    """A ticker's adjusted closes, one a session of the held-out period."""

    ticker: Ticker
    closes: tuple[float, ...] = Field(max_length=SESSIONS_MAX)


class BacktestResult(Contract):
    """A strategy on its held-out period, after costs.

    Fractions, not percent: `max_drawdown` 0.12 is a fall of 12% from the highest equity before.
    `exposure` is the mean of the invested share of equity, `turnover` what was traded in a year
    over the mean equity. `benchmark_*` is buying the same universe at the first open and holding
    it, with the same costs. `deflated_sharpe` is how probable it is that the Sharpe ratio is not
    the luck of having tried `trials` strategies, this one included; None where nobody counted. The
    three series have one value a session, and so have `prices`, of the tickers traded most.
    Prices are in the ticker's own of the `currencies`. Equity, fees and profit are too: where the
    universe has several currencies, one unit of each counts the same, as no rate is applied.
    """

    strategy_name: ShortText
    held_out: Period
    capital: float
    sharpe_ratio: float | None
    sortino_ratio: float | None
    win_rate: Fraction | None
    max_drawdown: float = Field(ge=0)
    total_return: float
    cagr: float | None
    turnover: float = Field(ge=0)
    exposure: float = Field(ge=0)
    total_trades: int = Field(ge=0)
    fees: float = Field(ge=0)
    benchmark_return: float
    benchmark_sharpe_ratio: float | None
    deflated_sharpe: Fraction | None = None
    trials: int = Field(default=1, ge=1)
    sessions: tuple[date, ...] = Field(min_length=1, max_length=SESSIONS_MAX)
    equity: tuple[float, ...] = Field(min_length=1, max_length=SESSIONS_MAX)
    benchmark: tuple[float, ...] = Field(min_length=1, max_length=SESSIONS_MAX)
    trades: tuple[TradeShown, ...] = Field(default=(), max_length=TRADES_SHOWN_MAX)
    prices: tuple[PricesShown, ...] = Field(default=(), max_length=PRICED_TICKERS_MAX)
    currencies: dict[Ticker, Currency] = Field(min_length=1, max_length=STRATEGY_UNIVERSE_MAX)
    spec_sha256: Sha256
    data_sha256: Sha256
    model_sha256: Sha256
    gate: GateResult | None = None

    @model_validator(mode="after")
    def _series_have_one_length(self) -> Self:
        for name in ("equity", "benchmark"):
            if len(getattr(self, name)) != len(self.sessions):
                raise ValueError(f"{name} has not one value for each of the sessions")
        if any(len(series.closes) != len(self.sessions) for series in self.prices):
            raise ValueError("prices has not one close for each of the sessions")
        return self


class Verdict(StrEnum):
    """The assessor's verdict on the strategy."""

    PROMISING = "promising"
    MEDIOCRE = "mediocre"
    POOR = "poor"


class AssessmentDraft(Value):
    """The arguments of `save_assessment`: two to four points of each kind."""

    verdict: Verdict
    strengths: Points
    weaknesses: Points
    suggestions: Points


class StrategyAssessment(AssessmentDraft, Reasoned):
    """An assessment as it is kept; the file at `path`, `strategies/<name>/assessment.json`, shows
    it. Code has written out the facts that its points name (`strengths.0`, ...)."""

    strategy_name: ShortText
    path: Text = ""
    assessed_at: datetime
