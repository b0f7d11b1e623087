"""get_portfolio: the pipeline's own account, from the command, whatever name is asked for."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from contracts.account import Portfolio, Position
from contracts.operation import GET_PORTFOLIO
from contracts.types import ToolDef
from libs.llm.errors import ToolNotAllowed

POSITIONS_MAX = 150
"""Positions shown, largest first: more would not fit into one tool result."""

_DEFINITION = ToolDef(
    name=GET_PORTFOLIO,
    description="Cash, equity and positions of your own account at as_of. `llm_name` is accepted "
    "and ignored: no other account can be seen.",
    parameters={
        "type": "object",
        "properties": {"llm_name": {"type": "string", "description": "Ignored."}},
        "additionalProperties": False,
    },
)


class PortfolioTool:
    """Answers get_portfolio from one account's state."""

    def __init__(self, portfolio: Portfolio) -> None:
        self._portfolio = portfolio

    def definitions(self) -> Sequence[ToolDef]:
        """The one tool."""
        return (_DEFINITION,)

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The account; its arguments change nothing."""
        del arguments
        if name != GET_PORTFOLIO:
            raise ToolNotAllowed(f"no tool of this name; the tool is {GET_PORTFOLIO}")
        shown = portfolio_json(self._portfolio)
        # Its name is the desk's business: the same question is put in the same words.
        return {key: value for key, value in shown.items() if key != "account"}


def portfolio_json(portfolio: Portfolio) -> dict[str, JsonValue]:
    """The account in the shape that models see."""
    largest = sorted(portfolio.positions, key=lambda held: (-held.value, held.ticker))
    return {
        "as_of": portfolio.as_of.isoformat(),
        "newest": portfolio.as_of.isoformat(),
        "account": portfolio.account,
        "currency": portfolio.cash.currency,
        "cash": str(portfolio.cash.amount),
        "equity": str(portfolio.equity.amount),
        "positions": [_position(held) for held in largest[:POSITIONS_MAX]],
        "positions_not_shown": max(0, len(largest) - POSITIONS_MAX),
        "open_orders": [
            {"ticker": order.asset, "side": order.side.value, "quantity": str(order.quantity)}
            for order in portfolio.open_orders[:POSITIONS_MAX]
        ],
    }


def _position(held: Position) -> JsonValue:
    return {
        "ticker": held.ticker,
        "quantity": str(held.quantity),
        "average_cost": str(held.average_cost.amount),
        "price": str(held.price.amount),
        "sector": held.sector,
        **({} if held.priced_on is None else {"priced_on": held.priced_on.isoformat()}),
    }
