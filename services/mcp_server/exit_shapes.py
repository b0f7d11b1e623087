"""Shapes of check_exit_signals' answer, for its schema: the answer itself is the service's own.
Pure.
"""

from datetime import date
from typing import Literal

from pydantic import Field

from services.mcp_server.shapes import ToolShape


class SignalShape(ToolShape):
    """One rule and its result; triggered rules come first."""

    rule_name: str
    triggered: bool
    severity: float = Field(description="0 to 1")
    is_primary: bool = Field(description="Whether this rule can sell; a secondary rule only warns")
    status: str = Field(description="ok, or error if it could not be evaluated")
    detail: str = Field("", description="In full")
    values: dict[str, float] = Field(default={}, description="In full")


class ActionShape(ToolShape):
    """The proposal; nothing is ordered."""

    action: str
    ticker: str
    quantity: float
    order_type: str
    reason: str = Field("", description="In full")
    stop_price: str | None = Field(None, description="In full, of a stop")
    stop_currency: str | None = Field(None, description="In full, of a stop")
    time_in_force: str | None = Field(None, description="In full, of a stop")


class SnapshotShape(ToolShape):
    """The numbers for a decision."""

    ticker: str
    status: str
    verdict: str
    overall_assessment: str
    signal_count: int
    signals: tuple[SignalShape, ...]
    trade_eligible: bool
    recommended_actions: tuple[ActionShape, ...]
    shares: float = 0
    sell_quantity: float = 0
    stop_price: str | None = Field(None, description="Price of the stop on the remaining shares")
    stop_currency: str | None = Field(None, description="Currency of the stop price")
    not_sold: str | None = Field(None, description="Why nothing is sold although a rule triggered")


class FlagShape(ToolShape):
    """A flag to check first."""

    flag: str
    severity: str = Field(description="error, warning, info or success")
    message: str


class SizingShape(ToolShape):
    """How much to sell."""

    sell_pct: float
    sell_quantity: float
    remaining: float
    reason: str
    stop_price: str | None
    stop_currency: str | None
    no_stop: str | None = Field(description="Why there is no stop although a rule sets one")


class HeldOrderShape(ToolShape):
    """An open order of the position."""

    side: str
    quantity: float
    order_type: str
    stop_price: str | None = None
    stop_currency: str | None = None


class HeldShape(ToolShape):
    """The position that was checked."""

    shares: float
    average_cost: str
    price: str
    currency: str
    value: str
    opened_on: date | None
    open_orders: tuple[HeldOrderShape, ...]


class ExitShape(ToolShape):
    """check_exit_signals. `agent` fills snapshot and flags; `summary` and `full` the fields below
    them, `full` those with the details too."""

    status: Literal["success", "error"]
    format: str
    snapshot: SnapshotShape | None = None
    flags: tuple[FlagShape, ...] = ()
    file_path: str | None = None
    file_error: str = ""
    error_code: str = ""
    error: str = ""
    warnings: tuple[str, ...] = Field((), description="About the exit rules and stops")
    ticker: str = ""
    account: str = ""
    as_of: date | None = None
    verdict: str = ""
    overall_assessment: str = ""
    trade_eligible: bool = False
    shares: float = 0
    sell_quantity: float = 0
    stop_price: str | None = None
    stop_currency: str | None = None
    signals: tuple[SignalShape, ...] = ()
    recommended_actions: tuple[ActionShape, ...] = ()
    position: HeldShape | None = None
    sizing: SizingShape | None = None
    not_sold: str | None = Field(None, description="In summary and full: as in the snapshot")
