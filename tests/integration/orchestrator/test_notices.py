"""The record of messages to people, on a real Postgres."""

import uuid
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from contracts.notice import KeepNotices, KeptNotice, Notice, NoticeKind, SettleNotices
from libs.postgres.pool import Pool
from libs.runtime.settings import Settings
from services.orchestrator.notices import STALE, Notices
from tests.fakes.notable import notice

LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


@pytest.fixture
async def record(pool: Pool) -> Notices:
    """The part of one orchestrator, with an empty record."""
    await pool.execute("delete from notifications")
    return Notices(pool, Settings())


@pytest.fixture
def channel() -> str:
    """A channel of the test's own."""
    return f"c{uuid.uuid4().hex[:8]}"


async def keep(
    record: Notices, channel: str, *notices: Notice, since: datetime = LONG_AGO
) -> set[uuid.UUID]:
    now = datetime.now(UTC)
    kept = tuple(KeptNotice(notice=it, due_at=now) for it in notices)
    return set((await record._keep(KeepNotices(channel=channel, since=since, notices=kept))).ended)


async def settle(
    record: Notices, channel: str, *notices: Notice, code: str = "", patience_s: float = 60
) -> set[uuid.UUID]:
    tried = tuple(it.event_id for it in notices)
    query = SettleNotices(channel=channel, tried=tried, code=code, give_up_after_s=patience_s)
    return set((await record._settle(query)).ended)


async def statuses(pool: Pool) -> dict[uuid.UUID, tuple[str, int, str]]:
    rows = await pool.fetch("select event_id, status, tries, error_code from notifications")
    return {row["event_id"]: (row["status"], row["tries"], row["error_code"]) for row in rows}


async def given_up(pool: Pool, channel: str) -> list[dict[str, object]]:
    rows = await pool.fetch(
        "select data::text as data from state_events"
        " where type = 'notices_given_up' and data ->> 'channel' = $1",
        channel,
    )
    return [orjson.loads(row["data"]) for row in rows]


async def test_a_notice_is_kept_once_and_ends_once(
    record: Notices, pool: Pool, channel: str
) -> None:
    one, two = notice("one"), notice("two")
    assert await keep(record, channel, one, two) == set()
    assert await keep(record, channel, one) == set(), "it is delivered again"
    assert await settle(record, channel, one) == {one.event_id}
    assert await keep(record, channel, one, two) == {one.event_id}, "it is not to be sent again"
    assert await settle(record, channel, one, code="timeout") == set()
    assert await statuses(pool) == {
        one.event_id: ("sent", 1, ""),
        two.event_id: ("due", 0, ""),
    }


async def test_each_channel_has_its_own_record_of_an_event(record: Notices, channel: str) -> None:
    one = notice("one")
    await keep(record, channel, one)
    await settle(record, channel, one)
    assert await keep(record, f"{channel}_b", one) == set()


async def test_what_fails_for_too_long_since_its_first_try_is_given_up_and_told_as_an_event(
    record: Notices, pool: Pool, channel: str
) -> None:
    one, two = notice("one"), notice("two")
    await keep(record, channel, one, two)
    assert await settle(record, channel, one, code="http_500", patience_s=0) == set(), "first try"
    assert await settle(record, channel, one, code="timeout") == set(), "within its time"
    ended = await settle(record, channel, one, two, code="http_503", patience_s=0)
    assert ended == {one.event_id}
    assert (await statuses(pool))[one.event_id] == ("given_up", 3, "http_503")
    (told,) = await given_up(pool, channel)
    assert (told["channel"], told["count"], told["code"]) == (channel, 1, "http_503")


async def test_the_giving_up_of_undelivered_is_no_event_or_two_dead_channels_never_rest(
    record: Notices, pool: Pool, channel: str
) -> None:
    one = notice("lost", kind=NoticeKind.UNDELIVERED)
    await keep(record, channel, one)
    await settle(record, channel, one, code="timeout")
    assert await settle(record, channel, one, code="timeout", patience_s=0) == {one.event_id}
    assert await given_up(pool, channel) == []


async def test_what_waited_when_nats_lost_its_store_is_given_up(
    record: Notices, pool: Pool, channel: str
) -> None:
    before, sent, just_now = notice("before"), notice("sent"), notice("just now")
    await keep(record, channel, before, sent)
    await settle(record, channel, sent)
    await pool.execute("update notifications set kept_at = kept_at - interval '1 hour'")
    since = datetime.now(UTC) - timedelta(seconds=1)
    await keep(record, channel, just_now)
    await keep(record, channel, notice("after"), since=since)
    record_of = await statuses(pool)
    assert record_of[before.event_id] == ("given_up", 0, "lost")
    assert record_of[sent.event_id] == ("sent", 1, "")
    assert record_of[just_now.event_id] == ("due", 0, ""), "the clocks may differ by so much"
    assert [told["code"] for told in await given_up(pool, channel)] == ["lost"]


async def test_what_ended_long_ago_is_forgotten_and_what_nats_cannot_hold_is_given_up(
    record: Notices, pool: Pool, channel: str
) -> None:
    old, waiting, new = notice("old"), notice("waiting"), notice("new")
    await keep(record, channel, old, waiting, new)
    await settle(record, channel, old, new)
    kept_s = Settings().notify.kept_s
    await pool.execute(
        "update notifications set ended_at = ended_at - $2 * interval '1 second'"
        " where event_id = $1",
        old.event_id,
        kept_s + 60,
    )
    await pool.execute(
        "update notifications set kept_at = kept_at - $2 * interval '1 second' where event_id = $1",
        waiting.event_id,
        STALE.total_seconds() + 60,
    )
    await record.tidy()
    assert await statuses(pool) == {
        waiting.event_id: ("given_up", 0, "lost"),
        new.event_id: ("sent", 1, ""),
    }
