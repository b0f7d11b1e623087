"""The report of a strategy: one file that asks for nothing, runs nothing, and hides nothing."""

import re
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from contracts.gate import DEFAULT, STRICT
from contracts.strategy_result import SESSIONS_MAX, BacktestResult, StrategyAssessment
from libs.quant.strategy.gates import backtest_gate, training_gate
from libs.report.strategies.chart import Chart, ChartLine, thinned
from libs.report.strategies.export import report_call
from libs.report.strategies.files import StrategyFiles
from libs.report.strategies.page import date_ticks, page
from tests.unit.services.strategy_results import assessment, backtest, design, training

VOID = {"meta", "br", "input"}
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
MARKS = set("MLHZhz.- 0123456789")


class Reader(HTMLParser):
    """Reads a page strictly: every tag is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.paths: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.paths += [value or "" for name, value in attrs if name == "d"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def sessions(count: int) -> tuple[date, ...]:
    return tuple(date(2000, 1, 3) + timedelta(days=place) for place in range(count))


def tried(count: int = 60, **changes: Any) -> BacktestResult:
    """A backtest with series, trades and prices."""
    days = sessions(count)
    equity = [100_000.0 + 500 * (place % 7) - 10 * place for place in range(count)]
    trade = {
        "ticker": "IBM",
        "side": "long",
        "quantity": 10.0,
        "entry": days[3],
        "entry_price": 103.0,
        "exit": days[9],
        "exit_price": 109.0,
        "profit": 55.0,
        "return_pct": 5.34,
    }
    still_open = {**trade, "entry": days[-2], "exit": None, "exit_price": None, "profit": -2.0}
    return backtest(
        sessions=days,
        equity=equity,
        benchmark=[100_000.0 + place for place in range(count)],
        trades=(trade, still_open),
        prices=({"ticker": "IBM", "closes": [100.0 + place for place in range(count)]},),
        currencies={"IBM": "GBP"},
        **changes,
    )


def whole() -> str:
    return page(design(), training(), tried(), assessment())


def test_the_page_is_whole_and_asks_for_nothing() -> None:
    read = Reader(whole())
    assert not read.tags & {"script", "img", "link", "iframe", "object", "form"}
    assert not {name for name in read.attributes if name.startswith("on")}
    assert not read.attributes & {"src", "href", "action"}
    assert not re.search(r"https?:|url\(|@import", whole())
    assert "default-src 'none'" in whole()


@pytest.mark.parametrize(
    ("days", "labels"),
    [
        (60, ["Jan 2000", "Feb 2000", "Mar 2000"]),
        (720, ["Jan 2000", "Jul 2000", "Jan 2001", "Jul 2001"]),
        (6 * 365 - 9, ["2000", "2001", "2002", "2003", "2004", "2005"]),
        (30 * 365, ["2000", "2005", "2010", "2015", "2020", "2025"]),
    ],
)
def test_the_days_below_a_chart_are_as_many_as_can_be_read(days: int, labels: list[str]) -> None:
    found = date_ticks(sessions(days))
    assert [label for _, label in found] == labels
    assert found[0][0] == 0


def test_what_holding_beats_is_not_shown_as_a_gain() -> None:
    def tile(**figures: float) -> str:
        return re.findall(r'Sharpe ratio</span><b class="(\w*)"', page(*given, tried(**figures)))[0]

    given = design(), training()
    assert tile(sharpe_ratio=0.35, benchmark_sharpe_ratio=0.95) == ""
    assert tile(sharpe_ratio=1.2, benchmark_sharpe_ratio=0.95) == "gain"
    assert tile(sharpe_ratio=-0.1, benchmark_sharpe_ratio=0.95) == "loss"


def test_the_page_has_a_light_and_a_dark_face_and_fits_a_telephone() -> None:
    assert "prefers-color-scheme: dark" in whole()
    assert 'content="width=device-width, initial-scale=1"' in whole()


@pytest.mark.parametrize(
    "said",
    [
        "trend-and-calm",
        "mediocre",
        "hold longer",
        "+31.00%",  # its return, and that of holding
        "+20.00%",
        "max drawdown",
        "Training loss",
        "2006-02-01 to 2006-12-29",
        "All 2 trades",  # of which the table has both
        "long 2000-01-06 at 103.00 GBP, 2000-01-12 at 109.00 GBP: +5.34%",
        "still open",
    ],
)
def test_the_page_says_what_the_cycle_has_come_to(said: str) -> None:
    found = Reader(page(design(), training(), tried(total_trades=2), assessment()))
    assert said in found.text


def test_the_same_results_give_the_same_page() -> None:
    assert whole() == whole()


def test_words_of_models_and_people_are_words_only() -> None:
    hostile = design().model_copy(
        update={"spec": design().spec.model_copy(update={"hypothesis": HOSTILE})}
    )
    said = StrategyAssessment.model_validate(
        {**assessment().model_dump(), "weaknesses": (HOSTILE, HOSTILE)}
    )
    read = Reader(page(hostile, training(), tried(), said))
    assert not read.tags & {"script", "img"}
    assert HOSTILE in read.text


def test_what_was_not_reached_is_left_out_and_the_gate_that_stopped_it_is_named() -> None:
    gate = training_gate(training(accuracy=0.4), DEFAULT)
    text = Reader(page(design(), training(gate=gate))).text
    assert "stopped by the training gate" in text
    assert "accuracy below threshold (40.0% < 45.0%)" in text
    assert "Equity" not in text
    assert "Assessment" not in text


def test_both_gates_are_told_with_values_and_thresholds() -> None:
    found = tried(deflated_sharpe=0.4, trials=7)
    passed = training_gate(training(), DEFAULT)
    failed = backtest_gate(found, STRICT)
    text = Reader(
        page(design(), training(gate=passed), found.model_copy(update={"gate": failed}))
    ).text
    assert "stopped by the backtest gate" in text
    assert "deflated sharpe below threshold (40.0% < 95.0%)" in text
    assert "1 - chance of it by luck, best of 7 trials" in text
    assert "best of 7 trials" in text


def test_a_strategy_that_never_traded_says_so() -> None:
    nothing = {"trades": (), "prices": (), "equity": (100_000.0,) * 60}
    found = tried(win_rate=None, sharpe_ratio=None).model_copy(update=nothing)
    text = Reader(page(design(), training(), found)).text
    assert "It never traded." in text


def test_the_longest_period_stays_a_page_that_opens() -> None:
    text = page(design(), training(), tried(SESSIONS_MAX))
    assert len(text) < 400_000
    Reader(text)


@pytest.mark.parametrize(
    "values", [[1.0, 1.0], [0.0, 0.0, 0.0], [-5.0, 5.0], [1e12, 1e12 + 1], [3.0]]
)
def test_any_values_can_be_drawn(values: list[float]) -> None:
    titles = [str(value) for value in values]
    chart = Chart([ChartLine(values, "own"), ChartLine(values, "loss", filled=True)], titles, str)
    drawn = "".join(line.path + line.area for line in chart.paths)
    assert set(drawn) <= MARKS, "no nan, no inf"
    assert set("".join(chart.grid)) <= MARKS


def test_a_thinned_line_keeps_its_ends_and_its_depths() -> None:
    values = [0.0] * 9_999 + [1.0]
    values[5_003] = -1.0
    found = thinned(values, min)
    assert len(found) <= 1_002
    assert (found[0], min(value for _, value in found)) == ((0.0, 0.0), -1.0)
    assert found[-1][0] == 9_999


async def test_the_report_is_exported_beside_the_assessment(tmp_path: Path) -> None:
    files = StrategyFiles(tmp_path)
    reply = await report_call(files, design(), training(), tried()).run()
    path = files.assessment_path("trend-and-calm").with_name("report.html")
    assert reply.value == {"path": str(path)}
    assert path.read_text(encoding="utf-8") == page(design(), training(), tried())


def test_every_price_names_the_currency_of_its_ticker_and_every_sum_its_unit() -> None:
    text = Reader(whole()).text
    assert "103.00 GBP" in text
    assert "109.00 GBP" in text
    assert "profit, GBP" in text
    assert "2000-01-03: 100.00 GBP" in whole()
    mixed = tried().model_copy(update={"currencies": {"IBM": "GBP", "AAPL": "USD"}})
    assert "in GBP, USD (one counts as one other)" in page(design(), training(), mixed)
