"""A strategy's design. What its run finds is in `contracts/strategy_result.py`.

A spec is all that a run needs besides prices: the same spec, prices and code give the same result.
Everything in it is decided at a session's close and filled at the next open; nothing may look
ahead, and each refusal names its field.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from contracts.indicator import INDICATORS
from contracts.message import Request
from contracts.types import ShortText, Text, Ticker, Value

STRATEGY_NAME_PATTERN = r"[a-z][a-z0-9_-]{0,59}"
STRATEGY_NAME_MAX = 60
STRATEGY_UNIVERSE_MAX = 500
FEATURES_MAX = 32
CONDITIONS_MAX = 8
HORIZON_BARS_MAX = 63
CAPITAL_MAX = 1e12
COST_BPS_MAX = 1_000
EPOCHS_MAX = 1_000
FOLDS_MAX = 20
ATTEMPTS_MAX = 20
"""Designs of one cycle."""
PROBABILITY = "probability"
"""What the model gives: how probable a label of 1 is."""


class Part(Value):
    """A part of a spec. Unknown fields are refused: a typing mistake must not pass silently."""

    model_config = ConfigDict(extra="forbid")


class FeatureSpec(Part):
    """An indicator with its parameters; those left out have the indicator's defaults.

    `contracts/indicator.py` lists what there is.
    """

    indicator: ShortText
    parameters: dict[str, float] = Field(default_factory=dict, validate_default=True)

    @field_validator("indicator")
    @classmethod
    def _indicator_is_known(cls, name: str) -> str:
        known = _named(name, INDICATORS)
        if known is None:
            raise ValueError(f"unknown indicator; there are {', '.join(sorted(INDICATORS))}")
        return known

    @field_validator("parameters")
    @classmethod
    def _parameters_fit(
        cls, parameters: dict[str, float], info: ValidationInfo
    ) -> dict[str, float]:
        name = info.data.get("indicator")
        if name is None:
            return parameters  # the indicator's own error is told instead
        wanted = INDICATORS[name].parameters
        named = {_named(key, wanted): value for key, value in parameters.items()}
        if None in named or len(named) < len(parameters):
            takes = f"these parameters only: {', '.join(wanted)}" if wanted else "no parameters"
            raise ValueError(f"{name} takes {takes}")
        full = {key: named.get(key, row.default) for key, row in wanted.items()}
        for key, value in full.items():
            row = wanted[key]
            if not row.least <= value <= row.most:
                raise ValueError(f"{key} must be {row.least:g} to {row.most:g}")
            if row.whole and value != int(value):
                raise ValueError(f"{key} must be a whole number")
        if {"fast", "slow"} <= set(full) and full["fast"] >= full["slow"]:
            raise ValueError("fast must be below slow")
        return full

    @property
    def key(self) -> str:
        """The name that rules and reports call it by: `rsi(14)`."""
        return f"{self.indicator}({', '.join(f'{value:g}' for value in self.parameters.values())})"


class LabelSpec(Part):
    """The label that the model learns: 1 where the return from the next open over `horizon_bars`
    sessions is above `return_pct_min`, else 0. The return is between opens, since that is where
    orders fill.
    """

    horizon_bars: int = Field(default=5, ge=1, le=HORIZON_BARS_MAX)
    return_pct_min: float = Field(default=0.0, ge=-50, le=50)


class MlpSpec(Part):
    """A multi-layer perceptron (scikit-learn's MLPClassifier, adam, no early stopping)."""

    kind: Literal["mlp"] = "mlp"
    hidden: tuple[Annotated[int, Field(ge=1, le=256)], ...] = Field(
        (16,), min_length=1, max_length=3
    )
    activation: Literal["relu", "tanh"] = "relu"
    l2: float = Field(default=1e-4, ge=0, le=100)
    learning_rate: float = Field(default=1e-3, gt=0, le=1)
    batch_rows: int = Field(default=200, ge=1, le=100_000)
    epochs: int = Field(default=60, ge=1, le=EPOCHS_MAX)


class LogisticSpec(Part):
    """Logistic regression with an L2 penalty; `c` is the inverse of its strength."""

    kind: Literal["logistic"] = "logistic"
    c: float = Field(default=1.0, gt=0, le=1e6)


class BoostingSpec(Part):
    """Gradient-boosted trees with log-loss."""

    kind: Literal["gradient_boosting"] = "gradient_boosting"
    trees: int = Field(default=60, ge=1, le=300)
    learning_rate: float = Field(default=0.1, gt=0, le=1)
    depth: int = Field(default=3, ge=1, le=6)
    leaf_rows_min: int = Field(default=20, ge=1, le=100_000)


ModelSpec = Annotated[MlpSpec | LogisticSpec | BoostingSpec, Field(discriminator="kind")]


class Condition(Part):
    """`of` (`probability` or a feature's key) above or below a number at a session's close.

    `bars_ago` looks back that many sessions; it is never negative, which would be a look ahead.
    """

    of: ShortText
    above: float | None = None
    below: float | None = None
    bars_ago: int = Field(default=0, le=250)

    @field_validator("bars_ago")
    @classmethod
    def _looks_back(cls, bars: int) -> int:
        if bars < 0:
            raise ValueError("it looks ahead: a rule sees this close and those before; use 0")
        return bars

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.above is None and self.below is None:
            raise ValueError("needs `above` or `below`, or nothing is compared")
        return self


Conditions = Annotated[tuple[Condition, ...], Field(max_length=CONDITIONS_MAX)]


class EntryRules(Part):
    """A position is opened where all conditions of its side hold. No `short`: long or flat."""

    long: Conditions = ()
    short: Conditions = ()

    @model_validator(mode="after")
    def _some_side_can_open(self) -> Self:
        if not self.long and not self.short:
            raise ValueError("names no condition: nothing would ever be traded")
        return self


class ExitRules(Part):
    """A position is closed where any condition of its side, or one of these limits, is met.

    `hold_bars_max` counts sessions from the fill. `stop_loss_pct` and `take_profit_pct` compare the
    close with the price paid, and like all else they act at the next open.
    """

    long: Conditions = ()
    short: Conditions = ()
    hold_bars_max: int | None = Field(default=None, ge=1, le=2_520)
    stop_loss_pct: float | None = Field(default=None, gt=0, lt=100)
    take_profit_pct: float | None = Field(default=None, gt=0, le=1_000)

    def can_close(self, side: Literal["long", "short"]) -> bool:
        """True where a position of this side can close before the period ends."""
        return bool(getattr(self, side)) or self.hold_bars_max is not None


PositionPct = Annotated[float, Field(gt=0, le=100)]


class SizingSpec(Part):
    """How large a position is. The capital is split evenly over the universe's tickers; each trades
    `position_pct` of what its own part has grown to.
    """

    capital: float = Field(default=100_000.0, gt=0, le=CAPITAL_MAX)
    position_pct: PositionPct = 100.0


class CostSpec(Part):
    """The paper broker's costs: fee on the traded value, fills that much worse than the open."""

    fee_bps: float = Field(default=5.0, ge=0, le=COST_BPS_MAX)
    slippage_bps: float = Field(default=5.0, ge=0, le=COST_BPS_MAX)


class Period(Part):
    """Sessions from `first` to `last`, both included."""

    first: date
    last: date

    @field_validator("last")
    @classmethod
    def _last_after_first(cls, last: date, info: ValidationInfo) -> date:
        first = info.data.get("first")
        if first is not None and last <= first:
            raise ValueError("it must be after first")
        return last


class FoldSpec(Part):
    """The walk forward inside the training period: each fold learns on what came before it.

    `embargo_bars` sessions before each test are left out besides those whose labels reach into it.
    """

    count: int = Field(default=5, ge=2, le=FOLDS_MAX)
    embargo_bars: int = Field(default=5, ge=0, le=250)


class _Idea(BaseModel):
    """The idea of a design, by whoever wrote it: features, label, model and rules."""

    model_config = ConfigDict(defer_build=True)

    name: str
    hypothesis: Text = Field(min_length=1)
    universe: tuple[Ticker, ...] = Field(min_length=1, max_length=STRATEGY_UNIVERSE_MAX)
    features: tuple[FeatureSpec, ...] = Field(min_length=1, max_length=FEATURES_MAX)
    label: LabelSpec = LabelSpec()
    model: ModelSpec
    entry: EntryRules
    exit: ExitRules

    @field_validator("name")
    @classmethod
    def _name_is_no_path(cls, name: str) -> str:
        if any(mark in name for mark in ("/", "\\", "..")):
            raise ValueError("it has a path in it; a name has none")
        if not re.fullmatch(STRATEGY_NAME_PATTERN, name):
            raise ValueError("takes a letter and up to 59 of a-z, 0-9, _ and -")
        return name

    @field_validator("universe")
    @classmethod
    def _tickers_differ(cls, tickers: tuple[str, ...]) -> tuple[str, ...]:
        if twice := _repeated(tickers):
            raise ValueError(f"{twice} are the same ticker; give each once")
        return tickers

    @field_validator("features")
    @classmethod
    def _features_differ(cls, features: tuple[FeatureSpec, ...]) -> tuple[FeatureSpec, ...]:
        if twice := _repeated([feature.key for feature in features]):
            raise ValueError(f"{twice} are the same feature; give each once")
        return features

    @field_validator("entry", "exit")
    @classmethod
    def _rules_see_only_what_is_known(
        cls, rules: EntryRules | ExitRules, info: ValidationInfo
    ) -> object:
        if "features" not in info.data:
            return rules  # the features' own error is told instead
        known = [PROBABILITY, *(feature.key for feature in info.data["features"])]
        sides: dict[str, tuple[Condition, ...]] = {}
        for side in ("long", "short"):
            conditions: list[Condition] = []
            for place, condition in enumerate(getattr(rules, side)):
                name = _named(condition.of, known)
                if name is None:
                    raise ValueError(
                        f"{side}.{place}.of: this is not known at the close; "
                        f"rules see {', '.join(known)}, never what comes after"
                    )
                conditions.append(condition.model_copy(update={"of": name}))
            sides[side] = tuple(conditions)
        return rules.model_copy(update=sides)

    @field_validator("exit")
    @classmethod
    def _what_opens_can_close(cls, rules: ExitRules, info: ValidationInfo) -> ExitRules:
        entry = info.data.get("entry")
        for side in ("long", "short"):
            if entry is not None and getattr(entry, side) and not rules.can_close(side):
                raise ValueError(f"{side}: no condition and no hold_bars_max closes a position")
        return rules


class StrategyDraft(_Idea, Part):
    """The designer's answer. It does not choose by what it is judged: costs, capital, periods,
    folds and seed are the desk's, and code fills them in.
    """

    position_pct: PositionPct = 100.0


class StrategySpec(_Idea, Request):
    """A strategy as it was designed: readable, editable, and the whole input of its run.

    Without `costs` it has the desk's, which are filled in when the design is taken.
    """

    timeframe: Literal["1d"] = "1d"
    sizing: SizingSpec = SizingSpec()
    costs: CostSpec | None = None
    train: Period
    held_out: Period
    folds: FoldSpec = FoldSpec()
    seed: int = Field(default=0, ge=0, le=2**31 - 1)

    @field_validator("held_out")
    @classmethod
    def _periods_are_apart(cls, held_out: Period, info: ValidationInfo) -> Period:
        train = info.data.get("train")
        if train is not None and held_out.first <= train.last:
            raise ValueError(
                f"begins {held_out.first}, train ends {train.last}: they overlap, or the held-out "
                "period comes first; begin it after the training period"
            )
        return held_out


class StrategyWish(Part):
    """The fields of a request for a strategy cycle beyond what every request says.

    `spec` is a design to run as it is; without one the pipeline's provider designs. Where a gate
    stops a design, the next one is designed, up to `attempts` in all.
    """

    spec: StrategySpec | None = None
    attempts: int = Field(default=1, ge=1, le=ATTEMPTS_MAX)

    @field_validator("attempts")
    @classmethod
    def _a_given_design_is_run_once(cls, attempts: int, info: ValidationInfo) -> int:
        if attempts > 1 and info.data.get("spec") is not None:
            raise ValueError("the same design gives the same result: with a spec it must be 1")
        return attempts


def _named(word: str, known: Iterable[str]) -> str | None:
    """The known name that a word is in another case, or with blanks or stars in it."""
    return next((name for name in known if _letters(name) == _letters(word)), None)


def _letters(name: str) -> str:
    return re.sub(r"[\s_*-]", "", name).casefold()


def _repeated(names: Sequence[str]) -> str:
    """The places of the first two that are the same: `0 and 2`; empty where all differ."""
    return next(
        (f"{names.index(name)} and {n}" for n, name in enumerate(names) if name in names[:n]), ""
    )
