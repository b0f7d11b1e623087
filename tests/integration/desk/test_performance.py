"""An account over some months: what is said of it agrees with its ledger to the cent."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate
from pathlib import Path

import asyncpg
import pytest

from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Json, wish
from tests.integration.desk.command_line import CommandLine, Said
from tests.integration.desk.conftest import Desk, desk_in

D = Decimal
ACCOUNT = "judged"
DECIDED = ("2012-04-02", "2012-07-02", "2012-09-28", "2012-12-14")
CHECKED = ("2012-05-31", "2012-06-29", "2012-08-31", "2012-10-31", "2012-11-30", "2013-01-31")
UNIVERSE = ["AAPL", "IBM", "MSFT", "GOOG"]


@dataclass
class Judged:
    """What months of decisions and sell checks have left."""

    view: Json = field(default_factory=dict)
    cash: Json = field(default_factory=dict)
    ticker: Json = field(default_factory=dict)
    no_price: Json = field(default_factory=dict)
    account: Json = field(default_factory=dict)
    board: Json = field(default_factory=dict)
    report: Json = field(default_factory=dict)
    nothing: Json = field(default_factory=dict)
    balances: dict[str, Decimal] = field(default_factory=dict)
    snapshots: list["asyncpg.Record"] = field(default_factory=list)
    sales: int = 0
    cycles: list[Json] = field(default_factory=list)
    listed: Said = Said(0, "", "")
    said: Said = Said(0, "", "")
    mistyped: Said = Said(0, "", "")


@pytest.fixture(scope="module")
def judged(
    make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn
) -> Iterator[Judged]:
    folder = make_open_dir()
    with desk_in(folder, own_environment_in) as desk:
        lived = asyncio.run(live(desk))
        deskbus = CommandLine(desk.settings.data_dir, folder)
        lived.said = deskbus(f"performance {ACCOUNT}")
        lived.listed = deskbus("cycle list")
        lived.mistyped = deskbus("performance nobody")
        yield lived


async def live(desk: Desk) -> Judged:
    found = Judged()
    pipelines = [{"name": "rules", "account": ACCOUNT}]
    async with desk.calling("user") as user:
        for day in sorted((*DECIDED, *CHECKED)):
            kind = "decision" if day in DECIDED else "exit"
            asked = {"universe": UNIVERSE} if kind == "decision" else {}
            ended = await user.run(wish(kind=kind, as_of=day, pipelines=pipelines, **asked))
            assert ended["status"] == "completed", ended["reason"]
        found.view = await user.query("performance", account=ACCOUNT, trips=200, points=200)
        found.cash = await user.query("performance", account=ACCOUNT, benchmark="cash")
        found.ticker = await user.query("performance", account=ACCOUNT, benchmark="ibm")
        found.no_price = await user.query("performance", account=ACCOUNT, benchmark="NOPE")
        found.account = await user.query("account", account=ACCOUNT)
        found.board = await user.query("leaderboard", rows=[f"rules@{ACCOUNT}"])
        found.report = await user.query("report", account=ACCOUNT)
        found.cycles = (await user.query("cycles", limit=50))["cycles"]
        found.nothing = await user.query("performance", account="nobody")
    async with desk.postgres() as db:
        rows = await db.fetch(
            "select book, sum(amount) as amount from postings join entries using (entry_id)"
            " where entries.account = $1 and session <= (select clock from accounts"
            " where account = $1) group by book",
            ACCOUNT,
        )
        found.balances = {row["book"]: row["amount"] for row in rows}
        found.snapshots = await db.fetch(
            "select session, equity, unrealised from snapshots where account = $1 order by session",
            ACCOUNT,
        )
        found.sales = await db.fetchval(
            "select count(*) from fills join orders using (order_id)"
            " where account = $1 and side = 'sell'",
            ACCOUNT,
        )
    return found


def summed(view: Json, name: str) -> Decimal:
    return sum((D(str(trip[name])) for trip in view["trips"]), D(0))


def test_something_was_sold_or_nothing_here_is_tried(judged: Judged) -> None:
    assert judged.sales > 1
    assert judged.view["trades"]["closed"] > 0


def test_round_trips_add_up_to_the_ledger_and_its_newest_close(judged: Judged) -> None:
    books, close = judged.balances, judged.snapshots[-1]
    assert summed(judged.view, "fees") == books["fees"] == D(judged.view["trades"]["fees"])
    assert summed(judged.view, "dividends") == -books.get("dividends", D(0))
    assert summed(judged.view, "unrealised") == close["unrealised"]
    earned = -books["realised"] - books.get("dividends", D(0)) - books["fees"]
    assert summed(judged.view, "gain") == earned + close["unrealised"] == close["equity"] - 100_000
    assert sum(D(it["gain"]) for it in judged.view["tickers"]) == summed(judged.view, "gain")


def results(judged: Judged) -> list[Json]:
    lanes = [lane for cycle in judged.cycles for lane in cycle["pipelines"]]
    return [result for lane in lanes for result in lane["results"]]


def test_a_trade_has_one_figure_in_its_buys_row_in_its_sales_rows_and_among_the_trades(
    judged: Judged,
) -> None:
    closed = {
        (trip["ticker"], trip["opened"]): D(trip["gain"])
        for trip in judged.view["trips"]
        if trip["closed"] is not None
    }
    gains: dict[str, dict[tuple[str, str], Decimal]] = {"buy": {}, "sell": {}}
    for result in results(judged):
        key = (result["ticker"], (result.get("trip") or {}).get("opened", ""))
        if result.get("gain") and key in closed:
            own = gains[result["side"]]
            own[key] = own.get(key, D(0)) + D(result["gain"]["amount"])
    assert closed
    assert gains == {"buy": closed, "sell": closed}


def test_the_list_of_cycles_says_that_its_decisions_share_their_trades(judged: Judged) -> None:
    assert "P&L" in judged.listed.out
    assert "a trade is in the decision that bought it and in the one that sold it" in (
        judged.listed.out
    )


def test_every_surface_has_the_same_gain_return_and_counts(judged: Judged) -> None:
    view, account, day = judged.view, judged.account, judged.report["report"]
    (row,) = (it for it in judged.board["rows"] if it["kind"] == "pipeline")
    gain = summed(view, "gain")
    assert D(account["equity"]) - D(account["paid_in"]) == gain
    ever = {name: D(amount) for name, amount in day["worth"]["ever"].items()}
    assert ever["realised"] + ever["unrealised"] + ever["dividends"] - ever["fees"] == gain
    assert {account["closed_on"], view["last"], day["session"], judged.board["last"]} == {
        judged.snapshots[-1]["session"].isoformat()
    }
    own = D(view["account"]["return_pct"])
    assert own == D(account["return_pct"]) == D(row["return_pct"])
    assert (row["closed"], row["won"]) == (view["trades"]["closed"], view["trades"]["won"])
    assert sum(trip["closed"] is not None for trip in view["trips"]) == row["closed"]
    later = view["not_counted"]["fills"]
    assert later == account["not_counted"]["fills"] == judged.board["fills_after"]


def test_the_return_is_that_of_the_snapshots(judged: Judged) -> None:
    curve = [row["equity"] for row in judged.snapshots]
    figures = judged.view["account"]
    assert D(figures["return_pct"]) == ((curve[-1] / curve[0] - 1) * 100).quantize(D("0.0001"))
    peaks = accumulate(curve, max)
    deepest = max(1 - value / peak for value, peak in zip(curve, peaks, strict=True))
    assert D(figures["max_drawdown_pct"]) == (deepest * 100).quantize(D("0.0001"))
    grown = D(1)
    for month in judged.view["months"]:
        grown *= 1 + D(month["return_pct"]) / 100
    assert abs((grown - 1) * 100 - D(figures["return_pct"])) < D("0.01")


def test_each_round_trip_leads_to_the_decisions_that_bought_and_sold(judged: Judged) -> None:
    for trip in judged.view["trips"]:
        assert trip["entry_cycle_id"]
        if trip["closed"]:
            assert trip["exit_cycle_id"]
            assert trip["sold_by"] in {"stop", "signal"}
            assert (trip["sold_by"] == "signal") == bool(trip["rules"])


def test_the_account_is_beside_the_benchmark_that_was_chosen(judged: Judged) -> None:
    view = judged.view
    assert view["benchmark"] == "candidates"
    assert set(view["benchmark_tickers"]) == set(UNIVERSE)
    assert view["compared"]["return_pct"]
    assert all(point["benchmark_pct"] is not None for point in view["points"])
    assert D(judged.cash["compared"]["return_pct"]) == 0
    assert judged.ticker["benchmark_tickers"] == ["IBM"]
    assert judged.no_price["compared"] is None
    assert "no price of NOPE" in judged.no_price["benchmark_message"]
    assert judged.ticker["compared"]["return_pct"] not in {None, view["compared"]["return_pct"]}


def test_an_account_that_nobody_has_is_told_with_those_there_are(judged: Judged) -> None:
    assert not judged.nothing["found"]
    assert ACCOUNT in judged.nothing["accounts"]
    assert judged.mistyped.code == 3
    assert ACCOUNT in judged.mistyped.err


def test_the_command_line_says_the_same(judged: Judged) -> None:
    text = judged.said.out
    assert judged.said.code == 0, judged.said.err
    assert f"performance of {ACCOUNT}" in text
    assert "Max drawdown" in text
    assert "benchmark: equal parts of" in text
    assert f"{judged.view['trades']['closed']} closed" in text
