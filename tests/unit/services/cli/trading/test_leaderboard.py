"""`deskbus leaderboard`: the table."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from contracts.leaderboard import LeaderboardRow, LeaderboardView
from contracts.types import Usage
from services.cli.shell.request import build
from services.cli.shell.request_options import DecisionOptions
from services.cli.trading.leaderboard import screen
from tests.unit.services.cli.screens import lines

D = Decimal
USED = Usage(input_tokens=1_900_000, cost_usd=D("12.52"))


def row(name: str, kind: Any = "pipeline", **fields: Any) -> LeaderboardRow:
    return LeaderboardRow(name=name, kind=kind, **fields)


BEST = row(
    "opus",
    providers=("claude",),
    account="main",
    accounts=("main",),
    sessions=5,
    return_pct=D("0.6806"),
    sharpe=D("1.2345"),
    max_drawdown_pct=D("0.5861"),
    closed=4,
    won=3,
    hits=2,
    judged=3,
    picks=11,
    vetoes=7,
    decisions=5,
    failed=1,
    usage=USED,
    curve=(D(1), D("0.99"), D("1.0068")),
)


def told(*rows: LeaderboardRow, width: int = 110, **fields: Any) -> list[str]:
    given = {"first": date(2012, 6, 29), "last": date(2012, 7, 9), "sessions": 5, **fields}
    return lines(screen(LeaderboardView(rows=rows, **given)), width)


def test_a_pipelines_line_has_its_account_its_curve_and_its_numbers() -> None:
    shown = told(BEST, width=140)

    assert shown[0].startswith("leaderboard 5 sessions, ")
    assert shown[3] == " ".join(
        (
            "opus (claude) main ▅▅▅▁▁▁███ +0.68% 1.23 0.6% 75% (3 of 4)",
            "$12.52 5 + 1 failed 2 of 3 7 of 11",
        )
    )


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_row_stays_one_line_and_the_return_whole_at_every_width(width: int) -> None:
    shown = told(BEST, row("cash", "cash", return_pct=D(0), sessions=5), width=width)

    assert shown[3].startswith("opus (claude) main ▅▅▅▁▁▁███ +0.68% 1.23 0.6%")
    assert ("2 of 3" in shown[3]) == (width > 120)


def test_columns_that_nothing_has_are_left_out() -> None:
    shown = told(row("rules", account="rules", accounts=("rules",), return_pct=D(1), sessions=5))

    assert shown[2] == "pipeline account return decisions"


def test_rows_over_the_same_sessions_say_so_once_and_others_each_for_itself() -> None:
    one = row("rules", account="rules", accounts=("rules",), return_pct=D(1), sessions=5)
    other = one.model_copy(update={"name": "late", "account": "late", "sessions": 2})

    assert "days" not in told(one)[2]
    assert "days" in told(one, other)[2]


def test_cash_and_holding_have_no_decisions_and_no_cost() -> None:
    shown = told(
        BEST,
        row("cash", "cash", return_pct=D(0), max_drawdown_pct=D(0), sessions=5),
        row(
            "buy-and-hold",
            "buy_and_hold",
            return_pct=D("-1.456"),
            max_drawdown_pct=D("2.46"),
            sessions=5,
        ),
        width=140,
        universe=("AAPL", "IBM"),
        absent=("FB",),
    )

    assert shown[4:6] == [
        "cash +0.00% - 0% - - - - -",
        "buy-and-hold -1.46% - 2.5% - - - - -",
    ]
    assert "buy-and-hold: equal parts of AAPL IBM; no price for FB" in shown


def test_what_is_not_known_is_a_dash_and_the_reason_is_given() -> None:
    why = "no session has passed since the first decision"
    shown = told(row("rules", account="rules", accounts=("rules",)), sessions=0, message=why)

    assert shown[0] == "leaderboard"
    assert shown[3] == "rules rules - 0"
    assert why in shown


def test_rows_out_of_sight_are_counted_with_the_option_that_shows_them() -> None:
    text = " ".join(told(BEST, hidden=3))

    assert "3 rows without trades or of throw-away accounts: deskbus leaderboard --all" in text


def test_a_pipeline_that_took_turns_names_the_accounts_that_it_decided_for() -> None:
    text = " ".join(told(BEST.model_copy(update={"accounts": ("main", "opus")})))

    assert "opus@main took turns: it decided for main, opus" in text


def test_accounts_in_several_currencies_are_said_to_be() -> None:
    text = " ".join(told(BEST, currencies=("EUR", "USD")))

    assert "each account's own currency: EUR, USD" in text


def test_a_request_with_the_rotation_of_the_settings_leaves_the_accounts_to_the_turns() -> None:
    both = DecisionOptions(provider=["claude", "rules"])
    request = build(both, rotation=("rules", "claude"))

    assert request.accounts == ("claude", "rules", "main")
    assert request.rotation is not None
    assert (request.rotation.account, request.rotation.order) == ("main", ("rules", "claude"))
    plain = build(both)
    assert [each.account for each in plain.pipelines] == ["main", "rules"]
    assert plain.rotation is None
