"""The words of how an account did: nothing undefined is shown as a number."""

from datetime import date
from decimal import Decimal

from contracts.account_query import NotCounted
from contracts.performance import (
    MonthReturn,
    PerformanceFigures,
    PerformanceView,
    RoundTrip,
    TradeFigures,
    YearReturn,
)
from libs.report import performance
from libs.report.view import Facts, Table

D = Decimal
OWN = PerformanceFigures(return_pct=D("4.2"), max_drawdown_pct=D(3))


def trip(**fields: object) -> RoundTrip:
    return RoundTrip.model_validate(
        {
            "ticker": "AAPL",
            "as_of": date(2012, 10, 31),
            "opened": date(2012, 1, 3),
            "quantity": 3,
            "gain": D(1),
            **fields,
        }
    )


def texts(of: Table) -> dict[str, list[str]]:
    """The rows by their first cell, as people read them."""
    return {it.cells[0].text: [cell.shown(of.currency) for cell in it.cells[1:]] for it in of.rows}


def facts(of: Facts) -> dict[str, str]:
    return {label: cell.shown(of.currency) for label, cell in of.rows}


def test_what_is_not_defined_is_a_dash_and_never_a_zero() -> None:
    rows = texts(performance.figures(PerformanceView(account=OWN)))
    assert rows["Return"] == ["+4.20%", "-", "-"]
    assert rows["Sharpe ratio"] == ["-", "-", "-"]
    trading = facts(performance.trading(TradeFigures(open=2), "USD"))
    assert trading["Round trips"] == "0 closed, 2 open"
    assert trading["Win rate, best, worst"] == "none has closed yet"
    assert "-, -" not in trading.values()


def test_a_figure_of_winners_or_losers_without_any_says_so() -> None:
    won = TradeFigures(
        closed=1,
        won=1,
        win_rate_pct=D(100),
        mean_win=D(5),
        best=D(5),
        worst=D(5),
        sessions_held=D(3),
    )
    trading = facts(performance.trading(won, "USD"))
    assert trading["Win rate"] == "100% (1 of 1)"
    assert trading["Average win"] == "+5.00"
    assert trading["Average loss"] == trading["Profit factor"] == "none was lost"


def test_who_sold_is_said_with_the_rules_that_fired() -> None:
    closed = date(2012, 3, 1)
    sold = trip(sold_by="signal", rules=("momentum", "regime"), closed=closed)
    assert performance.why_sold(sold) == "exit signal: momentum, regime"
    assert performance.why_sold(trip(sold_by="stop", closed=closed)) == "stop"
    assert performance.why_sold(trip()) == ""


def test_the_benchmark_is_named_by_what_it_holds() -> None:
    held = PerformanceView(benchmark="candidates", benchmark_tickers=("AAPL", "IBM"))
    assert performance.benchmark(held) == "equal parts of AAPL IBM, bought at the first decision"
    assert performance.benchmark(PerformanceView(benchmark="candidates")) == "buy-and-hold"
    assert performance.benchmark(PerformanceView(benchmark="cash")) == "cash"


def test_a_year_has_twelve_months_and_what_they_come_to() -> None:
    view = PerformanceView(
        months=(
            MonthReturn(month="2012-11", return_pct=D(10)),
            MonthReturn(month="2012-12", return_pct=D(10)),
            MonthReturn(month="2013-01", return_pct=D(-5)),
        ),
        years=(
            YearReturn(year="2012", return_pct=D("21.0001")),
            YearReturn(year="2013", return_pct=D(-5)),
        ),
    )
    table = performance.months(view)
    rows = texts(table)
    assert list(rows) == ["2012", "2013"]
    assert rows["2012"] == [""] * 10 + ["+10.0", "+10.0", "+21.00%"]
    assert rows["2013"][0] == "-5.0"
    whole = table.rows[0].cells[-1].value
    assert whole == D("21.0001"), "measured, not multiplied from rounded months"


def test_an_open_trade_says_what_part_was_sold_and_at_which_close_it_is_valued() -> None:
    partly = trip(
        quantity=D(99),
        sold=D(21),
        held=D(78),
        entry_price=D("13.3333"),
        exit_price=D("20.2145"),
        sold_by="signal",
        rules=("momentum",),
        unrealised=D("-12.50"),
    )
    view = PerformanceView(last=date(2012, 10, 31), currency="USD", trips=(partly,))
    table = performance.trips(view, "main")
    cells = dict(zip([it.title for it in table.columns], table.rows[0].cells, strict=True))
    assert cells["Closed"].text == "open"
    assert cells["Shares"].text == "78"
    assert cells["Exit"].text == "20.215*"
    assert cells["Exit reason"].text == "21 of 99: exit signal: momentum"
    notes = [note.text for note in table.notes]
    assert any("as of the close of Wed 2012-10-31, unrealised included" in it for it in notes)
    assert any(it.startswith("* the average price of the part") for it in notes)


def test_a_trade_that_is_held_whole_has_no_exit() -> None:
    table = performance.trips(PerformanceView(currency="USD", trips=(trip(held=D(3)),)), "main")
    titles = [it.title for it in table.in_use.columns]
    assert "Exit" not in titles
    assert "Exit reason" not in titles


def test_every_surface_names_the_close_and_what_came_after_it() -> None:
    later = NotCounted(fills=2, paid_in=D("-500"))
    view = PerformanceView(
        first=date(2012, 6, 29), last=date(2012, 10, 31), currency="USD", not_counted=later
    )
    assert performance.heading(view).startswith("as of the close of Wed 2012-10-31")
    (note,) = performance.notes(view)
    assert note.text == (
        "not counted yet, as it came after this close: 2 fills, 500.00 USD taken out"
    )
    assert performance.notes(view.model_copy(update={"not_counted": NotCounted()})) == ()
