"""`deskbus leaderboard`: the table."""

import io
from datetime import date
from decimal import Decimal
from typing import Any

from rich.console import Console

from contracts.leaderboard import LeaderboardRow, LeaderboardView
from contracts.types import Usage
from services.cli.shell.request import Wish, build
from services.cli.trading.leaderboard import show

D = Decimal
USED = Usage(input_tokens=1_900_000, cost_usd=D("12.52"))


def row(name: str, kind: Any = "pipeline", **fields: Any) -> LeaderboardRow:
    return LeaderboardRow(name=name, kind=kind, **fields)


BEST = row(
    "opus",
    providers=("claude",),
    accounts=("main", "opus"),
    return_pct=D("0.6806"),
    max_drawdown_pct=D("0.5861"),
    hits=2,
    judged=3,
    picks=11,
    vetoes=7,
    decisions=5,
    failed=1,
    usage=USED,
)


def told(*rows: LeaderboardRow, **fields: Any) -> list[str]:
    console = Console(file=io.StringIO(), width=110)
    given = {"first": date(2012, 6, 29), "last": date(2012, 7, 9), "sessions": 5, **fields}
    show(LeaderboardView(rows=rows, **given), console)
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def test_a_pipelines_line_has_its_numbers_and_its_accounts() -> None:
    lines = told(BEST)

    assert lines[0] == "leaderboard 5 sessions, from the close of Fri 2012-06-29 to Mon 2012-07-09"
    assert lines[3] == (
        "opus (claude) +0.68% 0.6% 2/3 (66.7%) 7/11 5 + 1 failed 1,900,000 12.5200 main, opus"
    )


def test_cash_and_holding_have_a_return_and_nothing_else() -> None:
    lines = told(
        row("cash", "cash", return_pct=D(0), max_drawdown_pct=D(0)),
        row("buy-and-hold", "buy_and_hold", return_pct=D("-1.456"), max_drawdown_pct=D("2.46")),
        universe=("AAPL", "IBM"),
        absent=("FB",),
    )

    assert lines[3:5] == ["cash +0.00% 0%", "buy-and-hold -1.46% 2.5%"]
    assert "buy-and-hold: equal parts of AAPL IBM; no price for FB" in lines


def test_what_is_not_known_is_a_dash_and_the_reason_is_said() -> None:
    why = "no session has passed since the first decision"
    lines = told(row("rules", accounts=("rules",)), sessions=0, message=why)

    assert lines[0] == "leaderboard"
    assert lines[3] == "rules - - - - 0 0 0.0000 rules"
    assert why in lines


def test_accounts_in_several_currencies_are_said_to_be() -> None:
    text = " ".join(told(BEST, currencies=("EUR", "USD")))

    assert "each account's own currency: EUR, USD" in text


def test_a_request_with_the_rotation_of_the_settings_leaves_the_accounts_to_the_turns() -> None:
    request = build(Wish(providers=("claude", "rules"), rotation=("rules", "claude")))

    assert request.accounts == ("claude", "rules", "main")
    assert request.rotation is not None
    assert (request.rotation.account, request.rotation.order) == ("main", ("rules", "claude"))
    plain = build(Wish(providers=("claude", "rules")))
    assert [each.account for each in plain.pipelines] == ["main", "rules"]
    assert plain.rotation is None
