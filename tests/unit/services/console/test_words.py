"""Facts as words on a page."""

from decimal import Decimal

from libs.facts import amounts
from libs.report import ending
from libs.report.strategies import page
from services.console.pages import words


def test_a_share_is_rounded_once_and_never_cut() -> None:
    shown = amounts.percent
    assert shown(words.share(Decimal("18.94"), 100)) == "18.9%"
    assert shown(words.share(Decimal("0.7"), 100)) == "0.7%"
    assert shown(words.share(Decimal("81.06"), 100)) == "81.1%"
    assert shown(words.share(3, 0)) == "0%"


def test_a_number_has_one_rounding_whichever_type_it_came_as() -> None:
    assert words.money(26.615, "EUR") == words.money(Decimal("26.615"), "EUR") == "26.62 EUR"
    assert amounts.percent(0.25) == amounts.percent(Decimal("0.25")) == "0.3%"
    assert page.gain(0.00125) == amounts.gain_percent(Decimal("0.125")) == "+0.13%"
    assert page.share(None) == page.gain(None) == words.UNKNOWN


def test_dollars_have_cents_and_small_sums_of_models_more() -> None:
    shown = [words.usd(Decimal(text)) for text in ("0.03121", "9.6652", "100", "1234.5")]
    assert shown == ["$0.0312", "$9.67", "$100", "$1,234.50"]


def test_a_small_curve_fills_its_picture_and_a_flat_one_lies_in_the_middle() -> None:
    points = words.spark([Decimal(1), Decimal(3), Decimal(2)])
    assert points == "0.0,26.0 60.0,2.0 120.0,14.0"
    assert words.spark_level([Decimal(1), Decimal(3)]) == "26.0"
    assert words.spark([Decimal(1), Decimal(1)]) == "0.0,14.0 120.0,14.0"


def test_a_gates_reason_is_in_words_and_its_figures_are_those_of_the_reason() -> None:
    reason = (
        "Backtest gate failed: max_drawdown_above_threshold (41.0% > 40.0%); win_rate_not_defined ("
    )
    said = ending.in_words(reason)
    assert said == (
        "Backtest gate failed: max drawdown above threshold (41.0% > 40.0%); win rate not defined ("
    )
    assert ending.in_words("account_exhausted: a_below_threshold") == (
        "account_exhausted: a_below_threshold"
    )


def test_what_rounds_to_zero_has_no_sign_and_whole_millions_no_places() -> None:
    assert amounts.gain_percent(-0.001) == amounts.gain_percent(0) == "+0.00%"
    assert words.money(Decimal("-0.001"), "EUR") == "0.00 EUR"
    assert [amounts.thousands(n) for n in (20_000_000, 4_530_000, 1_000)] == [
        "20M",
        "4.53M",
        "1.0k",
    ]
