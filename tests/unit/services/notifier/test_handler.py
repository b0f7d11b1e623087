"""The notifier at work, over FastStream's broker in memory (see conftest.py)."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from contracts.audit import EventType
from contracts.notice import (
    ChannelsQuery,
    KeepNotices,
    LeaseNotifier,
    NoticesKept,
    TestChannel,
)
from libs.channels.channel import Failed, Outcome, Sent
from libs.runtime.notify_settings import Notify
from services.notifier.handler import Notifier
from services.notifier.lease import AT_WORK, REST_S_MAX, Pace
from services.notifier.logic import BACKOFF_S_MAX, JITTER
from tests.fakes.log_lines import log_lines
from tests.fakes.notable import notable
from tests.unit.services.notifier.conftest import SOON_S, Hearing, Memory, Told, until

RULES: dict[str, Any] = {"all": {"events": ["*"], "to": ["phone", "ops"]}}


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def hearing() -> Hearing:
    return Hearing()


@pytest.fixture
def phone() -> Told:
    return Told()


@pytest.fixture
def ops() -> Told:
    return Told()


def notifier(memory: Memory, hearing: Hearing, **channels: Told) -> Notifier:
    notify = Notify.model_validate({"channels": {"phone": {}, "ops": {}}, "rules": RULES})
    problems = {name: f"{name} is not set" for name in notify.channels if name not in channels}
    return Notifier(memory, channels, problems, notify, hearing)


@asynccontextmanager
async def working(one: Notifier) -> AsyncIterator[None]:
    task = asyncio.create_task(one.run())
    try:
        yield
    finally:
        async with asyncio.timeout(SOON_S):
            await one.stop()
            await task


async def test_an_event_is_kept_before_it_is_acknowledged_and_sent_over_each_channel(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    event = notable(EventType.ORDER_FILLED, memory.now)
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        await hearing.say(event)
        assert [each.notice.event_id for each in memory.kept] == [event.event_id]
        assert hearing.acknowledged == [1]
        await until(memory.changed, lambda: len(memory.ended) == 2)
    assert phone.titles == ops.titles == ["main: bought 15 AAPL at 243.84 USD"]
    assert set(memory.ended.values()) == {"sent"}


async def test_while_nothing_can_be_kept_nothing_is_acknowledged_and_nothing_is_lost(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        await hearing.begun.wait()
        memory.away = True
        saying = asyncio.create_task(hearing.say(notable(EventType.ORDER_FILLED, memory.now)))
        await asyncio.sleep(0.05)
        assert not saying.done()
        assert hearing.acknowledged == []
        memory.away = False
        await saying
        await until(memory.changed, lambda: len(memory.ended) == 2)
    assert len(phone.titles) == 1


async def test_what_was_sent_is_remembered_over_an_outage_and_not_sent_again(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    phone.gate.clear()
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        await hearing.say(notable(EventType.ORDER_FILLED, memory.now))
        await until(phone.news, lambda: len(phone.messages) == 1)
        memory.away = True
        phone.gate.set()
        await asyncio.sleep(0.3)
        memory.away = False
        await until(memory.changed, lambda: len(memory.ended) == 2)
    assert len(phone.messages) == 1


async def test_events_are_sent_in_their_order(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    events = [
        notable(EventType.ORDER_FILLED, memory.now, quantity=str(number)) for number in range(1, 90)
    ]
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        await hearing.say(*events)
        await until(memory.changed, lambda: len(memory.ended) == 2 * len(events))
    expected = [f"main: bought {number} AAPL at 243.84 USD" for number in range(1, 90)]
    assert phone.titles == ops.titles == expected


async def test_a_channel_that_fails_waits_alone(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    phone.outcomes = [Failed("http_503"), Failed("http_429", retry_after_s=600.0)]
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        await hearing.say(notable(EventType.ORDER_FILLED, memory.now))
        await hearing.say(notable(EventType.ORDER_FILLED, memory.now))
        await until(memory.changed, lambda: len(memory.ended) == 2)
        assert len(ops.titles) == 2
        assert len(phone.messages) == 1
        memory.pass_by(10)
        await until(memory.changed, lambda: len(memory.failures) == 2)
        memory.pass_by(590)
        await asyncio.sleep(0.2)
        assert len(phone.messages) == 2, "it asked to be left alone for 600 s"
        memory.pass_by(20)
        await until(memory.changed, lambda: len(memory.ended) == 4)
    codes = [each.failed for each in memory.failures]
    assert codes == ["http_503", "http_429"]
    assert memory.failures[1].again_in_s >= 600


async def test_a_channel_that_hangs_holds_up_no_other_and_no_acknowledgement(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    phone.gate.clear()
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        for _ in range(5):
            await hearing.say(notable(EventType.ORDER_FILLED, memory.now))
        await until(memory.changed, lambda: len(memory.ended) == 5)
        assert len(ops.titles) == 5
        assert len(phone.messages) == 1
        phone.gate.set()
        await until(memory.changed, lambda: len(memory.ended) == 10)


async def test_of_several_that_a_channel_refuses_the_one_to_blame_is_given_up(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    refused = Failed("http_400", refused=True)
    phone.outcomes = [refused, Sent(), refused]
    events = [notable(EventType.ORDER_FILLED, memory.now) for _ in range(8)]
    phone.gate.clear()
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        memory.away = True
        saying = asyncio.create_task(hearing.say(*events))
        await asyncio.sleep(0.05)
        memory.away = False
        phone.gate.set()
        await saying
        await until(memory.changed, lambda: len(memory.ended) == 16)
    outcomes = [memory.ended[event.event_id, "phone"] for event in events]
    assert outcomes == ["sent", "given_up", *["sent"] * 6]
    assert [len(each.notices) for each in phone.messages] == [8, *[1] * 8]


async def test_what_could_not_be_sent_for_long_is_given_up(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    phone.outcomes = [Failed("unreachable")]
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        event = notable(EventType.ORDER_FILLED, memory.now)
        await hearing.say(event)
        await until(memory.changed, lambda: len(memory.failures) == 1)
        memory.pass_by(2 * 86_400)
        await until(memory.changed, lambda: len(memory.ended) == 2)
    assert memory.ended[event.event_id, "phone"] == "given_up"
    assert memory.ended[event.event_id, "ops"] == "sent"


async def test_an_hour_of_server_errors_loses_nothing_and_is_caught_up_in_order(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    """The database's clock is the test's: an hour of it takes a moment."""
    is_up = False

    def judge(_: object) -> Outcome:
        return Sent() if is_up else Failed("http_503")

    phone.judge = judge
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        begun = memory.now
        while memory.now - begun < timedelta(hours=1):
            tried = len(memory.failures)
            await hearing.say(notable(EventType.ORDER_FILLED, memory.now))
            await until(memory.changed, lambda tried=tried: len(memory.failures) > tried)
            memory.pass_by(memory.failures[-1].again_in_s + 0.1)
        waits = [failed.again_in_s for failed in memory.failures]
        assert "given_up" not in memory.ended.values()
        assert waits[0] < 5 < 200 < waits[-1] <= BACKOFF_S_MAX * (1 + JITTER)
        assert 12 <= len(waits) <= 30, "an hour of tries, further and further apart"

        is_up = True
        await until(memory.changed, lambda: len(memory.ended) == 2 * len(memory.kept))
    assert set(memory.ended.values()) == {"sent"}
    caught_up = phone.messages[len(waits) :]
    assert [len(message.notices) for message in caught_up] == [len(memory.kept)]
    kept = [each.notice.event_id for each in memory.kept]
    assert [each.event_id for each in caught_up[0].notices] == kept


async def test_a_clock_that_jumps_days_ahead_gives_nothing_up_that_can_be_sent(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        event = notable(EventType.ORDER_FILLED, memory.now)
        memory.pass_by(3 * 86_400)
        await hearing.say(event)
        await until(memory.changed, lambda: len(memory.ended) == 2)
    assert set(memory.ended.values()) == {"sent"}


async def test_a_channel_without_an_address_waits_and_the_others_are_told(
    memory: Memory, hearing: Hearing, ops: Told
) -> None:
    async with working(one := notifier(memory, hearing, ops=ops)):
        await hearing.say(notable(EventType.ORDER_FILLED, memory.now))
        await until(memory.changed, lambda: len(memory.ended) == 1 and bool(memory.failures))
        said = await one.tested("cli", TestChannel(channel="phone"))
    assert memory.failures[0].failed == "not_set"
    assert (said.sent, said.code, said.message) == (False, "not_set", "phone is not set")


async def test_of_two_notifiers_one_works_and_the_other_takes_over_when_it_stops(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    other_hearing = Hearing()
    async with working(notifier(memory, other_hearing, phone=phone, ops=ops)):
        await other_hearing.begun.wait()
        second = notifier(memory, hearing, phone=phone, ops=ops)
        task = asyncio.create_task(second.run())
        await other_hearing.say(notable(EventType.ORDER_FILLED, memory.now))
        await until(memory.changed, lambda: len(memory.ended) == 2)
        assert not hearing.begun.is_set()
    await hearing.say(notable(EventType.ORDER_FILLED, memory.now))
    await until(memory.changed, lambda: len(memory.ended) == 4)
    await second.stop()
    await task
    assert len(phone.titles) == len(ops.titles) == 2


async def test_a_notifier_that_lost_its_lease_sends_nothing_more(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        await hearing.begun.wait()
        memory.holder, memory.epoch = "another", memory.epoch + 1
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await hearing.say(notable(EventType.ORDER_FILLED, memory.now))
        assert not memory.kept
        assert not phone.messages
        await memory.lease(LeaseNotifier(instance="another", release=True))
        await asyncio.sleep(0)


async def test_an_event_that_comes_before_its_turn_waits_for_those_before_it(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    """A notifier or a server died with the first ones in hand: they are delivered again."""
    one, two, three = (
        notable(EventType.ORDER_FILLED, memory.now, quantity=str(number)) for number in (1, 2, 3)
    )
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        late = [
            asyncio.create_task(hearing.deliver(event, number))
            for number, event in ((3, three), (2, two))
        ]
        await asyncio.sleep(0.1)
        assert memory.kept == []
        await hearing.deliver(one, 1)
        await asyncio.gather(*late)
        await until(memory.changed, lambda: len(memory.ended) == 6)
    assert phone.titles == [f"main: bought {number} AAPL at 243.84 USD" for number in (1, 2, 3)]


async def test_an_event_that_the_stream_has_lost_is_not_waited_for_for_ever(
    memory: Memory,
    hearing: Hearing,
    phone: Told,
    ops: Told,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.notifier.hearer.GAP_S_MAX", 0.1)
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        await hearing.deliver(notable(EventType.ORDER_FILLED, memory.now), 7)
        await until(memory.changed, lambda: len(memory.ended) == 2)


@pytest.mark.parametrize("first_comes", ["in its turn", "before its turn"])
async def test_an_event_of_a_later_desks_type_holds_nobody_up_and_is_told_once(
    first_comes: str,
    memory: Memory,
    hearing: Hearing,
    phone: Told,
    ops: Told,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a desk is upgraded, the orchestrator may be newer than the notifier."""
    monkeypatch.setattr("services.notifier.hearer.GAP_S_MAX", 3_600.0)
    known = notable(EventType.ORDER_FILLED, memory.now)
    body = known.model_dump_json().replace("order_filled", "order_teleported").encode()
    later = (partial(hearing.publish, body, known, "order_teleported", number) for number in (2, 3))
    with log_lines() as lines:
        async with working(notifier(memory, hearing, phone=phone, ops=ops)):
            second, third = later
            if first_comes == "before its turn":
                await second()
                await third()
                await hearing.deliver(notable(EventType.ORDER_FILLED, memory.now), 1)
            else:
                await hearing.deliver(notable(EventType.ORDER_FILLED, memory.now), 1)
                await second()
                await third()
            await hearing.deliver(known, 4)
            await until(memory.changed, lambda: len(memory.ended) == 4)
    assert sorted(hearing.acknowledged) == [1, 2, 3, 4]
    (line,) = [line for line in lines if line["event"] == "listening.type_unknown"]
    assert line["type"] == "order_teleported"


async def test_a_spoiled_event_holds_nobody_up(
    memory: Memory,
    hearing: Hearing,
    phone: Told,
    ops: Told,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.notifier.hearer.GAP_S_MAX", 3_600.0)
    known = notable(EventType.ORDER_FILLED, memory.now)
    async with working(notifier(memory, hearing, phone=phone, ops=ops)):
        await hearing.publish(b"{", known, known.type, 1)
        await hearing.deliver(known, 2)
        await until(memory.changed, lambda: len(memory.ended) == 2)
    assert hearing.acknowledged == [2]


async def test_a_test_goes_at_once_and_past_the_queue(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    one = notifier(memory, hearing, phone=phone, ops=ops)
    said = await one.tested("cli", TestChannel(channel="phone"))
    assert said.sent
    assert phone.titles == ["A test of channel phone"]
    phone.outcomes = [Failed("http_401")]
    said = await one.tested("cli", TestChannel(channel="phone"))
    assert (said.sent, said.code) == (False, "http_401")
    said = await one.tested("cli", TestChannel(channel="fone"))
    assert (said.code, said.message.endswith("did you mean phone?")) == ("channel_unknown", True)


async def test_it_shows_whether_it_works(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    one = notifier(memory, hearing, phone=phone, ops=ops)
    assert not (await one.shown("cli", ChannelsQuery())).working
    async with working(one):
        await hearing.begun.wait()
        assert (await one.shown("cli", ChannelsQuery())).working


async def test_what_is_being_sent_ends_before_the_service_stops(
    memory: Memory, hearing: Hearing, phone: Told, ops: Told
) -> None:
    phone.gate.clear()
    one = notifier(memory, hearing, phone=phone, ops=ops)
    task = asyncio.create_task(one.run())
    await hearing.say(notable(EventType.ORDER_FILLED, memory.now))
    await until(phone.news, lambda: len(phone.messages) == 1)
    stopping = asyncio.create_task(one.stop())
    await asyncio.sleep(0.05)
    phone.gate.set()
    async with asyncio.timeout(SOON_S):
        await stopping
        await task
    assert list(memory.ended.values()) == ["sent", "sent"]
    assert memory.holder == ""


async def test_the_notifier_leaves_the_desk_most_of_the_time_however_much_there_is_to_tell(
    hearing: Hearing, phone: Told, ops: Told
) -> None:
    class Slow(Memory):
        """Keeping takes its time, and says when it began and ended."""

        def __init__(self) -> None:
            super().__init__()
            self.spans: list[tuple[float, float]] = []

        async def keep(self, asked: KeepNotices) -> NoticesKept:
            began = time.monotonic()
            await asyncio.sleep(0.02)
            self.spans.append((began, time.monotonic()))
            return await super().keep(asked)

    slow = Slow()
    async with working(notifier(slow, hearing, phone=phone, ops=ops)):
        for _ in range(4):
            await hearing.say(notable(EventType.ORDER_FILLED, slow.now))
    spans = slow.spans
    worked = [ended - began for began, ended in spans[:-1]]
    rested = [began - ended for (_, ended), (began, _) in itertools.pairwise(spans)]
    due = [min(work * (1 / AT_WORK - 1), REST_S_MAX) for work in worked]
    assert all(rest > 0.98 * pause for pause, rest in zip(due, rested, strict=True))


async def test_what_several_do_at_the_same_time_is_paid_for_by_all_together() -> None:
    pace = Pace()
    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(pace.rest(0.01))
    assert time.monotonic() - began > 4 * 0.01 * (1 / AT_WORK - 1) * 0.98
