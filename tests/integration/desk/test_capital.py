"""Holdings and cash as an owner brings them in, by the command line, on a running desk; and as
nobody else can."""

from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import nats.errors
import pytest

from libs.bus.permissions import permissions
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk

pytestmark = pytest.mark.usefixtures("unharmed")

HOLDINGS = "ticker,quantity,cost,opened_on\nAAPL,40,201.35,2010-03-01\nMSFT,150,24.10,2009-06-15\n"


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    (tmp_path / "holdings.csv").write_text(HOLDINGS)
    return CommandLine(desk.settings.data_dir, tmp_path)


def test_holdings_open_an_account_that_is_shown_with_its_cost_and_moves_cash(
    deskbus: CommandLine,
) -> None:
    account = f"own-{uuid4().hex[:8]}"
    typed = f"portfolio import holdings.csv --account {account} --cash 2500 --as-of 2010-06-30"
    shown = deskbus(f"{typed} --json")
    assert (shown.code, shown.rows[0]["opened"]) == (0, False)
    assert deskbus(f"portfolio {account}").code == 3

    done = deskbus(f"{typed} --hash {shown.rows[0]['hash'][:12]}")
    assert (done.code, f"account {account} is open" in done.out) == (0, True)
    again = deskbus(f"{typed} --hash {shown.rows[0]['hash'][:12]}")
    assert (again.code, "nothing changed" in again.out) == (0, True)
    other = deskbus(typed.replace("2500", "2600"))
    assert (other.code, "exists already" in other.err) == (4, True)

    view = deskbus(f"portfolio show {account} --json").rows[0]
    held = {each["ticker"]: each for each in view["portfolio"]["positions"]}
    assert held["AAPL"]["average_cost"]["amount"] == "201.350000"
    assert {each["sector"] for each in held.values()} == {"Information Technology"}
    # 40 at 201.35, 150 at 24.10 and the cash.
    assert view["paid_in"] == "14169.00"
    assert view["return_pct"] == "0.0000"
    check_agreement(deskbus, account)

    paid = deskbus(f"portfolio deposit 1000 --account {account} --json").rows[0]
    done = deskbus(f"portfolio deposit 1000 --account {account} --hash {paid['hash']}")
    assert (done.code, "1,000.00 USD paid into" in done.out) == (0, True)
    view = deskbus(f"portfolio {account} --json").rows[0]
    assert (view["paid_in"], view["return_pct"]) == ("14169.00", "0.0000"), "as of the close"
    assert view["not_counted"] == {"fills": 0, "paid_in": "1000.00"}
    assert view["portfolio"]["cash"]["amount"] == "3500.000000"
    much = deskbus(f"portfolio withdraw 3500.01 --account {account}")
    assert (much.code, "3,500.00 is free" in much.err) == (4, True)


def test_a_fraction_is_brought_in_shown_and_half_of_it_sold(deskbus: CommandLine) -> None:
    account = f"part-{uuid4().hex[:8]}"
    holdings = (
        "ticker,quantity,cost,opened_on\nAAPL,10.5,201.35,2010-03-01\nMSFT,0.25,24,2010-03-01\n"
    )
    (deskbus.cwd / "part.csv").write_text(holdings)
    typed = f"portfolio import part.csv --account {account} --cash 0 --as-of 2010-06-30"
    digest = deskbus(f"{typed} --json").rows[0]["hash"]
    assert deskbus(f"{typed} --hash {digest}").code == 0
    words = deskbus(f"portfolio {account}").out
    assert ("10.5" in words, "0.25" in words) == (True, True)
    check_agreement(deskbus, account)

    sold = deskbus(f"exit now AAPL --share 50 --account {account} --as-of 2010-07-01")
    assert sold.code == 0, sold.err
    positions = deskbus(f"portfolio {account} --json").rows[0]["portfolio"]["positions"]
    assert {it["ticker"]: it["quantity"] for it in positions} == {"AAPL": "5.25", "MSFT": "0.25"}
    trades = {it["ticker"]: it for it in deskbus(f"trades {account} --json").rows}
    assert (trades["AAPL"]["quantity"], trades["MSFT"]["held"]) == ("10.5", "0.25")


def check_agreement(deskbus: CommandLine, account: str) -> None:
    """The P&L of holdings that were brought in, which are open trades without a fill."""
    view = deskbus(f"portfolio {account} --json").rows[0]
    gain = Decimal(view["equity"]) - Decimal(view["paid_in"])
    assert gain == Decimal(view["unrealised"]) != 0
    trades = deskbus(f"trades {account} --json").rows
    did = deskbus(f"performance {account} --json").rows[0]
    report = deskbus(f"report --account {account} --json").rows[0]
    assert {trade["as_of"] for trade in trades} == {view["closed_on"]} == {did["last"]}
    assert sum(Decimal(trade["gain"]) for trade in trades) == gain
    assert sum(Decimal(each["gain"]) for each in did["tickers"]) == gain
    assert sum(Decimal(held["gain"]) for held in report["held"]) == gain
    assert Decimal(report["worth"]["ever"]["unrealised"]) == gain


def test_what_is_missing_is_asked_for_and_nothing_is_opened(deskbus: CommandLine) -> None:
    (deskbus.cwd / "bad.csv").write_text(
        HOLDINGS + "XYZQ,1,1,2010-03-01\nGOOG,0,400,2010-03-01\nIBM,1,99,1991-01-02\nGE,,9,x\n"
    )
    said = deskbus("portfolio import bad.csv --account nobodys --as-of 2010-06-30")

    assert said.code == 4
    assert "readable part of account nobodys" in said.out
    assert "equity" not in said.out, "sums of half a file are nobody's"
    for told in (
        "--cash",
        "XYZQ is not in source",
        "must be more than 0",
        "1991-01-02",
        "quantity is mis",
    ):
        assert told in " ".join(said.err.split())
    assert deskbus("portfolio nobodys").code == 3


OTHERS = sorted(set(permissions()) - {"cli"})


@pytest.mark.parametrize("identity", OTHERS)
async def test_no_other_identity_brings_in_holdings_or_moves_cash(
    desk: Desk, identity: str
) -> None:
    async with desk.calling(identity) as caller:
        subjects = [
            f"desk.v1.req.execution.{what}.{name}"
            for what in ("import_holdings", "move_cash")
            for name in (identity, "cli")
        ]
        for subject in subjects:
            with pytest.raises((nats.errors.TimeoutError, nats.errors.NoRespondersError)):
                await caller.nats.request(subject, b"{}", timeout=0.3)
        assert sum("permissions violation" in each for each in caller.refused) == 4
