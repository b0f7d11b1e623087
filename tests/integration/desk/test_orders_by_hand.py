"""Orders at the broker as a person meets them: bound, looked at, taken back, halted, reconciled."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from tests.fakes import alpaca_server
from tests.integration.desk.at_alpaca import NUMBER, desk_at_alpaca, soon

EVENING = datetime(2025, 11, 24, 21, 40, tzinfo=UTC)
OPEN = datetime(2025, 11, 25, 14, 31, tzinfo=UTC)
LAST = date(2025, 11, 26)
DAY = timedelta(days=1)
TICKERS = ("TAA", "TAB", "TAC", "TAD", "TAE", "TAF")


def test_a_first_evening_and_open_by_the_command_line(open_dir: Path) -> None:
    with desk_at_alpaca(open_dir, EVENING, LAST, TICKERS) as desk:
        paper = desk.alpaca.paper
        shown = desk.said("account bind main")
        assert f"alpaca-paper {NUMBER}, ACTIVE, 100,000.00 USD in cash" in shown
        assert f"deskbus account bind main --number {NUMBER}" in shown
        assert not paper.no_shorting
        told = " ".join(desk.deskbus("doctor").out.split())
        assert "max_margin_multiplier is 4, not 1) → binding ends both" in told
        refused = desk.deskbus("account bind main --number PAOTHER")
        assert (refused.code, f"of account {NUMBER}, not of PAOTHER" in refused.err) == (4, True)
        assert "bound to it now" in desk.said(f"account bind main --number {NUMBER}")
        assert (paper.no_shorting, paper.multiplier) == (True, "1")

        assert "stops are the desk's" in desk.said("cycle request --wait")
        orders = desk.sent()
        assert orders.keys() == set(TICKERS)
        taken, stuck, *_ = (orders[ticker]["order_id"] for ticker in TICKERS)
        life = desk.said(f"orders show {taken}")
        assert f"alpaca-paper {NUMBER}" in life
        assert "known accepted" in life

        assert f"id {taken}" in desk.said(f"orders show {taken[:8]}")
        title, *_ = lines = desk.deskbus("orders list", COLUMNS="80").out.splitlines()
        assert title.split() == ["order", "shares", "filled", "terms", "for", "state", "id"]
        assert max(map(len, lines)) <= 80
        assert "not an order id" in desk.deskbus("orders show TAA").err
        missing = desk.deskbus("orders cancel 0000")
        assert (missing.code, "no order has the id 0000" in missing.err) == (3, True)

        said = desk.said(f"orders cancel {taken[:8]} --reason not-tonight")
        assert "TAA: confirmed (over canceled)" in said
        assert "wanted cancelled: cancelled by cli: not-tonight" in desk.said(
            f"orders show {taken}"
        )
        paper.stuck_cancels = True
        said = desk.said(f"orders cancel {stuck}")
        assert "TAB: requested, still pending: the order may still fill" in said

        said = desk.said("halt --reason storm")
        assert "buys at the broker: 0 confirmed, 5 pending" in said
        assert "a pending one may still be filled: deskbus orders list --open" in said
        paper.stuck_cancels = False
        for order in paper.orders.values():
            if order["symbol"] in {"TAD", "TAE", "TAF"}:
                order["status"] = "canceled"  # the broker comes to it
        soon(lambda: desk.said("halt --reason storm"), lambda said: "2 pending" in said)

        # What the broker filled under the halt is true.
        desk.alpaca.move(OPEN)
        soon(desk.orders, lambda open_ones: not open_ones)
        assert {t: q for t, q in paper.positions.items() if q}.keys() == {"TAB", "TAC"}
        assert "both books agree" in desk.said("account reconcile main")
        desk.said("resume")

        paper.manual_trade("TAC", -3)
        shown = desk.said("account reconcile main")
        assert "the books differ: buys are blocked" in shown
        cash = paper.cash.normalize()
        assert f"{cash:,.2f} USD" in shown
        (row,) = desk.rows("account reconcile main")
        assert "the books differ from the broker's" in desk.said("halt --status")
        refused = desk.deskbus("account reconcile main --hash 0123456789 --reason by-hand")
        assert (refused.code, "check it again" in refused.err) == (4, True)
        done = desk.said(f"account reconcile main --hash {row['hash'][:12]} --reason by-hand")
        assert "both books agree" in done
        assert "took over the broker's books: by-hand" in done
        assert "no halt" in desk.said("halt --status")
        told = desk.deskbus("doctor").out
        for line in ("PKMA...", f"{NUMBER} ACTIVE, bound to main", "no_shorting is on", "agrees"):
            assert line in told, told
        missing = desk.deskbus("orders cancel 00000000-0000-0000-0000-000000000000")
        assert (missing.code, "deskbus orders list" in missing.err) == (3, True)


def test_the_key_that_services_read_data_with_is_not_bound_where_execution_is_apart(
    open_dir: Path,
) -> None:
    """One key for both: with services in processes of their own nothing but the file's mode keeps
    those that talk to models from trading."""
    options, shared = "--processes", "alpaca-data.key"
    with desk_at_alpaca(
        open_dir, EVENING, LAST, TICKERS[:1], options=options, trading_key_file=shared
    ) as desk:
        desk.alpaca.paper.keys = (alpaca_server.KEY_ID, alpaca_server.SECRET)
        refused = desk.deskbus(f"account bind main --number {NUMBER}")
        assert refused.code == 4
        assert "make a second paper account" in " ".join(refused.out.split())
        assert not desk.alpaca.paper.no_shorting
        told = " ".join(desk.deskbus("doctor").out.split())
        assert "services that talk to models can trade" in told


def test_everything_of_a_bound_account_is_sold_once_while_it_is_halted(open_dir: Path) -> None:
    tickers = TICKERS[:3]
    with desk_at_alpaca(open_dir, EVENING, LAST, tickers) as desk:
        paper = desk.alpaca.paper
        desk.said(f"account bind main --number {NUMBER}")
        desk.said("cycle request --wait")
        assert desk.sent().keys() == set(tickers)
        desk.alpaca.move(OPEN)
        soon(desk.orders, lambda open_ones: not open_ones)
        desk.alpaca.move(EVENING + DAY)
        held = {ticker: int(count) for ticker, count in paper.positions.items()}
        assert held.keys() == set(tickers)

        # One of them is being sold already, and a halt stops buys only.
        desk.said("exit now TAA")
        desk.said("halt --reason storm")
        (shown,) = desk.rows("exit now --all")
        assert [line["ticker"] for line in shown["lines"] if Decimal(line["promised"])] == ["TAA"]
        desk.said(f"exit now --all --hash {shown['hash']}")
        again = desk.deskbus(f"exit now --all --hash {shown['hash']}")
        assert (again.code, "nothing to do" in again.err) == (0, True)
        sales = {ticker: int(order["quantity"]) for ticker, order in desk.sent().items()}
        assert sales == held

        desk.alpaca.move(OPEN + DAY)
        soon(desk.orders, lambda open_ones: not open_ones)
        assert not any(paper.positions.values())
        assert "both books agree" in desk.said("account reconcile main")
        assert "has no positions" in desk.deskbus("exit now --all").err
