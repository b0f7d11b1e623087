"""What of facts, results and tasks a masked arm is shown: ratios, and nothing that nobody named."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from libs.facts.fact import DAY, PERCENT, PLAIN, SHARES, TEXT, Fact, Key
from libs.llm.masking.codebook import Codebook, Masking
from libs.llm.masking.measures import percentile, significant
from libs.llm.masking.shown import result_shown, task_shown
from libs.llm.masking.shown_facts import FactMask
from libs.market.calendar import exchange_calendar

AS_OF = date(2012, 6, 29)
BOOK = Codebook.of(Masking(AS_OF, exchange_calendar()), ("AAPL", "IBM"), ("Energy",))
A, B = BOOK.tickers["AAPL"], BOOK.tickers["IBM"]


def shown(*facts: Fact, volumes: Mapping[str, float] | None = None) -> dict[str, tuple[Any, str]]:
    mask = FactMask(BOOK, facts, volumes or {})
    return {each.fact.name: (each.fact.value, each.fact.unit) for each in mask.shown(facts)}


def fact(name: str, value: Any, unit: str = "USD", **fields: Any) -> Fact:
    ticker, _, quantity = name.partition(".")
    key = Key(ticker, quantity, fields.pop("on", None), fields.pop("mark", ""))
    return Fact(key, value, unit, quantity, **fields)


def test_prices_are_in_percent_of_the_close_to_the_places_of_the_tools() -> None:
    found = shown(
        fact("AAPL.close", 584.0),
        fact("AAPL.sma_200", 480.25),
        fact("AAPL.atr_14", 11.68),
        fact("AAPL.close", 570.0, on=date(2012, 6, 22)),
    )
    assert found == {
        f"{A}.close": (Decimal(100), "% of close"),
        f"{A}.sma_200": (Decimal("82.2346"), "% of close"),
        f"{A}.atr_14": (Decimal(2), "% of close"),
        f"{A}.close@T-5": (Decimal("97.6027"), "% of close"),
    }


def test_a_price_in_another_currency_than_the_close_is_not_shown() -> None:
    assert f"{A}.cost" not in shown(fact("AAPL.close", 584.0), fact("AAPL.cost", 400.0, "EUR"))


def test_the_end_of_a_fiscal_year_is_not_shown_as_it_tells_the_season() -> None:
    found = shown(
        fact("AAPL.close", 584.0),
        fact("AAPL.eps_fiscal_year", 27.68, on=date(2011, 9, 24)),
    )
    assert found[f"{A}.eps_fiscal_year"] == (Decimal("4.7"), "% of close")
    assert not [name for name in found if "@" in name]


def test_fundamentals_have_two_digits_and_sizes_are_percentiles() -> None:
    found = shown(
        fact("AAPL.close", 584.0),
        fact("AAPL.pe_ratio", 14.2345, PLAIN),
        fact("AAPL.eps_ttm", 41.04),
        fact("AAPL.market_cap", 5.4e11),
        fact("IBM.market_cap", 2.2e11),
        fact("AAPL.shares_outstanding", 9.3e8, SHARES),
    )
    assert found[f"{A}.pe_ratio"] == (Decimal(14), PLAIN)
    assert found[f"{A}.eps_ttm"] == (Decimal("7.0"), "% of close")
    assert found[f"{A}.market_cap"] == (Decimal(75), "percentile")
    assert found[f"{B}.market_cap"] == (Decimal(25), "percentile")
    assert f"{A}.shares_outstanding" not in found


def test_no_text_passes_and_what_is_forbidden_is_only_said_to_be() -> None:
    found = shown(
        fact("AAPL.headline", "Apple beats", TEXT, on=AS_OF, mark="ghij"),
        fact("AAPL.filing", "10-Q of Apple", TEXT, on=AS_OF, mark="ghij"),
        fact("AAPL.not_to_buy", "Apple was sold on 2012-06-28", TEXT),
        fact("AAPL.sector", "Energy", TEXT),
        fact("AAPL.next_report", date(2012, 7, 5), DAY),
        fact("AAPL.days_to_report", 6, "days"),
        fact("NVDA.change_21d_pct", 3.0, PERCENT),
        fact("AAPL.something_new", "Apple", TEXT, on=AS_OF, mark="ghij"),
    )
    assert found == {
        f"{A}.not_to_buy": ("yes", TEXT),
        f"{A}.sector": (BOOK.sectors["Energy"], TEXT),
        f"{A}.next_report": ("T+3", TEXT),
        f"{A}.days_to_report": ("T+3", TEXT),
    }


def test_volumes_are_multiples_and_money_is_a_part_of_the_equity() -> None:
    found = shown(
        fact("account.equity", Decimal(50_000)),
        fact("account.cash", Decimal(12_500)),
        fact("AAPL.volume", 300, SHARES),
        fact("IBM.volume", 300, SHARES),
        volumes={"AAPL": 200.0},
    )
    assert found == {
        "account.equity": (Decimal(100), "% of equity"),
        "account.cash": (Decimal(25), "% of equity"),
        f"{A}.volume": (Decimal("1.5"), "times usual"),
    }


def test_a_history_is_on_the_scale_of_its_last_close() -> None:
    result: dict[str, Any] = {
        "ticker": "AAPL",
        "source": "bokeh-sampledata",
        "currency": "USD",
        "columns": ["session", "open", "high", "low", "close", "volume"],
        "rows": [["2012-06-28", 20, 22, 18, 20, 100], ["2012-06-29", 20, 26, 20, 25, 300]],
    }
    assert result_shown(result, BOOK) == {
        "ticker": A,
        "columns": ["session", "open", "high", "low", "close", "volume"],
        "rows": [["T-1", 80, 88, 72, 80, 0.5], ["T+0", 80, 104, 80, 100, 1.5]],
    }


def test_an_error_of_a_source_keeps_its_code_alone() -> None:
    error = {"error": {"code": "no_history", "message": "AAPL: bokeh-sampledata has none"}}
    assert result_shown(error, BOOK) == {"error": {"code": "no_history"}}


def test_a_result_of_a_tool_that_nobody_has_thought_of_shows_what_has_a_unit_and_no_name() -> None:
    result: dict[str, Any] = {
        "ticker": "AAPL",
        "text": "Apple",
        "currency": "USD",
        "venue": "NASDAQ",
        "price": 50,
        "ask_price": 51,
        "volume": 900,
        "short_interest_pct": 4.2,
        "shares_lent": 12_000,
        "on": "2012-06-28",
        "period_end": "2012-03-31",
        "is_open": False,
        "AAPL": True,
        "peers": ["IBM", "NVDA"],
        "rows_of": [{"ticker": "NVDA", "score": 1}, {"ticker": "IBM", "score": 2}],
    }
    assert result_shown(result, BOOK) == {
        "ticker": A,
        "price": 100,
        "ask_price": 102,
        "short_interest_pct": 4.2,
        "on": "T-1",
        "is_open": False,
        "peers": [B],
        "rows_of": [{"ticker": B, "score": 2}],
    }


def test_a_new_field_of_a_contract_is_shown_by_its_unit_and_an_unknown_unit_is_not() -> None:
    finding = {
        "ticker": "AAPL",
        "current_price": "584",
        "currency": "USD",
        "fair_price": "642.4",
        "growth_score": 8,
        "since": "2012-06-22",
        "signal": "bullish",
        "fair_worth": "642.4",
        "analyst": "Apple's own",
        "sector": "Energy",
    }
    assert task_shown({"findings": [finding]}, BOOK, {}, {})["findings"] == [
        {
            "ticker": A,
            "current_price": 100,
            "fair_price": 110,
            "growth_score": 8,
            "since": "T-5",
            "signal": "bullish",
            "sector": BOOK.sectors["Energy"],
        }
    ]


def test_a_list_in_the_alphabets_order_is_put_into_that_of_the_codes() -> None:
    for names in (("AAPL", "IBM"), ("IBM", "AAPL")):
        listed = task_shown({"tickers": list(names)}, BOOK, {}, {})["tickers"]
        assert listed == (sorted((A, B)) if names[0] == "AAPL" else [B, A])


@pytest.mark.parametrize(
    "hidden",
    [
        {"agent_memory": {"short_term_summary": "AAPL went up"}},
        {"plan": {"objective": "buy Apple", "quant_question": "is it up?"}},
        {"constraints": {"note": "no AAPL in July"}},
        {"research_report": {"tickers": [{"ticker": "NVDA", "summary": "Nvidia"}]}},
        {"signal_digest": {"candidates": [{"name": "Apple Inc.", "reasons": {"news": "Apple"}}]}},
        {"portfolio": {"account": "study-0123abcd-0-0-blind", "rates": [{"rate": "1.2"}]}},
    ],
)
def test_texts_strangers_and_unknown_fields_are_left_out_of_a_task(hidden: Any) -> None:
    assert task_shown(hidden, BOOK, {}, {}).keys() == {"as_of", "masked"}


def test_a_position_is_a_part_of_the_equity_and_its_cost_a_part_of_the_price() -> None:
    money = {"currency": "USD"}
    portfolio = {
        "equity": {"amount": "1000", **money},
        "cash": {"amount": "500", **money},
        "positions": [
            {
                "ticker": "AAPL",
                "quantity": "5",
                "price": {"amount": "100", **money},
                "average_cost": {"amount": "80", **money},
                "opened_on": "2012-06-22",
            }
        ],
    }
    assert task_shown({"portfolio": portfolio}, BOOK, {}, {})["portfolio"] == {
        "equity": 100,
        "cash": 50,
        "positions": [
            {"ticker": A, "price": 100, "average_cost": 80, "opened_on": "T-5", "value": 50}
        ],
    }


@pytest.mark.parametrize(
    ("value", "rounded"), [("14.2345", "14"), ("0.01234", "0.012"), ("-1234", "-1200"), ("0", "0")]
)
def test_two_significant_digits(value: str, rounded: str) -> None:
    assert significant(Decimal(value)) == Decimal(rounded)


def test_a_percentile_needs_somebody_else() -> None:
    assert percentile(Decimal(1), [Decimal(1)]) is None
    assert percentile(Decimal(1), [Decimal(1), Decimal(1)]) == 50
