"""The codebook of a masked cycle: the same for all arms of a date, another for each other date."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from libs.llm.masking.codebook import Codebook, Masking
from libs.market.calendar import exchange_calendar

FRIDAY = date(2012, 6, 29)
NYSE = exchange_calendar()
MASKING = Masking(FRIDAY, NYSE)
TICKERS = ("AAPL", "GOOG", "IBM", "MSFT", "BRK.B", "BRK", "ALL", "S001")


def book(masking: Masking = MASKING, tickers: tuple[str, ...] = TICKERS) -> Codebook:
    return Codebook.of(masking, tickers, ("Energy", "unknown"), ("Apple Inc.",))


def test_the_same_study_and_date_give_the_same_codes_in_whatever_order_they_are_named() -> None:
    assert book().tickers == book(tickers=TICKERS[::-1]).tickers
    assert len(set(book().tickers.values())) == len(TICKERS)


def test_another_date_has_other_codes() -> None:
    other = replace(MASKING, as_of=date(2012, 7, 2))
    same = [name for name in TICKERS if book().tickers[name] == book(other).tickers[name]]
    assert len(same) <= 1


def test_a_code_does_not_depend_on_who_else_is_there() -> None:
    few = book(tickers=("GOOG", "IBM"))
    assert few.tickers == {name: book().tickers[name] for name in ("GOOG", "IBM")}


def test_no_code_reads_like_a_ticker_of_the_task() -> None:
    many = tuple(f"S{number:03d}" for number in range(1, 990))
    codes = set(book(tickers=(*many, "AAPL")).tickers.values())
    assert not codes & set(many)


@pytest.mark.parametrize(
    ("day", "label"),
    [
        (FRIDAY, "T+0"),
        (date(2012, 6, 28), "T-1"),
        (date(2012, 6, 22), "T-5"),
        (date(2012, 6, 23), "T-5"),  # A Saturday counts as the session before it.
        (date(2012, 7, 2), "T+1"),
        (date(2012, 7, 5), "T+3"),  # The Fourth of July between does not trade.
        (date(1950, 1, 2), None),
    ],
)
def test_dates_are_sessions_away(day: date, label: str | None) -> None:
    assert book().day(day) == label
    assert book().day(day.isoformat()) == label
    assert book().day(f"{day.isoformat()}T19:59:00+00:00") == label


def test_sessions_are_counted_one_by_one_however_they_are_asked_for() -> None:
    days = [FRIDAY - timedelta(days=n) for n in range(400)]
    sessions = [day for day in days if NYSE.is_session(day)]
    labels = [book().day(day) for day in sessions]
    assert labels == ["T+0", *(f"T-{n}" for n in range(1, len(sessions)))]


def test_what_is_no_date_has_no_label() -> None:
    assert book().day("soon") is None
    assert book().day(None) is None


def test_a_sentence_of_the_desk_has_no_name_date_or_money_left() -> None:
    codes = book().tickers
    text = (
        "picks: ALL cannot be bought: sold on 2012-06-22, after Apple Inc. in June; BRK.B and BRK "
        "risk 1,234.50 USD in sector Energy; on Friday in 2012"
    )
    assert book().words(text) == (
        f"picks: {codes['ALL']} cannot be bought: sold on T-5, after (withheld) in (withheld); "
        f"{codes['BRK.B']} and {codes['BRK']} risk (withheld) in sector {book().sectors['Energy']};"
        " on (withheld) in (withheld)"
    )


def test_codes_and_shown_names_are_heard_as_what_they_stand_for() -> None:
    code = book().tickers["BRK.B"]
    facts = {f"{code}.close@T-5".lower(): "BRK.B.close@2012-06-22"}
    text = f'{{"ticker": "{code}", "fact": "{code}.close@T-5", "why": "{code.lower()} leads."}}'
    assert book().heard(text, facts) == (
        '{"ticker": "BRK.B", "fact": "BRK.B.close@2012-06-22", "why": "BRK.B leads."}'
    )
    assert book().heard(f"{code}.nonsense", facts) == "BRK.B.nonsense"


def test_a_real_name_is_not_heard_and_a_stranger_stays_one() -> None:
    assert book().heard('"AAPL" and S000', {}) == '"(withheld)" and S000'
    assert book().meant("AAPL") is None
    assert book().meant(book().tickers["AAPL"]) == "AAPL"


def test_a_label_of_a_date_is_heard_as_one_though_a_ticker_is_written_like_its_letter() -> None:
    codes = book(tickers=("T", "AAPL"))
    shown = f"{codes.tickers['AAPL']}.close@T-12"
    facts = {shown.lower(): "AAPL.close@2012-06-13"}
    said = f'{{"fact": "{shown}", "why": "up since T-12; report at T+5; T itself fell"}}'
    assert codes.heard(said, facts) == (
        '{"fact": "AAPL.close@2012-06-13", "why": "up since T-12; report at T+5; (withheld) itself '
        'fell"}'
    )
