"""A week of a whole desk at Alpaca's stand-ins, on the schedule that docs/schedule.md shows.

Thanksgiving's week of 2025: five evenings and opens, a holiday, a half day, a split, a dividend
that the broker pays and one that it does not, and a sale by hand. Nothing but the clock, and a
person at the command line, moves the desk.
"""

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.fakes.alpaca_desk import CALENDAR
from tests.integration.desk.at_alpaca import NUMBER, DeskAtAlpaca, desk_at_alpaca, soon

D = Decimal
FRIDAY_BEFORE, MONDAY, TUESDAY, WEDNESDAY = (date(2025, 11, day) for day in (21, 24, 25, 26))
HALF_DAY = date(2025, 11, 28)  # the 27th is a holiday; it closes at 18:00 UTC
AFTER, LAST = date(2025, 12, 1), date(2025, 12, 2)
TICKERS = ("TAA", "TAB", "TAC", "TAD", "TAE", "TAF")
SPLIT, PAYS, OWES = "TAA", "TAB", "TAC"
SCHEDULE = """
cooling_off_sessions = 0

[schedule]
clock = "wall"

[schedule.jobs.sell-check]
kind = "exit"
when = "close+30m"

[schedule.jobs.decide]
kind = "decision"
when = "close+40m"
approval = true

[schedule.jobs.report]
kind = "report"
when = "close+55m"
"""
EXITS = """
[default.hold_period]
sessions = 2
sell_pct = 100
"""


def ran(desk: DeskAtAlpaca, job: str, session: date, minutes: int, *ended: str) -> Any:
    """A job's slot of a session, so long after the close, once it has come so far."""
    desk.alpaca.move(CALENDAR.close(session) + timedelta(minutes=minutes, seconds=2))

    def last() -> Any:
        (view,) = desk.rows("schedule list")
        (run,) = (each["last"] for each in view["jobs"] if each["name"] == job)
        return run

    run = soon(
        last,
        lambda run: run is not None and run["session"] == str(session) and run["status"] in ended,
    )
    assert run["as_of"] == str(session), run
    return run


def evening(
    desk: DeskAtAlpaca, session: date, *, drop: tuple[str, ...] = (), buys: bool = True
) -> dict[str, str]:
    """The jobs of a session; the proposal is approved without what is dropped. What is then at the
    broker: the side by ticker."""
    ran(desk, "sell-check", session, 30, "completed")
    if buys:
        run = ran(desk, "decide", session, 40, "running")
        soon(
            lambda: desk.rows("approvals list"),
            lambda rows: any(row["cycle_id"] == run["cycle_id"] for row in rows),
        )
        dropped = "".join(f" --drop {ticker}" for ticker in drop)
        assert f"alpaca-paper {NUMBER}" in desk.said("approvals list")
        assert "approved" in desk.said(f"approvals approve {run['cycle_id']}{dropped}")
    ran(desk, "decide", session, 40, "completed")
    ran(desk, "report", session, 55, "completed")
    return {ticker: order["side"] for ticker, order in desk.sent().items()}


def opened(desk: DeskAtAlpaca, session: date) -> None:
    """The open, and until all that was filled is in the books."""
    desk.alpaca.move(CALENDAR.open(session) + timedelta(minutes=1))
    soon(desk.orders, lambda orders: not orders)


def test_a_week_of_evenings_and_opens(open_dir: Path) -> None:
    (open_dir / "exit_signals.toml").write_text(EXITS)
    start = CALENDAR.open(MONDAY) + timedelta(minutes=30)
    with desk_at_alpaca(open_dir, start, LAST, TICKERS, SCHEDULE) as desk:
        paper, market = desk.alpaca.paper, desk.alpaca.market
        listed = {"process_date": str(WEDNESDAY), "ex_date": str(WEDNESDAY), "cusip": "0"}
        market.happens("forward_splits", symbol=SPLIT, new_rate=2, old_rate=1, **listed)
        for bar in market.bars[SPLIT]:
            if bar.day >= WEDNESDAY:
                bar.open, bar.high, bar.low, bar.close = (
                    price / 2 for price in (bar.open, bar.high, bar.low, bar.close)
                )
        cash = {"special": False, "foreign": False, "rate": 0.5}
        for ticker in (PAYS, OWES):
            market.happens("cash_dividends", symbol=ticker, **cash, **listed)
        desk.said(f"account bind main --number {NUMBER}")

        placed = evening(desk, MONDAY, drop=TICKERS[3:])
        assert placed == dict.fromkeys(TICKERS[:3], "buy")
        opened(desk, TUESDAY)
        shares = dict(paper.positions)
        assert shares.keys() == set(TICKERS[:3])

        assert evening(desk, TUESDAY, drop=TICKERS[4:]) == {"TAD": "buy"}
        paper.split(SPLIT, 2)
        paper.dividend(PAYS, shares[PAYS] / 2)
        opened(desk, WEDNESDAY)

        assert evening(desk, WEDNESDAY, drop=TICKERS[5:]) == {"TAE": "buy"}
        held = {row["ticker"]: D(row["quantity"]) for row in portfolio(desk)["positions"]}
        assert held[SPLIT] == 2 * shares[SPLIT]
        assert "both books agree" in desk.said("account reconcile main")
        differs = {(row["kind"], row["about"]) for row in look(desk)["differences"]}
        assert differs <= {("dividend", OWES)}  # it is shown, and blocks nothing

        # Thanksgiving: no slot, and nothing is filled.
        desk.alpaca.move(CALENDAR.close(WEDNESDAY) + timedelta(days=1))
        assert desk.orders().keys() == {"TAE"}
        opened(desk, HALF_DAY)
        paper.manual_trade(PAYS, -5)
        assert look(desk)["verdict"] == "differs"

        # Half an hour after the early close what was held for two sessions is sold, no more than
        # both books hold; nothing is bought while they differ.
        placed = evening(desk, HALF_DAY, buys=False)
        # (Of TAD half: it is the month's last session, and a rule of the month speaks too.)
        assert placed == dict.fromkeys(TICKERS[:4], "sell")
        assert D(desk.orders()[PAYS]["quantity"]) == shares[PAYS] - 5
        opened(desk, AFTER)
        assert {t for t, quantity in paper.positions.items() if quantity} == {"TAD", "TAE"}
        shown = look(desk, whole=True)
        desk.said(f"account reconcile main --hash {shown['hash'][:12]} --reason sold-by-hand")
        assert look(desk)["verdict"] == "agrees"

        placed = evening(desk, AFTER)
        assert (placed.pop("TAD"), set(placed.values())) == ("sell", {"buy"})
        opened(desk, LAST)

        ran(desk, "report", LAST, 55, "completed")
        assert look(desk)["verdict"] == "agrees"
        assert D(portfolio(desk)["cash"]["amount"]) == paper.cash.quantize(D("0.01"))
        assert set(paper.posts.values()) == {1}
        reports = sorted(path.name for path in (open_dir / "data" / "reports").iterdir())
        evenings = (MONDAY, TUESDAY, WEDNESDAY, HALF_DAY, AFTER, LAST)
        assert reports == [f"main-{session}.md" for session in evenings]


def portfolio(desk: DeskAtAlpaca) -> Any:
    """The account at the newest close."""
    (row,) = desk.rows("portfolio main")
    return row["portfolio"]


def look(desk: DeskAtAlpaca, *, whole: bool = False) -> Any:
    """Both books as they are compared now."""
    (row,) = desk.rows("account reconcile main")
    return row if whole else row["look"]
