"""How loosely the grounding checker reads: each rule from both sides."""

import pytest
from pydantic import JsonValue

from libs.quant.grounding.facts import Facts, Given, read
from libs.quant.grounding.figures import figures
from tests.unit.quant.test_grounding import RESULTS, ungrounded

BANDS: dict[str, JsonValue] = {
    "ticker": "ALFA",
    "values": {
        "bollinger_upper": 83.23,
        "bollinger_lower": 69.99,
        "macd": 2.45,
        "macd_histogram": 0.41,
        "atr_14": 1.57,
    },
}
ACCOUNT: dict[str, JsonValue] = {
    "cash": {"amount": "18640.00", "currency": "USD"},
    "equity": {"amount": "103507.00", "currency": "USD"},
    "positions": [
        {
            "ticker": "ECHO",
            "quantity": 1150,
            "average_cost": {"amount": "31.84", "currency": "USD"},
            "price": {"amount": "28.21", "currency": "USD"},
        }
    ],
    "open_orders": [{"ticker": "ECHO", "quantity": 85}],
}


@pytest.fixture(scope="module")
def facts() -> Facts:
    every = (*RESULTS, BANDS, ACCOUNT)
    return read([Given(f"E{n}", "tool", result) for n, result in enumerate(every)])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # Two names that are one, and a name that is only measured from.
        ("The histogram of MACD reads 0.41.", "The histogram of RSI reads 73.41."),
        ("A stop one ATR under the close would be $80.22.", "A stop on it would be $80.75."),
        ("$1.44 below the upper band.", "$1.44 above the upper band."),
        ("To the upper band: $1.44.", "To the upper band: $1.57."),
        ("The upper band is $1.44 further up.", "The upper band is $1.57 further up."),
        # What lies beyond something is named before "by", or with its value said aside.
        (
            "Ahead of the 50-day average ($73.41) by 11.4%.",
            "Ahead of the 50-day average ($73.41) by 10.2%.",
        ),
        ("Below $83.23 (upper band) for now.", "Below $84.23 (upper band) for now."),
        # A distance from what has no name here has no base.
        ("The 50-day, $8.38 beneath the market, helps.", "It is $8.83 beneath the market."),
        # The day of the sentence before goes on, unless "now" ends it.
        (
            "On March 14 it closed at $80.75. The shares touched $80.37.",
            "On March 14 it closed at $80.75. The shares touched $80.72.",
        ),
        (
            "It closed at $80.75 on March 14 and stands at $81.79 now.",
            "It closed at $80.75 on March 14 and stands at $81.27 now.",
        ),
        (
            "Volume fell from the day before to 2.68 million.",
            "Volume fell from the day before to 3.57 million.",
        ),
        ("The sessions since March 13 were calm.", "The sessions since March 12 were calm."),
        # A date is right where what is computed of it is of that day.
        ("It is up 0.6% since March 13.", "It is up 0.6% since March 12."),
        # A share of two given figures needs no word, a loss "of the stake" no name.
        ("Sales were $980 million, profit $132 million: 13.5%.", "Sales $980 million: 17.5%."),
        ("Its price is 3 times ECHO's.", "Its price is 4 times ECHO's."),
        # A part that no tool tells apart is not refuted, but its whole is.
        ("One of the two tickers is odd.", "One of the five tickers is odd."),
        # An amount that nothing names may be any of its ticker's, but not where it is the price.
        ("It went as far down as $80.57 on Friday.", "It went down to $80.57."),
        ("Its costs are what they are. $81.79 a share.", "Its value: $3.27 million a share."),
    ],
)
def test_a_reading_that_may_be_meant_passes_and_one_that_may_not_is_marked(
    right: str, wrong: str, facts: Facts
) -> None:
    assert ungrounded(right, facts) == []
    assert ungrounded(wrong, facts) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("The account is worth $103,507.", "The account is worth $105,307."),
        ("With 1,150 shares bought at $31.84.", "With 650 shares bought at $31.84."),
        ("Lift the holding to 1,235 shares.", "A holding of 1,235 shares."),
        ("$3.63 apiece below their $31.84 cost.", "$3.36 apiece below their $31.84 cost."),
    ],
)
def test_what_is_owned_is_read_by_its_names(right: str, wrong: str, facts: Facts) -> None:
    assert ungrounded(right, facts, "ECHO") == []
    assert ungrounded(wrong, facts, "ECHO") != []


@pytest.mark.parametrize(
    ("own", "claimed"),
    [
        ("Adding 400 shares.", "It added 400 shares."),
        ("It looks strong; urgency 0.8.", "It looks strong, from 0.8."),
        ("Over the following 20 sessions it may rise.", "Over the last 20 sessions it rose."),
        ("Hold exposure to 40%.", "The exposure fell to 40%."),
        ("Until then, 0.15.", "Until then, the correlation averages 0.15."),
        ("Over the past three months it rose.", "Over the past three sessions it rose 9%."),
        # A limit of the writer's, and what has a name.
        ("No position over 5%.", "A volatility over 95%."),
        ("No name may exceed 30%.", "No name gained more than 1%, the market cap fell 20%."),
        ("We hold every line to 5% at most.", "Every line lost 5% at most."),
        ("The weight stops at 0.25.", "The correlation stops at 0.25."),
        ("Limit for any name: 35%.", "Our limit is kept: it gained 35%."),
        ("Exposure no greater than 50%.", "A month no better than 50%."),
        ("Net read: -0.7.", "Their correlation was 0.7."),
        ("Room for 10 more.", "Room was for 10 holdings."),
        ("RSI of 79.5, well past 70.", "RSI of 79.5, and 70 the day before."),
        ("Upside. (1) Orders came in.", "Upside (17) of orders."),
        ("The last close over $81 was Friday's.", "It is worth $81."),
    ],
)
def test_orders_grades_and_horizons_are_the_writers_own(
    own: str, claimed: str, facts: Facts
) -> None:
    assert ungrounded(own, facts) == []
    assert ungrounded(claimed, facts) != []


def test_the_first_end_of_a_range_has_the_unit_of_the_second() -> None:
    assert [each.unit for each in figures("between 14.8 and 46.2 times")] == ["times", "times"]
    assert [each.unit for each in figures("14.8, then 46.2 times")] == ["number", "times"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # Who is meant where the name last said is another's.
        ("Of ALFA and ECHO the latter costs $28.21.", "Of ALFA and ECHO the former costs $28.21."),
        ("ALFA led. It rose, as ECHO fell, and it is at $81.79.", "ALFA led. ECHO is at $81.79."),
        ("A gain of 1.29%, which is ALFA.", "A gain of 1.29%, which is ECHO."),
        ("ALFA led. At $81.79 it is dearer than that of ECHO.", "ECHO led, and is at $81.79."),
        ("ALFA was well ahead of ECHO (-1.81%).", "ALFA was well ahead of ECHO (+1.81%)."),
        ("An order for 85 shares is open.", "An order for 58 shares is open."),
        # A mean is of the figure that stands with it.
        ("It is -0.26% on average (ALFA 1.29%).", "It is 1.29% on average (ALFA 1.18%)."),
        ("News items in total: 1.", "News items in total: 3."),
    ],
)
def test_whose_a_figure_is_where_others_are_named(right: str, wrong: str, facts: Facts) -> None:
    assert ungrounded(right, facts, None) == []
    assert ungrounded(wrong, facts, None) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # The day that words name, and the days that others are of.
        ("In March: on the 14th $80.75.", "In February: on the 14th $80.75."),
        ("$80.75 was the close on the 14th, not on the 13th.", "$81.79 was the close on the 14th."),
        ("$81.79 on Friday against $80.75 on the 14th.", "$80.75 on Friday against $81.79 before."),
        ("It ended the week at $81.79, from $80.75 (14 March).", "It is at $81.79 (14 March)."),
        ("It changed hands 2,677,695 times.", "It changed hands 2,766,695 times."),
    ],
)
def test_when_a_figure_was_so(right: str, wrong: str, facts: Facts) -> None:
    assert ungrounded(right, facts) == []
    assert ungrounded(wrong, facts) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # What is counted must be so many; a streak that no tool tells is invented.
        (
            "It has beaten them for several quarters.",
            "It has beaten them in seven consecutive quarters.",
        ),
        ("It beat, its fourth time.", "It beat, the fourth consecutive beat."),
        ("It rose on each of the last one sessions.", "It rose on each of the last two sessions."),
        ("It and ECHO, one of which is news.", "It and ECHO, one of which is in profit."),
        ("RSI of 79.5; one of the names above 70.", "RSI of 79.5; only two names above 70."),
        # A headline's wish is its own, and not the writer's.
        ("I ask for 50% of the budget.", "A headline asks for 50% of the budget."),
        ("A headline says 12% of the 3,400 jobs go.", "A headline says 21% of the jobs go."),
        # A line by its name, and sessions to come.
        ("Neither RSI is under the 30 line.", "Neither RSI is at 30."),
        ("What of the ten sessions after it?", "What of the ten sessions on file?"),
    ],
)
def test_what_no_tool_counts_is_no_fact(right: str, wrong: str, facts: Facts) -> None:
    assert ungrounded(right, facts) == []
    assert ungrounded(wrong, facts) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # Each end of a move is of its own day.
        (
            "Between March 13 and March 14 it went from $81.27 to $80.75.",
            "Between March 13 and March 14 it went from $80.75 to $81.27.",
        ),
        ("The $28.21 that buyers pay for ECHO.", "The $28.12 that buyers pay for ECHO."),
        (
            "For the quarter to December 31 on March 20.",
            "For the quarter to March 20 on December 31.",
        ),
        ("It led from $80.75; on March 15 alone 1.3%.", "It led; on March 14 alone it rose 1.3%."),
        (
            "One of the names covered on March 15 rose, while ECHO fell.",
            "One of the names covered on March 19 rose.",
        ),
        ("12% of its 3,400 jobs, or 408 positions.", "12% of its 3,400 jobs, or 480 positions."),
        ("The estimate of $0.42 dates from March 1.", "The estimate of $0.42 dates from March 20."),
        ("It led, while Foodbank lost 2.4%.", "It led. Forward sales lost 2.4%."),
        ("It led, while Foodbank lost 2.4%.", "It led, from November, and lost 2.4%."),
    ],
)
def test_a_day_and_a_name_are_of_what_stands_with_them(right: str, wrong: str) -> None:
    report = {
        "ticker": "ALFA",
        "as_of": "2024-03-15",
        "upcoming": {
            "report_date": "2024-03-20",
            "period_end": "2023-12-31",
            "eps_estimate": 0.42,
            "known_at": "2024-03-01",
        },
    }
    other = {"ticker": "FB", "price": 31.09, "day_change_pct": -2.4}
    title = "Foodbank to close one of its two plants"
    news = {"ticker": "FB", "items": [{"known_at": "2024-03-04T08:00:00+00:00", "title": title}]}
    every = (*RESULTS, report, other, news)
    facts = read([Given(f"E{n}", "tool", result) for n, result in enumerate(every)])
    assert ungrounded(right, facts, None if "while" in right else "ALFA") == []
    assert ungrounded(wrong, facts) != []
