"""Yahoo fails in every way it is known to; each becomes an error that says what to do."""

import asyncio
import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import peewee
import pytest
from yfinance import cache

from libs.market.asking import kept_answers, questions, their_clock
from libs.market.asking.call_policy import ATTEMPTS_MAX, FAULTS_MAX, LIMITED_S
from libs.market.asking.kept_answers import REFUSED_S, AnswerCache, KeptAnswer
from libs.market.errors import BadVendorData, RateLimited, SourceUnavailable, UnknownTicker
from libs.market.yahoo.calls import YahooCalls, _own_directory
from tests.fakes.yahoo_live import AS_OF, BEFORE, Live

NOW = datetime(2024, 3, 15, 23, tzinfo=UTC)
CHART = "/v8/finance/chart/"
SERVER_ERROR = {"chart": {"result": None, "error": {"code": "Internal Error", "description": "x"}}}


async def test_one_failure_is_tried_again_and_nobody_notices(live: Live) -> None:
    live.server.fails(CHART, status=503, times=2)  # yfinance asks a failed address twice
    assert (await live.market.bars("ALFA", AS_OF, 1)).height == 1
    assert any(wait > 0 for wait in live.slept)


async def test_a_locked_cache_is_tried_again_and_loses_no_ticker(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = [peewee.OperationalError("database is locked")]
    lookup = cache._TzCache.lookup

    def looked_up(self: cache._TzCache, key: str) -> object:
        if locked:
            raise locked.pop()
        return lookup(self, key)

    monkeypatch.setattr(cache._TzCache, "lookup", looked_up)
    assert (await live.market.bars("ALFA", AS_OF, 1)).height == 1


async def test_caches_are_made_before_the_threads_that_share_them(live: Live) -> None:
    assert live.feed._calls._yfinance()
    assert cache.get_tz_cache().initialised == 1
    assert cache.get_cookie_cache().initialised == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, "<html>consent</html>"),
        (500, SERVER_ERROR),
        (500, ""),
        (502, "<html>bad gateway</html>"),
        (403, "forbidden"),
        (200, "Will be right back"),
    ],
)
async def test_no_answer_is_no_history(live: Live, status: int, body: object) -> None:
    live.server.fails(CHART, status=status, body=body)
    with pytest.raises(SourceUnavailable, match=r"no answer for .*ALFA.*try again later"):
        await live.market.bars("ALFA", AS_OF, 1)
    live.server.faults.clear()
    assert (await live.market.bars("ALFA", AS_OF, 1)).height == 1  # nothing of it was remembered


@pytest.mark.parametrize(
    "body",
    [
        {"chart": None},
        {"chart": {"result": [{"meta": {"exchangeTimezoneName": "America/New_York"}}]}},
        {"chart": {"result": [{"timestamp": [1], "indicators": {"quote": [{"open": [1.0]}]}}]}},
    ],
)
async def test_an_answer_of_another_shape_says_that_yfinance_cannot_read_it(
    live: Live, body: object
) -> None:
    live.server.fails(f"{CHART}ALFA?period1", body=body)
    with pytest.raises((BadVendorData, SourceUnavailable)) as caught:
        await live.market.bars("ALFA", AS_OF, 1)
    assert "ALFA" in caught.value.message


async def test_a_chart_without_columns_is_bad_data_and_not_asked_again(live: Live) -> None:
    found = live.server.market.chart("ALFA", 0, int(NOW.timestamp()))
    assert isinstance(found, dict)
    del found["indicators"]["quote"][0]["volume"]
    body = {"chart": {"result": [found], "error": None}}
    live.server.fails(f"{CHART}ALFA?period1", body=body)
    with pytest.raises(BadVendorData, match="a newer yfinance"):
        await live.market.bars("ALFA", AS_OF, 1)
    assert live.server.count(f"{CHART}ALFA?period1") == 1


async def test_a_wrong_crumb_fails_the_figures_and_not_the_prices(live: Live) -> None:
    live.server.crumb = "stale"
    assert (await live.market.bars("ALFA", AS_OF, 1)).height == 1
    with pytest.raises(SourceUnavailable, match=r"figures of ALFA.*HTTP 401"):
        await live.market.fundamentals("ALFA", AS_OF)


async def test_a_crumb_that_is_an_error_page_is_done_without(live: Live) -> None:
    live.server.fails("getcrumb", status=429, body="Too Many Requests")
    assert (await live.market.bars("ALFA", AS_OF, 1)).height == 1


async def test_too_many_requests_are_answered_with_patience_and_then_silence(live: Live) -> None:
    live.server.fails(CHART, status=429, body="Too Many Requests")
    with pytest.raises(RateLimited, match="too many requests"):
        await live.market.bars("ALFA", AS_OF, 1)
    tries = live.server.count(CHART)
    assert tries <= 2 * ATTEMPTS_MAX
    with pytest.raises(RateLimited, match=f"next try in {LIMITED_S:.0f} s") as caught:
        await live.market.bars("BRVO", AS_OF, 1)
    assert caught.value.wait_s == LIMITED_S
    assert live.server.count(CHART) == tries  # the breaker spoke, nobody was asked
    live.server.faults.clear()
    live.clock[0] += LIMITED_S
    assert (await live.market.bars("BRVO", AS_OF, 1)).height == 1


async def test_a_service_that_is_down_is_left_alone(live: Live) -> None:
    live.server.fails(CHART, status=500, body="")
    for n in range(FAULTS_MAX):
        with pytest.raises(SourceUnavailable):
            await live.market.bars(f"T{n}", AS_OF, 1)
    tries = live.server.count(CHART)
    with pytest.raises(SourceUnavailable, match="Yahoo is down, it is tried again in 30 s"):
        await live.market.bars("ALFA", AS_OF, 1)
    assert live.server.count(CHART) == tries


async def test_what_is_known_already_is_answered_while_yahoo_is_down(live: Live) -> None:
    known = await live.market.bars("ALFA", AS_OF, 20)
    live.server.fails("", status=500, body="")
    assert (await live.market.bars("ALFA", AS_OF, 20)).equals(known)
    assert (await live.market.bars("ALFA", BEFORE, 20)).height == 20
    live.at(NOW + timedelta(days=3))
    with pytest.raises(SourceUnavailable):  # a later session is not in what is known
        await live.market.bars("ALFA", date(2024, 3, 18), 20)


async def test_one_ticker_without_an_answer_fails_the_batch_by_name(live: Live) -> None:
    live.server.fails(f"{CHART}DLTA", status=500, body="")
    with pytest.raises(SourceUnavailable, match="DLTA"):
        await live.market.universe(AS_OF, ["ALFA", "DLTA", "NOPE"])


async def test_an_unknown_ticker_is_remembered_for_a_while(live: Live) -> None:
    for _ in range(3):
        with pytest.raises(UnknownTicker):
            await live.market.bars("NOPE", AS_OF, 1)
    asked = live.server.count(f"{CHART}NOPE")
    live.at(NOW + timedelta(seconds=REFUSED_S + 1))
    with pytest.raises(UnknownTicker):
        await live.market.bars("NOPE", AS_OF, 1)
    assert live.server.count(f"{CHART}NOPE") > asked


async def test_the_same_question_at_once_is_asked_once(live: Live) -> None:
    found = await asyncio.gather(*(live.market.bars("ALFA", AS_OF, n) for n in range(1, 9)))
    assert [bars.height for bars in found] == list(range(1, 9))
    assert live.server.count(f"{CHART}ALFA?period1") == 1


async def test_who_gives_up_waiting_leaves_the_answer_to_others(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    live.server.fails(f"{CHART}ALFA?period1", times=1, wait=gate, status=503, body="")
    waiting = asyncio.ensure_future(live.market.bars("ALFA", AS_OF, 1))
    patient = asyncio.ensure_future(live.market.bars("ALFA", AS_OF, 1))
    await asyncio.to_thread(_until, lambda: live.server.count(f"{CHART}ALFA?period1") == 1)
    waiting.cancel()
    gate.set()
    assert (await patient).height == 1
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_question_that_hangs_has_a_time_limit(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.market.bars("BRVO", AS_OF, 1)  # yfinance is loaded
    monkeypatch.setattr(questions, "ANSWER_S_MAX", 0.2)
    gate = threading.Event()
    live.server.fails(CHART, wait=gate, status=503)
    with pytest.raises(SourceUnavailable, match=r"no answer within 0.2 s"):
        await live.market.bars("ALFA", AS_OF, 1)
    gate.set()


def _until(happened: object) -> None:
    assert callable(happened)
    pause = threading.Event()
    while not happened():
        pause.wait(0.01)


async def test_too_many_waiting_questions_are_refused(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, free = threading.Event(), questions.Workers("yahoo", 1)
    monkeypatch.setattr(free._jobs, "maxsize", 1)
    first = free.submit("a", gate.wait)
    await asyncio.to_thread(_until, free._jobs.empty)
    free.submit("b", gate.wait)
    with pytest.raises(SourceUnavailable, match="wait already"):
        free.submit("c", gate.wait)
    gate.set()
    assert first.result(5)


def test_answers_are_let_go_by_number_size_and_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "KEPT_MAX", 3)
    monkeypatch.setattr(kept_answers, "KEPT_BYTES_MAX", 100)
    kept = AnswerCache()
    for key in "abc":
        kept.put(key, KeptAnswer(NOW, key, None, 10))
    assert kept.get("a", NOW) is not None
    kept.put("d", KeptAnswer(NOW, "d", None, 10))
    assert [key for key in "abcd" if kept.get(key, NOW)] == [
        "a",
        "c",
        "d",
    ]  # b was the oldest
    kept.put("e", KeptAnswer(NOW, "e", None, 85))
    assert [key for key in "abcde" if kept.get(key, NOW)] == ["d", "e"]
    assert kept.get("e", NOW + timedelta(days=2)) is None
    refused = KeptAnswer(NOW, None, UnknownTicker("X", "yahoo"), 10)
    kept.put("f", refused)
    assert kept.get("f", NOW + timedelta(seconds=REFUSED_S - 1)) is refused
    assert kept.get("f", NOW + timedelta(seconds=REFUSED_S + 1)) is None


def test_each_process_has_caches_of_its_own(tmp_path: Path) -> None:
    first, lock = _own_directory(tmp_path)
    second, _ = _own_directory(tmp_path)
    assert first != second
    lock.close()  # type: ignore[attr-defined]
    assert _own_directory(tmp_path)[0] == first


async def test_a_machine_whose_clock_is_ahead_of_yahoo_gets_no_prices(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(their_clock, "AHEAD_S_MAX", -60.0)
    with pytest.raises(SourceUnavailable, match="ahead of its own; set the clock right"):
        await live.market.bars("ALFA", AS_OF, 1)


async def test_caches_that_cannot_be_written_name_the_setting(live: Live, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(SourceUnavailable, match="DESKBUS_DATA_DIR"):
        YahooCalls(blocked).screen("day_gainers", 1)
