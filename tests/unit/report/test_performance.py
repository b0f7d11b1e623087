"""The words of how an account did: nothing undefined is shown as a number."""

from datetime import date
from decimal import Decimal

from contracts.performance import (
    MonthReturn,
    PerformanceFigures,
    PerformanceView,
    RoundTrip,
    TradeFigures,
    YearReturn,
)
from libs.report import performance

D = Decimal
OWN = PerformanceFigures(return_pct=D("4.2"), max_drawdown_pct=D(3))


def trip(**fields: object) -> RoundTrip:
    return RoundTrip.model_validate(
        {"ticker": "AAPL", "opened": date(2012, 1, 3), "quantity": 3, "gain": D(1), **fields}
    )


def test_what_is_not_defined_is_a_dash_and_never_a_zero() -> None:
    rows = {
        label: (own, beside)
        for label, own, beside in performance.figures(PerformanceView(account=OWN))
    }
    assert rows["Return"] == ("+4.20%", "-")
    assert rows["Sharpe ratio"] == ("-", "-")
    trading = dict(performance.trading(TradeFigures(open=2), "USD"))
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
    trading = dict(performance.trading(won, "USD"))
    assert trading["Average win"] == "+5.00"
    assert trading["Average loss"] == trading["Profit factor"] == "none was lost"


def test_who_sold_is_said_with_the_rules_that_fired() -> None:
    sold = trip(sold_by="signal", rules=("momentum", "regime"))
    assert performance.why_sold(sold) == "exit signal: momentum, regime"
    assert performance.why_sold(trip(sold_by="stop")) == "stop"
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
    (first, months, whole), (second, others, _) = performance.years(view)
    assert (first, second) == ("2012", "2013")
    assert months[10:] == [D(10), D(10)]
    assert months[0] is None
    assert whole == D("21.0001"), "measured, not multiplied from rounded months"
    assert others[0] == D(-5)
