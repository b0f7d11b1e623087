"""`deskbus exit-signals distances`: the table."""

from datetime import date
from decimal import Decimal
from typing import Any

from contracts.exit_signal import ExitDistances, ExitTrigger, PositionExits
from contracts.types import Failure, Money
from libs.report import exits
from tests.unit.services.cli.screens import lines


def usd(amount: str) -> Money:
    return Money(amount=Decimal(amount), currency="USD")


def held(*triggers: ExitTrigger, **fields: Any) -> PositionExits:
    given = {
        "ticker": "AAPL",
        "quantity": Decimal(1_068),
        "price": usd("583.98"),
        "average_cost": usd("600"),
        "value": Decimal("623690.64"),
        "assessment": "HOLD",
        "triggers": triggers,
    }
    return PositionExits.model_validate({**given, **fields})


def view_of(*positions: PositionExits, **fields: Any) -> ExitDistances:
    view = {"account": "main", "as_of": date(2012, 10, 31), "positions": positions, **fields}
    return ExitDistances.model_validate(view)


def told(*positions: PositionExits, **fields: Any) -> list[str]:
    return lines([exits.distances(view_of(*positions, **fields))])


def test_a_position_is_followed_by_its_triggers_each_in_its_own_unit() -> None:
    shown = told(
        held(
            ExitTrigger(rule="stop_loss", unit="price", distance=0.129, at=usd("508.6")),
            ExitTrigger(rule="take_profit", unit="price", distance=0.3321, at=usd("777.9")),
            ExitTrigger(rule="momentum", unit="return", distance=0.021),
            ExitTrigger(rule="hold_period", unit="sessions", distance=1),
        )
    )

    assert shown[1:5] == [
        "AAPL 1,068 583.98 USD HOLD stop loss 12.9% down 508.60 USD",
        "take profit 33.2% up 777.90 USD",
        "momentum 2.1 points of return",
        "hold period 1 session",
    ]


def test_what_fired_only_warns_or_is_not_known_says_so_with_what_it_saw() -> None:
    shown = told(
        held(
            ExitTrigger(
                rule="momentum", unit="return", distance=0, triggered=True, detail="it fell"
            ),
            ExitTrigger(rule="regime", primary=False, unit="return", distance=0.5, detail="calm"),
            ExitTrigger(rule="trailing_stop", unit="price", detail="too few\x1b[31m months"),
            assessment="STRONG EXIT (momentum, regime)",
        )
    )

    assert shown[1:4] == [
        "AAPL 1,068 583.98 USD STRONG EXIT momentum fired it fell",
        "regime 50 points of return warning only",
        "trailing stop unknown too few [31m months",
    ]


def test_a_position_that_could_not_be_checked_says_why() -> None:
    failure = Failure(code="no_history", message="there are no prices of AAPL")
    shown = told(held(assessment="", failure=failure))

    assert shown[1] == "AAPL 1,068 583.98 USD not checked there are no prices of AAPL"


def test_an_account_without_positions_and_one_with_too_many_are_told() -> None:
    assert exits.distances(view_of()).empty.text == "No open positions."
    shown = told(held(), more=True, market_source="recorded closes")
    assert shown[-2:] == ["prices: recorded closes", "only the 1 largest positions are shown"]
