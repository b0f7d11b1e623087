"""Designs by rules: one draw from a stated space, seeded by the operation's own id.

The space: two to four of the features below, a horizon of 5 or 10 sessions, boosted trees or a
perceptron of stated sizes, entry above a probability of 0.52 to 0.58, long or long and short. The
tickers are those with the longest history; its last three years are held out, and the five before
them are learned from (of a shorter history the last three tenths, and what is before).
"""

import random
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from contracts.strategy import BoostingSpec, MlpSpec, Period, StrategySpec
from libs.llm.rules.rule_set import Found, RuleSet, TaskData, said

TICKERS_MAX = 4
WARM_UP_DAYS = 400
"""Left before training: the slowest feature drawn here looks back 100 sessions."""
TRAINED_PART = 0.7
HELD_OUT_DAYS = 3 * 365
TRAINED_DAYS = 5 * 365

FEATURES: Sequence[Mapping[str, Any]] = (
    {"indicator": "sma_distance", "parameters": {"bars": 20}},
    {"indicator": "sma_distance", "parameters": {"bars": 100}},
    {"indicator": "sma_cross", "parameters": {"fast": 20, "slow": 50}},
    {"indicator": "return", "parameters": {"bars": 5}},
    {"indicator": "return", "parameters": {"bars": 20}},
    {"indicator": "volatility", "parameters": {"bars": 20}},
    {"indicator": "high_distance", "parameters": {"bars": 60}},
    {"indicator": "rsi"},
    {"indicator": "macd_histogram"},
    {"indicator": "bollinger"},
    {"indicator": "adx"},
    {"indicator": "volume_ratio"},
)
MODELS = (
    BoostingSpec(trees=60, depth=4, learning_rate=0.1),
    BoostingSpec(trees=60, depth=5, learning_rate=0.15),
    MlpSpec(hidden=(16,), epochs=60),
    MlpSpec(hidden=(32,), epochs=80, learning_rate=0.005),
)
HORIZONS = (5, 10)
ENTRIES = (0.52, 0.55, 0.58)
SHORT_PART = 0.25
"""How many of the designs may go short too."""


def answer(task: TaskData, found: Found) -> StrategySpec:
    """The design that this draw gives; the same task always gives the same one."""
    del found
    draw = random.Random(str(task["draw"]))  # noqa: S311 - a draw that can be repeated, no secret
    tickers, first, last = _universe(task["histories"])
    features = draw.sample(FEATURES, draw.randint(2, 4))
    model, entry = draw.choice(MODELS), draw.choice(ENTRIES)
    horizon, both = draw.choice(HORIZONS), draw.random() < SHORT_PART
    names = [str(each["indicator"]) for each in features]
    train, held_out = _periods(first, last)
    return StrategySpec.model_validate(
        {
            "name": "-".join([*(name.split("_")[0] for name in names), model.kind.split("_")[-1]]),
            "hypothesis": said(
                f"{', '.join(names)} of the last sessions say more often than not whether "
                f"{', '.join(tickers)} rise over the next {horizon} sessions"
            ),
            "universe": tickers,
            "features": features,
            "label": {"horizon_bars": horizon},
            "model": model.model_dump(),
            "entry": {
                "long": [{"of": "probability", "above": entry}],
                "short": [{"of": "probability", "below": round(1 - entry, 2)}] if both else [],
            },
            "exit": {
                "long": [{"of": "probability", "below": 0.45}],
                "short": [{"of": "probability", "above": 0.55}] if both else [],
                "hold_bars_max": 2 * horizon,
            },
            "train": train.model_dump(),
            "held_out": held_out.model_dump(),
            "seed": draw.randrange(2**31),
        }
    )


def _universe(histories: Any) -> tuple[list[str], date, date]:
    """The tickers with the longest history, and the time that all of them have prices of."""
    known = histories if isinstance(histories, dict) else {}
    longest = sorted(known, key=lambda ticker: (-int(known[ticker]["bars"]), ticker))
    most = int(known[longest[0]]["bars"])
    # A young ticker would cut the history of all others to its own.
    chosen = [each for each in longest[:TICKERS_MAX] if int(known[each]["bars"]) >= 0.9 * most]
    first = max(date.fromisoformat(known[each]["first"]) for each in chosen)
    last = min(date.fromisoformat(known[each]["last"]) for each in chosen)
    return sorted(chosen), first, last


def _periods(first: date, last: date) -> tuple[Period, Period]:
    begin = first + timedelta(days=WARM_UP_DAYS)
    turn = max(last - timedelta(days=HELD_OUT_DAYS), begin + (last - begin) * TRAINED_PART)
    train = Period(first=max(begin, turn - timedelta(days=TRAINED_DAYS)), last=turn)
    return train, Period(first=turn + timedelta(days=1), last=last)


RULES = RuleSet(answer=answer)
