"""One turn of a model: what is tried again, how long is waited, and what stands on record."""

from decimal import Decimal

import pytest

from contracts.operation import CallKind
from libs.llm.agent import AgentLimits
from libs.llm.errors import (
    AccountExhausted,
    KeyRefused,
    ModelError,
    ModelUnknown,
    ProviderFault,
    ProviderUnavailable,
    RequestRefused,
)
from libs.runtime.journal import Journal
from tests.fakes.log_lines import log_lines
from tests.fakes.scripted_model import ScriptedProvider, asks, says

GOOD = says({"word": "yes"})
BUSY = ProviderUnavailable("HTTP 529")


@pytest.fixture
def waits(monkeypatch):
    """The waits that were asked for; nobody sleeps."""
    found: list[float] = []

    async def pause(journal, wait_s):
        if journal._next not in journal._recorded:
            found.append(wait_s)

    monkeypatch.setattr(Journal, "pause", pause)
    return found


def replies_after(failures):
    return [None] * failures + [GOOD]


async def test_a_busy_provider_is_asked_again_and_every_try_is_on_record(bench, waits):
    desk = bench(replies_after(3), faults=dict.fromkeys(range(3), BUSY), paid=True)
    assert (await desk.plain()).word == "yes"
    calls = [entry for entry in desk.entries if entry.kind is CallKind.MODEL]
    assert [entry.reply.get("fault", {}).get("code") for entry in calls] == [
        *["provider_unavailable"] * 3,
        None,
    ]
    assert sum(reserve is not None for reserve in desk.reserves) == 4


async def test_waits_double_with_jitter_and_stay_below_the_limit(bench, waits):
    desk = bench(
        replies_after(9),
        faults=dict.fromkeys(range(9), BUSY),
        limits=AgentLimits(attempts_max=20, wait_s_max=4.0),
    )
    await desk.plain()
    for number, wait_s in enumerate(waits):
        longest = min(0.5 * 2**number, 4.0)
        assert longest / 2 <= wait_s <= longest
    assert len(set(waits)) > 5


async def test_the_wait_that_is_asked_for_is_kept_to(bench, waits):
    asked = ProviderUnavailable("HTTP 429", retry_after_s=7.0)
    desk = bench(replies_after(1), faults={0: asked})
    await desk.plain()
    assert 7.0 <= waits[0] <= 8.0


async def test_a_longer_wait_than_the_limit_is_a_failure_that_names_both(bench, waits):
    asked = ProviderUnavailable("HTTP 429", retry_after_s=3600.0)
    desk = bench(replies_after(1), faults={0: asked})
    with pytest.raises(ProviderUnavailable, match=r"wait 3600 s .* limit is 60 s"):
        await desk.plain()
    assert (desk.provider.calls, waits) == (1, [])


async def test_after_the_last_try_the_failure_says_how_many_there_were(bench, waits):
    desk = bench([None] * 9, faults=dict.fromkeys(range(9), BUSY))
    with pytest.raises(ProviderUnavailable, match="gave up after 5 tries"):
        await desk.plain()
    assert desk.provider.calls == 5
    assert len(desk.entries) == 5


async def test_an_answer_that_is_no_reply_is_asked_for_again_at_once(bench, waits):
    fault = ProviderFault("a page of HTML")
    desk = bench(replies_after(2), faults={0: fault, 1: fault})
    assert (await desk.plain()).word == "yes"
    assert waits == [0.0, 0.0]


@pytest.mark.parametrize("kind", [KeyRefused, AccountExhausted, ModelUnknown, RequestRefused])
async def test_what_a_second_call_would_not_mend_fails_at_once_under_its_own_code(
    bench, waits, kind
):
    desk = bench([None, GOOD], faults={0: kind("no")})
    with pytest.raises(kind, match="no"):
        await desk.plain()
    assert desk.provider.calls == 1
    again = desk.again_after(1, ScriptedProvider([]))
    with pytest.raises(kind, match="no"):
        await again.plain()


async def test_a_call_that_may_have_been_paid_counts_as_its_whole_reservation(bench, waits):
    lost = ProviderUnavailable("no reply within 240 s", may_have_cost=True)
    desk = bench(replies_after(2), faults={0: lost, 1: BUSY}, paid=True)
    await desk.plain()
    first, second, *_ = desk.entries
    assert (first.usage.tokens, first.usage.cost_usd) == (100, Decimal("0.01"))
    assert second.usage.tokens == 0


@pytest.mark.parametrize("kept", range(5))
async def test_a_restart_between_two_tries_repeats_none_and_waits_only_for_what_is_new(
    bench, waits, kept
):
    whole = bench(replies_after(3), faults=dict.fromkeys(range(3), BUSY), paid=True)
    answer = await whole.plain()
    waits.clear()
    left = 4 - min(kept, 4)
    script = ScriptedProvider(replies_after(left - 1), faults=dict.fromkeys(range(left - 1), BUSY))
    script.reserved = whole.reserves[0]
    again = whole.again_after(kept, script)
    assert await again.plain() == answer
    assert script.calls == left
    assert len(waits) == (left if 0 < kept < 4 else max(0, left - 1))
    assert [e.request_sha256 for e in again.entries] == [e.request_sha256 for e in whole.entries]


async def test_the_tooling_pass_tries_again_too(bench, waits):
    tools = asks(("price", {"ticker": "A"}))
    desk = bench([None, tools, None, says("done"), GOOD], faults={0: BUSY, 2: BUSY})
    answer, calls = await desk.with_tools()
    assert (answer.word, calls) == ("yes", 1)


async def test_an_error_is_a_model_error_with_its_own_words_when_read_back(bench, waits):
    class Other(ModelError):
        code = "something_new"

    desk = bench([None], faults={0: Other("new words")})
    with pytest.raises(ModelError, match="new words"):
        await desk.plain()


async def test_a_pause_is_not_made_where_the_next_call_is_on_record(bench, monkeypatch):
    slept: list[float] = []

    async def sleep(wait_s):
        slept.append(wait_s)

    monkeypatch.setattr("libs.runtime.journal.asyncio.sleep", sleep)
    whole = bench(replies_after(1), faults={0: BUSY})
    await whole.plain()
    assert [wait_s for wait_s in slept if wait_s] == slept[:1]
    slept.clear()
    await whole.again_after(2, ScriptedProvider([])).plain()
    assert slept == []


async def test_the_log_says_when_a_call_begins_and_ends_and_holds_no_word_of_it(bench, waits):
    desk = bench(replies_after(1), faults={0: BUSY}, paid=True)
    with log_lines() as lines:
        await desk.plain()

    calls = [line for line in lines if line["event"].startswith("llm.call_")]
    assert [(line["event"], line["log_level"]) for line in calls] == [
        ("llm.call_began", "debug"),
        ("llm.call_ended", "info"),
        ("llm.call_failed", "warning"),
        ("llm.call_began", "debug"),
        ("llm.call_ended", "info"),
    ]
    failed, good = (line for line in calls if line["event"] == "llm.call_ended")
    assert failed["outcome"] == "provider_unavailable"
    assert good["outcome"] == "end"
    assert {"agent", "provider", "model", "tokens", "seconds"} <= good.keys()
    assert "yes" not in str([line for line in calls if line["event"] != "llm.call_failed"])
