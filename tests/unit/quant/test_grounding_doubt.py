"""The benefit of the doubt: what no reading finds passes where no words speak against it."""

from typing import Any

import pytest
from pydantic import JsonValue

from libs.quant.grounding.facts import Facts, Given, read
from tests.unit.quant.test_grounding import COMPANY, HISTORY, NEWS, PRICE, ungrounded


def indicators(ticker: str, **values: JsonValue) -> dict[str, JsonValue]:
    return {"ticker": ticker, "values": values}


RESULTS: tuple[Any, ...] = (
    PRICE,
    PRICE | {"ticker": "ECHO", "price": 28.21, "day_change_pct": -1.81},
    PRICE | {"ticker": "DLTA", "price": 194.21, "day_change_pct": 0.52},
    indicators("ALFA", sma_50=73.41, rsi_14=79.49, momentum_1m_pct=13.8, volatility_3m_pct=17.8),
    indicators("ECHO", momentum_1m_pct=-2.5, volatility_3m_pct=24.6),
    indicators("DLTA", momentum_1m_pct=7.5, volatility_3m_pct=20.3),
    COMPANY,
    HISTORY,
    NEWS,
    {"ticker": "ALFA", "upcoming": {"report_date": "2024-05-14", "period_end": "2024-03-31"}},
)


@pytest.fixture(scope="module")
def facts() -> Facts:
    return read([Given(f"E{n}", "tool", result) for n, result in enumerate(RESULTS)])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # A quantity in words that no table has; another ticker's is none, nor one of another name.
        ("Of each dollar taken in, 13.5% stays.", "Of each dollar taken in, 15.3% stays."),
        ("Of each dollar taken in, 13.5% stays.", "Its net margin of 17.4% is good."),
        ("What one pays is $81.79.", "What one pays is $28.21."),
        # An average is believed only where it is named and has no other figure.
        ("It should fall to $73.41, where the 50-day runs.", "It should fall to $73.41."),
        (
            "It stands at $81.79, over the 50-day ($73.41).",
            "It stands at $73.41, over the 50-day ($73.41).",
        ),
        # A few digits are believed where their name stands anywhere in the text.
        (
            "Ranked by one-month momentum. ALFA leads. It shows 14%.",
            "Ranked by size. ALFA leads. It shows 14%.",
        ),
        # A session's prices are believed where the words tell its day.
        ("Thursday began with $81.46.", "It began with $81.46."),
        # A day that the words ask for is no other day.
        ("On March 14 all ended with $80.75.", "On March 14 all ended with $81.79."),
    ],
)  # fmt: skip
def test_an_equal_quantity_passes_where_no_words_speak_against_it(
    right: str, wrong: str, facts: Facts
) -> None:
    assert ungrounded(right, facts) == []
    assert ungrounded(wrong, facts) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Take $81.79 and $73.41 (50-day): 11.4% lie in between.", "Take $81.79: 12.4% lie there."),
        ("From $80.75 on March 14 it made $1.04.", "From $80.75 on March 14 it made $1.40."),
    ],
)
def test_a_step_between_given_figures_needs_no_word(right: str, wrong: str, facts: Facts) -> None:
    assert ungrounded(right, facts) == []
    assert ungrounded(wrong, facts) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Volatility is 20.9% on average.", "Volatility is 29.0% on average."),
        (
            "ALFA apart, the others have a mean volatility of 22.4%.",
            "The mean volatility is 22.4%.",
        ),
        ("Volatility is lowest at 17.8%.", "Volatility is lowest at 20.3%."),
    ],
)
def test_a_mean_or_an_end_is_of_all_or_of_the_others(right: str, wrong: str, facts: Facts) -> None:
    assert ungrounded(right, facts, None) == []
    assert ungrounded(wrong, facts, None) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("The cut-off is March 15.", "The cut-off is March 11."),
        ("Numbers come on May 14.", "Numbers come on May 15."),
    ],
)
def test_a_date_is_of_some_event_where_its_clause_speaks_of_none(
    right: str, wrong: str, facts: Facts
) -> None:
    assert ungrounded(right, facts) == []
    assert ungrounded(wrong, facts) != []
