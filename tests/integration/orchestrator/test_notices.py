"""What people are told of, on a real Postgres: kept once, given out in order, remembered."""

import asyncio
import time
import uuid
from datetime import UTC, datetime, timedelta

import asyncpg
import orjson
import pytest
from pydantic import ValidationError

from contracts.notice import (
    Due,
    KeepNotices,
    KeptNotice,
    LeaseNotifier,
    NextNotices,
    Notice,
    NoticeKind,
    NoticesNext,
    NotifierLease,
    Settled,
    Severity,
)
from libs.postgres.pool import OWNER_ROLE, Pool
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers
from services.orchestrator import notices
from services.orchestrator.notices import ChannelUnknown, Notices
from tests.fakes.notable import notice
from tests.integration.orchestrator.conftest import Sent


@pytest.fixture
def sent() -> Sent:
    return Sent()


@pytest.fixture
async def kept(pool: Pool, sent: Sent) -> Notices:
    """The part of one orchestrator; nobody has the lease, and nothing is waiting."""
    await pool.execute("delete from notifications")
    await pool.execute("update notifier_lease set released = true, until_at = '-infinity'")
    return Notices(pool, Settings(), sent)


@pytest.fixture
def channel() -> str:
    """A channel of the test's own."""
    return f"c{uuid.uuid4().hex[:8]}"


async def lease(kept: Notices, channel: str, instance: str = "one") -> NotifierLease:
    return await kept._lease(LeaseNotifier(instance=instance, channels=(channel,)))


def of_now(title: str, seconds: float = 1.0) -> Notice:
    """A notice of an event from after the channel was set."""
    return notice(title, at=datetime.now(UTC) + timedelta(seconds=seconds))


async def keep(kept: Notices, epoch: int, channel: str, *each: Notice, in_s: float = 0.0) -> int:
    due_at = datetime.now(UTC) + timedelta(seconds=in_s)
    due = (Due(channel=channel, due_at=due_at),)
    asked = KeepNotices(epoch=epoch, notices=tuple(KeptNotice(notice=n, due=due) for n in each))
    answer = await kept._keep(asked)
    assert answer.outcome == "ok"
    return answer.kept


async def next_of(kept: Notices, epoch: int, channel: str, **said: object) -> NoticesNext:
    asked = {"epoch": epoch, "channel": channel, **said}
    return await kept._next(NextNotices.model_validate(asked))


def titles(answer: NoticesNext) -> list[str]:
    return [each.notice.title for each in answer.notices]


def settled(*each: Notice, outcome: str = "sent", code: str = "") -> tuple[Settled, ...]:
    return tuple(
        Settled.model_validate({"event_id": n.event_id, "outcome": outcome, "code": code})
        for n in each
    )


async def test_one_notifier_at_a_time_has_the_lease(kept: Notices, channel: str) -> None:
    first = await lease(kept, channel)
    assert first.granted
    again = await lease(kept, channel)
    assert (again.granted, again.epoch) == (True, first.epoch), "its holder renews it"
    assert not (await lease(kept, channel, "two")).granted

    await kept._lease(LeaseNotifier(instance="two", release=True))
    assert not (await lease(kept, channel, "two")).granted, "only its holder gives it back"
    await kept._lease(LeaseNotifier(instance="one", release=True))
    second = await lease(kept, channel, "two")
    assert (second.granted, second.epoch) == (True, first.epoch + 1)


async def test_of_many_that_ask_at_once_one_gets_it(kept: Notices, channel: str) -> None:
    answers = await asyncio.gather(*(lease(kept, channel, f"n{number}") for number in range(8)))
    assert sum(answer.granted for answer in answers) == 1


async def test_behind_a_holder_that_died_the_next_one_has_an_epoch_of_its_own(
    kept: Notices, channel: str, pool: Pool
) -> None:
    first = await lease(kept, channel)
    await pool.execute("update notifier_lease set until_at = clock_timestamp()")
    second = await lease(kept, channel, "two")
    assert (second.granted, second.epoch) == (True, first.epoch + 1)


async def test_a_holder_that_died_before_the_clock_jumped_back_is_not_waited_for_until_then(
    kept: Notices, channel: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await lease(kept, channel)
    # As the clock has it once it has jumped a day back.
    await pool.execute("update notifier_lease set until_at = until_at + interval '1 day'")
    now = time.monotonic()
    monkeypatch.setattr("services.orchestrator.notices.time.monotonic", lambda: now)
    assert not (await lease(kept, channel, "two")).granted
    now += Settings().lease_s + 1
    second = await lease(kept, channel, "two")
    assert (second.granted, second.epoch) == (True, first.epoch + 1)


async def test_a_holder_that_renews_keeps_its_lease_however_the_clock_jumps_back(
    kept: Notices, channel: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr("services.orchestrator.notices.time.monotonic", lambda: now)
    first = await lease(kept, channel)
    await pool.execute("update notifier_lease set until_at = until_at + interval '1 day'")
    assert not (await lease(kept, channel, "two")).granted
    now += Settings().lease_s + 1
    assert (await lease(kept, channel)).epoch == first.epoch
    assert not (await lease(kept, channel, "two")).granted


async def test_what_was_due_and_what_failed_before_the_clock_jumped_back_is_due_at_once(
    kept: Notices, channel: str, pool: Pool
) -> None:
    epoch = (await lease(kept, channel)).epoch
    told = of_now("x", seconds=0.01)
    await keep(kept, epoch, channel, told)
    await next_of(kept, epoch, channel, failed="http_503", tried=(told.event_id,), again_in_s=300)
    # As the clock has it once it has jumped a day back.
    await pool.execute(
        "update notice_channels set failed_at = failed_at + interval '1 day', "
        "next_try_at = next_try_at + interval '1 day' where channel = $1",
        channel,
    )
    await pool.execute(
        "update notifications set due_at = due_at + interval '1 day', "
        "event_at = due_at + interval '1 day' where channel = $1",
        channel,
    )
    assert titles(await next_of(kept, epoch, channel)) == ["x"]


async def test_a_digest_of_an_event_from_before_the_clock_jumped_back_still_waits(
    kept: Notices, channel: str, pool: Pool
) -> None:
    epoch = (await lease(kept, channel)).epoch
    await keep(kept, epoch, channel, of_now("x", seconds=86_400), in_s=2 * 86_400)
    assert titles(await next_of(kept, epoch, channel)) == []


async def test_a_channel_set_before_the_clock_jumped_back_is_told_of_what_comes(
    kept: Notices, channel: str, pool: Pool
) -> None:
    epoch = (await lease(kept, channel)).epoch
    await pool.execute(
        "update notice_channels set since = since + interval '1 day' where channel = $1", channel
    )
    await lease(kept, channel)
    assert await keep(kept, epoch, channel, of_now("x")) == 1


async def test_notices_come_in_the_order_in_which_they_were_kept(
    kept: Notices, channel: str
) -> None:
    epoch = (await lease(kept, channel)).epoch
    each = [of_now(str(number)) for number in range(60)]
    assert await keep(kept, epoch, channel, *each[:30]) == 30
    assert await keep(kept, epoch, channel, *each[30:]) == 30

    first = await next_of(kept, epoch, channel)
    assert titles(first) == [str(number) for number in range(50)]
    assert first.waiting == 60
    rest = await next_of(kept, epoch, channel, settled=settled(*each[:50]))
    assert titles(rest) == [str(number) for number in range(50, 60)]
    over = await next_of(kept, epoch, channel, settled=settled(*each[50:]))
    assert (over.notices, over.wait_s, over.waiting) == ((), None, 0)


async def test_an_alarm_passes_whatever_waits_before_it(kept: Notices, channel: str) -> None:
    epoch = (await lease(kept, channel)).epoch
    each = [of_now(str(number)) for number in range(60)]
    await keep(kept, epoch, channel, *each[:30])
    await keep(kept, epoch, channel, *each[30:])
    halt = of_now("halt").model_copy(update={"severity": Severity.ALARM})
    await keep(kept, epoch, channel, halt)

    assert titles(await next_of(kept, epoch, channel))[:3] == ["halt", "0", "1"]
    rest = await next_of(kept, epoch, channel, settled=settled(halt))
    assert titles(rest) == [str(number) for number in range(50)], "the others in their order"


async def test_what_is_kept_again_stays_as_it_is(kept: Notices, channel: str, pool: Pool) -> None:
    """The stream delivers an event again, and the relay publishes it again after a crash."""
    epoch = (await lease(kept, channel)).epoch
    told = of_now("x")
    assert await keep(kept, epoch, channel, told) == 1
    assert await keep(kept, epoch, channel, told) == 0
    await next_of(kept, epoch, channel, settled=settled(told))
    assert await keep(kept, epoch, channel, told) == 0
    answer = await next_of(kept, epoch, channel)
    assert (answer.notices, answer.waiting) == ((), 0)
    counted = await pool.fetchrow(
        "select waiting, sent from notice_channels where channel = $1", channel
    )
    assert counted is not None
    assert dict(counted) == {"waiting": 0, "sent": 1}


async def test_a_channel_is_told_nothing_from_before_it_was_set(
    kept: Notices, channel: str
) -> None:
    epoch = (await lease(kept, channel)).epoch
    assert await keep(kept, epoch, channel, of_now("old", -60.0), of_now("new")) == 1
    assert titles(await next_of(kept, epoch, channel)) == ["new"]


async def test_what_is_not_due_yet_is_waited_for_by_the_databases_clock(
    kept: Notices, channel: str
) -> None:
    epoch = (await lease(kept, channel)).epoch
    await keep(kept, epoch, channel, of_now("later"), in_s=600.0)
    answer = await next_of(kept, epoch, channel)
    assert answer.notices == ()
    assert answer.wait_s is not None
    assert 590 < answer.wait_s <= 600


async def test_after_a_failure_nothing_of_the_channel_is_due_before_its_time(
    kept: Notices, channel: str, pool: Pool
) -> None:
    other = f"{channel}-other"
    epoch = (await lease(kept, channel)).epoch
    await lease(kept, other)
    one, two = of_now("1"), of_now("2")
    await keep(kept, epoch, channel, one, two)
    await keep(kept, epoch, other, one)

    failed = {"failed": "http_503", "tried": [one.event_id], "again_in_s": 600.0}
    answer = await next_of(kept, epoch, channel, **failed)
    assert (answer.notices, answer.failures, answer.waiting) == ((), 1, 2)
    assert answer.wait_s is not None
    assert answer.wait_s > 590
    assert titles(await next_of(kept, epoch, other)) == ["1"]

    await pool.execute("update notice_channels set next_try_at = clock_timestamp()")
    again = await next_of(kept, epoch, channel)
    assert [(each.notice.title, each.tries) for each in again.notices] == [("1", 1), ("2", 0)]
    await next_of(kept, epoch, channel, settled=settled(one))
    assert (await next_of(kept, epoch, channel)).failures == 0, "a success begins anew"


async def test_what_is_held_comes_later(kept: Notices, channel: str) -> None:
    epoch = (await lease(kept, channel)).epoch
    told = of_now("x")
    await keep(kept, epoch, channel, told)
    until = datetime.now(UTC) + timedelta(hours=8)
    answer = await next_of(kept, epoch, channel, held=[told.event_id], held_until=until)
    assert (answer.notices, answer.waiting) == ((), 1)


async def test_a_notifier_without_the_lease_keeps_and_is_given_nothing(
    kept: Notices, channel: str, pool: Pool
) -> None:
    old = (await lease(kept, channel)).epoch
    told = of_now("x")
    await keep(kept, old, channel, told)
    await pool.execute("update notifier_lease set until_at = clock_timestamp()")
    await lease(kept, channel, "two")

    due = (Due(channel=channel, due_at=datetime.now(UTC)),)
    asked = KeepNotices(epoch=old, notices=(KeptNotice(notice=of_now("y"), due=due),))
    assert (await kept._keep(asked)).outcome == "fenced"
    answer = await next_of(kept, old, channel)
    assert (answer.outcome, answer.notices) == ("fenced", ())


async def test_what_was_sent_is_remembered_whoever_says_so(
    kept: Notices, channel: str, pool: Pool
) -> None:
    """It was frozen between sending and saying so, and another one has the lease by now."""
    old = (await lease(kept, channel)).epoch
    told = of_now("x")
    await keep(kept, old, channel, told)
    await pool.execute("update notifier_lease set until_at = clock_timestamp()")
    new = (await lease(kept, channel, "two")).epoch
    assert (await next_of(kept, old, channel, settled=settled(told))).outcome == "fenced"
    assert (await next_of(kept, new, channel)).notices == ()


async def test_what_is_given_up_is_told_as_one_event(
    kept: Notices, channel: str, pool: Pool, sent: Sent
) -> None:
    epoch = (await lease(kept, channel)).epoch
    each = [of_now(str(number)) for number in range(3)]
    await keep(kept, epoch, channel, *each)
    failed = {"failed": "timeout", "tried": [each[0].event_id], "again_in_s": 0.0}
    await next_of(kept, epoch, channel, **failed)
    await next_of(kept, epoch, channel, settled=settled(*each, outcome="given_up"))

    (event,) = await _given_up(pool, channel)
    assert (event["count"], event["code"]) == (3, "timeout")
    assert sent.woken == 1
    rows = await pool.fetch(
        "select status, error_code from notifications where channel = $1", channel
    )
    assert {(row["status"], row["error_code"]) for row in rows} == {("given_up", "timeout")}


@pytest.mark.parametrize("later", ['{"of": "a later version"}', '{"kind": "a new one"}'])
async def test_one_that_cannot_be_read_is_given_up_and_those_behind_it_are_due(
    kept: Notices, channel: str, pool: Pool, sent: Sent, later: str
) -> None:
    epoch = (await lease(kept, channel)).epoch
    poison, behind = of_now("poison"), of_now("behind")
    await keep(kept, epoch, channel, poison, behind)
    await pool.execute(
        "update notifications set notice = $1::jsonb where event_id = $2", later, poison.event_id
    )

    answer = await next_of(kept, epoch, channel)

    assert (titles(answer), answer.waiting) == (["behind"], 1)
    (event,) = await _given_up(pool, channel)
    assert (event["count"], event["code"], sent.woken) == (1, "unreadable", 1)
    again = await next_of(kept, epoch, channel, settled=settled(behind))
    assert (titles(again), again.waiting, again.wait_s) == ([], 0, None)
    assert len(await _given_up(pool, channel)) == 1


async def test_that_a_word_on_undelivered_notices_was_not_delivered_is_told_no_more(
    kept: Notices, channel: str, pool: Pool
) -> None:
    epoch = (await lease(kept, channel)).epoch
    told = notice(kind=NoticeKind.UNDELIVERED, at=datetime.now(UTC) + timedelta(seconds=1))
    await keep(kept, epoch, channel, told)
    await next_of(kept, epoch, channel, settled=settled(told, outcome="given_up", code="x"))
    assert await _given_up(pool, channel) == []


async def _given_up(pool: Pool, channel: str) -> list[dict[str, object]]:
    rows = await pool.fetch("select data from state_events where type = 'notices_given_up'")
    events = [orjson.loads(row["data"]) for row in rows]
    return [event for event in events if event["channel"] == channel]


async def test_what_is_long_over_is_forgotten_and_what_waits_stays(
    kept: Notices, channel: str, pool: Pool
) -> None:
    epoch = (await lease(kept, channel)).epoch
    over, waits = of_now("over"), of_now("waits")
    await keep(kept, epoch, channel, over, waits)
    await next_of(kept, epoch, channel, settled=settled(over))
    old = "clock_timestamp() - interval '400 days'"
    await pool.execute(f"update notifications set ended_at = {old} where status = 'sent'")
    await pool.execute(f"update notifications set due_at = {old}, event_at = {old}")
    await pool.execute(notices.sql.forget_notices, Settings().notices_kept_s, 100)
    rows = await pool.fetch("select event_id from notifications where channel = $1", channel)
    assert [row["event_id"] for row in rows] == [waits.event_id]


async def test_a_channel_that_nobody_named_is_refused(kept: Notices) -> None:
    epoch = (await lease(kept, "named")).epoch
    with pytest.raises(ChannelUnknown):
        await next_of(kept, epoch, "other-channel")
    due = (Due(channel="other-channel", due_at=datetime.now(UTC)),)
    asked = KeepNotices(epoch=epoch, notices=(KeptNotice(notice=of_now("y"), due=due),))
    assert (await kept._keep(asked)).kept == 0


async def test_two_orchestrators_that_settle_the_same_count_it_once(
    kept: Notices, channel: str, pool: Pool, sent: Sent
) -> None:
    epoch = (await lease(kept, channel)).epoch
    told = of_now("x")
    await keep(kept, epoch, channel, told)
    twice = [
        next_of(each, epoch, channel, settled=settled(told))
        for each in (kept, Notices(pool, Settings(), sent))
    ]
    await asyncio.gather(*twice)
    row = await pool.fetchrow(
        "select waiting, sent from notice_channels where channel = $1", channel
    )
    assert row is not None
    assert (row["waiting"], row["sent"]) == (0, 1)


async def test_what_waits_for_a_channel_that_is_not_set_any_more_is_given_up_in_the_end(
    kept: Notices, channel: str, pool: Pool
) -> None:
    epoch = (await lease(kept, channel)).epoch
    gone, waits = of_now("gone"), of_now("waits")
    await keep(kept, epoch, channel, gone, waits)
    await pool.execute(
        "update notifications set due_at = clock_timestamp() - interval '9 days'"
        " where event_id = $1",
        gone.event_id,
    )
    await kept.tidy()
    (event,) = await _given_up(pool, channel)
    assert (event["count"], event["code"]) == (1, "channel_gone")
    assert titles(await next_of(kept, epoch, channel)) == ["waits"]


@pytest.mark.parametrize(
    "fields",
    [
        {"page": "//evil.example"},
        {"page": "@evil.example/"},
        {"page": ".evil.example"},
        {"page": "/x?token=1"},
        {"title": "see https://evil.example"},
        {"lines": ("see https://evil.example",)},
        {"lines": ("two\nlines",)},
    ],
)
def test_whoever_has_the_notifiers_key_can_have_no_link_of_his_own_sent(
    fields: dict[str, object],
) -> None:
    with pytest.raises(ValidationError):
        notice(**fields)


async def test_what_is_due_next_is_found_without_a_look_at_all_that_was_ever_sent(
    kept: Notices, channel: str, pool: Pool, servers: Servers
) -> None:
    dead = f"{channel}-dead"
    answer = await kept._lease(LeaseNotifier(instance="one", channels=(channel, dead)))
    await keep(kept, answer.epoch, channel, of_now("a fill"))
    # A month of messages, in the order in which they were sent; the newest still wait, and another
    # channel's have waited all the time.
    for of, status, times in (
        (channel, "sent", 40_000),
        (dead, "due", 40_000),
        (channel, "due", 5_000),
    ):
        await pool.execute(
            "insert into notifications (event_id, channel, notice, gathered, event_at, due_at,"
            " status, ended_at) select gen_random_uuid(), $2, notice, gathered, event_at,"
            " due_at, $3, case when $3 <> 'due' then clock_timestamp() end"
            " from (select * from notifications where channel = $1 limit 1) one,"
            " generate_series(1, $4)",
            channel,
            of,
            status,
            times,
        )
    owner = await asyncpg.connect(servers.postgres_dsn(OWNER_ROLE))
    await owner.execute("analyze notifications")
    await owner.close()
    plan = await pool.fetch(f"explain {notices.sql.next_notices}", channel, 32)
    await pool.execute("delete from notifications where channel = $1", channel)
    assert "using notifications_next" in "\n".join(row[0] for row in plan)
