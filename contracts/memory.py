"""The memory of an account's agents from cycle to cycle, and the outcomes of past decisions."""

import operator
from datetime import date
from enum import StrEnum

from pydantic import Field

from contracts.account import Side
from contracts.message import Contract
from contracts.types import (
    Amount,
    Confidence,
    CycleId,
    Failure,
    Money,
    Name,
    Percent,
    ShortText,
    Text,
    Ticker,
    Value,
    is_none,
)

OUTCOME_SESSIONS = (5, 20)
"""Sessions after a decision at which its picks are looked at: about a week and a month."""
AWAITED_MAX = 48
"""Past decisions that one cycle may look at again, the oldest first: two a day over a month."""
OUTCOMES_MAX = AWAITED_MAX * len(OUTCOME_SESSIONS)
"""Outcomes that one memory holds: after a long pause all of them become known at once."""
PENDING_ORDERS_MAX = 40
TRACK_RECORD_MAX = 10
"""Sentences about past decisions that a memory carries on, the newest first."""
JUDGED_SESSIONS = max(OUTCOME_SESSIONS)
"""Sessions after which it is judged whether a buy has beaten the benchmark, as was stated."""
STATED_MAX = 200
"""Outcomes of stated confidences that a memory carries on, the newest last: so many are trusted."""


class PickFate(StrEnum):
    """The fate of a pick. `working`: its order still waited when the cycle ended.

    `vetoed`: the reviewer or the rules left nothing of it. `not_ordered`: the rules left something,
    but nothing was bought: refused by the approver or by execution, or the cycle ended before.
    """

    FILLED = "filled"
    WORKING = "working"
    VETOED = "vetoed"
    NOT_ORDERED = "not_ordered"


class PastPick(Value):
    """One pick of the trader with its result. `fill_price` is the traded price."""

    ticker: Ticker
    action: Side
    allocation_pct: Percent
    fate: PickFate
    fill_price: Money | None = None
    filled_on: date | None = None
    confidence: Confidence | None = Field(default=None, exclude_if=is_none)


class PastDecision(Value):
    """A decision with its result, as later cycles see it. `universe` is what it chose from,
    `provider` its provider; `fell_back`: a fallback answered one of its stages."""

    cycle_id: CycleId
    pipeline: Name
    as_of: date
    picks: tuple[PastPick, ...] = Field(default=(), max_length=20)
    universe: tuple[Ticker, ...] = Field(default=(), max_length=25)
    provider: Name | None = Field(default=None, exclude_if=is_none)
    fell_back: bool = Field(default=False, exclude_if=operator.not_)


class AwaitedDecision(Value):
    """A decision with outcomes still to come; `told` are the numbers of sessions already told."""

    decision: PastDecision
    told: tuple[int, ...] = ()


class Basis(StrEnum):
    """The price that a return counts from.

    `fill`: as it was filled. `next_open`: its order waited for that open when the cycle ended.
    `close`: the close at the decision's as_of.
    """

    FILL = "fill"
    NEXT_OPEN = "next_open"
    CLOSE = "close"


class PickOutcome(Value):
    """How the share of one pick did; where prices are missing, `absence` says why, never a 0.

    Both prices are adjusted for splits and dividends up to the outcome's session, so the entry may
    differ from what was paid and a split is no loss. A sale's return is what was avoided or missed.
    """

    ticker: Ticker
    action: Side
    fate: PickFate
    basis: Basis
    entry_price: Money | None = None
    exit_price: Money | None = None
    return_pct: Amount | None = None
    absence: Failure | None = None


class Benchmark(Value):
    """The decision's universe in equal parts, from the close at as_of; None where none has prices.

    `counted` tickers have prices on both days; `absent` have not and are not in it.
    """

    return_pct: Amount | None = None
    counted: int = Field(default=0, ge=0)
    absent: tuple[Ticker, ...] = ()


class DecisionOutcome(Value):
    """How a decision had fared at the close of `session`, the `sessions`-th after its as_of."""

    cycle_id: CycleId
    pipeline: Name
    as_of: date
    sessions: int = Field(ge=1)
    session: date
    picks: tuple[PickOutcome, ...] = ()
    benchmark: Benchmark = Benchmark()


class StatedOutcome(Value):
    """A buy whose confidence `provider` stated `on` a session, and whether it had done better than
    the benchmark at the close of `known_on`, JUDGED_SESSIONS later. `fell_back`: it is left out of
    calibration, as a stage of its decision was answered by a fallback."""

    on: date
    known_on: date
    provider: Name
    stated: Confidence
    beat: bool
    fell_back: bool = Field(default=False, exclude_if=operator.not_)


class MemoryDraft(Value):
    """The memory agent's answer."""

    short_term_summary: Text = Field(min_length=1)
    active_hypotheses: tuple[Text, ...] = Field(default=(), max_length=20)
    next_steps: tuple[Text, ...] = Field(default=(), max_length=20)


class AgentMemory(MemoryDraft, Contract):
    """The memory of one cycle, with its ids. The next cycle of the account reads it.

    Code adds what no model may: the `pending_orders` that still work, the `decision` as later
    cycles will look at it, the `outcomes` of past decisions that became known with this cycle's
    as_of, the `track_record`, these and the ones before in a sentence each, and what came of the
    confidences that were `stated`.
    """

    pending_orders: tuple[Text, ...] = Field(default=(), max_length=PENDING_ORDERS_MAX)
    decision: PastDecision | None = None
    outcomes: tuple[DecisionOutcome, ...] = Field(default=(), max_length=OUTCOMES_MAX)
    track_record: tuple[ShortText, ...] = Field(default=(), max_length=TRACK_RECORD_MAX)
    stated: tuple[StatedOutcome, ...] = Field(
        default=(), max_length=STATED_MAX, exclude_if=operator.not_
    )
