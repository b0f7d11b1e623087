"""The adapter for Alpaca's paper accounts: where the key may go, and what each answer means."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from pydantic import SecretStr

from contracts.account import Side
from libs.broker.alpaca import (
    HOST,
    AlpacaPaper,
)
from libs.broker.venue import (
    Activities,
    CancelNoted,
    MoveCause,
    NoSuchOrder,
    Ticket,
    UnclearAnswer,
    VenueAccount,
    VenueOrder,
    VenueRefusal,
)
from libs.runtime.key_pair import KeyPair, KeyPairUnusable
from tests.fakes.alpaca_server import JSON, MISTAKES, REFUSALS
from tests.fakes.alpaca_trading import KEY_ID, SECRET, Fault, PaperHost, paper_host

D = Decimal
KEY = KeyPair(SecretStr(KEY_ID), SecretStr(SECRET))
BUY = Ticket("11111111-0000-0000-0000-000000000001", "AAA", Side.BUY, D(10), D("10.50"))
SELL = Ticket("11111111-0000-0000-0000-000000000002", "AAA", Side.SELL, D(10))


@pytest.fixture
def host() -> Iterator[PaperHost]:
    with paper_host(PaperHost()) as running:
        yield running


@pytest.fixture
async def venue(host: PaperHost) -> AsyncIterator[AlpacaPaper]:
    venue = AlpacaPaper(KEY, host.url, answer_s_max=1.0)
    yield venue
    await venue.close()


@pytest.mark.parametrize(
    "url",
    [
        "https://api.alpaca.markets",
        "http://paper-api.alpaca.markets",
        "https://paper-api.alpaca.markets.example.com",
        "https://paper-api.alpaca.markets@example.com",
        "https://example.com",
        "https://paper-api.alpaca.markets:8443",
        "https://data.alpaca.markets",
        "http://10.0.0.1:8000",
        "ftp://127.0.0.1",
        "https://paper-api.alpaca.markets/v2",
        "http://127.0.0.1@example.com",
        "http://127.0.0.1:8000/v2",
        "http://127.0.0.1:port",
    ],
)
def test_a_key_is_never_sent_to_another_host(url: str) -> None:
    with pytest.raises(KeyPairUnusable, match="DESKBUS_ALPACA_TRADING_URL names another address"):
        AlpacaPaper(KEY, url)


def test_the_paper_host_and_a_stand_in_on_this_machine_are_taken() -> None:
    assert AlpacaPaper(KEY).host == AlpacaPaper(KEY, f"https://{HOST}/").host == f"https://{HOST}"
    assert AlpacaPaper(KEY, "http://127.0.0.1:8123/").host == "http://127.0.0.1:8123"


async def test_no_proxy_of_the_environment_is_used(
    venue: AlpacaPaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert isinstance(await venue.account(), VenueAccount)


async def test_an_order_is_sent_found_and_its_id_is_never_taken_again(
    host: PaperHost, venue: AlpacaPaper
) -> None:
    assert isinstance(await venue.find(BUY.client_id), NoSuchOrder)
    sent = await venue.submit(BUY)
    assert isinstance(sent, VenueOrder)
    assert (sent.status, sent.is_over) == ("accepted", False)
    assert await venue.find(BUY.client_id) == sent == await venue.order(sent.broker_id)
    again = await venue.submit(BUY)
    assert isinstance(again, VenueRefusal)
    assert again.is_duplicate
    assert isinstance(await venue.cancel(sent.broker_id), CancelNoted)
    once_more = await venue.submit(BUY)
    assert isinstance(once_more, VenueRefusal)
    assert once_more.is_duplicate
    assert len(host.orders) == 1


@pytest.mark.parametrize("fault", list(Fault))
async def test_a_fault_is_never_taken_for_an_answer(
    host: PaperHost, venue: AlpacaPaper, fault: Fault
) -> None:
    host.plan(fault)
    assert isinstance(await venue.submit(BUY), UnclearAnswer)
    await asyncio.sleep(0.3)
    again = await venue.submit(BUY)
    was_done = fault in {Fault.LOST, Fault.LATE, Fault.HANG, Fault.HTML, Fault.CUT}
    assert isinstance(again, VenueRefusal) == was_done
    assert len(host.orders) == 1


QUESTIONS: dict[str, tuple[str, Callable[[AlpacaPaper], Awaitable[Any]]]] = {
    "submit": ("POST /v2/orders", lambda venue: venue.submit(BUY)),
    "cancel": ("DELETE /v2/orders/", lambda venue: venue.cancel("some-id")),
    "restrict": ("PATCH /v2/account/configurations", lambda venue: venue.restrict()),
    "find": ("GET /v2/orders:by_client_order_id", lambda venue: venue.find(BUY.client_id)),
    "order": ("GET /v2/orders/", lambda venue: venue.order("some-id")),
    "open orders": ("GET /v2/orders", lambda venue: venue.open_orders()),
    "activities": ("GET /v2/account/activities", lambda venue: venue.activities(None)),
    "account": ("GET /v2/account", lambda venue: venue.account()),
    "settings": ("GET /v2/account/configurations", lambda venue: venue.account()),
    "positions": ("GET /v2/positions", lambda venue: venue.account()),
    "clock": ("GET /v2/clock", lambda venue: venue.account()),
}
WRITES = {"submit", "cancel", "restrict"}
LOOKS = {"find", "order"}


@pytest.mark.parametrize("name", QUESTIONS)
async def test_every_question_meets_every_refusal(
    host: PaperHost, venue: AlpacaPaper, name: str
) -> None:
    """Only a refusal in Alpaca's own words says no, and only a 404 of its own that there is none;
    no redirect is followed."""
    what, ask = QUESTIONS[name]
    for refusal, said in (REFUSALS | MISTAKES).items():
        status, kind, text = host.says[what] = said
        found = await ask(venue)
        if name in WRITES and status in {400, 401, 403, 422} and kind == JSON:
            assert isinstance(found, VenueRefusal), refusal
            assert json.loads(text)["message"] in found.words
        elif name in LOOKS and refusal == "404 JSON":
            assert isinstance(found, NoSuchOrder)
        else:
            assert isinstance(found, UnclearAnswer), refusal
            assert found.why
            assert (found.wait_s > 0) == (status == 429)
    assert len(host.calls) >= len(REFUSALS | MISTAKES)
    assert not any("elsewhere" in call for call in host.calls)
    assert host.orders == {}


async def test_a_busy_broker_says_how_long_to_wait(host: PaperHost, venue: AlpacaPaper) -> None:
    host.plan(Fault.BUSY)
    answer = await venue.submit(BUY)
    assert isinstance(answer, UnclearAnswer)
    assert 1 <= answer.wait_s <= 60


async def test_a_refusal_keeps_the_brokers_words(host: PaperHost, venue: AlpacaPaper) -> None:
    host.no_shorting = True
    refused = await venue.submit(SELL)
    assert isinstance(refused, VenueRefusal)
    assert not refused.is_duplicate
    assert "insufficient qty available for order (requested: 10, available: 0)" in refused.words
    assert "40310000" in refused.words


async def test_a_dead_key_is_a_refusal_of_an_order_and_no_answer_to_a_question(
    host: PaperHost, venue: AlpacaPaper
) -> None:
    host.deleted = True
    assert isinstance(await venue.submit(BUY), VenueRefusal)
    assert isinstance(await venue.find(BUY.client_id), UnclearAnswer)
    assert isinstance(await venue.account(), UnclearAnswer)
    assert isinstance(await venue.open_orders(), UnclearAnswer)
    assert isinstance(await venue.activities(None), UnclearAnswer)


async def test_activities_are_read_to_the_last_page_and_repeats_count_once(
    host: PaperHost, venue: AlpacaPaper
) -> None:
    host.repeat_activities = True
    for _ in range(250):
        host.manual_trade("AAA", 1)
    host.dividend("AAA", D("1.25"))
    host.transfer(D(-5))
    found = await venue.activities(datetime(2026, 1, 1, tzinfo=UTC))
    assert isinstance(found, Activities)
    assert len(found.fills) == 250
    causes = {move.cause: move.amount for move in found.moves}
    assert causes == {MoveCause.DIVIDEND: D("1.25"), MoveCause.TRANSFER: D(-5)}
    later = await venue.activities(host.now + timedelta(seconds=1))
    assert later == Activities()


async def test_open_orders_are_read_to_the_last_page(host: PaperHost, venue: AlpacaPaper) -> None:
    for number in range(1_001):
        host.manual_order(f"T{number}", "buy", 1)
    found = await venue.open_orders()
    assert isinstance(found, tuple)
    assert len(found) == 1_001


async def test_binding_sets_long_only_and_cash_only(host: PaperHost, venue: AlpacaPaper) -> None:
    before = await venue.account()
    assert isinstance(before, VenueAccount)
    assert len(before.unsafe) == 2
    assert await venue.restrict() is None
    after = await venue.account()
    assert isinstance(after, VenueAccount)
    assert after.unsafe == ()
    host.settable = False
    assert isinstance(await venue.restrict(), VenueRefusal)


async def test_an_account_with_a_short_position_says_so(
    host: PaperHost, venue: AlpacaPaper
) -> None:
    host.positions = {"AAA": D(5), "BBB": D(-2)}
    found = await venue.account()
    assert isinstance(found, VenueAccount)
    assert found.positions == {"AAA": D(5), "BBB": D(-2)}
    assert (found.number, found.status, found.cash) == (host.number, "ACTIVE", D(100_000))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *product(["account", "account/configurations", "clock"], [{}, [], None]),
        *product(["positions"], [{}, None, {"message": "internal error"}, [{}], "flat"]),
    ],
)
async def test_an_answer_of_another_shape_is_no_account(
    host: PaperHost, venue: AlpacaPaper, path: str, body: Any
) -> None:
    host.instead[f"/v2/{path}"] = body
    assert isinstance(await venue.account(), UnclearAnswer)


@pytest.mark.parametrize("field", ["id", "client_order_id", "status"])
async def test_an_order_without_its_id_or_status_is_no_answer(
    host: PaperHost, venue: AlpacaPaper, field: str
) -> None:
    await venue.submit(BUY)
    (order,) = host.orders.values()
    host.instead["/v2/orders:by_client_order_id"] = order | {field: None}
    host.instead["/v2/orders"] = [order | {field: None}]
    assert isinstance(await venue.find(BUY.client_id), UnclearAnswer)
    assert isinstance(await venue.open_orders(), UnclearAnswer)
