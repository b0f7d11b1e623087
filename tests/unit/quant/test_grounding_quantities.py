"""Which quantity a figure is, by which step, and measured from what: each rule from both sides."""

import pytest
from pydantic import JsonValue

from libs.quant.grounding.facts import Facts, Given, read
from tests.unit.quant.test_grounding import RESULTS
from tests.unit.quant.test_grounding_reading import ACCOUNT, BANDS, ungrounded

MORE: dict[str, JsonValue] = {
    "ticker": "ALFA",
    "values": {
        "momentum_1m_pct": -36.6,
        "momentum_3m_pct": -44.3,
        "volatility_3m_pct": 18.2,
        "sma_200": 61.26,
    },
}
RIVAL: dict[str, JsonValue] = {
    "ticker": "ECHO",
    "volume": 1_204_118,
    "values": {"rsi_14": 40.5, "momentum_3m_pct": 3.0, "volatility_3m_pct": 24.6},
}


@pytest.fixture(scope="module")
def facts() -> Facts:
    every = (*RESULTS, BANDS, ACCOUNT, MORE, RIVAL)
    return read([Given(f"E{n}", "tool", result) for n, result in enumerate(every)])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # Other names of a quantity.
        ("Its envelope is $13.24 wide.", "Its envelope is $12.34 wide."),
        ("A loss per share of 85 cents.", "A profit per share of 85 cents."),
        ("Profitability: 17.4% of sales.", "Profitability: 14.7% of sales."),
        ("A $3.27bn cap.", "A $3.72bn cap."),
        # Shares are whole: a number with decimals is none of them, and is a ratio if words say so.
        (
            "Its volume exceeds ECHO's by a factor of 2.2.",
            "Its volume exceeds ECHO's by a factor of 2.6.",
        ),
        # A name behind "of" binds more than one ahead; one that starts a relative clause binds not.
        ("3.3x sales: $3.27bn of market value.", "3.3x sales: $3.27bn of revenue."),
        (
            "At $81.79 anyone who bought on Friday is even.",
            "At $81.97 anyone who bought on Friday is even.",
        ),
        # What a name names straight ahead is not named by the next clause.
        ("RSI north of 75, its market value flat.", "RSI north of 85, its market value flat."),
        # Two names of one quantity are what both may be.
        ("Its momentum over three months is -44.3%.", "Its momentum over three months is -43.4%."),
        (
            "Over one month it has lost 36.6%, over three 44.3%.",
            "Over one month it has lost 36.6%, over three 43.4%.",
        ),
        # A level that stands between the figure and its clause.
        (
            "It hovers between $73.41 below, its 50-day average, and $83.23 above, its upper band.",
            "It hovers between $61.26 below, its 50-day average, and $83.23 above, its upper band.",
        ),
    ],
)
def test_a_quantity_is_known_by_its_names(right: str, wrong: str, facts: Facts) -> None:
    assert ungrounded(right, facts) == []
    assert ungrounded(wrong, facts) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # What is compared with stands in the clause, or is what "it" and "here" mean.
        (
            "It is 11.4% higher than the 50-day, which counts.",
            "It is 10.2% higher than the 50-day, which counts.",
        ),
        ("Against the 50-day, 11.4% higher.", "Against the 50-day, 10.2% higher."),
        ("10.2% down from here comes the 50-day.", "11.4% down from here comes the 50-day."),
        # A way leads from the price to a level.
        ("From $81.79 it is $11.80 down to the lower band.", "It is $11.08 to the lower band."),
        # What words say in between is an aside.
        (
            "It lies barely, that is 11.4%, above its 50-day average.",
            "It lies barely, that is 11.4%, below its 50-day average.",
        ),
        ("It leapt 1.29%.", "It took 1.29% off."),
        # A mean right behind a figure is that figure's.
        ("RSI of 60.0 on average: ALFA 79.5.", "RSI of 60.0 on average: ALFA 97.5."),
        # An amount is a part of its whole.
        (
            "Cash is 18.0% of the account: $18,640 out of $103,507.",
            "Cash is 18.0% of the account: $81,640 out of $103,507.",
        ),
        # Bounds that nothing reaches.
        ("Nothing here has an RSI reaching 80.", "Nothing here has an RSI reaching 75."),
    ],
)
def test_a_step_is_from_what_words_say(right: str, wrong: str, facts: Facts) -> None:
    assert ungrounded(right, facts) == []
    assert ungrounded(wrong, facts) != []
