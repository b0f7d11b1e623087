"""Questions of a proposer about its own proposals and account, and their answers."""

from datetime import date, datetime

from pydantic import Field

from contracts.account_query import HeldAtClose
from contracts.cycle import CycleStatus
from contracts.message import Message
from contracts.performance import OrderResult
from contracts.proposal import PICKS_MAX, SIDE_MAX, ProposalId
from contracts.risk import RuleOutcome
from contracts.trader import PASSED_MAX
from contracts.types import CycleId, Money, Name, Percent, Quantity, ShortText, Text, Ticker, Value

CUTS_MAX = 200
HELD_MAX = 200
ORDERS_MAX = 60


class ProposalQuery(Message):
    """What became of a proposal of the caller's; `preview`: of the preview of this id."""

    proposal_id: ProposalId
    preview: bool = False


class ProposedDecision(Value):
    """What the rules left of one trade, and a person of that. `price` is the session's close; the
    fill has that of the next open. `allocation_pct` is of the free cash, of a sale the position's.
    """

    action: ShortText
    ticker: Ticker
    quantity: Quantity
    price: Money
    allocation_pct: Percent


class ProposalCut(Value):
    """A rule that cut or vetoed a trade: what it saw, against which limit."""

    rule: ShortText
    ticker: Ticker | None = None
    outcome: RuleOutcome
    value: ShortText
    limit: ShortText
    reason: Text


class LeftOut(Value):
    """A trade that could not be judged at all, and why."""

    ticker: Ticker
    why: Text


class ProposalView(Message):
    """A proposal and its state. `found` is False if the caller has made no proposal with this id.

    `received_at` is the desk's receipt by Postgres' clock. `status` is the state of the work on it:
    `completed` means that the work is done, filled or not; `rejected` means that a person said no,
    `expired` that no answer came. `decisions` are the trades after the rules and the approval, if
    one is needed (`state` is `awaiting_approval` until then, and `answer_by` says until when a
    person may answer); empty if nothing is left, None before the rules have run. `cuts` say what
    was cut or vetoed. `orders` are the placed orders in their current state: a working one still
    waits for its fill.
    """

    found: bool = True
    message: Text = ""
    cycle_id: CycleId | None = None
    preview: bool = False
    account: ShortText = ""
    session: date | None = None
    received_at: datetime | None = None
    status: CycleStatus | None = None
    state: ShortText = ""
    outcome: ShortText = ""
    reason: Text = ""
    answer_by: datetime | None = None
    decisions: tuple[ProposedDecision, ...] | None = None
    cuts: tuple[ProposalCut, ...] = Field(default=(), max_length=CUTS_MAX)
    left_out: tuple[LeftOut, ...] = Field(default=(), max_length=PASSED_MAX)
    orders: tuple[OrderResult, ...] = Field(default=(), max_length=ORDERS_MAX)


class ProposalLimitsQuery(Message):
    """What may the caller propose, and what does its account hold?"""


class ProposalLimits(Message):
    """The limits of the caller, which a person set, and its account at its newest close.

    A proposal has at most `side_max` buys and as many sales. At one session `sales_max` sales may
    wait or be proposed, of `sold_pct_max` percent of equity together. `left_this_hour` proposals
    and previews are left of `per_hour_max`; `open` of its proposals have not ended, of at most
    `open_max`. `cash`, `equity` and `held` are as of the close of `closed_on`; they are None and
    empty where the account was never valued: its first proposal opens it.
    """

    proposer: Name
    account: Name
    approval_required: bool
    sales_max: int
    sold_pct_max: Percent
    per_hour_max: int
    left_this_hour: int
    open: int
    open_max: int
    picks_max: int = PICKS_MAX
    side_max: int = SIDE_MAX
    closed_on: date | None = None
    cash: Money | None = None
    equity: Money | None = None
    held: tuple[HeldAtClose, ...] = Field(default=(), max_length=HELD_MAX)
