"""The digest's selection: who comes first, who is kept a slot, who is dropped and why."""

from datetime import UTC, datetime

from contracts.sentiment import (
    CANDIDATES_MAX,
    DropRule,
    MoodDraft,
    SentimentDraft,
    SignalDigest,
    Slot,
)
from contracts.types import Failure
from services.sentiment import logic
from services.sentiment.logic import EARNINGS, NEWS, SCREENER, Mention, SourceAnswer


def answer(source: str, *tickers: str) -> SourceAnswer:
    """A source that names these tickers, best first."""
    mentions = tuple(
        Mention(ticker=name, score=1 - place / 100) for place, name in enumerate(tickers)
    )
    return SourceAnswer(name=source, mentions=mentions)


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def test_a_ticker_of_two_sources_comes_before_any_of_one():
    chosen = logic.select([answer(SCREENER, "AAA", "BBB"), answer(NEWS, "BBB")], None, {})
    assert [item.ticker for item in chosen.candidates] == ["BBB", "AAA"]
    assert [item.slot for item in chosen.candidates] == [Slot.CONFIRMED, Slot.KEPT]
    assert chosen.candidates[0].sources == (SCREENER, NEWS)


def test_the_digest_keeps_slots_for_screener_and_earnings_among_many_news():
    answers = [
        answer(SCREENER, *names("S", 30)),
        answer(NEWS, *names("N", 50)),
        answer(EARNINGS, *names("E", 20)),
    ]
    chosen = logic.select(answers, None, {}).candidates
    counts = {
        source: sum(item.sources == (source,) for item in chosen)
        for source in (SCREENER, NEWS, EARNINGS)
    }
    assert len(chosen) == CANDIDATES_MAX
    assert counts == {SCREENER: 10, NEWS: 13, EARNINGS: 2}
    slots = {(item.sources[0], item.slot) for item in chosen}
    assert slots == {(SCREENER, Slot.KEPT), (NEWS, Slot.FREE), (EARNINGS, Slot.KEPT)}


def test_slots_that_a_source_does_not_fill_go_to_the_others():
    chosen = logic.select([answer(SCREENER, *names("S", 40))], None, {}).candidates
    assert len(chosen) == CANDIDATES_MAX


def test_what_is_left_out_is_dropped_with_its_reason():
    answers = [answer(SCREENER, *names("S", 26))]
    wanted = [*names("S", 26), "QUIET", "GONE"]
    chosen = logic.select(answers, wanted, {"GONE": "unknown_ticker: never heard of it"})
    reasons = {item.ticker: item.reason for item in chosen.dropped}
    assert reasons == {
        "GONE": "unknown_ticker: never heard of it",
        "QUIET": "no source named it",
        "S25": "below the best 25",
    }
    assert {item.ticker: item.rule for item in chosen.dropped} == {
        "GONE": DropRule.ASKED_WITHOUT_PRICE,
        "QUIET": DropRule.UNNAMED,
        "S25": DropRule.FULL,
    }


def test_a_source_that_failed_is_reported_with_its_code():
    failed = SourceAnswer(name=NEWS, error=Failure(code="not_in_source", message="no news"))
    assert not failed.report.ok
    assert failed.report.error.code == "not_in_source"
    assert answer(NEWS).report.ok


def test_a_headline_is_one_clean_line_of_bounded_length():
    dirty = "Profit\nrises\u202e \x00 <b>" + "x" * 500
    clean = logic.headline(dirty, "wire\r\n", "http://x", datetime(2024, 1, 2, tzinfo=UTC))
    assert clean.title.startswith("Profit rises")
    assert not {"\n", "\x00", "\u202e"} & set(clean.title)
    assert len(clean.title) == logic.HEADLINE_CHARS_MAX
    assert clean.source == "wire"


def test_a_report_may_neither_invent_nor_repeat_a_ticker(desk):
    digest = SignalDigest(
        cycle_id=desk.command_ids()[0],
        op_id=desk.command_ids()[1],
        as_of=desk.as_of,
        candidates=logic.select([answer(SCREENER, "AAA")], None, {}).candidates,
    )
    views = [
        MoodDraft(ticker="AAA", score=0.5, confidence=0.9, reasons=()),
        MoodDraft(ticker="AAA", score=0.0, confidence=0.0, reasons=()),
        MoodDraft(ticker="ZZZ", score=0.0, confidence=0.0, reasons=()),
    ]
    told = logic.sentiment_problems(SentimentDraft(tickers=views, market_mood="x"), digest)
    assert len(told) == 2
    assert told[0] == "tickers.2: not in the digest; choose from AAA"
    assert told[1] == "tickers.1: the same ticker as tickers.0; name it once"
