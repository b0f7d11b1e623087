"""How past decisions fared: when it is known, from which price, and what is said without one."""

from decimal import Decimal

import pytest

from contracts.account import Side
from contracts.memory import AWAITED_MAX, OUTCOMES_MAX, TRACK_RECORD_MAX, Basis, PickFate
from contracts.message import MESSAGE_BYTES_MAX
from contracts.types import Money
from libs.market.errors import LookAhead
from tests.unit.services.assessment.conftest import (
    SESSIONS,
    Past,
    filled,
    pick,
    remembered,
)


def usd(amount: int) -> Money:
    return Money(amount=Decimal(amount))


@pytest.mark.parametrize(
    ("after", "known"), [(1, []), (4, []), (5, [5]), (19, [5]), (20, [5, 20]), (30, [5, 20])]
)
async def test_an_outcome_is_known_from_its_session_on_and_not_before(market, after, known):
    market.share("UP", {0: 100, 5: 110, 20: 130, 21: 999})
    memory = await remembered(market.desk(), after, Past([pick("UP")], ["UP"]))
    assert [each.sessions for each in memory.outcomes] == known
    changes = [each.picks[0].return_pct for each in memory.outcomes]
    assert changes == [Decimal(10), Decimal(30)][: len(known)]
    assert [each.session for each in memory.outcomes] == [SESSIONS[number] for number in known]


async def test_what_was_told_is_not_told_again(market):
    market.share("UP", {0: 100, 5: 110, 20: 130})
    memory = await remembered(market.desk(), 25, Past([pick("UP")], told=[5]))
    assert [each.sessions for each in memory.outcomes] == [20]


async def test_a_filled_pick_counts_from_its_fill_and_every_other_from_the_close(market):
    market.share("ONE", {0: 100, 1: 104, 5: 126})
    market.share("TWO", {0: 100, 5: 90})
    past = Past([filled("ONE", "105"), pick("TWO", fate=PickFate.VETOED)], ["ONE", "TWO"])
    (told,) = (await remembered(market.desk(), 5, past)).outcomes
    bought, vetoed = told.picks
    assert (bought.basis, bought.entry_price, bought.return_pct) == (Basis.FILL, usd(105), 20)
    assert (vetoed.basis, vetoed.entry_price, vetoed.return_pct) == (Basis.CLOSE, usd(100), -10)
    # ONE +26%, TWO -10%, both from the close: the universe does not know what was paid.
    assert (told.benchmark.return_pct, told.benchmark.counted) == (8, 2)


async def test_an_order_that_still_worked_counts_from_the_open_that_it_waited_for(market):
    market.share("ONE", {0: 100, 5: 126}, opens={1: 105})
    (told,) = (
        await remembered(market.desk(), 5, Past([pick("ONE", fate=PickFate.WORKING)]))
    ).outcomes
    assert (told.picks[0].basis, told.picks[0].return_pct) == (Basis.NEXT_OPEN, 20)


@pytest.mark.parametrize("split_on", [1, 2, 5])
@pytest.mark.parametrize("bought", [True, False])
async def test_a_split_is_neither_a_loss_nor_a_gain(market, split_on, bought):
    market.share("TWO1", {0: 100, split_on: 50}, split=(split_on, 2))
    paid = "50" if split_on == 1 else "100"
    picks = [filled("TWO1", paid) if bought else pick("TWO1")]
    (told,) = (await remembered(market.desk(), 5, Past(picks, ["TWO1"]))).outcomes
    assert (told.picks[0].return_pct, told.benchmark.return_pct) == (0, 0)
    assert (told.picks[0].entry_price, told.picks[0].exit_price) == (usd(50), usd(50))


async def test_a_split_after_the_outcomes_session_does_not_show_in_it(market):
    market.share("TWO1", {0: 100, 5: 110, 6: 55}, split=(6, 2))
    (told,) = (await remembered(market.desk(), 7, Past([filled("TWO1", "100")]))).outcomes
    assert (told.picks[0].entry_price, told.picks[0].exit_price) == (usd(100), usd(110))
    assert told.picks[0].return_pct == 10


async def test_a_dividend_belongs_to_the_return(market):
    market.share("DIV", {0: 100, 3: 90}, dividend=(3, 10))
    (told,) = (await remembered(market.desk(), 5, Past([filled("DIV", "100")]))).outcomes
    assert told.picks[0].return_pct == 0


async def test_a_ticker_delisted_in_between_is_a_typed_absence_and_not_in_the_benchmark(market):
    market.share("GONE", {0: 100}, last=12)
    market.share("STAY", {0: 100, 5: 102, 20: 104})
    past = Past([pick("GONE"), filled("STAY", "100")], ["GONE", "STAY"])
    week, month = (await remembered(market.desk(), 20, past)).outcomes
    assert week.picks[0].return_pct == 0
    assert (week.benchmark.counted, week.benchmark.absent) == (2, ())
    gone = month.picks[0]
    assert (gone.return_pct, gone.entry_price, gone.exit_price) == (None, None, None)
    assert gone.absence.code == "no_history"
    assert "delisted" in gone.absence.message
    assert month.picks[1].return_pct == 4
    assert (month.benchmark.return_pct, month.benchmark.counted) == (4, 1)
    assert month.benchmark.absent == ("GONE",)


async def test_a_ticker_without_the_price_to_count_from_is_a_typed_absence(market):
    market.share("NEW", {0: 100})
    text = (market.path / "NEW.csv").read_text().splitlines()
    (market.path / "NEW.csv").write_text("\n".join([text[0], *text[4:]]) + "\n")
    picks = [pick("NEW"), pick("NEW", fate=PickFate.WORKING), filled("NEW", "100")]
    for each in picks:
        (told,) = (await remembered(market.desk(), 5, Past([each], ["NEW"]))).outcomes
        assert told.picks[0].absence.code == "no_history"
        assert told.picks[0].return_pct is None
        assert (told.benchmark.return_pct, told.benchmark.counted) == (None, 0)


async def test_a_ticker_that_the_source_does_not_know_is_a_typed_absence(market):
    market.share("STAY", {0: 100})
    (told,) = (await remembered(market.desk(), 5, Past([pick("XXX")], ["STAY"]))).outcomes
    assert told.picks[0].absence.code == "unknown_ticker"


async def test_a_decision_without_a_pick_still_has_its_benchmark(market):
    market.share("UP", {0: 100, 5: 103})
    memory = await remembered(market.desk(), 5, Past([], ["UP"]))
    assert memory.outcomes[0].benchmark.return_pct == 3
    assert "nothing picked; equal parts of 1 candidate +3.00%" in memory.track_record[0]


async def test_a_sale_tells_what_the_share_did_after_it(market):
    market.share("DOWN", {0: 100, 5: 80})
    sale = filled("DOWN", "100").model_copy(update={"action": Side.SELL})
    memory = await remembered(market.desk(), 5, Past([sale]))
    assert memory.outcomes[0].picks[0].return_pct == -20
    assert "sold DOWN -20.00%" in memory.track_record[0]


async def test_nothing_after_the_outcomes_session_is_read(market):
    market.share("UP", {0: 100, 5: 110, 20: 130})
    desk = market.desk()
    asked = []
    bars = desk.market.bars

    async def spying(ticker, as_of, sessions):
        asked.append(as_of)
        return await bars(ticker, as_of, sessions)

    desk.market.bars = spying
    await remembered(desk, 7, Past([filled("UP", "100")], ["UP"]))
    assert max(asked) == SESSIONS[5]


async def test_a_leak_of_the_source_ends_the_operation(market, monkeypatch):
    market.share("UP", {0: 100})
    desk = market.desk()

    async def leaking(ticker, as_of, sessions):
        raise LookAhead("bars", desk.market.calendar.close(SESSIONS[9]), as_of)

    monkeypatch.setattr(desk.market, "bars", leaking)
    with pytest.raises(LookAhead):
        await remembered(desk, 5, Past([pick("UP")]))


async def test_outcomes_are_read_once_and_replayed_without_any_read(market, monkeypatch):
    market.share("UP", {0: 100, 5: 110})
    desk = market.desk()
    first = await remembered(desk, 5, Past([pick("UP")], ["UP"]))

    async def dead(*_):
        raise AssertionError("the market was asked")

    monkeypatch.setattr(desk.market, "bars", dead)
    assert await remembered(desk, 5, Past([pick("UP")], ["UP"])) == first


async def test_after_a_long_pause_all_outcomes_of_a_month_fit_into_one_memory(market):
    names = [f"T{number}" for number in range(10)]
    for name in names:
        market.share(name, {0: 100})
    picks = [pick(name, fate=PickFate.VETOED) for name in names]
    past = [Past(picks, names, number=number) for number in range(AWAITED_MAX)]
    memory = await remembered(market.desk(), 20, *past)
    assert len(memory.outcomes) == OUTCOMES_MAX
    assert len(memory.model_dump_json()) < MESSAGE_BYTES_MAX - 200_000


async def test_the_track_record_is_carried_on_the_newest_first_and_bounded(market):
    market.share("UP", {0: 100, 5: 110, 20: 130})
    desk = market.desk()
    last = await remembered(desk, 1)
    before = tuple(f"old {number}" for number in range(TRACK_RECORD_MAX))
    desk.journals = {}
    memory = await remembered(
        desk,
        20,
        Past([pick("UP", fate=PickFate.VETOED)], ["UP"]),
        agent_memory=last.model_copy(update={"track_record": before}),
    )
    assert len(memory.track_record) == TRACK_RECORD_MAX
    assert memory.track_record[0].startswith(
        "2012-06-01 after 20 sessions: vetoed buy of UP +30.00%"
    )
    assert memory.track_record[1].startswith("2012-06-01 after 5 sessions: ")
    assert memory.track_record[2:] == before[:-2]


async def test_an_absence_is_told_as_unknown(market):
    market.share("STAY", {0: 100})
    memory = await remembered(market.desk(), 5, Past([pick("XXX")], ["STAY"]))
    assert "XXX unknown (unknown_ticker)" in memory.track_record[0]
